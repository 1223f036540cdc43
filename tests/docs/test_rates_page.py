"""The guide about rates and caps: its examples run in order, and what it says about units is what the broker takes."""

from __future__ import annotations

import re
from pathlib import Path

from cli.running import Disque
from disqued.core.queues.settings import SETTINGS, fault
from disqued.testing.processes import ServerProcess
from support.examples import run_console, run_python

TEXT = (Path(__file__).parents[2] / "docs" / "howto" / "rates.md").read_text(encoding="utf-8")
CONSOLE = "".join(re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL))
[PYTHON] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_examples_run_in_order(server: ServerProcess, tmp_path: Path) -> None:
    disque = Disque(server.port)
    run_console(CONSOLE, disque)
    run_python(PYTHON, server.port, tmp_path)


def test_all_limits_on_the_page_are_valid() -> None:
    found = re.findall(r"\b(rate|burst|inflight):? (\d[\d./a-z]*)", TEXT)
    assert len(found) > 15
    for setting, value in found:
        assert fault(SETTINGS[setting.encode()], value.encode()) == "", (setting, value)
