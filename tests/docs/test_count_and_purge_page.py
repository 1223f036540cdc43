"""The guide about counting and deleting jobs is a session: its examples run in order, and show what it says."""

from __future__ import annotations

import re
from pathlib import Path

from cli.running import Disque
from disqued.core.jobs.phases import PHASES
from disqued.testing.processes import ServerProcess
from support.examples import run_console, run_python

TEXT = (Path(__file__).parents[2] / "docs" / "howto" / "count-and-purge.md").read_text(encoding="utf-8")
[CONSOLE] = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
[PYTHON] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_examples_run_in_order(server: ServerProcess, tmp_path: Path) -> None:
    disque = Disque(server.port)
    run_console(CONSOLE, disque)
    run_python(PYTHON, server.port, tmp_path)
    assert disque.ok("jscan", "QUEUE", "mail", "BUSYLOOP") == "0\n\n"


def test_all_states_are_in_the_table() -> None:
    section = TEXT.split("## States")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [phase.decode() for phase in PHASES]
