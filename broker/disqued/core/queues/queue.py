"""A queue: its waiting jobs in the order of its type, the clients that wait for jobs, and statistics.

What differs between types of queues is behind three seams, the members of `QueueType`: when a new job is safe
(`Placement`), in which order jobs are delivered (`Order`), and what hands a job out and ends it (`Release`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.jobs.job import Job
from disqued.core.queues.bypriority import ByPriority
from disqued.core.queues.limiter import Limiter
from disqued.core.queues.order import Order
from disqued.core.queues.settings import QueueSettings
from disqued.core.queues.watcher import QueueWatcher
from disqued.resp.writer import bulk

PAUSED_IN: Final = 1
PAUSED_OUT: Final = 2
PAUSE_NAMES: Final = (b"none", b"in", b"out", b"all")
"""By pause flags."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Placement:
    """Decides when a new job is safe, so that its client can be told."""

    def __init__(self, *, by_copies: bool) -> None:
        self.by_copies = by_copies
        """Whether a job is safe when REPLICATE nodes have copies: ADDJOB is refused when too few can be reached."""

    def place(
        self,
        session: Any,
        job: Job,
        timeout_ms: i64,
        now_ms: i64,
        *,
        confirmed: i64,
        external: bool,
        with_copies: bool = False,
    ) -> bool:
        """Place a job that the client of a session adds.

        True: the job is safe, and the caller replies with its ID. False: the placement replies, now or later.
        `confirmed` nodes must have the job before the client is answered; 0 if it waits for none (ASYNC).
        `external`: this node must not keep the job itself. `with_copies`: the reply says how many nodes have it. The
        session is a `Session`, which this package does not know.
        """
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Release:
    """Hands jobs out, and decides what their acknowledgement, their return and their expiry mean."""

    def take(self, queue: Queue, now_ms: i64) -> Job | None:
        """Hand out the next job of a queue; None when there is none, or when the queue is paused for output."""
        raise NotImplementedError

    def acknowledge(self, job: Job, now_ms: i64) -> bool:
        """The job is done (ACKJOB); False when that was known."""
        raise NotImplementedError

    def give_back(self, job: Job, now_ms: i64, counting: i64) -> bool:
        """The job comes back unfinished: NACK, ENQUEUE, or its retry time is over. False when it is not queued."""
        raise NotImplementedError

    def expire(self, job: Job) -> None:
        """The time to live of the job is over."""
        raise NotImplementedError


class QueueType:
    """What a kind of queue does with its jobs; a value that all queues of the type share."""

    def __init__(
        self, name: bytes, placement: Placement, release: Release, new_order: Callable[[], Order] = ByPriority
    ) -> None:
        self.name = name
        self.placement = placement
        self.release = release
        self.new_order = new_order
        """Makes the order of a new queue."""


@mypyc_attr(acyclic=True)
class Wait:
    """The entry of a waiting client in the list of waiting clients of a queue."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.previous: Wait | None = None
        self.next: Wait | None = None


class Queue:
    """One queue on one node. It is made when it is first used, and removed when it was idle for long."""

    def __init__(self, name: bytes, number: i64, now_ms: i64, queue_type: QueueType) -> None:
        self.name = name
        self.type = queue_type
        self.number: i64 = number
        """Increases with each queue that this node makes; queues are scanned in this order."""
        self.length: i64 = 0
        self.body_bytes: i64 = 0
        """The bytes of the bodies of the waiting jobs."""
        self.dead: i64 = 0
        """How many of the waiting jobs are dead letters."""
        self.leased: i64 = 0
        """How many jobs workers of this node have, without at-most-once jobs. The lifecycle counts them."""
        self.delayed: i64 = 0
        """How many jobs wait on this node for the end of their delay. `Queues` counts them."""
        self.held: i64 = 0
        """How many jobs that this node queues first wait for their parents. `HeldJobs` counts them."""
        self.order = queue_type.new_order()
        """The waiting jobs. Only the verbs of the lifecycle change it, and the counts with it."""
        self.patterns: tuple[Any, ...] | None = None
        """The patterns that clients wait for and that match the queue (`patterns`); None for none."""
        self.first_wait: Wait | None = None
        self.last_wait: Wait | None = None
        self.waiting: i64 = 0
        """Number of clients that wait for jobs of this queue."""
        self.ready: bool = False
        """On the list of queues whose clients can be served (`Lifecycle.ready`)."""
        self.visited_ms: i64 = 0
        """In a cluster: when a client last asked for jobs."""
        self.watcher: QueueWatcher | None = None
        """What the federation room keeps about the queue; None until the queue concerns other nodes."""
        self.settings: QueueSettings | None = None
        """None if nothing is set for the queue (`Queues.settings_of`)."""
        self.limiter: Limiter | None = None
        """What holds back its jobs if the settings have a `rate` or `inflight`; the rates room keeps it."""
        self.local_pause: i64 = 0
        """The pause flags that PAUSE set on this node."""
        self.pause: i64 = 0
        """What is stopped: by PAUSE on this node, or by the setting `pause`."""
        self.created_ms: i64 = now_ms
        self.used_ms: i64 = now_ms
        """When a job was last queued or delivered."""
        self.jobs_in: i64 = 0
        self.jobs_out: i64 = 0
        self.reply_prefix = b"*3\r\n" + bulk(name) + b"$40\r\n"
        """How a delivered job begins in a reply, up to its ID; the array is longer with counters."""
        self.reply_prefix_counters = b"*7\r\n" + bulk(name) + b"$40\r\n"

    def count_in(self, job: Job) -> None:
        """Count a job that waits from now on."""
        self.length += 1
        self.body_bytes += len(job.body)
        if job.is_dead_letter:
            self.dead += 1

    def count_out(self, job: Job) -> None:
        """Count a job no longer that was taken out of the order."""
        self.length -= 1
        self.body_bytes -= len(job.body)
        if job.is_dead_letter:
            self.dead -= 1

    def join_line(self, wait: Wait) -> None:
        """Add a client to the end of the waiting clients."""
        self.waiting += 1
        last = self.last_wait
        if last is None:
            self.first_wait = wait
        else:
            last.next = wait
            wait.previous = last
        self.last_wait = wait

    def leave_line(self, wait: Wait) -> None:
        """Remove a client from the waiting clients."""
        self.waiting -= 1
        previous = wait.previous
        following = wait.next
        if previous is None:
            self.first_wait = following
        else:
            previous.next = following
            wait.previous = None
        if following is None:
            self.last_wait = previous
        else:
            following.previous = previous
            wait.next = None

    @property
    def spare(self) -> i64:
        """How many jobs no client of this node waits for. Clients wait in spite of jobs if limits hold these back."""
        if self.waiting == 0:
            return self.length
        return 0 if self.limiter is None else max(self.length - self.waiting, 0)

    @property
    def is_unused(self) -> bool:
        """Whether the queue can be removed and nothing but its statistics would be lost."""
        if self.length != 0 or self.leased != 0 or self.delayed != 0 or self.waiting != 0 or self.local_pause != 0:
            return False
        if self.held != 0:
            return False
        limiter = self.limiter
        if limiter is not None and limiter.leases:
            return False
        return self.watcher is None or not self.watcher.wanted
