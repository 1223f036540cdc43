"""The shell drives a node in virtual time: when it wakes the node, writes output, and disconnects clients.

The event loop and the transports are small fakes whose time advances only when told; node, shell and connections are
real.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from disqued.config import Config
from disqued.core.runtime.counters import CLOSED_FOR_OUTPUT
from disqued.node import Node
from disqued.server import shell as shell_module
from disqued.server.connection import FREE_OUTPUT_BYTES, Connection
from disqued.server.shell import Clock, Shell
from disqued.testing.host import FakeHost
from disqued.testing.local import NODE_ID, encode


class Timer:
    """A scheduled call that can be cancelled."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualLoop:
    """The part of an event loop that the shell uses."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000
        self.failures: list[Exception] = []
        self._order = itertools.count()
        self._due: list[tuple[int, int, Timer]] = []

    def call_soon(self, callback: Callable[[], None]) -> Timer:
        return self.call_later(0.0, callback)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(callback)
        heapq.heappush(self._due, (self.now_ns + round(delay_s * 1e9), next(self._order), timer))
        return timer

    def run(self, milliseconds: float = 0) -> int:
        """Let time pass; returns how many calls were due."""
        end_ns = self.now_ns + round(milliseconds * 1e6)
        calls = 0
        while self._due and self._due[0][0] <= end_ns:
            self.now_ns, _, timer = heapq.heappop(self._due)
            if timer.callback is not None:
                calls += 1
                try:
                    timer.callback()
                except ZeroDivisionError as error:  # an event loop logs it and continues
                    self.failures.append(error)
        self.now_ns = end_ns
        return calls


class Wire:
    """A transport whose client reads everything at once, or nothing while it is `deaf`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.writes: list[bytes] = []
        self.deaf = False
        self.waiting_bytes = 0
        self.ended = ""

    def get_extra_info(self, _name: str) -> Any:
        return None

    def get_write_buffer_size(self) -> int:
        return self.waiting_bytes

    def write(self, data: bytes) -> None:
        self.writes.append(data)
        if self.deaf:
            self.waiting_bytes += len(data)

    def close(self) -> None:
        self._end("closed")

    def abort(self) -> None:
        self._end("aborted")

    def _end(self, how: str) -> None:
        if not self.ended:
            self.ended = how
            self.connection.connection_lost(None)


class Stage:
    """A node on a virtual loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.config = Config()
        self.config.protected_mode = False
        self.host = FakeHost()
        clock = Clock(self.host.now_ms)
        self.node = Node(self.config, self.host, NODE_ID, clock.now_ms())
        self.shell = Shell(loop, self.node, clock)  # type: ignore[arg-type]
        self.shell.start()
        loop.run()

    def client(self) -> Wire:
        """A connected client."""
        connection = Connection(self.shell, 0)
        wire = Wire(connection)
        connection.connection_made(wire)  # type: ignore[arg-type]
        self.loop.run()
        return wire


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A started shell; the clock is the loop's."""
    loop = VirtualLoop()
    monkeypatch.setattr(shell_module, "monotonic_ns", lambda: loop.now_ns)
    yield Stage(loop)
    assert loop.failures == []


def test_replies_of_one_turn_leave_in_one_write(stage: Stage) -> None:
    one, other = stage.client(), stage.client()
    one.connection.data_received(encode("PING") + encode("PING", "a"))
    other.connection.data_received(encode("PING", "b"))
    one.connection.data_received(encode("PING", "c"))
    assert one.writes == []
    stage.loop.run()
    assert one.writes == [b"+PONG\r\n$1\r\na\r\n$1\r\nc\r\n"]
    assert other.writes == [b"$1\r\nb\r\n"]


def test_a_client_that_waits_is_answered_by_the_input_of_another(stage: Stage) -> None:
    waiting, other = stage.client(), stage.client()
    waiting.connection.data_received(encode("GETJOB", "FROM", "q"))
    stage.loop.run()
    other.connection.data_received(encode("ADDJOB", "q", "body", 0))
    stage.loop.run()
    assert b"$4\r\nbody\r\n" in b"".join(waiting.writes)


def test_an_earlier_deadline_moves_the_timer(stage: Stage) -> None:
    client = stage.client()
    stage.loop.run(milliseconds=3)  # the periodic work is far away, the timer stands there
    client.connection.data_received(encode("GETJOB", "TIMEOUT", 5, "FROM", "q"))
    stage.loop.run(milliseconds=4.9)
    assert client.writes == []
    stage.loop.run(milliseconds=20)
    assert client.writes == [b"*-1\r\n"]


@pytest.mark.parametrize("timeout_ms", [1, 30, 99, 100, 250, 1000])
def test_waits_end_within_hundredths_of_a_second(stage: Stage, timeout_ms: int) -> None:
    client = stage.client()
    client.connection.data_received(encode("GETJOB", "TIMEOUT", timeout_ms, "FROM", "q"))
    stage.loop.run(milliseconds=timeout_ms - 0.1)
    assert client.writes == []
    stage.loop.run(milliseconds=20)
    assert client.writes == [b"*-1\r\n"]


