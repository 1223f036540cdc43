"""What clients of a simulated cluster did and saw, written down outside the nodes: what the checkers judge by."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from disqued.testing.account import JobAccount

if TYPE_CHECKING:
    from disqued.testing.snapshot import Snapshot

TRACED: Final = 400
"""Events kept for the report of a failure."""
RECOVERY_MS: Final = 3000
"""How long after a disk was mended a node may still have to catch up with its syncs."""
NEVER_MS: Final = 1 << 62


@dataclass(frozen=True)
class Setback:
    """A member fell back behind something that it had confirmed, to what its disk had."""

    at_ms: int
    since_ms: int
    """What it had confirmed until then it still has."""


@dataclass
class Trouble:
    """The disk of a member was not as it should be."""

    from_ms: int
    until_ms: int = NEVER_MS


@dataclass(eq=False)
class Delivery:
    """A job was handed to a client."""

    at_ms: int
    member: int
    job_id: bytes
    counted: int
    """How often the node says that it was queued again."""


@dataclass(eq=False)
class Attempt:
    """One ADDJOB. Its number is in the body of the job, so that a job is known though its ID was never seen."""

    number: int
    at_ms: int
    queue: str
    replicate: int
    retry_s: int
    ttl_s: int
    delay_s: int
    asynchronous: bool
    member: int
    job_id: bytes | None = None
    """None until the ID was received; for ever if the reply was lost or an error."""
    timeout_ms: int = 0
    refused_ms: int = 0
    """When the reply came that too few nodes had a copy in time, and the job is deleted again."""
    added_ms: int = 0
    holders: list[tuple[int, int]] = field(default_factory=list)
    """Members that had a copy when the ID was replied, and how often each had lost its memory before."""
    losses_before: int = 0
    """How often nodes had lost their memory when it began."""
    copies_short: int = 0
    """How many copies were missing when the ID was replied."""
    heirs_lost: int = 0
    """How many members lost their memory that had taken over the copy of one that was leaving."""
    deliveries: list[Delivery] = field(default_factory=list)
    nacks_ms: list[int] = field(default_factory=list)
    """When clients sent a NACK."""
    works_ms: list[int] = field(default_factory=list)
    acks_sent_ms: list[int] = field(default_factory=list)
    """When clients sent ACKJOB or FASTACK."""
    ack_replied_ms: int = 0
    """When the first reply to one of them came."""
    ack_settled: bool = False
    """Whether all nodes could hear of it then."""
    told_ms: int = 0
    """When the ID left the node."""

    @property
    def body(self) -> bytes:
        """What the job says."""
        return b"job %d" % self.number

    @property
    def expires_ms(self) -> int:
        """When the creating node forgets it at the latest."""
        return self.at_ms + self.ttl_s * 1000


class History:
    """All attempts of one simulation, the trace of what happened, and the digest of it."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.memory_losses: dict[int, int] = {}
        """How often each member lost its memory."""
        self.violations: list[str] = []
        self.strange_bodies = 0
        self.rare: Counter[str] = Counter()
        """Rare states that clients saw or brought about; see `rare`."""
        self.faults: dict[str, int] = {}
        """What befell the cluster, and how often."""
        self.faulty = False
        """Whether anything did so far."""
        self.lossy = False
        """Whether anything that was sent may be lost."""
        self.policy = ""
        """When append only files are synced; empty where nodes keep none."""
        self.lasting = False
        """Whether nobody is cut off or forgotten."""
        self.setbacks: dict[int, list[Setback]] = {}
        """By member."""
        self.troubles: dict[int, list[Trouble]] = {}
        """By member."""
        self.disturbances: list[tuple[int, bool]] = []
        """When faults began, and (True) were over."""
        self.away: dict[int, set[bytes]] = {}
        """Jobs on the disk of members that are down, or load them."""
        self.promised: dict[int, set[bytes]] = {}
        """Jobs that members said they have: to another node (GOTJOB) or to the client that added them."""
        self.owed: dict[int, dict[bytes, int]] = {}
        """Of these, what members that are down have to have again, and when the time of each job is over."""
        self.expected: dict[int, Snapshot] = {}
        """What members have to have again that were shut down."""
        self.log_off_ms: dict[int, int] = {}
        """When members last ceased to keep an append only file."""
        self.hold_ms = 0
        """How long a reply may wait for a disk with which nothing is wrong."""
        self.distance_ms = 0
        """How far the nodes are from each other all the time."""
        self.healed_ms = 0
        self.last_delivery_ms = 0
        self.trace: list[tuple[int, str]] = []
        self._digest = blake2b(digest_size=16)

    def note(self, at_ms: int, text: str) -> None:
        """Something happened."""
        self._digest.update(f"{at_ms} {text}\n".encode())
        self.trace.append((at_ms, text))
        if len(self.trace) > 2 * TRACED:
            del self.trace[:TRACED]

    def digest_bytes(self, at_ms: int, data: bytes) -> None:
        """Bytes went over the network."""
        self._digest.update(b"%d " % at_ms)
        self._digest.update(data)

    @property
    def digest(self) -> str:
        """Stands for all that happened."""
        return self._digest.hexdigest()

    def violate(self, at_ms: int, text: str) -> None:
        """A promise was broken."""
        self.note(at_ms, f"VIOLATION: {text}")
        self.violations.append(f"at {at_ms}: {text}")

    def lose_memory(self, member: int) -> None:
        """A node forgot its jobs: it crashed, or was reset."""
        self.memory_losses[member] = self.memory_losses.get(member, 0) + 1

    def set_back(self, member: int, at_ms: int, since_ms: int) -> None:
        """A node may have forgotten what it did since then."""
        self.setbacks.setdefault(member, []).append(Setback(at_ms, since_ms))

    def promise(self, member: int, job_id: bytes) -> None:
        """A member said that it has a job."""
        self.promised.setdefault(member, set()).add(job_id)

    def begin_trouble(self, member: int, at_ms: int) -> None:
        """From now on its disk may be behind."""
        self.troubles.setdefault(member, []).append(Trouble(at_ms))

    def end_trouble(self, member: int, at_ms: int) -> None:
        """Its disk works again."""
        for trouble in self.troubles.get(member, []):
            trouble.until_ms = min(trouble.until_ms, at_ms)

    def is_in_trouble(self, member: int, now_ms: int) -> bool:
        """Whether its disk is, or lately was, not as it should be."""
        return any(trouble.until_ms + RECOVERY_MS > now_ms for trouble in self.troubles.get(member, []))

    def safe_ms(self, member: int, now_ms: int, window_ms: int) -> int:
        """Until when all that a member confirmed was synced, if it is to be within a time window."""
        since_ms = now_ms
        for trouble in reversed(self.troubles.get(member, [])):
            if trouble.until_ms + RECOVERY_MS >= since_ms - window_ms:
                since_ms = min(since_ms, trouble.from_ms)
        return since_ms - window_ms

    def disturb(self, at_ms: int, *, over: bool = False) -> None:
        """A fault begins, or is over."""
        self.faulty = True
        self.disturbances.append((at_ms, over))

    def was_quiet(self, from_ms: int, until_ms: int) -> bool:
        """Whether no fault was active at any time between."""
        active = 0
        for at_ms, over in self.disturbances:
            if at_ms > until_ms:
                break
            if at_ms >= from_ms:
                return False
            active += -1 if over else 1
        return active == 0

    @property
    def all_losses(self) -> int:
        """How often nodes lost their memory so far, or a part of it."""
        return sum(self.memory_losses.values()) + sum(len(setbacks) for setbacks in self.setbacks.values())

    def losses(self, member: int) -> int:
        """How often a member lost its memory so far."""
        return self.memory_losses.get(member, 0)

    def failed_holders(self, attempt: Attempt) -> int:
        """How many of those that had confirmed to have a copy lost their memory since."""
        failed = sum(
            self.losses(member) > before or self.is_set_back(member, attempt.at_ms, attempt.told_ms)
            for member, before in attempt.holders
        )
        return failed + attempt.copies_short + attempt.heirs_lost

    def is_set_back(self, member: int, from_ms: int, until_ms: int) -> bool:
        """Whether a member may have forgotten what it did in that time."""
        return any(
            setback.at_ms >= from_ms and until_ms > setback.since_ms for setback in self.setbacks.get(member, [])
        )

    def account(self) -> JobAccount[int]:
        """What became of every job, by the number of its attempt."""
        account = JobAccount[int]()
        for attempt in self.attempts:
            account.attempted.add(attempt.number)
            if attempt.job_id is not None:
                account.add(attempt.number, attempt.added_ms / 1000)
            if attempt.deliveries:
                account.delivered[attempt.number] = len(attempt.deliveries)
            if attempt.acks_sent_ms:
                account.doubtful.add(attempt.number)
            if attempt.ack_replied_ms:
                account.complete(attempt.number, attempt.ack_replied_ms / 1000)
        return account

    def attempt_of(self, body: bytes) -> Attempt | None:
        """Whose body it is; None for one that was never added."""
        word, _, number = body.partition(b" ")
        if word != b"job" or not number.isdigit() or int(number) >= len(self.attempts):
            return None
        return self.attempts[int(number)]
