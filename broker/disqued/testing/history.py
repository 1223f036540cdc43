"""What clients of a simulated cluster did and saw, written down outside the nodes: what the checkers judge by."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

TRACED: Final = 400
"""Events kept for the report of a failure."""


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

    @property
    def all_losses(self) -> int:
        """How often nodes lost their memory so far."""
        return sum(self.memory_losses.values())

    def losses(self, member: int) -> int:
        """How often a member lost its memory so far."""
        return self.memory_losses.get(member, 0)

    def failed_holders(self, attempt: Attempt) -> int:
        """How many of those that had confirmed to have a copy lost their memory since."""
        failed = sum(self.losses(member) > before for member, before in attempt.holders)
        return failed + attempt.copies_short + attempt.heirs_lost

    def attempt_of(self, body: bytes) -> Attempt | None:
        """Whose body it is; None for one that was never added."""
        word, _, number = body.partition(b" ")
        if word != b"job" or not number.isdigit() or int(number) >= len(self.attempts):
            return None
        return self.attempts[int(number)]
