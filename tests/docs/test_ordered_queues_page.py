"""The guides about ordered queues: their examples run in order, and show what they say."""

from __future__ import annotations

import re
from pathlib import Path

from cli.running import Disque
from disqued.ordered.catalog import MAX_REPLICAS
from disqued.ordered.founding import MOST_MEMBERS
from disqued.orderedqueue.options import DEFAULT_LIMIT
from disqued.testing.processes import ServerProcess
from support.examples import run_console, run_python

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
TEXT = (HOWTO / "ordered-queues.md").read_text(encoding="utf-8")
WHICH = (HOWTO / "which-queue.md").read_text(encoding="utf-8")


def test_examples_run_in_order(server: ServerProcess, tmp_path: Path) -> None:
    disque = Disque(server.port)
    for kind, example in re.findall(r"```(console|python)\n(.*?)```", TEXT, re.DOTALL):
        if kind == "console":
            run_console(example, disque)
        else:
            run_python(example, server.port, tmp_path)


def test_examples_of_both_types_run(server: ServerProcess, tmp_path: Path) -> None:
    disque = Disque(server.port)
    disque.ok("ordered", "init")
    for example in re.findall(r"```python\n(.*?)```", WHICH, re.DOTALL):
        run_python(example, server.port, tmp_path)
    types = [disque.ok("qtype", queue).strip() for queue in ("mail", "accounts", "ledger")]
    assert types == ["jobs", "ordered", "ordered"]


def test_limits_on_the_page_are_those_of_the_code() -> None:
    assert f"A queue has 1 to {MAX_REPLICAS} replicas, the catalog 1 to {MOST_MEMBERS} members." in TEXT
    assert f"After {DEFAULT_LIMIT} attempts" in TEXT
