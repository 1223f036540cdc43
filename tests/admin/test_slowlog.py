"""SLOWLOG: which commands are kept, and how much of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from disqued.config.kinds import MAX_NUMBER
from support.asking import ask

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient, LocalNode


@pytest.fixture(autouse=True)
def _commands_take_time(local: LocalNode, client: LocalClient) -> None:
    """Every command seems to take 12 milliseconds; the log is empty."""
    local.host.command_ns = 12_000_000
    ask(client, "SLOWLOG", "RESET")
    local.node.state.monitoring.slowlog.entries.clear()


def test_slow_commands_are_kept_newest_first(local: LocalNode, client: LocalClient) -> None:
    ask(client, "PING")
    ask(client, "ADDJOB", "q", "body", 0)
    at_s = local.now_ms // 1000
    second, first = ask(client, "SLOWLOG", "GET")
    assert first[1:] == [at_s, 12_000, [b"PING"]]
    assert second[1:] == [at_s, 12_000, [b"ADDJOB", b"q", b"body", b"0"]]
    assert second[0] == first[0] + 1


def test_quick_commands_are_not_kept(local: LocalNode, client: LocalClient) -> None:
    local.host.command_ns = 9_999_000
    ask(client, "PING")
    assert ask(client, "SLOWLOG", "LEN") == 0


@pytest.mark.parametrize("name", ["slowlog-log-slower-than", "latency-monitor-threshold"])
def test_the_greatest_limit_keeps_nothing(client: LocalClient, name: str) -> None:
    ask(client, "CONFIG", "SET", "slowlog-log-slower-than", -1)
    assert client.call("CONFIG", "SET", name, MAX_NUMBER) == b"OK"
    ask(client, "PING")
    assert ask(client, "SLOWLOG", "LEN") == 0


def test_a_negative_limit_turns_the_log_off(client: LocalClient) -> None:
    ask(client, "CONFIG", "SET", "slowlog-log-slower-than", -1)
    ask(client, "SLOWLOG", "RESET")
    ask(client, "PING")
    assert ask(client, "SLOWLOG", "LEN") == 0


def test_the_log_is_bounded(client: LocalClient) -> None:
    ask(client, "CONFIG", "SET", "slowlog-max-len", 2)
    for _ in range(5):
        ask(client, "PING")
    assert ask(client, "SLOWLOG", "LEN") == 2


def test_long_commands_are_cut(client: LocalClient) -> None:
    job = b"D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a0"
    ask(client, "ACKJOB", *[job] * 40)
    ask(client, "ADDJOB", "q", "x" * 200, 0)
    added, acknowledged = [entry[3] for entry in ask(client, "SLOWLOG", "GET")]
    assert added == [b"ADDJOB", b"q", b"x" * 128 + b"... (72 more bytes)", b"0"]
    assert acknowledged == [b"ACKJOB", *[job] * 30, b"... (10 more arguments)"]


def test_ten_entries_are_shown_unless_asked_for_more(client: LocalClient) -> None:
    for _ in range(12):
        ask(client, "PING")
    assert len(ask(client, "SLOWLOG", "GET")) == 10
    assert len(ask(client, "SLOWLOG", "GET", 3)) == 3
    assert len(ask(client, "SLOWLOG", "GET", -1)) == 14


@pytest.mark.parametrize("words", ["FOO", "LEN x", "RESET x", "GET 1 2"])
def test_unknown_subcommands_are_refused(client: LocalClient, words: str) -> None:
    refused = client.raw("SLOWLOG", *words.split())
    assert refused == b"-ERR Unknown SLOWLOG subcommand or wrong # of args. Try GET, RESET, LEN.\r\n"


def test_a_count_has_to_be_a_number(client: LocalClient) -> None:
    assert client.raw("SLOWLOG", "GET", "x") == b"-ERR value is not an integer or out of range\r\n"
