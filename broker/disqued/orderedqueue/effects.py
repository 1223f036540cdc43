"""What an entry caused: the result for its proposer, and what the nodes must do.

The lists of an `Effects` are made when the first element is added; until then they are one shared empty list. Callers
only read them.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

OK: Final = 0
MAXLEN: Final = 1
"""The queue is full."""
PAUSED: Final = 2
"""The queue is paused for new jobs."""
STALE: Final = 3
"""The job has no lease with this claim: it was given to another consumer since, or its lease has ended."""
NO_JOB: Final = 4
"""The queue has no such job."""
TTL: Final = 5
"""The delay is as long as the rest of the job's life, or longer; `value` is that rest in milliseconds."""
TOO_LATE: Final = 6
"""Half of the job's time to live is over, or less than the requested lease is left of it."""
NO_CONSUMER: Final = 7
"""The consumer of a SINGLE queue must join first."""
NODE_DOWN: Final = 8
"""The consumer's node is down: it must be reported as up first."""
NOT_KEPT: Final = 9
"""Nothing would keep the result: the job has no RETAIN."""
MALFORMED: Final = 10
"""The command could not be decoded. It changed nothing."""
SAME_QUEUE: Final = 11
"""The job is in the target queue already."""
LEASED_NOW: Final = 12
"""A consumer has the job, so it cannot be moved."""
CODE_NAMES: Final = (
    "OK",
    "MAXLEN",
    "PAUSED",
    "STALE",
    "NOJOB",
    "TTL",
    "TOOLATE",
    "NOCONSUMER",
    "NODEDOWN",
    "NOTKEPT",
    "MALFORMED",
    "SAMEQUEUE",
    "LEASED",
)
"""The names of the codes, by number."""

LIMIT: Final = 1
REJECTED: Final = 2
EXPIRED: Final = 3
MOVED: Final = 4
"""Why a job moves to another queue: failed too often, rejected by a worker, life over, or MOVEJOB and REDRIVE."""


class Assigned:
    """A job that a consumer gets."""

    def __init__(self, index: i64, claim: i64, consumer: bytes, until_ms: i64, nacks: i64, additional: i64) -> None:
        self.index: i64 = index
        self.claim: i64 = claim
        self.consumer = consumer
        self.until_ms: i64 = until_ms
        """When the lease ends; 0 if there is none (RETRY 0), and the job has ended."""
        self.nacks: i64 = nacks
        self.additional: i64 = additional
        """Additional deliveries: earlier leases that ended."""


class Returned:
    """A lease that ended without the end of its job: the job waits again, now or after a delay."""

    def __init__(self, index: i64, claim: i64, consumer: bytes) -> None:
        self.index: i64 = index
        self.claim: i64 = claim
        self.consumer = consumer


class Ended:
    """A job that ended; its body is not needed any more, unless the same entry assigned the job (RETRY 0)."""

    def __init__(self, index: i64, outcome: i64, size: i64, claim: i64, consumer: bytes) -> None:
        self.index: i64 = index
        self.outcome: i64 = outcome
        """`DONE`, `DEAD`, `MOVED`, `EXPIRED` or `DELETED` of `core.fates.fate`."""
        self.size: i64 = size
        """Bytes of the body."""
        self.claim: i64 = claim
        """The last claim; 0 if nobody had the job."""
        self.consumer = consumer
        """The consumer that had the job; empty if none had it."""


class Move:
    """A job on its way to another queue. It waits here, for nobody, until DEADSENT or REMOVE."""

    def __init__(self, index: i64, target: bytes, why: i64, reason: bytes, since_ms: i64) -> None:
        self.index: i64 = index
        self.target = target
        self.why: i64 = why
        self.reason = reason
        """What the last worker said; empty if none said anything. The REASON of the ADD then holds."""
        self.since_ms: i64 = since_ms
        self.nacks: i64 = 0
        self.additional: i64 = 0
        self.claim: i64 = 0
        """The last claim, which the successor inherits."""
        self.consumer = b""
        """The consumer whose lease ended with the move; empty if none had the job."""
        self.dead_ttl_s: i64 = 0
        """The life of the dead letter; 0 if it is none."""
        self.keeps_counters: bool = False
        """Whether the successor keeps the counters (MOVEJOB UNCOUNTED)."""
        self.redrives: bool = False
        """Whether the successor is no dead letter any more (REDRIVE)."""


class Refused:
    """One job of a command with several jobs for which nothing was done."""

    def __init__(self, index: i64, code: i64) -> None:
        self.index: i64 = index
        self.code: i64 = code


class Known:
    """The job that an earlier ADD added under the same key: what its ID is made of."""

    def __init__(self, index: i64, ttl_s: i64, retry_s: i64) -> None:
        self.index: i64 = index
        self.ttl_s: i64 = ttl_s
        self.retry_s: i64 = retry_s


_NO_ASSIGNED: Final[list[Assigned]] = []
_NO_RETURNED: Final[list[Returned]] = []
_NO_ENDED: Final[list[Ended]] = []
_NO_MOVES: Final[list[Move]] = []
_NO_REFUSED: Final[list[Refused]] = []
_NO_NAMES: Final[list[bytes]] = []


class Effects:
    """What one entry caused."""

    def __init__(self) -> None:
        self.code: i64 = OK
        self.value: i64 = 0
        """The index of the job that was added, the number of jobs for which the command was done, or as the code says;
        for RENEW the milliseconds until the lease ends."""
        self.next_index: i64 = 0
        """For PURGE: where the next PURGE must begin; 0 if the purge is complete."""
        self.known: Known | None = None
        """For ADD: the job of an earlier ADD with the same key. No job was added."""
        self.assigned: list[Assigned] = _NO_ASSIGNED
        """In the order of the claims."""
        self.returned: list[Returned] = _NO_RETURNED
        self.ended: list[Ended] = _NO_ENDED
        self.moves: list[Move] = _NO_MOVES
        """Moves that begin."""
        self.refused: list[Refused] = _NO_REFUSED
        self.activated: list[bytes] = _NO_NAMES
        """Consumers of a SINGLE queue that are active from now on."""
        self.parted: list[bytes] = _NO_NAMES
        """Consumers that have left or were removed."""

    def add_assigned(self, one: Assigned) -> None:
        """A consumer gets a job."""
        if not self.assigned:
            self.assigned = []
        self.assigned.append(one)

    def add_returned(self, one: Returned) -> None:
        """A lease ended."""
        if not self.returned:
            self.returned = []
        self.returned.append(one)

    def add_ended(self, one: Ended) -> None:
        """A job ended."""
        if not self.ended:
            self.ended = []
        self.ended.append(one)

    def add_move(self, one: Move) -> None:
        """A job is on its way to another queue."""
        if not self.moves:
            self.moves = []
        self.moves.append(one)

    def refuse(self, index: i64, code: i64) -> None:
        """The command does nothing for this job."""
        if not self.refused:
            self.refused = []
        self.refused.append(Refused(index, code))

    def add_activated(self, consumer: bytes) -> None:
        """A consumer is active."""
        if not self.activated:
            self.activated = []
        self.activated.append(consumer)

    def add_parted(self, consumer: bytes) -> None:
        """A consumer has left."""
        if not self.parted:
            self.parted = []
        self.parted.append(consumer)