def test_a_node_without_work_wakes_as_often_as_hz_says(stage: Stage) -> None:
    wakes_and_writes = stage.loop.run(milliseconds=10_000)
    assert 190 <= wakes_and_writes <= 210  # a tick and a carrying, ten times a second
    stage.config.hz = 1
    stage.loop.run(milliseconds=100)
    assert stage.loop.run(milliseconds=10_000) <= 22


def test_a_stopped_shell_does_nothing(stage: Stage) -> None:
    stage.loop.run(milliseconds=100)
    stage.shell.stop()
    assert stage.loop.run(milliseconds=10_000) == 0


def test_ticks_continue_after_one_that_failed(stage: Stage) -> None:
    client = stage.client()
    client.connection.data_received(encode("GETJOB", "TIMEOUT", 500, "FROM", "q"))
    stage.config.hz = 0  # what the configuration never allows makes the periodic work fail
    stage.loop.run(milliseconds=120)
    assert stage.loop.failures
    stage.loop.failures.clear()
    stage.config.hz = 10
    stage.loop.run(milliseconds=420)
    assert client.writes == [b"*-1\r\n"]


def test_client_that_closed_its_side_is_closed_after_its_replies(stage: Stage) -> None:
    client = stage.client()
    client.connection.data_received(encode("PING"))
    assert client.connection.eof_received()
    stage.loop.run()
    assert (client.writes, client.ended) == ([b"+PONG\r\n"], "closed")
    assert stage.node.state.sessions == {}


def test_client_beyond_maxclients_is_refused_and_closed(stage: Stage) -> None:
    stage.config.maxclients = 1
    stage.client()
    surplus = stage.client()
    assert (surplus.writes, surplus.ended) == ([b"-ERR max number of clients reached\r\n"], "closed")
    assert len(stage.node.state.sessions) == 1


def test_silent_clients_are_closed_when_there_is_a_timeout(stage: Stage) -> None:
    silent, waiting = stage.client(), stage.client()
    stage.config.timeout = 10
    waiting.connection.data_received(encode("GETJOB", "FROM", "q"))
    stage.loop.run(milliseconds=9_900)
    assert silent.ended == ""
    stage.loop.run(milliseconds=1_200)
    assert silent.ended == "aborted"
    assert waiting.ended == ""


# --- limits of output -------------------------------------------------------------------------------------------------


def limit(stage: Stage, hard: int, soft: int, soft_s: int) -> None:
    """Set the output limits, above the free output."""
    stage.config.client_output_buffer_limit = (hard, soft, soft_s)
    stage.node.state.events.config_changed("client_output_buffer_limit")


def ping(client: Wire, size: int) -> None:
    """Make the node reply with `size` bytes and a few more."""
    client.connection.data_received(encode("PING", b"x" * size))


def test_a_reply_below_the_hard_limit_is_written_and_one_above_ends_the_connection(stage: Stage) -> None:
    limit(stage, 1000, 0, 0)
    client = stage.client()
    ping(client, FREE_OUTPUT_BYTES + 900)
    stage.loop.run()
    assert (len(client.writes), client.ended) == (1, "")
    ping(client, FREE_OUTPUT_BYTES + 1000)
    stage.loop.run()
    assert (len(client.writes), client.ended) == (1, "aborted")
    assert "output buffer limits" in stage.host.log_lines[-1][1]
    assert stage.node.state.counters.value(CLOSED_FOR_OUTPUT) == 1


def test_unread_replies_add_up_to_the_output_limit(stage: Stage) -> None:
    limit(stage, 1000, 0, 0)
    client = stage.client()
    client.deaf = True
    for _ in range(2):
        ping(client, FREE_OUTPUT_BYTES // 2)
        stage.loop.run()
    assert client.ended == ""
    ping(client, 1000)
    stage.loop.run()
    assert client.ended == "aborted"


def test_the_soft_limit_ends_the_connection_after_its_time_without_further_replies(stage: Stage) -> None:
    limit(stage, 0, 1000, 5)
    client = stage.client()
    client.deaf = True
    ping(client, FREE_OUTPUT_BYTES + 1000)
    stage.loop.run(milliseconds=5_000)
    assert client.ended == ""
    stage.loop.run(milliseconds=200)
    assert client.ended == "aborted"


def test_a_client_that_catches_up_in_time_stays(stage: Stage) -> None:
    limit(stage, 0, 1000, 5)
    client = stage.client()
    client.deaf = True
    ping(client, FREE_OUTPUT_BYTES + 1000)
    stage.loop.run(milliseconds=4_000)
    client.waiting_bytes = 0
    stage.loop.run(milliseconds=4_000)
    ping(client, FREE_OUTPUT_BYTES + 1000)
    stage.loop.run(milliseconds=4_000)
    assert client.ended == ""
    stage.loop.run(milliseconds=1_200)
    assert client.ended == "aborted"
