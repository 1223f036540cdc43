"""A queue for scenarios: each method applies one entry, one index later, at the time that `wait` has reached."""

from __future__ import annotations

from disqued.orderedqueue.add import Add
from disqued.orderedqueue.commands import (
    Ack,
    Credit,
    DeadSent,
    Join,
    MoveJobs,
    Nack,
    Node,
    Part,
    Purge,
    Renew,
    encode_conf,
    encode_pause,
    encode_time,
)
from disqued.orderedqueue.effects import Effects
from disqued.orderedqueue.machine import Machine
from disqued.orderedqueue.options import QueueOptions, Settings

START_MS = 1_800_000_000_000
RETRY_S = 30
TTL_S = 3600
MANY = 1000


class Scene:
    """One queue."""

    def __init__(self, *, single: bool = False, prefetch: int = 0, name: bytes = b"orders") -> None:
        self.machine = Machine(QueueOptions(name, single=single, prefetch=prefetch))
        self.index = 0
        self.now_ms = START_MS
        self.settings = Settings()

    def apply(self, command: bytes) -> Effects:
        self.index += 1
        return self.machine.apply(self.index, self.now_ms, command)

    def wait(self, ms: int) -> Effects:
        """Let time pass, and propose TIME."""
        self.now_ms += ms
        return self.apply(encode_time())

    def new_leader(self) -> Effects:
        self.index += 1
        return self.machine.new_leader(self.index, self.now_ms)

    def add(self, add: Add | None = None, *, group: bytes = b"", body: bytes = b"body") -> int:
        """Add a job; returns its index."""
        command = Add(RETRY_S, TTL_S) if add is None else add
        if group:
            command.group = group
        effects = self.apply(command.encode(body))
        assert effects.code == 0
        return int(effects.value)

    def add_effects(self, add: Add | None = None) -> Effects:
        """Add a job; returns the effects."""
        return self.apply((Add(RETRY_S, TTL_S) if add is None else add).encode(b"body"))

    def join(self, consumer: bytes, agent: bytes = b"node", *, credit: int = MANY, named: bool = False) -> Effects:
        """Let a consumer join and ask for jobs; returns the effects of the credit."""
        self.apply(Join(consumer, agent, named=named).encode())
        return self.credit(consumer, credit)

    def credit(self, consumer: bytes, count: int, seen: int = -1, *, ahead: bool = False) -> Effects:
        return self.apply(Credit(consumer, count, seen, ahead=ahead).encode())

    def part(self, consumer: bytes, *, away: bool = False) -> Effects:
        return self.apply(Part(consumer, away=away).encode())

    def node(self, agent: bytes, *, up: bool) -> Effects:
        return self.apply(Node(agent, up=up).encode())

    def ack(self, index: int, claim: int = 0, result: bytes | None = None, keep_s: int = 0) -> Effects:
        command = Ack([index], [claim] if claim else None)
        command.result = result
        command.keep_s = keep_s
        return self.apply(command.encode())

    def nack(
        self, index: int, claim: int = 0, *, delay_ms: int = 0, uncounted: bool = False, reason: bytes | None = None
    ) -> Effects:
        command = Nack([index], [claim] if claim else None)
        command.delay_ms = delay_ms
        command.uncounted = uncounted
        command.reason = reason
        return self.apply(command.encode())

    def reject(self, index: int, reason: bytes | None = None) -> Effects:
        command = Nack([index])
        command.rejected = True
        command.reason = reason
        return self.apply(command.encode())

    def run_now(self, index: int) -> Effects:
        """ENQUEUE."""
        command = Nack([index])
        command.at_once = True
        return self.apply(command.encode())

    def renew(self, index: int, claim: int = 0, lease_ms: int = 0, note: bytes = b"") -> Effects:
        return self.apply(Renew(index, claim, lease_ms, note).encode())

    def move(self, index: int, target: bytes = b"other") -> Effects:
        return self.apply(MoveJobs([index], target).encode())

    def dead_sent(self, index: int, successor: bytes = b"") -> Effects:
        return self.apply(DeadSent(index, successor).encode())

    def purge(self, phases: int, before_ms: int = 0, first: int = 0) -> Effects:
        return self.apply(Purge(phases, before_ms, first).encode())

    def pause(self, flags: int) -> Effects:
        return self.apply(encode_pause(flags))

    def conf(self) -> Effects:
        """Set the settings to what `settings` has now."""
        return self.apply(encode_conf(self.settings))


def given(effects: Effects) -> list[tuple[int, bytes]]:
    """Which consumers get which jobs, in the order of assignment."""
    return [(int(one.index), one.consumer) for one in effects.assigned]


def claim_of(effects: Effects) -> int:
    """The claim of the one job that is assigned."""
    (one,) = effects.assigned
    return int(one.claim)


def ended(effects: Effects) -> list[tuple[int, int]]:
    """The jobs that end, with their outcomes."""
    return [(int(one.index), int(one.outcome)) for one in effects.ended]


def returned(effects: Effects) -> list[int]:
    return [int(one.index) for one in effects.returned]


def moves(effects: Effects) -> list[tuple[int, bytes]]:
    return [(int(one.index), one.target) for one in effects.moves]
