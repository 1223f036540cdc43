"""The guide about the HTTP API is a session: its examples run in order on one node, and show what it says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from disqued.httpapi import serving, table
from disqued.server import httpport, httprequest
from httpapi.nodes import running

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "http-api.md"
TEXT = PAGE.read_text(encoding="utf-8")
SESSIONS = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)


def test_examples_show_what_the_page_says(tmp_path: Path) -> None:
    lines = "".join(SESSIONS).splitlines()
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    shown = [line for line in lines if not line.startswith("$ ")]
    with running(tmp_path, "--requirepass", "SECRET") as node:
        script = "\n".join(commands).replace("localhost:9711", f"127.0.0.1:{node.http_port}")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    answers = done.stdout.splitlines()
    assert len(answers) == len(shown), done.stdout
    for answer, line in zip(answers, shown, strict=True):
        pattern = ".*".join(re.escape(part) for part in line.split("..."))
        assert re.fullmatch(pattern, answer), (line, answer)


@pytest.mark.parametrize(
    ("row", "size"),
    [
        ("body of a job that is added or delivered | 1 MiB", table.MAX_BODY_BYTES == 1 << 20),
        ("content of a request | 2 MiB. More than 8 KiB", serving.MAX_REQUEST_BYTES == 2 << 20),
        ("content of a request | 2 MiB. More than 8 KiB", httprequest.MOST_BYTES == 8 << 10),
        ("all large contents at the same time | 32 MiB", httpport.MOST_BODIES_BYTES == 32 << 20),
        ("bodies in one answer | 4 MiB", serving.MAX_ANSWER_BYTES == 4 << 20),
        ("connections | 256, besides the 32", (serving.MORE_CONNECTIONS, httpport.MOST_CONNECTIONS) == (256, 32)),
        ("requests that wait at the same time | 192", serving.MOST_WAITING == 192),
        ("and to read an answer | 15 s", httpport.DEADLINE_S == 15),
    ],
)
def test_limits_are_those_of_the_code(row: str, size: bool) -> None:
    assert size
    assert row in TEXT
