"""The guide about schedules is a session: its examples run in order. Its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

from cli.running import Disque
from disqued.testing.local import LocalClient
from disqued.testing.processes import ServerProcess
from schedule.scenes import set_schedule
from support.asking import ask
from support.examples import run_console, run_python

TEXT = (Path(__file__).parents[2] / "docs" / "howto" / "schedules.md").read_text(encoding="utf-8")
[CONSOLE] = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
[PYTHON] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_examples_run_in_order(server: ServerProcess, tmp_path: Path) -> None:
    disque = Disque(server.port)
    run_console(CONSOLE, disque)
    run_python(PYTHON, server.port, tmp_path)
    assert disque.ok("qlen", "reports") == "1\n"


def test_all_fields_of_show_are_in_the_table(client: LocalClient) -> None:
    set_schedule(client)
    section = TEXT.split("## What SHOW says")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    names = [name for cell in cells for name in re.findall("`([a-z-]+)`", cell)]
    assert sorted(names) == sorted(name.decode() for name in ask(client, "SCHEDULE", "s", "SHOW")[::2])
