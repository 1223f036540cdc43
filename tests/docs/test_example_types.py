"""The Python examples of the documentation pass the strict type checker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
UNTYPED = ("docs/howto/celery", "docs/migrate/", "docs/spark/", "docs/howto/spark")
"""Their examples use libraries without types."""


@pytest.mark.timeout(300)
def test_examples_pass_the_type_checker(tmp_path: Path) -> None:
    """One run for all pages: each takes seconds to read the types of the client."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        name = page.relative_to(ROOT).as_posix()
        if name.startswith(UNTYPED):
            continue
        for number, example in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
            module = re.sub(r"\W", "_", name.removesuffix(".md"))
            (tmp_path / f"{module}_{number}.py").write_text(example, encoding="utf-8")
    examples = list(tmp_path.glob("*.py"))
    assert len(examples) > 20
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", *examples],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
