"""The guide for Dramatiq: its program runs as it stands, and its tables are complete."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from disqued.dramatiq import DisqueBroker
from disqued.testing.processes import ServerProcess
from support.examples import run_python

TEXT = (Path(__file__).parents[2] / "docs" / "howto" / "dramatiq.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_program_runs(server: ServerProcess, tmp_path: Path) -> None:
    (program,) = PYTHON
    run_python(program, server.port, tmp_path)


def test_all_options_of_the_broker_are_in_the_table() -> None:
    table = TEXT.split("| option of `DisqueBroker`")[1].split("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in table.splitlines()[1:])))
    assert {name for name in inspect.signature(DisqueBroker).parameters if name != "options"} <= named
