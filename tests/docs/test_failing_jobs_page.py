"""The guide about jobs that fail is a session: its examples run in order on one node, and show what it says."""

from __future__ import annotations

import re
from pathlib import Path

from cli.running import Disque
from disqued.client import Client
from disqued.core.queues.settings import SETTINGS
from disqued.testing.processes import ServerProcess
from support.examples import run_console, run_python

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "failing-jobs.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(python|console)\n(.*?)```", TEXT, re.DOTALL)


def check_dead_letters(client: Client) -> None:
    [rejected] = client.jscan_details(queue="mail.dead")
    [failed] = client.jscan_details(queue="newsletter.dead")
    [later] = client.jscan_details(queue="mail")
    assert (rejected.reason, rejected.origin_queue) == ("the body is empty", "mail")
    assert (failed.reason, failed.attempts_before) == ("ValueError: no such address: nobody@example.com", 1)
    assert later.state == "active"


def test_examples_run_in_order(server: ServerProcess, tmp_path: Path) -> None:
    disque = Disque(server.port)
    with Client([f"127.0.0.1:{server.port}"]) as client:
        for kind, text in BLOCKS:
            if "redrive" in text:
                check_dead_letters(client)
            if kind == "python":
                run_python(text, server.port, tmp_path)
            else:
                run_console(text, disque)
        while client.qlen("newsletter") == 0:
            pass
        assert client.qlen("newsletter.dead") == 0


def test_settings_have_the_defaults_of_the_code() -> None:
    section = TEXT.split("## Settings")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| `?([^|`]+)`? \|", section, re.MULTILINE)
    assert rows
    for name, default in rows:
        assert SETTINGS[name.encode()].default == default.encode(), name
