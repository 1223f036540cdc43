"""LATENCY: slow events, in figures, as a graph and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from disqued.admin.latencygraph import draw
from disqued.core.telemetry.latency import LatencySeries
from support.asking import ask

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient, LocalNode


@pytest.fixture
def slow_events(local: LocalNode, client: LocalClient) -> int:
    """Two slow commands, 11 ms and a second later 5 ms; returns when the first was."""
    ask(client, "CONFIG", "SET", "latency-monitor-threshold", 1)
    at_s = local.now_ms // 1000
    ask(client, "DEBUG", "SLEEP", "0.011")
    local.run(seconds=1)
    ask(client, "DEBUG", "SLEEP", "0.005")
    return at_s


def test_the_latest_and_the_worst_are_shown(client: LocalClient, slow_events: int) -> None:
    assert ask(client, "LATENCY", "LATEST") == [[b"command", slow_events + 1, 5, 11]]


def test_the_history_has_one_sample_a_second(client: LocalClient, slow_events: int) -> None:
    ask(client, "DEBUG", "SLEEP", "0.003")
    assert ask(client, "LATENCY", "HISTORY", "command") == [[slow_events, 11], [slow_events + 1, 5]]
    assert ask(client, "LATENCY", "HISTORY", "nosuch") == []


def test_fast_commands_are_events_of_their_own(local: LocalNode, client: LocalClient) -> None:
    ask(client, "CONFIG", "SET", "latency-monitor-threshold", 1)
    local.host.command_ns = 2_000_000
    ask(client, "PING")
    assert [event for event, *_ in ask(client, "LATENCY", "LATEST")] == [b"fast-command"]


def test_nothing_is_noted_while_the_monitor_is_off(local: LocalNode, client: LocalClient) -> None:
    local.host.command_ns = 2_000_000_000
    ask(client, "PING")
    assert client.raw("LATENCY", "LATEST") == b"*0\r\n"


@pytest.mark.usefixtures("slow_events")
def test_the_graph_is_drawn_as_the_original_draws_it(client: LocalClient) -> None:
    assert ask(client, "LATENCY", "GRAPH", "command") == (
        b"command - high 11 ms, low 5 ms (all time high 11 ms)\n" + b"-" * 80 + b"\n# \n| \n| \n|_\n  \n10\nss\n"
    )


def test_a_graph_of_an_event_without_samples_is_an_error(client: LocalClient) -> None:
    assert client.raw("LATENCY", "GRAPH", "fork") == b"-ERR No samples available for event 'fork'\r\n"


@pytest.mark.usefixtures("slow_events")
def test_events_can_be_forgotten(client: LocalClient) -> None:
    assert ask(client, "LATENCY", "RESET", "fork", "command") == 1
    assert ask(client, "LATENCY", "RESET") == 0
    assert client.raw("LATENCY", "LATEST") == b"*0\r\n"


def test_the_doctor_says_how_to_begin(client: LocalClient) -> None:
    assert b"CONFIG SET latency-monitor-threshold" in ask(client, "LATENCY", "DOCTOR")
    ask(client, "CONFIG", "SET", "latency-monitor-threshold", 50)
    assert ask(client, "LATENCY", "DOCTOR") == b"No event took 50 milliseconds or longer so far.\n"


@pytest.mark.usefixtures("slow_events")
def test_the_doctor_names_slow_events_and_what_to_check(client: LocalClient) -> None:
    diagnosis, pointer, advice = ask(client, "LATENCY", "DOCTOR").decode().splitlines()
    assert diagnosis == "command: slow in 2 of 2 seconds, 8 ms on average, 11 ms at most, 11 ms ever."
    assert "SLOWLOG GET" in pointer
    assert "CONFIG SET slowlog-log-slower-than 1000" in advice


@pytest.mark.parametrize("words", ["FOO", "LATEST x", "HISTORY", "GRAPH", "DOCTOR x"])
def test_unknown_subcommands_are_refused(client: LocalClient, words: str) -> None:
    assert client.raw("LATENCY", *words.split()) == b"-ERR syntax error\r\n"


def test_levels_fill_four_rows_in_thirds() -> None:
    series = LatencySeries()
    for second, spent_ms in enumerate(range(13)):
        series.add(second, spent_ms)
    rows = draw("e", series, 13).splitlines()[2:6]
    assert rows == ["         _o##", "      _o#||||", "   _o#|||||||", "_o#||||||||||"]


def test_ages_are_written_downwards_in_their_largest_unit() -> None:
    series = LatencySeries()
    for at_s in (0, 80_000, 86_000, 86_390, 86_400):
        series.add(at_s, 1)
    ages = draw("e", series, 86_400).splitlines()[7:]
    assert ages == ["11610", "dhm0s", "   s "]


def test_more_samples_than_columns_make_bands() -> None:
    series = LatencySeries()
    for at_s in range(100):
        series.add(at_s, 1)
    head, rule, *lines = draw("e", series, 100).split("\n")
    assert (head, rule) == ("e - high 1 ms, low 1 ms (all time high 1 ms)", "-" * 80)
    assert [len(line) for line in lines if line] == [80] * 8 + [20] * 8
