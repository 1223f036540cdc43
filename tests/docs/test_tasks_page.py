"""The guide about pipelines is correct: its examples run in order on one node, and its tables match the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from disqued.client import Otherwise
from disqued.core.jobs.parents import ACTIONS
from disqued.testing.processes import ServerProcess
from support.examples import run_python

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "tasks.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_examples_run_in_order(server: ServerProcess, tmp_path: Path) -> None:
    for example in EXAMPLES:
        run_python(example, server.port, tmp_path)


def test_all_actions_are_in_the_table() -> None:
    section = TEXT.split("## When a step fails")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([a-z]+)`", section, re.MULTILINE)
    assert sorted(rows) == sorted(action.decode() for action in ACTIONS) == sorted(get_args(Otherwise))
