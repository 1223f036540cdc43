"""Secrets: no password appears in what the node shows, logs or reports."""

from __future__ import annotations

import pytest

from disqued.config import Config, ConfigError, fatal_text, load
from disqued.errors import ReplyError
from disqued.node import ROOMS
from disqued.testing.local import LocalClient, no_include

SECRET = "hunter2"
REQUESTS = (
    ("AUTH", SECRET),
    ("AUTH", "default", SECRET),
    ("HELLO", "2", "AUTH", "default", SECRET),
    ("CONFIG", "SET", "requirepass-former", SECRET),
    ("CONFIG", "SET", "tls-key-file-pass", SECRET),
    ("ACL", "SETUSER", "user", f">{SECRET}"),
    ("ACL", "DRYRUN", "default", "ACL", "SETUSER", "user", f">{SECRET}"),
    ("config", "set", "RequirePass-Former", SECRET),
)
MISTAKES = (
    ("HELLO", "AUTH", "default", SECRET),
    ("CONFIG", "SET", "requirepas", SECRET),
    ("CONFIG", "SET", "requirepass", "two", SECRET),
    ("CONFIG", "SET", "timeout", "7", "requirepass", SECRET),
    ("CONFIG", "SETT", "requirepass", SECRET),
    ("ACL", "SETUSER", f">{SECRET}"),
    ("ACL", "SETUSR", "user", f">{SECRET}"),
)
"""Requests with a password in which a word is mistyped, missing or too much."""


@pytest.mark.parametrize("words", [*REQUESTS, *MISTAKES])
def test_monitor_shows_no_password(client: LocalClient, words: tuple[str, ...]) -> None:
    watching = client.local.client()
    watching.raw("MONITOR")
    client.raw(*words)
    assert SECRET.encode() not in watching.received
    assert b'"(redacted)"\r\n' in watching.received


@pytest.mark.parametrize("words", [*REQUESTS, *MISTAKES])
def test_slowlog_shows_no_password(client: LocalClient, words: tuple[str, ...]) -> None:
    client.raw("CONFIG", "SET", "slowlog-log-slower-than", 0)
    client.raw(*words)
    shown = client.raw("SLOWLOG", "GET")
    assert SECRET.encode() not in shown
    assert b"(redacted)" in shown


@pytest.mark.parametrize("name", [command.name for command in ROOMS.commands if command.name != "shutdown"])
def test_a_command_without_its_words_is_kept_in_the_slowlog(client: LocalClient, name: str) -> None:
    client.raw("CONFIG", "SET", "slowlog-log-slower-than", 0)
    watching = client.local.client()
    watching.raw(name)
    assert f"\r\n{name}\r\n".encode() in client.raw("SLOWLOG", "GET")


def test_other_words_are_shown(client: LocalClient) -> None:
    watching = client.local.client()
    watching.raw("MONITOR")
    client.raw("CONFIG", "SET", "timeout", 77)
    client.raw("HELLO", "2", "SETNAME", "worker")
    assert b'"CONFIG" "SET" "timeout" "77"' in watching.received
    assert b'"HELLO" "2" "SETNAME" "worker"' in watching.received


@pytest.mark.parametrize(
    "line",
    [
        f"requirepass {'x' * 600}{SECRET}",
        f"requirepass {SECRET} {SECRET}",
        f'requirepass "{SECRET}',
        f'REQUIREPASS-FORMER "{SECRET}"x',
    ],
)
def test_a_wrong_line_with_a_password_is_reported_without_it(line: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(line, (), no_include)
    text = fatal_text(error.value)
    assert SECRET not in text
    assert line.split(maxsplit=1)[0] + " (redacted)" in text


def test_config_set_reports_a_wrong_password_without_it() -> None:
    with pytest.raises(ReplyError, match=r"Invalid argument '\(redacted\)' for CONFIG SET 'requirepass'") as error:
        Config().set(b"requirepass", b"x" * 600 + SECRET.encode())
    assert SECRET not in error.value.text
