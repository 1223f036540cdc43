"""GETJOB of ordered queues: takes what there is, then waits.

A request that may take several jobs, or that does not wait, first asks one queue after the other for what it has now.
If that was nothing, the client waits in all queues at once, for one job. A request for one job that waits does the
second at once. Queues of jobs (AP) may be named too: the client stands in their lines like any other.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.blocked import JobWait, WaitForJob
from disqued.core.clients.session import Session
from disqued.core.memory.accounting import WAIT_BYTES
from disqued.core.queues.queue import Queue
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import suspend, unblock, wants_reply
from disqued.ordered.agents import Agent, Taker
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.delivered import Delivered
from disqued.resp import writer

LOOK_MS: Final = 5000
"""How long a request that does not wait looks for jobs of a queue without a leader."""


class JobFetch(WaitForJob):
    """One GETJOB that names ordered queues."""

    def __init__(
        self,
        state: NodeState,
        session: Session,
        sources: list[tuple[OrderedQueue, Agent]],
        queues: list[Queue],
        count: i64,
        fields: i64,
        timeout_ms: i64,
        *,
        waits: bool,
    ) -> None:
        super().__init__(session, fields)
        self._state = state
        self._sources = sources
        self._queues = queues
        """The queues of jobs among those that were named."""
        self._missing: i64 = count
        self._timeout_ms: i64 = timeout_ms
        self._hangs = waits
        self._jobs: i64 = 0
        self._parts: list[bytes] = []
        self._next = 0
        """The next source to ask for what it has now."""

    @property
    def is_over(self) -> bool:
        """Whether the client has its reply, or is gone."""
        return self.session.blocked is not self or self.session.closed

    def begin(self) -> None:
        """Suspend the client, and ask."""
        suspend(self._state, self)
        if self._hangs and self._missing == 1:
            self._wait()
        else:
            wait_ms = self._timeout_ms if self._hangs else LOOK_MS
            if wait_ms > 0:
                self._state.lifecycle.timers.arm(self, self._state.now_ms + wait_ms)
            self.look_on()

    def look_on(self) -> None:
        """Ask the next queue for what it has now; if all were asked, reply or wait."""
        if self.is_over:
            return
        if self._missing > 0 and self._next < len(self._sources):
            queue, agent = self._sources[self._next]
            self._next += 1
            agent.add(FetchTaker(self, queue, self._missing, waits=False))
        elif self._jobs > 0 or not self._hangs:
            self._finish()
        else:
            self._wait()

    def _wait(self) -> None:
        state = self._state
        for queue in self._queues:
            wait = JobWait(self, queue)
            self.waits.append(wait)
            queue.join_line(wait)
        state.lifecycle.memory.used_bytes += WAIT_BYTES * len(self._queues)
        if self._timeout_ms > 0 and self.awake_ms == 0:
            state.lifecycle.timers.arm(self, state.now_ms + self._timeout_ms)
        self._missing = 1
        for ordered, agent in self._sources:
            agent.add(FetchTaker(self, ordered, 1, waits=True))

    def take(self, queue: OrderedQueue, job: Delivered) -> None:
        """Take a job."""
        job.append_to(self._parts, queue, self.fields)
        self._jobs += 1
        self._missing -= 1
        if self._missing == 0:
            self._finish()

    def _finish(self) -> None:
        session = self.session
        state = self._state
        unblock(state, self)
        if wants_reply(session):
            if self._jobs == 0:
                session.out.append(session.null_array())
            else:
                session.out.append(writer.array_header(int(self._jobs)))
                session.out.extend(self._parts)
        state.ready.flush(session)


class FetchTaker(Taker):
    """The part of a GETJOB that one agent serves."""

    def __init__(self, fetch: JobFetch, queue: OrderedQueue, wanted: i64, *, waits: bool) -> None:
        super().__init__(wanted, waits=waits)
        self._fetch = fetch
        self._queue = queue
        self._ended: bool = False

    def is_over(self) -> bool:
        """Whether it takes no more jobs."""
        return self._ended or self._fetch.is_over

    def take(self, agent: Agent, job: Delivered) -> None:  # noqa: ARG002 - it knows its queue
        """Pass the job on."""
        self._fetch.take(self._queue, job)

    def seen_all(self, agent: Agent) -> None:
        """Look further."""
        self._ended = True
        agent.changed()
        self._fetch.look_on()
