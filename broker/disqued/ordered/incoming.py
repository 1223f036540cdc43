"""Jobs that come to ordered queues from the table of jobs of this node: by moves, and under the wrong type.

A move to an ordered queue leaves the old job parked in the table until the leader has confirmed the new one.

A queue of jobs may have the name of an ordered queue: its jobs were there before, or came from a node that does not
know ordered queues. They are moved into the ordered queue in the order in which they are queued here.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.fates.fate import MOVED
from disqued.core.jobs.job import Job
from disqued.moves.room import moves_of
from disqued.ordered.catalog import Catalog, OrderedQueue
from disqued.ordered.clients import Clients
from disqued.ordered.counters import JOBS_ADOPTED
from disqued.ordered.exchange import Exchange
from disqued.ordered.requests import COMMAND, DONE, Request
from disqued.ordered.results import unpack
from disqued.ordered.successors import add_for
from disqued.orderedqueue.effects import OK

ANSWER_MS: Final = 10_000
LOOK_EVERY_MS: Final = 1000
"""How often is looked for jobs under the wrong type."""
MOST_ADOPTED: Final = 1000
"""How many jobs of a name are moved at a time."""


@mypyc_attr(allow_interpreted_subclasses=True)
class _AddRequest(Request):
    """The ADD of a job of the table of jobs, with its ID as the key."""

    def __init__(self, incoming: Incoming, queue: OrderedQueue, job: Job, *, adopted: bool) -> None:
        state = incoming.exchange.state
        data = add_for(job, job.id, state.now_ms, adopted=adopted)
        super().__init__(COMMAND, data, state.now_ms + ANSWER_MS, repeated=True)
        self.incoming = incoming
        self.queue = queue
        self.job = job
        self.ttl_s: i64 = max(job.expire_at_s - state.now_ms // 1000, 1)

    def answered(self, status: i64, data: bytes) -> None:
        """Continue if the job was added, now or before."""
        result = unpack(data)
        queue = self.queue
        if status != DONE or result.code != OK:
            self.failed()
        elif result.known:
            self.added(queue.job_id(result.value, result.ttl_s, result.retry_s > 0))
        else:
            self.added(queue.job_id(result.value, self.ttl_s, self.job.retry_s > 0))

    def added(self, new_id: bytes) -> None:
        """The job is in the ordered queue, under this ID."""
        raise NotImplementedError

    def failed(self) -> None:
        """It was not added, as far as known."""


class _SuccessorRequest(_AddRequest):
    """A job that a move made. The moves room repeats it."""

    def __init__(self, incoming: Incoming, queue: OrderedQueue, job: Job) -> None:
        # Without its own `__init__`, an instance of a compiled class never leaves the memory if the class inherits one.
        super().__init__(incoming, queue, job, adopted=False)

    def added(self, new_id: bytes) -> None:
        """End the move."""
        moves_of(self.incoming.exchange.state).moving.added_outside(self.job.id, new_id)


class _AdoptRequest(_AddRequest):
    """A job of a queue of jobs with the name of an ordered queue. It comes back after its retry time otherwise."""

    def __init__(self, incoming: Incoming, queue: OrderedQueue, job: Job) -> None:
        # Without its own `__init__`, an instance of a compiled class never leaves the memory if the class inherits one.
        super().__init__(incoming, queue, job, adopted=True)

    def added(self, new_id: bytes) -> None:
        """Acknowledge the job."""
        state = self.incoming.exchange.state
        self.incoming.adopted(self.queue)
        job = self.job
        if state.lifecycle.table.get(job.id) is job and state.lifecycle.acknowledge(job, state.now_ms, MOVED, new_id):
            state.events.acknowledged(job)

    def failed(self) -> None:
        """Try again when the job is queued again."""
        self.incoming.over(self.queue)


class Incoming:
    """The jobs of one node on their way into ordered queues."""

    def __init__(self, exchange: Exchange, clients: Clients, catalog: Catalog) -> None:
        self.exchange = exchange
        self._clients = clients
        self._catalog = catalog
        self._under_way: dict[bytes, int] = {}
        """How many jobs are being adopted, by queue."""
        self._look_ms: i64 = 0
        """When is looked for such jobs next."""
        self._warned: dict[bytes, None] = {}

    def add(self, job: Job) -> None:
        """Add a job that a move made."""
        queue = self._catalog.by_name.get(job.queue)
        if queue is not None:
            self._clients.client(queue.group).submit(_SuccessorRequest(self, queue, job))

    # --- jobs under the wrong type ------------------------------------------------------------------------------------

    def adopt(self) -> None:
        """Move some jobs that are queued here under the names of ordered queues."""
        now_ms = self.exchange.state.now_ms
        if now_ms < self._look_ms:
            return
        self._look_ms = now_ms + LOOK_EVERY_MS
        queues = self.exchange.state.lifecycle.queues
        for name, ordered in self._catalog.by_name.items():
            queue = queues.get(name)
            if queue is None or queue.length == 0:
                continue
            self._warn(name)
            places = MOST_ADOPTED - self._under_way.get(name, 0)
            if places > 0:
                for job in queue.order.peek(places, None):
                    self._adopt(ordered, job)

    def _adopt(self, queue: OrderedQueue, job: Job) -> None:
        """Move one job. An at-most-once job ends before, so that it is not delivered twice."""
        state = self.exchange.state
        self._under_way[queue.name] = self._under_way.get(queue.name, 0) + 1
        request = _AdoptRequest(self, queue, job)
        if job.retry_s == 0:
            state.lifecycle.end(job, MOVED, None)
        else:
            state.lifecycle.park(job, state.now_ms)
        self._clients.client(queue.group).submit(request)

    def adopted(self, queue: OrderedQueue) -> None:
        """A job is in the ordered queue."""
        self.exchange.state.counters.add(JOBS_ADOPTED)
        self.over(queue)

    def over(self, queue: OrderedQueue) -> None:
        """A request was answered."""
        left = self._under_way.get(queue.name, 1) - 1
        if left > 0:
            self._under_way[queue.name] = left
        else:
            self._under_way.pop(queue.name, None)

    def _warn(self, name: bytes) -> None:
        """Log once that jobs come under the wrong type."""
        if name not in self._warned:
            self._warned[name] = None
            text = "Jobs were added under the name of an ordered queue as if it were none, and are moved into it"
            self.exchange.state.host.log("warning", f"{text}: queue={name.decode('utf-8', 'replace')}")
