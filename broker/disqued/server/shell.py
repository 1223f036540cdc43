"""Drives one node on an event loop: gives it the time, carries its output, wakes it when it wants.

Every input ends with `settle`. Once all input of a turn of the event loop was taken, `carry` writes what the node has
to say, one write per link and per client, and sets the timer. (Writing after each read instead costs a fifth of the
throughput: every write wakes a peer.) The append only file comes first, then links: what another node is to know is
under way before a client hears of it.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Event, TimerHandle
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.disk import DiskWork
from disqued.core.gate import Gate
from disqued.server.bus import Bus

if TYPE_CHECKING:
    from disqued.node import Node
    from disqued.server.connection import Connection

_NEVER_MS: Final = 1 << 62


class Clock:
    """Unix milliseconds that never jump: the wall clock at start-up plus the monotonic time since."""

    def __init__(self, wall_ms: int) -> None:
        self._offset_ms: i64 = wall_ms - monotonic_ns() // 1_000_000

    def read_ns(self) -> i64:
        """The monotonic clock, which is also the node's stopwatch."""
        return monotonic_ns()

    def at_ms(self, read_ns: i64) -> i64:
        """The time for the node when the monotonic clock read `read_ns`."""
        return read_ns // 1_000_000 + self._offset_ms

    def now_ms(self) -> i64:
        """The time for the node."""
        return self.at_ms(self.read_ns())


class Shell:
    """One node on one event loop."""

    def __init__(self, loop: AbstractEventLoop, node: Node, clock: Clock) -> None:
        self._loop = loop
        self.node = node
        self.clock = clock
        self.bus = Bus(self, loop)
        self._gate = Gate()
        self._timer: TimerHandle | None = None
        self._timer_ms: i64 = _NEVER_MS
        self.loaded = Event()
        """Set once the node has all its jobs."""
        self._loading: bool = True
        self._carrying: bool = False
        """The output of this turn of the loop is going to be carried."""

    def settle(self) -> None:
        """To be called after every input: has the output carried when all input of this turn of the loop was taken."""
        if not self._carrying:
            self._carrying = True
            self._loop.call_soon(self.carry)

    def carry(self) -> None:
        """Write what the node has to say, hang up on whom it gave up, and set the timer."""
        self._carrying = False
        node = self.node
        ready = node.ready
        if ready.changes:
            node.log(self.clock.now_ms())
        if ready.safe < ready.logged or ready.confirmations or not self._gate.empty:
            self._gate.sort(node.state)
        if ready.links:
            for link in ready.links:
                link.flush()
            ready.links.clear()
        for session in ready.sessions:
            connection: Connection = session  # type: ignore[assignment]
            connection.flush()
        ready.sessions.clear()
        if ready.hangups:
            for session in ready.hangups:
                connection = session  # type: ignore[assignment]
                connection.abort()
            ready.hangups.clear()
        if ready.link_hangups:
            for link in ready.link_hangups:
                carrier = link.carrier
                if carrier is not None:
                    carrier.close()
            ready.link_hangups.clear()
        if ready.dials or ready.lookups:
            self._reach_out()
        node.state.lifecycle.memory.under_way_bytes = 0
        if ready.links or ready.sessions:  # a link that was given up may have changed what the node has to say
            self.settle()
        if self._loading and not node.state.loading:
            self._loading = False
            self.loaded.set()
        deadline_ms = self.node.next_deadline_ms()
        if deadline_ms < self._timer_ms:
            self._set_timer(deadline_ms)

    def _reach_out(self) -> None:
        """Open new links and look up names; what was written to a link already goes out when it is connected."""
        ready = self.node.ready
        for link in ready.dials:
            if not link.closed:
                self.bus.dial(link)
                link.flush()
        ready.dials.clear()
        for name in ready.lookups:
            self.bus.look_up(name)
        ready.lookups.clear()

    def _set_timer(self, deadline_ms: i64) -> None:
        """Tick at `deadline_ms`."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_s = 0.0
        if deadline_ms > 0:
            delay_s = float(max(deadline_ms - self.clock.now_ms(), 1)) / 1000.0
        self._timer = self._loop.call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._timer_ms = _NEVER_MS
        try:
            self.node.tick(self.clock.now_ms())
        finally:  # whatever went wrong, time goes on for all others
            self.settle()

    def disk_done(self, work: DiskWork) -> None:
        """The disk is done with something that the node started."""
        self.node.disk_done(work, self.clock.now_ms())
        self.settle()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        """Have something done that is no business of the node."""
        self._loop.call_later(delay_s, callback)

    def start(self) -> None:
        """Begin to tick."""
        self._tick()

    def stop(self) -> None:
        """Tick no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
