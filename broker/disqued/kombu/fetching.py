"""The fetch of a channel: a GETJOB that blocks on the node until a job arrives, and the messages fetched ahead.

The socket of the fetch is for a selector, or for the event loop of kombu. A fetch is sent when there is room for
messages, and is for all queues of the channel, in an order that rotates so that no queue starves. When the queues
change, or the channel closes, the pending fetch is ended without loss (`PendingCall.interrupt`).

If the node is gone, the next fetch goes to another one: the program notices nothing. Only if no node can be reached an
error is raised, and kombu connects again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kombu.utils.scheduling import cycle_by_name

from disqued.client import Client, ClockError, ConnectionLost, DisqueError, Job, Loading, NodeLeaving
from disqued.client.calls import get
from disqued.client.pending import PendingCall, pending_fetch
from disqued.kombu.leases import Leases, log
from disqued.kombu.options import TransportOptions

FETCH_MS: Final = 30_000
"""How long one GETJOB blocks. An answer that is overdue by the socket timeout means that the node is gone."""

ELSEWHERE: Final = (ConnectionLost, NodeLeaving, ClockError, Loading)
"""Errors after which the next fetch goes to another node."""


class Fetcher:
    """The pending fetch of one channel."""

    def __init__(self, client: Client, leases: Leases, options: TransportOptions) -> None:
        self._pending: PendingCall[list[Job]] = pending_fetch(client)
        self._leases = leases
        self._options = options
        self._cycle = cycle_by_name(options.queue_order_strategy)()
        self._queues: tuple[str, ...] = ()
        self._due_s = 0.0
        self._in_step = False
        """Whether something is being sent or received."""
        self._ends_after_step = False
        self.fetched: deque[Job] = deque()
        """Jobs that were fetched and not delivered."""

    @property
    def is_pending(self) -> bool:
        """Whether an answer is awaited."""
        return self._pending.is_pending

    def fileno(self) -> int:
        """The descriptor to wait for while the fetch is pending."""
        return self._pending.fileno()

    def watch_with(self, before_close: Callable[[int], object]) -> None:
        """Call this with the descriptor before it closes."""
        self._pending.before_close = before_close

    def update(self, queues: Iterable[str]) -> None:
        """Set the queues in which to look from now on."""
        self._cycle.update(queues)

    def fetch(self, queues: Sequence[str], count: int) -> None:
        """Have a fetch pending for up to `count` jobs of these queues.

        Raises:
            ConnectionFailed: no node can be reached.
        """
        wanted = tuple(sorted(queues))
        if self.is_pending and wanted == self._queues:
            self._check_overdue()
        if self.is_pending and wanted != self._queues:
            self.interrupt()
        if self.is_pending or not queues:
            return
        allowed = set(queues)
        names = [name for name in self._cycle.consume(len(self._cycle.items)) if name in allowed]
        call = get(names, count=min(count, self._options.prefetch_limit), timeout_ms=FETCH_MS, **_WITH)
        with self._step():
            try:
                self._pending.send(call)
            except ConnectionLost:  # an idle connection that the node had closed
                self._pending.send(call)
            self._queues = wanted
            self._due_s = time.monotonic() + FETCH_MS / 1000 + self._options.socket_timeout

    def _check_overdue(self) -> None:
        if time.monotonic() > self._due_s:
            self.receive()
            if self.is_pending:
                log.warning("no answer to GETJOB, using another node")
                self._pending.abandon()

    def receive(self) -> None:
        """Take what has arrived; without a complete answer nothing happens.

        Raises:
            ResponseError: the node refuses the fetch.
        """
        with self._step():
            try:
                jobs = self._pending.receive()
            except ELSEWHERE as error:
                log.warning("fetch failed, using another node error=%r", str(error))
                return
            if jobs:
                self._take(jobs)

    @contextmanager
    def _step(self) -> Iterator[None]:
        """Do something during which the fetch cannot be ended."""
        self._in_step = True
        try:
            yield
        finally:
            self._in_step = False
            if self._ends_after_step:
                self._ends_after_step = False
                self.interrupt()

    def _take(self, jobs: Sequence[Job]) -> None:
        self._leases.hold(jobs)
        self.fetched.extend(jobs)
        self._cycle.rotate(jobs[-1].queue)

    def interrupt(self) -> None:
        """End the pending fetch, at the end of a step that is under way; what it has brought is in `fetched`."""
        if self._in_step:
            self._ends_after_step = True
            return
        jobs: list[Job] | None = None
        try:
            jobs = self._pending.interrupt()
        except DisqueError as error:
            log.warning("fetch ended with an answer of an unknown form error=%r", str(error))
        if jobs:
            self._take(jobs)

    def return_fetched(self, queues: Iterable[str] | None = None) -> None:
        """Give jobs back that were not delivered: those of some queues, or all."""
        chosen = None if queues is None else set(queues)
        kept: deque[Job] = deque()
        for job in self.fetched:
            if chosen is None or job.queue in chosen:
                self._leases.give_back(job.id)
            else:
                kept.append(job)
        self.fetched = kept

    def forget(self, client: Client) -> None:
        """Begin without a fetch and without jobs, in a child process."""
        self._pending.before_close = None  # the event loop is the parent's
        self._pending.close()
        self._pending = pending_fetch(client)
        self.fetched.clear()


_WITH: Final = {"with_counters": True, "with_requeue": True}
