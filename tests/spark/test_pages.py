"""The pages on Spark match the code: the tutorial and the commands run, and all options and columns are documented."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from disqued.testing.processes import ServerProcess
from pipelines import drain, enqueue, report
from pyspark_disque.options import OPTIONS
from pyspark_disque_aof import options as aof
from pyspark_disque_aof import rows
from support.cluster import RealCluster

pytestmark = pytest.mark.timeout(400)  # a busy machine may take a minute to start Spark

DOCS = Path(__file__).parents[2] / "docs"
TUTORIAL = (DOCS / "howto" / "spark.md").read_text(encoding="utf-8")
PIPELINES = (DOCS / "howto" / "pipelines.md").read_text(encoding="utf-8")
AOF = (DOCS / "spark" / "aof.md").read_text(encoding="utf-8")
COMMANDS = {"disque-enqueue": enqueue, "disque-drain": drain, "disque-report": report}


def examples() -> list[tuple[str, str]]:
    """Return the commands of the page on pipelines with their output, in order."""
    blocks = re.findall(r"```console\n(.*?)```", PIPELINES, re.DOTALL)
    return [(line, output) for block in blocks for line, output in re.findall(r"\$ (.*)\n((?:(?!\$).*\n)*)", block)]


@pytest.mark.slow
@pytest.mark.long
def test_all_cells_of_the_tutorial_run(tmp_path: Path) -> None:
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


def test_option_reference_matches_the_table() -> None:
    text = (DOCS / "spark" / "options.md").read_text(encoding="utf-8")
    assert [option.name for option in OPTIONS if f"| `{option.name}` |" not in text] == []


def test_aof_page_lists_all_options_and_columns() -> None:
    for option in aof.OPTIONS:
        assert f"| `{option.name}` | {option.default} | {option.text} |" in AOF
    assert [name for kind in rows.SCHEMAS for name in rows.columns(kind) if f"`{name}`" not in AOF] == []


def test_all_command_line_options_of_the_page_exist() -> None:
    known = {
        name for module in COMMANDS.values() for action in module.parser()._actions for name in action.option_strings
    }
    assert set(re.findall(r"(?<![\w-])--[a-z-]+[a-z]", PIPELINES)) <= known | {"--help"}


@pytest.mark.slow
@pytest.mark.long
def test_commands_of_the_page_print_its_output(
    spark: SparkSession, nodes: str, cluster: RealCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Run all commands except the report, whose numbers come from a longer log."""
    monkeypatch.chdir(tmp_path)
    orders = spark.createDataFrame([(1, "tea"), (2, "rice")], "order_id int, item string")
    orders.coalesce(1).write.parquet(f"file:{tmp_path}/orders.parquet")
    shown = [(line, output) for line, output in examples() if not line.startswith("disque-report")]
    assert len(shown) == 3
    for line, output in shown:
        program, *arguments = shlex.split(line.replace("broker:7711", nodes))
        arguments = [f"{tmp_path}/{word}" if word in {"orders.parquet", "lake/orders"} else word for word in arguments]
        capsys.readouterr()
        assert COMMANDS[program].main(arguments) == 0
        printed = capsys.readouterr().out.replace(f"{tmp_path}/", "")
        assert re.sub(r"seconds: .*", "", printed) == re.sub(r"seconds: .*", "", output)
    assert cluster.nodes[0].is_running
