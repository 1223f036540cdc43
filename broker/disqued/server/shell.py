"""Drives one node on an event loop: passes it input and the time, writes its output, and wakes it at its deadlines.

Every input ends with `settle`. When all input of a turn of the event loop has been taken, `carry` has the node's output
written, one write per link and per client, in the order of `core.output.ready`, and sets the timer. (Writing after each
read instead costs a fifth of the throughput, because every write wakes a peer.)
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Event, TimerHandle
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Link
from disqued.core.host.disk import DiskWork
from disqued.core.output.ready import Driver
from disqued.server.network import Network

if TYPE_CHECKING:
    from disqued.node import Node

_NEVER_MS: Final = 1 << 62


class Clock:
    """Unix milliseconds that never jump: the wall clock at start plus the monotonic time since."""

    def __init__(self, wall_ms: int) -> None:
        self._offset_ms: i64 = wall_ms - monotonic_ns() // 1_000_000
        self._read_ns: Callable[[], int] = monotonic_ns

    def read_ns(self) -> i64:
        """The monotonic clock, which is also the node's stopwatch."""
        return self._read_ns()

    def at_ms(self, read_ns: i64) -> i64:
        """The time for the node when the monotonic clock read `read_ns`."""
        return read_ns // 1_000_000 + self._offset_ms

    def now_ms(self) -> i64:
        """The time for the node."""
        return self.at_ms(self.read_ns())


class SocketSession(Session):
    """A client's session that ends at a transport; `server.connection` implements it."""

    def flush(self) -> None:
        """Write the replies, then close if the session is over."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close without waiting for the output."""
        raise NotImplementedError


class DetachedSession(SocketSession):
    """A session without a connection: that of a shutdown which a signal requests."""

    def flush(self) -> None:
        """Drop the reply: the log has it too."""
        self.flushing = False
        self.forget_output()

    def abort(self) -> None:
        """There is no connection."""


class Shell(Driver):
    """One node on one event loop."""

    network: Network
    """Opens links and resolves names; `Bus` sets it."""

    def __init__(self, loop: AbstractEventLoop, node: Node, clock: Clock) -> None:
        self._loop = loop
        self.node = node
        self.clock = clock
        self._timer: TimerHandle | None = None
        self._timer_ms: i64 = _NEVER_MS
        self.loaded = Event()
        """Set once the node has loaded all its jobs."""
        self._loading: bool = True
        self._carrying: bool = False
        """`carry` is scheduled for this turn of the loop."""

    def settle(self) -> None:
        """Schedule `carry` for the end of this turn of the loop. Call it after every input."""
        if not self._carrying:
            self._carrying = True
            self._loop.call_soon(self.carry)

    def carry(self) -> None:
        """Write the node's output, and set the timer."""
        self._carrying = False
        node = self.node
        if node.carry(self):
            self.settle()
        if self._loading and not node.state.loading:
            self._loading = False
            self.loaded.set()
        deadline_ms = node.next_deadline_ms()
        if deadline_ms < self._timer_ms:
            self._set_timer(deadline_ms)

    def write_session(self, session: Session) -> None:
        """Write the output of a client's connection."""
        connection: SocketSession = session  # type: ignore[assignment]
        connection.flush()

    def abort_session(self, session: Session) -> None:
        """Close a client's connection without waiting for its output."""
        connection: SocketSession = session  # type: ignore[assignment]
        connection.abort()

    def dial(self, link: Link) -> None:
        """Open a connection to the peer of a link."""
        self.network.dial(link)

    def look_up(self, name: bytes) -> None:
        """Resolve a host name."""
        self.network.look_up(name)

    def _set_timer(self, deadline_ms: i64) -> None:
        """Set the timer to tick at `deadline_ms`."""
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
        finally:  # an error must not stop the timer for everyone else
            self.settle()

    def disk_done(self, work: DiskWork) -> None:
        """The disk has finished work that the node started."""
        self.node.disk_done(work, self.clock.now_ms())
        self.settle()

    def files_changed(self) -> None:
        """Files that directives name may have changed."""
        self.node.files_changed(self.clock.now_ms())
        self.settle()

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call something in the next turn of the loop."""
        self._loop.call_soon(callback)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        """Call something later that does not concern the node."""
        self._loop.call_later(delay_s, callback)

    def start(self) -> None:
        """Start to tick."""
        self._tick()

    def stop(self) -> None:
        """Stop ticking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
