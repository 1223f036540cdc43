"""The record that a node keeps of a job.

A million jobs must fit in memory, so a job is one slotted record. It has the links of the two structures that hold it,
its queue and the timer wheel, so adding and removing it takes constant time and allocates nothing. `acyclic` keeps jobs
out of Python's cycle collector: links are cleared whenever a job leaves a structure.

Fields, states and flags are those of the Disque job structure. `ctime`, `delay_s`, `retry_s`, counters and flags are
sent over the cluster bus and written to disk unchanged.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from mypy_extensions import i32, i64, mypyc_attr, u8

from disqued.core.jobs.attributes import AFTER, Attributes
from disqued.core.timers.timed import Timed

NodeIds: TypeAlias = tuple[bytes, ...]
"""IDs of nodes, 40 bytes each, in the order in which the nodes were added."""
NOBODY: Final[NodeIds] = ()

WAIT_REPL: Final = 0
ACTIVE: Final = 1
QUEUED: Final = 2
ACKED: Final = 3
STATE_NAMES: Final = (b"wait-repl", b"active", b"queued", b"acked")

BCAST_QUEUED: Final = 1
"""Tell the other holders of the next queueing."""
BCAST_WILLQUEUE: Final = 2
"""Tell the other holders half a second before the next queueing."""
DELIVERED: Final = 4
"""This node delivered the job at least once."""
LEASED: Final = 8
"""This node delivered the job, and as far as it knows no node has queued it since: a worker may be processing it."""
BY_TIMER: Final = 16
"""The last time this node queued the job, the reason was its retry time. Like LEASED it is neither sent nor stored."""
DELAYED: Final = 32
"""The job waits here for the end of its delay: it was never queued, or a worker gave it back for later. Neither sent
nor stored."""
INCOMPLETE: Final = 64
"""The list of holders may be incomplete: the job was loaded after a crash, and the file does not say when the list
grows. Every member may be a holder (`Holders.complete`). Neither sent nor stored."""
POSTPONED: Final = 128
"""A worker gave the job back for later. Its next queueing counts as nothing, because the NACK was counted. Neither sent
nor stored as a flag."""

NOWHERE: Final = 0
IN_LINE: Final = 1
IN_LATE: Final = 2
IN_RECLAIMABLE: Final = 3
IN_UNKNOWN: Final = 4
"""The structure that uses the queue links of a job: none, the line or the side structure of its queue (`ByAge`), the
list of jobs that may be evicted, or that of acknowledgements of unknown jobs."""

NOT_DONE: Final = -1
"""In `Job.requeue_at_ms`, which an acknowledged job does not need."""

CTIMES_PER_MS: Final = 1_000_000
"""The resolution of creation times: so many jobs of one node in a millisecond have different ones."""
_LOW_32: Final = 0xFFFFFFFF
_NACKS: Final = 0xFFFF0000
MAX_COUNTER: Final = 65535
"""Counters have 16 bits on the wire and stop at the largest value."""


@mypyc_attr(acyclic=True)
class Job(Timed):
    """One job, as this node knows it."""

    def __init__(
        self,
        job_id: bytes,
        queue: bytes,
        body: bytes,
        ctime: i64,
        expire_at_s: i64,
        delay_s: i64,
        retry_s: i64,
        repl: i32,
    ) -> None:
        self.awake_ms = 0
        self.timer_previous = None
        self.timer_next = None
        self.queue_previous: Job | None = None
        self.queue_next: Job | None = None
        self.id = job_id
        """40 bytes, see `jobid`."""
        self.queue = queue
        self.body = body
        self.ctime: i64 = ctime
        """Creation time in unix milliseconds * 1000000, unique on the creating node; the order of delivery."""
        self.expire_at_s: i64 = expire_at_s
        self.retry_s: i64 = retry_s
        """Seconds until an unacknowledged job is queued again; 0 for at-most-once jobs."""
        self.requeue_at_ms: i64 = 0
        """When this node queues the job next, in unix milliseconds; 0 for never. NOT_DONE, of an acknowledged job: it
        was moved, or this node does not know why it ended."""
        self.delivered: NodeIds | None = None
        """The holders: nodes that may have a copy, this node included if it keeps one. None if only this node has it.
        Empty for a dummy, the acknowledgement of a job that this node does not have. Jobs share lists (`holders`)."""
        self.confirmed: NodeIds | None = None
        """Nodes that confirmed a copy (in state wait-repl) or the acknowledgement (in state acked)."""
        self.extra: Attributes | None = None
        """Its attributes; None for most jobs. `Lifecycle.set_attributes` changes those of a registered job."""
        self.repl: i32 = repl
        self._delay: i32 = i32(delay_s)
        self._counters: i32 = 0
        """NACKs in the higher half, additional deliveries in the lower one."""
        self.state: u8 = WAIT_REPL
        self.flags: u8 = 0
        self.gc_retry: u8 = 0
        """Of an acknowledged job: how often its holders were asked. Of any other one: its era (`era`)."""
        self.place: u8 = NOWHERE

    # Values that are read rarely share 32 bits each: with 8 bytes more, the allocator would give a job 16.

    @property
    def delay_s(self) -> i64:
        """Seconds until the job is queued for the first time."""
        return i64(self._delay) & _LOW_32

    @delay_s.setter
    def delay_s(self, seconds: i64) -> None:
        self._delay = i32(seconds)

    @property
    def nacks(self) -> i32:
        """How often a worker gave the job back, as far as this node knows."""
        return i32(i64(self._counters) >> 16 & MAX_COUNTER)

    @nacks.setter
    def nacks(self, count: i32) -> None:
        self._counters = i32(i64(count) << 16 | (i64(self._counters) & MAX_COUNTER))

    @property
    def additional_deliveries(self) -> i32:
        """How often the job was queued again for other reasons, as far as this node knows."""
        return i32(i64(self._counters) & MAX_COUNTER)

    @additional_deliveries.setter
    def additional_deliveries(self, count: i32) -> None:
        self._counters = i32((i64(self._counters) & _NACKS) | i64(count))

    @property
    def created_ms(self) -> i64:
        """When the job was added, in unix milliseconds of the node that created it."""
        return self.ctime // CTIMES_PER_MS

    @property
    def is_named(self) -> bool:
        """Whether its ID was given or derived, so that two nodes may have added it."""
        return self.extra is not None and self.extra.named

    @property
    def is_dead_letter(self) -> bool:
        """Whether it was moved to a queue of dead letters."""
        return self.extra is not None and self.extra.dead

    @property
    def is_known_as_done(self) -> bool:
        """Whether it is acknowledged, and not because it was moved, or for a reason that this node does not know."""
        return self.state == ACKED and self.requeue_at_ms != NOT_DONE

    @property
    def era(self) -> i64:
        """As of which era of the job table its list of holders is right, while it is not acknowledged.

        A node that started again in this era or before, and lost its jobs, got its copy of the job afterwards.
        """
        return i64(self.gc_retry)

    @era.setter
    def era(self, number: i64) -> None:
        self.gc_retry = u8(number)

    @property
    def after(self) -> bytes:
        """The value of the attribute AFTER of a job that has parents (`parents`)."""
        extra = self.extra
        assert extra is not None
        value = extra.get(AFTER)
        assert value is not None
        return value

    @property
    def is_held(self) -> bool:
        """Whether it must not be delivered yet: some of its parents are not met."""
        return self.extra is not None and self.extra.held

    def is_whole_with(self, features: i64) -> bool:
        """Whether a node with these features understands all of its attributes."""
        extra = self.extra
        return extra is None or features & extra.needs == extra.needs

    @property
    def is_unfinished(self) -> bool:
        """Whether a worker may still have to process it: it is not acknowledged, and no delivered at-most-once job."""
        return self.state != ACKED and not (self.retry_s == 0 and self.flags & DELIVERED != 0)

    @property
    def is_dummy(self) -> bool:
        """Whether this node has only the acknowledgement, not the job."""
        return self.delivered is not None and len(self.delivered) == 0
