"""The tables of one node: its jobs, its queues, and the counts of both, changed together.

`lifecycle.lifecycle` has the verbs, which change the states of the jobs in these tables.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy_extensions import i64

from disqued.core.fates.records import Records
from disqued.core.fates.watches import Watches
from disqued.core.jobs.attributes import Attributes, merged
from disqued.core.jobs.job import ACTIVE, QUEUED, Job
from disqued.core.jobs.joblog import JobLog
from disqued.core.jobs.table import JobTable
from disqued.core.lifecycle.dropped import Dropped
from disqued.core.lifecycle.events import Events
from disqued.core.lifecycle.held import HeldJobs
from disqued.core.lifecycle.journal import Journal
from disqued.core.lifecycle.keys import Keys
from disqued.core.lifecycle.replicationcounts import ReplicationCounts
from disqued.core.lifecycle.waketimes import WakeTimes
from disqued.core.memory.accounting import Memory, queue_bytes
from disqued.core.queues.patterns import Patterns
from disqued.core.queues.queue import PAUSED_OUT, Queue
from disqued.core.queues.queues import Queues
from disqued.core.telemetry.counter import Count


class Registry(WakeTimes):
    """The jobs and queues of one node."""

    def __init__(self, draw: Callable[[], float], resident: Callable[[], int] | None = None) -> None:
        super().__init__(draw)
        self.table = JobTable()
        self.queues: Queues
        self.held: HeldJobs
        self.patterns = Patterns()
        """Patterns of queues that clients wait for."""
        self.memory = Memory(resident)
        self.keys = Keys(self.timers, self.memory)
        """The keys of recently added jobs."""
        self.journal = Journal()
        self.ready: list[Queue] = []
        """Queues with jobs and with clients that wait for them."""
        self.wanted: list[Queue] = []
        """Queues with jobs that other nodes asked for."""
        self.events = Events()
        self.unplaced_jobs: i64 = 0
        """New jobs that wait for their copies."""
        self.acked_jobs: i64 = 0
        self.queued_jobs: i64 = 0
        """Jobs in all queues."""
        self.requeued_by_timer = Count()
        """How often a job was queued again because its retry time was over."""
        self.dropped: list[Dropped] = []
        """What was dropped at once and is not freed yet."""
        self.replication_counts = ReplicationCounts()
        """REPLICATE of all jobs that are not acknowledged."""
        self.records = Records(self.timers, self.memory)
        """The records of finished jobs."""
        self.logs: dict[bytes, JobLog] = {}
        """The progress logs of jobs by ID, kept by the progress room; one stays a little longer than its job."""
        self.watches = Watches(self.memory)
        self.watched = self.watches.watched
        """The jobs whose end somebody wants to know, by ID."""

    def _register(self, job: Job) -> None:
        self.table.add(job)
        self.memory.add(job)
        if job.repl > 1:
            self.replication_counts.add(i64(job.repl))

    def set_attributes(self, job: Job, extra: Attributes | None) -> None:
        """Change the attributes of a job in any state. A queued job moves to the place that they give it."""
        was_held = job.is_held
        self.memory.remove(job)
        if job.state == QUEUED:
            queue = self.queues.get(job.queue)
            assert queue is not None
            queue.order.remove(job)
            queue.count_out(job)
            job.extra = extra
            queue.order.insert(job)
            queue.count_in(job)
        else:
            job.extra = extra
        if extra is not None and extra.named:
            self.table.note_named(job)
        self.memory.add(job)
        if job.state == ACTIVE or job.state == QUEUED:
            self.journal.keep(job)
        if was_held and not job.is_held:
            self.held.end(job)
            self.held.free[job.id] = job

    def merge_attributes(self, job: Job, received: Attributes | None) -> None:
        """Give a job the attributes that another node knows in addition."""
        if received is not None:
            extra = merged(job.extra, received)
            if extra is not job.extra:
                self.set_attributes(job, extra)

    def offer(self, queue: Queue) -> None:
        """Have the clients that wait for this queue served, unless the queue is empty or paused for output."""
        if not queue.ready and queue.length > 0 and not queue.pause & PAUSED_OUT:
            queue.ready = True
            self.ready.append(queue)

    def make_queue(self, name: bytes, now_ms: i64) -> Queue:
        """The queue of that name; it is made if it does not exist."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues.get_or_make(name, now_ms)
            if self.patterns.live:
                self.patterns.match_new(queue)
            self.memory.used_bytes += queue_bytes(name)
            if queue.settings is not None and queue.settings.limited:
                self.events.queue_limits(queue)
        return queue

    def remove_queue(self, queue: Queue) -> None:
        """Remove an empty queue that no client waits for."""
        assert queue.length == 0
        assert queue.waiting == 0
        self.events.queue_gone(queue)
        if queue.patterns is not None:
            self.patterns.forget_queue(queue)
        self.queues.remove(queue)
        self.memory.used_bytes -= queue_bytes(queue.name)
