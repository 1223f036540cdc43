"""The client guide and the README are correct: their examples run, and their tables match the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from disqued.client import adding, calls, failing
from disqued.client.consuming import ConsumerOptions
from disqued.client.errors import BY_PREFIX
from disqued.testing.processes import ServerProcess

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "client.md"
TEXT = PAGE.read_text(encoding="utf-8")
README = Path(__file__).parents[2] / "README.md"
START = README.parent / "docs" / "howto" / "getting-started.md"
EXAMPLES = re.findall(
    r"```python\n(.*?)```", README.read_text(encoding="utf-8") + START.read_text(encoding="utf-8") + TEXT, re.DOTALL
)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_runs(number: int, server: ServerProcess, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(EXAMPLES[number].replace("localhost:7711", f"127.0.0.1:{server.port}"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_table_of_errors_matches_the_code() -> None:
    rows = re.findall(r"^\| `([A-Z]+)` \| `(\w+)` \|$", TEXT, re.MULTILINE)
    assert dict(rows) == {prefix: kind.__name__ for prefix, kind in BY_PREFIX.items()}


def test_table_of_consumer_options_is_complete() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [\d.a-z]+ \|", TEXT, re.MULTILINE)
    assert rows == list(ConsumerOptions.__annotations__)


def test_table_of_repeated_calls_matches_the_code() -> None:
    table = TEXT.split("## What is repeated after a lost connection")[1].split("##")[0]
    rows = re.findall(r"^\| (.*) \| (.*) \|$", table, re.MULTILINE)[1:]
    arguments: dict[str, tuple[object, ...]] = {
        "add": ("q", "x"),
        "add_to": (["q"], "x"),
        "add_with_copies": ("q", "x"),
        "new_id": (),
        "execute": ("PING",),
        "qconf_set": ("q", {}),
        "hello": (),
        "info": (),
        "ping": (),
        "movejob": ("D-x", "q"),
    }
    builders = {**vars(adding), **vars(calls), **vars(failing)}
    for column, repeat in ((0, True), (1, False)):
        names = {name for row in rows for name in re.findall(r"`(\w+)`", row[column])} - {"pause"}
        for name in names & {*builders} - {
            "qscan",
            "jscan",
            "jscan_details",
            "add_many",
            "add_jobs",
            "execute_many",
            "execute_ahead",
        }:
            assert builders[name](*arguments.get(name, ("D-x",))).repeat is repeat, name
