"""The job: what every node keeps of it.

A million of them must fit in memory, so a job is one slotted record. It carries the links of the two structures it
lives in (its queue and the timer wheel), so that joining and leaving them allocates nothing and takes
constant time. `acyclic` keeps jobs out of Python's cycle collector: links are cleared whenever a job leaves a
structure.

Fields, states and flags are those of the Disque job structure; `ctime`, `delay_s`, `retry_s`, counters and flags travel
over the cluster bus and to disk as they are.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from mypy_extensions import i32, i64, mypyc_attr, u8

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
"""Announce the next queueing to the other holders."""
BCAST_WILLQUEUE: Final = 2
"""Announce shortly before the next requeueing that it is about to happen."""
DELIVERED: Final = 4
"""This node handed the job out at least once."""
IN_HAND: Final = 8
"""This node handed the job out, and no node queued it since, as far as is known here: a worker of ours may be at it."""
BY_TIMER: Final = 16
"""This node queued the job last because its retry time was over. Like IN_HAND it is neither sent nor stored."""
DELAYED: Final = 32
"""The job waits here for the end of its delay and was never queued: such jobs are counted. Neither sent nor stored."""

NOWHERE: Final = 0
IN_LINE: Final = 1
IN_LATE: Final = 2
IN_RECLAIMABLE: Final = 3
"""What a job's links are used for: its queue's line, its queue's side structure, the list of what may be evicted."""

MAX_COUNTER: Final = 65535
"""Counters are 16 bits on the wire and stay at the highest value."""


@mypyc_attr(acyclic=True)
class Job(Timed):
    """One job as this node knows it."""

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
        """Creation in unix milliseconds * 1000000, unique on the creating node: the order of delivery."""
        self.expire_at_s: i64 = expire_at_s
        self.delay_s: i64 = delay_s
        self.retry_s: i64 = retry_s
        """Seconds until an unacknowledged job is queued again; 0 for at most once."""
        self.requeue_at_ms: i64 = 0
        """When this node queues the job next; 0 for never again."""
        self.delivered: NodeIds | None = None
        """Nodes that may have a copy, this one included if it keeps one; None while it is this node alone, empty for a
        job that is not known here but for its acknowledgement (a dummy). Lists are shared, see `holders`."""
        self.confirmed: NodeIds | None = None
        """Nodes known to have a copy (wait-repl) or to know the acknowledgement (acked)."""
        self.repl: i32 = repl
        self.nacks: i32 = 0
        self.additional_deliveries: i32 = 0
        self.state: u8 = WAIT_REPL
        self.flags: u8 = 0
        self.gc_retry: u8 = 0
        self.place: u8 = NOWHERE

    @property
    def is_unfinished(self) -> bool:
        """Whether it may still have to be done by somebody: not acknowledged, nor delivered at most once."""
        return self.state != ACKED and not (self.retry_s == 0 and self.flags & DELIVERED != 0)

    @property
    def is_dummy(self) -> bool:
        """Whether only the acknowledgement is known, not the job."""
        return self.delivered is not None and len(self.delivered) == 0
