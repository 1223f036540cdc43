"""What clients of a simulated cluster did and saw, recorded outside the nodes for the checkers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from disqued.testing.account import JobAccount

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.testing.snapshot import Snapshot

TRACED: Final = 400
"""Events kept for the report of a failure."""
RECOVERY_MS: Final = 3000
"""How long after the repair of its disk a node may need to catch up with its syncs."""
NEVER_MS: Final = 1 << 62
_OWNER_FAULTS: Final = frozenset({"leave", "forget", "reset_node", "low_memory"})


@dataclass(frozen=True)
class Setback:
    """A member lost changes that it had confirmed, because its disk did not have them."""

    at_ms: int
    since_ms: int
    """Changes that it had confirmed before this time are not lost."""
    outdated: bool = False
    """The file that it loaded then was damaged, or switched off since then, so jobs that had ended may be in it."""


@dataclass
class Trouble:
    """A period in which the disk of a member was faulty."""

    from_ms: int
    until_ms: int = NEVER_MS


@dataclass(frozen=True)
class Owed:
    """A copy that a member must have again after it was down."""

    body: bytes
    expires_ms: int
    """In network time."""


@dataclass(eq=False)
class Delivery:
    """A delivery of a job to a client."""

    at_ms: int
    member: int
    job_id: bytes
    counted: int
    """How often the job was requeued, according to the node."""


@dataclass(eq=False)
class Attempt:
    """One ADDJOB. Its number is in the body, which identifies the job even if its ID was never received."""

    number: int
    at_ms: int
    queue: str
    replicate: int
    retry_s: int
    ttl_s: int
    delay_s: int
    asynchronous: bool
    member: int
    sync: int = 0
    """How many copies must be confirmed before the reply (SYNC); 0 if not given."""
    by_list: bool = False
    """Added with ADDTO."""
    job_id: bytes | None = None
    """None until the ID is received, and forever if the reply was lost or an error."""
    timeout_ms: int = 0
    priority: int = 0
    meta: bytes = b""
    refused_ms: int = 0
    """When NOREPL was received: too few nodes had a copy in time, and the job is deleted again."""
    added_ms: int = 0
    holders: list[tuple[int, int]] = field(default_factory=list)
    """Members that had a copy at the reply, and how often each had lost its memory before."""
    losses_before: int = 0
    """How often nodes had lost their memory before it began."""
    copies_short: int = 0
    """How many copies were missing at the reply."""
    new_owners_lost: int = 0
    """How many members lost their memory after they had received the copy of a leaving one."""
    deliveries: list[Delivery] = field(default_factory=list)
    nacks_ms: list[int] = field(default_factory=list)
    """When clients sent a NACK."""
    works_ms: list[int] = field(default_factory=list)
    acks_sent_ms: list[int] = field(default_factory=list)
    """When clients sent ACKJOB or FASTACK."""
    ack_replied_ms: int = 0
    """When the first reply to one of them was received."""
    ack_settled: bool = False
    """Whether all nodes were reachable then."""
    ack_kept_by: tuple[int, int] = (0, 0)
    """The holder that replied to the first acknowledgement, an ACKJOB, and how often it had gone down before; member 0
    if that was no holder or no ACKJOB."""
    must_end: bool = False
    """Whether that holder still ran when all nodes met after healing: no node may deliver the job from then on."""
    told_ms: int = 0
    """When the node replied with the ID."""

    @property
    def body(self) -> bytes:
        """The body of the job."""
        return b"job %d" % self.number

    @property
    def promised(self) -> int:
        """How many nodes have the job when its ID is sent."""
        return 1 if self.asynchronous else self.sync or self.replicate

    @property
    def expires_ms(self) -> int:
        """When the creating node deletes it at the latest."""
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
        """Rare states that clients saw or caused; see `rare`."""
        self.faults: dict[str, int] = {}
        """How often each fault was injected."""
        self.faulty = False
        """Whether any fault was injected so far."""
        self.lossy = False
        """Whether frames may be lost."""
        self.policy = ""
        """The value of `appendfsync`; empty if nodes keep no append-only files."""
        self.lasting = False
        """Whether no node is cut off or forgotten."""
        self.setbacks: dict[int, list[Setback]] = {}
        """By member."""
        self.killed_ms: dict[int, int] = {}
        """When members that had loaded their files were last killed: a file is not synced again while it is loaded."""
        self.troubles: dict[int, list[Trouble]] = {}
        """By member."""
        self.disturbances: list[tuple[int, bool]] = []
        """When faults began (False) and ended (True)."""
        self.away: dict[int, set[bytes]] = {}
        """Jobs on the disks of members that are down or loading."""
        self.promised: dict[int, dict[bytes, Job]] = {}
        """Copies that members confirmed, to another node (GOTJOB) or to the producer, or that they loaded."""
        self.owed: dict[int, dict[bytes, Owed]] = {}
        """Confirmed jobs that members must have again after they are down."""
        self.expected: dict[int, Snapshot] = {}
        """What members that were shut down must have again."""
        self.stayed_ms: dict[int, int] = {}
        """When members last ceased to leave, with the jobs that they still had."""
        self.log_off_ms: dict[int, int] = {}
        """When members last disabled their append-only files."""
        self.hold_ms = 0
        """How long an acknowledgement and a reply with its job, one after the other, may wait for healthy disks."""
        self.distance_ms = 0
        """The permanent latency between nodes."""
        self.healed_ms = 0
        self.met_ms = 0
        """When all nodes were connected after healing; 0 before."""
        self.last_delivery_ms = 0
        self.trace: list[tuple[int, str]] = []
        self._digest = blake2b(digest_size=16)

    def note(self, at_ms: int, text: str) -> None:
        """Record an event."""
        self._digest.update(f"{at_ms} {text}\n".encode())
        self.trace.append((at_ms, text))
        if len(self.trace) > 2 * TRACED:
            del self.trace[:TRACED]

    def digest_bytes(self, at_ms: int, data: bytes) -> None:
        """Include bytes that were sent over the network in the digest."""
        self._digest.update(b"%d " % at_ms)
        self._digest.update(data)

    @property
    def digest(self) -> str:
        """Identifies everything that happened."""
        return self._digest.hexdigest()

    def violate(self, at_ms: int, text: str) -> None:
        """Record that a guarantee was violated."""
        self.note(at_ms, f"VIOLATION: {text}")
        self.violations.append(f"at {at_ms}: {text}")

    def lose_memory(self, member: int) -> None:
        """Record that a node lost its jobs: it crashed, or was reset."""
        self.memory_losses[member] = self.memory_losses.get(member, 0) + 1

    def set_back(self, member: int, at_ms: int, since_ms: int, *, outdated: bool = False) -> None:
        """Record that a node may have lost changes since a time."""
        self.setbacks.setdefault(member, []).append(Setback(at_ms, since_ms, outdated))

    def promise(self, member: int, job: Job) -> None:
        """Record that a member confirmed a copy. Another copy, which it gets after it dropped this one, is none."""
        self.promised.setdefault(member, {})[job.id] = job

    def begin_trouble(self, member: int, at_ms: int) -> None:
        """Record that the disk of a member is faulty from now on."""
        self.troubles.setdefault(member, []).append(Trouble(at_ms))

    def end_trouble(self, member: int, at_ms: int) -> None:
        """Record that the disk of a member works again."""
        for trouble in self.troubles.get(member, []):
            trouble.until_ms = min(trouble.until_ms, at_ms)

    def is_in_trouble(self, member: int, now_ms: int) -> bool:
        """Whether the disk of a member is, or recently was, faulty."""
        return any(trouble.until_ms + RECOVERY_MS > now_ms for trouble in self.troubles.get(member, []))

    def safe_ms(self, member: int, now_ms: int, window_ms: int) -> int:
        """The time until which everything that a member confirmed is synced, given the sync window."""
        since_ms = now_ms
        for trouble in reversed(self.troubles.get(member, [])):
            if trouble.until_ms + RECOVERY_MS >= since_ms - window_ms:
                since_ms = min(since_ms, trouble.from_ms)
        return since_ms - window_ms

    def disturb(self, at_ms: int, *, over: bool = False) -> None:
        """Record that a fault begins or ends."""
        self.faulty = True
        self.disturbances.append((at_ms, over))

    def was_quiet(self, from_ms: int, until_ms: int) -> bool:
        """Whether no fault was active between two times."""
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
        """How often nodes lost their memory, or a part of it, so far."""
        return sum(self.memory_losses.values()) + sum(len(setbacks) for setbacks in self.setbacks.values())

    def losses(self, member: int) -> int:
        """How often a member lost its memory so far."""
        return self.memory_losses.get(member, 0)

    @property
    def owners_change(self) -> bool:
        """Whether other nodes may have a job than those that confirmed it, or a node may have refused copies."""
        return not _OWNER_FAULTS.isdisjoint(self.faults)

    def failed_holders(self, attempt: Attempt) -> int:
        """How many of the nodes that had confirmed a copy have lost it since."""
        failed = sum(
            self.losses(member) > before or self.is_set_back(member, attempt.at_ms, attempt.told_ms)
            for member, before in attempt.holders
        )
        return failed + attempt.copies_short + attempt.new_owners_lost

    def is_set_back(self, member: int, from_ms: int, until_ms: int) -> bool:
        """Whether a member may have lost changes of that time."""
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
        """The attempt with this body; None if there is none."""
        word, _, number = body.partition(b" ")
        if word != b"job" or not number.isdigit() or int(number) >= len(self.attempts):
            return None
        return self.attempts[int(number)]
