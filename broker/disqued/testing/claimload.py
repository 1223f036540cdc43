"""Claims under faults: workers that renew, stop and wake late, and a resource that refuses smaller claims.

Not all seeds have them, so that the others repeat runs from before. What is checked:

- T1: no two deliveries of a job have the same claim.
- T2: a delivery after the lease of an earlier one has a greater claim, if the clocks never differed by much.
- One process of a node gives growing claims, whatever the clocks say.
- A node that knows a greater claim accepts no ACKJOB, NACK or WORKING under a smaller one.
- The resource accepts no write of a worker after one of a worker that got the job when the lease of the first was over.
- Readers of a progress log see what was written, and no entry without those before it. In runs without faults they see
  every entry that as many holders had as the worker wanted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from disqued.client import ResponseError
from disqued.core.jobs.claims import claim_of
from disqued.testing.workload import RECONNECT_MS, Caller

if TYPE_CHECKING:
    from disqued.node import Node
    from disqued.testing.cluster import Member
    from disqued.testing.local import Reply
    from disqued.testing.workload import Answer, World

SHARE: Final = 0.25
"""The part of the seeds that have claims."""
QUEUE: Final = "claimed"
_PAUSE_MS: Final = 600
_MOST_SKEW_MS: Final = 500
"""T2 is checked while the clocks never differed by more."""
_LEAST_LEASE_MS: Final = 1000


def has_claims(seed: int) -> bool:
    """Whether the runs of a seed have workers with claims."""
    return Random(f"has claims {seed}").random() < SHARE  # noqa: S311 - repeatable chance is the point


@dataclass(eq=False)
class Claim:
    """A delivery with a claim."""

    job_id: bytes
    number: int
    """The claim."""
    at_ms: int
    ends_ms: int
    """When the lease ends: the last time at which a node said so."""
    member: Member
    process: int
    """Which process of the node gave it: claims that only an earlier one knew may be forgotten (T4)."""
    prompt: bool
    """Whether it left the node soon after it was given: no failing or slow disk held the reply back."""
    worker: int


@dataclass(eq=False)
class Resource:
    """What workers write to, for one job: it remembers the greatest claim."""

    greatest: int = 0
    writers: list[Claim] = field(default_factory=list)

    def write(self, claim: Claim) -> bool:
        """Write; False if the claim is refused."""
        if claim.number < self.greatest:
            return False
        self.greatest = claim.number
        self.writers.append(claim)
        return True


class ClaimClients:
    """A client that adds jobs, and workers on all nodes that get them with claims."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._chance = Random(f"claims {seed}")  # noqa: S311 - repeatable chance is the point
        count = len(world.cluster.members)
        self._adder = Caller(world, self._chance.randint(1, count), self._chance)
        self._workers = [Caller(world, home, self._chance) for home in range(1, count + 1)]
        self._given: dict[bytes, list[Claim]] = {}
        """The deliveries of each job, in their order."""
        self._resources: dict[bytes, Resource] = {}
        self._jobs = 0
        self._skewed = False
        self._logged: dict[bytes, set[tuple[int, int]]] = {}
        """Claims and numbers of the entries that had their copies, by job."""

    def start(self) -> None:
        """Start to work."""
        self._world.later(200 + self._chance.random() * _PAUSE_MS, self._add)
        for number in range(len(self._workers)):
            self._get(number)

    def _add(self) -> None:
        world, chance = self._world, self._chance
        if not world.producing:
            return
        world.later(100 + chance.random() * _PAUSE_MS, self._add)
        options = ("REPLICATE", chance.choice((1, 2, 2, 3)), "RETRY", chance.choice((2, 3, 5)), "TTL", 3600)
        self._adder.call(lambda _: None, "ADDJOB", QUEUE, b"claim %d" % self._jobs, 500, *options)
        self._jobs += 1

    def _get(self, worker: int) -> None:
        caller = self._workers[worker]
        got: list[Claim] = []
        caller.call(
            lambda _: self._work(worker, got),
            *("GETJOB", "TIMEOUT", 1500, "WITHCLAIM", "FROM", QUEUE),
            on_sent=lambda reply: got.extend(self._delivered(worker, caller.member, reply)),
        )

    # --- deliveries ---------------------------------------------------------------------------------------------------

    def _delivered(self, worker: int, member: Member | None, reply: Reply) -> list[Claim]:
        """Record and check a delivery when the reply leaves the node."""
        if not isinstance(reply, list) or member is None:
            return []
        self._skewed = self._skewed or self._spread_ms() > _MOST_SKEW_MS
        found = []
        for row in reply:
            match row:
                case [bytes(), bytes(job_id), bytes(), b"claim", int(number), b"lease", int(lease_ms)]:
                    now_ms = self._world.now_ms
                    prompt = not self._world.history.is_in_trouble(member.number, now_ms)
                    process = len(member.past_counters)
                    claim = Claim(job_id, number, now_ms, now_ms + lease_ms, member, process, prompt, worker)
                    self._check(claim)
                    self._given.setdefault(job_id, []).append(claim)
                    found.append(claim)
                case _:
                    raise AssertionError(row)
        return found

    def _spread_ms(self) -> int:
        """How far the clocks of the members are apart."""
        now_ms = self._world.now_ms
        clocks = [member.clock_ms(now_ms) for member in self._world.cluster.members]
        return max(clocks) - min(clocks)

    def _check(self, claim: Claim) -> None:
        for earlier in self._given.get(claim.job_id, ()):
            if claim.number == earlier.number:
                self._violate(f"T1: two deliveries have claim {claim.number}", claim, earlier)
            elif claim.number > earlier.number:
                continue
            elif claim.member is earlier.member and claim.process == earlier.process and claim.prompt:
                self._violate("a node gave a smaller claim than before", claim, earlier)
            elif not self._skewed and self._came_after(claim, earlier):
                self._violate("T2: a delivery after the lease has a smaller claim", claim, earlier)

    def _came_after(self, claim: Claim, earlier: Claim) -> bool:
        """Whether a delivery was certainly made after the lease of another one."""
        return claim.prompt and claim.at_ms - self._world.history.hold_ms >= earlier.ends_ms

    def _violate(self, text: str, claim: Claim, earlier: Claim) -> None:
        who = f"{claim.job_id!r} at {claim.member.number}, before at {earlier.member.number} at {earlier.at_ms}"
        self._world.history.violate(self._world.now_ms, f"{text}: {who}")

    # --- workers ------------------------------------------------------------------------------------------------------

    def _work(self, worker: int, got: list[Claim]) -> None:
        world, chance = self._world, self._chance
        for claim in got:
            way = 0.0 if world.always_acks else chance.random()
            if way < 0.7 and chance.random() < 0.5:
                self._log(claim)
            if way < 0.35:
                self._finish(claim)
            elif way < 0.6:
                self._renew(claim)
            elif way < 0.85:
                world.later(500 + chance.random() * 9000, lambda claim=claim: self._finish(claim))  # type: ignore[misc]
            elif way < 0.95:
                self._say(claim, "NACK")
        world.later(1 if got else RECONNECT_MS, lambda: self._get(worker))

    def _renew(self, claim: Claim) -> None:
        """Ask for another lease, perhaps too late, and finish later."""
        chance = self._chance
        lease_s = chance.choice((0, 1, 3, 8))
        options = ("FOR", lease_s, "NOTE", b"renewed") if lease_s else ()
        late_ms = chance.choice((200, 1000, 6000))
        self._world.later(late_ms, lambda: self._say(claim, "WORKING", *options))
        self._world.later(late_ms + 200 + chance.random() * 9000, lambda: self._finish(claim))

    def _log(self, claim: Claim) -> None:
        """Add some entries, perhaps in another order than that of their numbers, and read the log."""
        chance = self._chance
        numbers = [0, 1, 2]
        if chance.random() < 0.5:
            chance.shuffle(numbers)
        for turn, seq in enumerate(numbers):
            self._world.later(1 + 60 * turn, lambda seq=seq: self._log_one(claim, seq))  # type: ignore[misc]
            self._world.later(30 + 60 * turn, lambda: self._read(claim))
        self._world.later(2000, lambda: self._read(claim))

    def _log_one(self, claim: Claim, seq: int) -> None:
        caller = self._workers[claim.worker]
        words = ("LOGJOB", claim.job_id, "CLAIM", claim.number, "SEQ", seq, _entry(claim.number, seq), "TIMEOUT", 1000)
        caller.call(lambda _: None, *words, on_sent=lambda reply: self._log_replied(claim, seq, reply))

    def _log_replied(self, claim: Claim, seq: int, reply: Reply) -> None:
        if isinstance(reply, int):
            self._logged.setdefault(claim.job_id, set()).add((claim.number, seq))

    def _read(self, claim: Claim) -> None:
        caller = self._workers[claim.worker]
        known = set(self._logged.get(claim.job_id, ()))
        caller.call(
            lambda _: None, "SHOWLOG", claim.job_id, on_sent=lambda reply: self._shown(claim.job_id, known, reply)
        )

    def _shown(self, job_id: bytes, known: set[tuple[int, int]], reply: Reply) -> None:
        """Check what a reader sees; `known` had their copies before it asked."""
        if not isinstance(reply, list):
            return
        history = self._world.history
        seen: list[tuple[int, int]] = []
        for row in reply:
            match row:
                case [int(claim), int(seq), int(), bytes(entry)]:
                    if entry != _entry(claim, seq):
                        history.violate(self._world.now_ms, f"the log of {job_id!r} has {entry!r} at {claim} {seq}")
                    seen.append((claim, seq))
                case _:
                    raise AssertionError(row)
        history.rare["progress log read"] += bool(seen)
        gaps = [(claim, seq) for claim, seq in seen if seq > 0 and (claim, seq - 1) not in seen]
        if gaps or seen != sorted(seen):
            history.violate(self._world.now_ms, f"the log of {job_id!r} is not in order or has gaps: {seen}")
        whole = {(claim, seq) for claim, seq in known if all((claim, before) in known for before in range(seq))}
        if not history.faulty and not whole.issubset(seen):
            history.violate(self._world.now_ms, f"the log of {job_id!r} lacks {sorted(whole - set(seen))}")

    def _finish(self, claim: Claim) -> None:
        """Write to the resource, and acknowledge the job if it took the write.

        In the end also if it did not, where clocks differ by more than T2 allows: the claims of nodes whose clocks are
        behind may be too small for ten minutes.
        """
        resource = self._resources.setdefault(claim.job_id, Resource())
        writers = list(resource.writers)
        if not resource.write(claim):
            self._world.history.rare["stale write refused"] += 1
            if self._skewed and self._world.always_acks:
                self._say(claim, "ACKJOB")
            return
        for other in writers:
            if other is not claim and not self._skewed and self._came_after(other, claim):
                self._violate("the write of a worker whose lease was over came after that of the next", claim, other)
        self._say(claim, "ACKJOB")

    def _say(self, claim: Claim, command: str, *options: str | int | bytes) -> None:
        """Send a command under a claim, to the node of the worker, wherever it is connected now."""
        caller = self._workers[claim.worker]
        words = (command, claim.job_id, "CLAIM", claim.number, *options)
        node = caller.member.node if caller.connect() and caller.member is not None else None
        knowing = node if node is not None and _knows_greater(node, claim) else None
        caller.call(lambda _: None, *words, on_sent=lambda reply: self._replied(claim, command, knowing, reply))

    def _replied(self, claim: Claim, command: str, knowing: Node | None, reply: Answer) -> None:
        """Check that a node did not accept a claim if it knew that it was stale before the command.

        What it knows now is not enough: it may have learned that while the reply waited for the disk.
        """
        if isinstance(reply, ResponseError):
            self._world.history.rare["stale claim refused"] += reply.prefix == "STALE"
            return
        if command == "WORKING" and isinstance(reply, int):
            claim.ends_ms = max(claim.ends_ms, self._world.now_ms + max(reply * 1000, _LEAST_LEASE_MS))
        if knowing is not None and _knows_greater(knowing, claim) and reply != 0:
            self._world.history.violate(
                self._world.now_ms, f"{command} under claim {claim.number} of {claim.job_id!r} was accepted"
            )


def _knows_greater(node: Node, claim: Claim) -> bool:
    """Whether a process of a node knows a greater claim of the job."""
    job = node.state.lifecycle.table.get(claim.job_id)
    return job is not None and claim_of(job) > claim.number


def _entry(claim: int, seq: int) -> bytes:
    """What a worker writes."""
    return b"%d at %d" % (seq, claim)
