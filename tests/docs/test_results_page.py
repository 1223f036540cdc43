"""The guide about results is a session: its examples run in order, and show what it says."""

from __future__ import annotations

import re
from pathlib import Path

from cli.running import Disque
from disqued.core.fates.fate import OUTCOMES
from disqued.testing.processes import ServerProcess
from support.examples import run_console, run_python

TEXT = (Path(__file__).parents[2] / "docs" / "howto" / "results.md").read_text(encoding="utf-8")
[CONSOLE] = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_examples_run_in_order(server: ServerProcess, tmp_path: Path) -> None:
    disque = Disque(server.port)
    run_console(CONSOLE, disque)
    disque.ok("getjob", "nohang", "from", "thumbnails")
    for example in PYTHON:
        run_python(example, server.port, tmp_path)


def test_all_outcomes_are_in_the_table() -> None:
    section = TEXT.split("## Outcomes")[1].split("\n## ")[0]
    outcomes = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert outcomes == {name.decode() for name in OUTCOMES} - {"unknown"}
