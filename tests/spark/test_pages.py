"""The pages on Spark tell the truth: the tutorial runs, and the reference is that of the table."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from disqued.testing.processes import ServerProcess
from pyspark_disque import docs
from pyspark_disque.options import OPTIONS

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs" / "howto" / "spark.md").read_text()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_tutorial_runs_from_its_first_cell_to_its_last(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        server.wait_ready()
        cells = re.findall(r"```python\n(.*?)```", TUTORIAL, re.DOTALL)
        notebook = tmp_path / "notebook.py"
        notebook.write_text("\n".join(cells).replace("localhost:7711", f"127.0.0.1:{server.port}"))
        activated = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["python", notebook], capture_output=True, text=True, timeout=290, check=False, env=activated
        )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "picture-00" in done.stdout
    assert len(cells) >= 8


def test_the_reference_of_options_is_the_one_of_the_table() -> None:
    assert (ROOT / "docs" / "spark" / "options.md").read_text() == docs.page()
    assert [option.name for option in OPTIONS if f"| `{option.name}` |" not in docs.page()] == []
