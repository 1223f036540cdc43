"""Taking jobs from all nodes of a cluster, acknowledging them, and what waits there: the driver's part of a stream.

Every node is asked for its queues' lengths first and gives its share of a batch then, so that none is left out however
much others get. A node that does not answer rests for a while, longer each time, and is asked again: one that hangs
costs seconds, not every batch. Who takes and acknowledges here is one thread; Spark is not known.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from disqued.client import Client, ConnectionFailed, DisqueError
from disqued.client.wire import Reply, to_text
from pyspark_disque.brokers import Brokers, Member, is_passing
from pyspark_disque.clock import Clock
from pyspark_disque.ledger import Lease
from pyspark_disque.options import Options

T = TypeVar("T")
Lengths: TypeAlias = Mapping[str, int]

SILENCE_S: Final = 5
"""What is asked here is answered at once, so a node that is silent for so long is away."""
MEMBERS_S: Final = 1.0
"""How long the list of members is good for."""
FIRST_REST_S: Final = 0.5
LONGEST_REST_S: Final = 15.0
FIRST_COUNT: Final = 64
MAX_COUNT: Final = 2000
"""The most jobs of one GETJOB; a node does nothing else while it answers."""
MAX_REPLY_BYTES: Final = 8 << 20
"""About so much may come with one GETJOB: the next count follows from the bodies seen."""
ACKS_PER_CALL: Final = 500


class Taken(NamedTuple):
    """A job that was leased a moment ago."""

    lease: Lease
    body: bytes


@dataclass(slots=True)
class Rest:
    """A node that does not answer: since when, and when to ask it again."""

    since_s: float
    pause_s: float = FIRST_REST_S
    until_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Look:
    """What waits: for each member that answers the lengths of its queues, empty ones left out; who does not answer."""

    lengths: Mapping[Member, Lengths]
    away: tuple[Member, ...]

    @property
    def waiting(self) -> int:
        """How many jobs are queued at the members that answer."""
        return sum(sum(lengths.values()) for lengths in self.lengths.values())


@dataclass(frozen=True, slots=True)
class Head:
    """The oldest job of a queue at a member; `age_ms` by the member's own clock."""

    member: Member
    queue: str
    ctime_ms: int
    age_ms: int


@dataclass(slots=True)
class Intake:
    """All nodes, for one thread."""

    options: Options
    clock: Clock
    brokers: Brokers = field(init=False)
    was_disturbed: bool = False
    """Whether a node did not answer once: then jobs may be in no queue until their retry time is over."""
    _members: tuple[Member, ...] = ()
    _members_until_s: float = 0.0
    _resting: dict[str, Rest] = field(default_factory=dict)
    _count: int = FIRST_COUNT
    _names: dict[bytes, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.brokers = Brokers(dataclasses.replace(self.options, timeout_s=min(self.options.timeout_s, SILENCE_S)))

    def close(self) -> None:
        """Close all connections."""
        self.brokers.close()

    # --- who is there -------------------------------------------------------------------------------------------------

    def members(self) -> tuple[Member, ...]:
        """The members, asked for anew every second.

        Raises:
            ConnectionFailed: no node can be reached.
        """
        now_s = self.clock.now_s()
        if not self._members or now_s >= self._members_until_s:
            self._members = self.brokers.members()
            self._members_until_s = self.clock.now_s() + MEMBERS_S
            ids = {member.id for member in self._members}
            self._resting = {member_id: rest for member_id, rest in self._resting.items() if member_id in ids}
        return self._members

    def away_for_s(self, member: Member) -> float:
        """How long a member has not answered."""
        rest = self._resting.get(member.id)
        return 0.0 if rest is None else self.clock.now_s() - rest.since_s

    def ask(self, member: Member, what: Callable[[Client], T]) -> T | None:
        """What a member answers; None when it is away, then it rests."""
        now_s = self.clock.now_s()
        rest = self._resting.get(member.id)
        if rest is not None and now_s < rest.until_s:
            return None
        try:
            answer = what(self.brokers.at(member.address))
        except DisqueError as error:
            if not is_passing(error):
                raise
            self.was_disturbed = True
            rest = self._resting.setdefault(member.id, Rest(now_s))
            rest.until_s = self.clock.now_s() + rest.pause_s
            rest.pause_s = min(rest.pause_s * 2, LONGEST_REST_S)
            return None
        self._resting.pop(member.id, None)
        return answer

    # --- what waits ---------------------------------------------------------------------------------------------------

    def look(self) -> Look:
        """The lengths of the queues everywhere.

        Raises:
            ConnectionFailed: no node answers.
        """
        lengths: dict[Member, Lengths] = {}
        for member in self.members():
            found = self.ask(member, self._lengths)
            if found is not None:
                lengths[member] = found
        away = tuple(member for member in self.members() if member not in lengths)
        if not lengths:
            raise ConnectionFailed(f"no node answers: {', '.join(member.address for member in away)}")
        return Look(lengths, away)

    def _lengths(self, client: Client) -> Lengths:
        names = self.queues_at(client)
        lengths = answers(client, [("QLEN", name) for name in names])
        return {name: length for name, length in zip(names, lengths, strict=True) if length}

    def queues_at(self, client: Client) -> Sequence[str]:
        """The queues to read at a node."""
        names = self.options.queue_names()
        if names is not None:
            return names
        matches = re.compile(self.options.queue_pattern or "").fullmatch
        return list(dict.fromkeys(name for name in client.qscan(page_size=1000) if matches(name)))

    def heads(self, look: Look) -> list[Head]:
        """The oldest job of each queue that has one. A queue whose head went away meanwhile has age 0."""
        found: list[Head] = []
        for member, lengths in look.lengths.items():
            ages = self.ask(member, partial(_heads, queues=tuple(lengths)))
            if ages is not None:
                found.extend(Head(member, queue, ctime_ms, age_ms) for queue, (ctime_ms, age_ms) in ages.items())
        return found

    def coming_back(self, look: Look, until_ms: int) -> dict[str, float]:
        """Jobs created by then that are in no queue now: in how many seconds each is to be queued at the latest."""
        found: dict[str, float] = {}
        for member in look.lengths:
            for job_id, within_s in self.ask(member, partial(self._unqueued, until_ms=until_ms)) or ():
                found[job_id] = max(within_s, found.get(job_id, 0.0))
        return found

    def _unqueued(self, client: Client, until_ms: int) -> list[tuple[str, float]]:
        names = set(self.queues_at(client))
        only = next(iter(names)) if len(names) == 1 else None
        return [
            (job.id, job.next_requeue_within_ms / 1000)
            for job in client.jscan_details(queue=only, states=["active"], page_size=500)
            if job.queue in names and job.next_requeue_within_ms is not None and job.ctime // 1_000_000 <= until_ms
        ]

    def now_ms(self) -> int:
        """The time of the brokers in unix milliseconds: of the one that is ahead.

        Raises:
            ConnectionFailed: no node answers.
        """
        times = [time_ms for member in self.members() if (time_ms := self.ask(member, _time_ms)) is not None]
        if not times:
            raise ConnectionFailed("no node answers TIME")
        return max(times)

    # --- taking -------------------------------------------------------------------------------------------------------

    def take(self, look: Look, limit: int) -> list[Taken]:
        """Up to `limit` jobs of what was seen waiting, from each node its share."""
        counts = {member: sum(lengths.values()) for member, lengths in look.lengths.items() if lengths}
        taken: dict[str, Taken] = {}
        for member, share in shares(counts, limit).items():
            for job in self.take_at(member, tuple(look.lengths[member]), share):
                taken.setdefault(job.lease.id, job)
        return list(taken.values())

    def poke(self, look: Look) -> list[Taken]:
        """Ask for a job where none was seen: that makes nodes fetch what others have, and shows what just came."""
        taken: dict[str, Taken] = {}
        for member, lengths in look.lengths.items():
            queues = [name for name in self.ask(member, self.queues_at) or () if name not in lengths]
            for job in self.take_at(member, queues, 1) if queues else ():
                taken.setdefault(job.lease.id, job)
        return list(taken.values())

    def take_at(self, member: Member, queues: Sequence[str], share: int) -> list[Taken]:
        """Up to `share` jobs of one member; fewer when it has fewer, or is away."""
        taken: list[Taken] = []
        while len(taken) < share:
            count = min(share - len(taken), self._count)
            reply = self.ask(member, partial(_getjob, count=count, queues=queues))
            if not reply:
                break
            taken.extend(self._read(member, reply))
            average = sum(len(item[2]) for item in reply) // len(reply) + 100
            self._count = max(1, min(self._count * 4, MAX_COUNT, MAX_REPLY_BYTES // average))
        return taken

    def _read(self, member: Member, reply: Iterable[Any]) -> Iterable[Taken]:
        names = self._names
        for raw_queue, raw_id, body, *_ in reply:
            queue = names.get(raw_queue)
            if queue is None:
                queue = names[raw_queue] = to_text(raw_queue)
            yield Taken(Lease(raw_id.decode("ascii"), queue, member.id), body)

    # --- finishing ----------------------------------------------------------------------------------------------------

    def acknowledge(self, leases: Collection[Lease]) -> None:
        """Finish jobs at the node of their lease, or at any other one: an acknowledgement finds its job.

        Raises:
            ConnectionFailed: no node takes it. What was acknowledged already may be so again.
        """
        by_node: dict[str, list[str]] = {}
        for lease in leases:
            by_node.setdefault(lease.node, []).append(lease.id)
        command = "FASTACK" if self.options.ack_mode == "fast" else "ACKJOB"
        for node, ids in by_node.items():
            calls = [(command, *ids[first : first + ACKS_PER_CALL]) for first in range(0, len(ids), ACKS_PER_CALL)]
            if not any(
                self.ask(member, partial(answers, calls=calls)) is not None
                for member in best_first(self.members(), node)
            ):
                raise ConnectionFailed(f"no node takes the acknowledgement of {len(ids)} jobs")


def shares(counts: Mapping[Member, int], limit: int) -> dict[Member, int]:
    """How many jobs each node gives to a batch: in proportion to what waits, most first."""
    total = sum(counts.values())
    ordered = sorted(counts, key=lambda member: (-counts[member], member))
    if total <= limit:
        return {member: counts[member] for member in ordered}
    given = {member: limit * counts[member] // total for member in ordered}
    for member in ordered[: limit - sum(given.values())]:
        given[member] += 1
    return {member: share for member, share in given.items() if share}


def best_first(members: Iterable[Member], node: str) -> list[Member]:
    """The members, that with the lease in front, those in doubt last."""
    return sorted(members, key=lambda member: (member.id != node, member.priority))


def answers(client: Client, calls: Sequence[tuple[str | int, ...]]) -> list[Any]:
    """The replies to pipelined commands.

    Raises:
        DisqueError: one of them is an error.
    """
    replies: list[Any] = []
    for reply in client.execute_many(calls):
        if isinstance(reply, DisqueError):
            raise reply
        replies.append(reply)
    return replies


def _getjob(client: Client, count: int, queues: Sequence[str]) -> list[Any]:
    """GETJOB as it comes; reading it into the client's records would cost as much again."""
    reply: Reply = client.execute("GETJOB", "NOHANG", "COUNT", count, "FROM", *queues)
    return reply if isinstance(reply, list) else []


def _time_ms(client: Client) -> int:
    [(seconds, micros)] = answers(client, [("TIME",)])
    return int(seconds) * 1000 + int(micros) // 1000


def _heads(client: Client, queues: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Creation time and age of the oldest job of each queue, both in milliseconds."""
    if not queues:
        return {}
    peeked = answers(client, [("QPEEK", queue, 1) for queue in queues])
    now_ms = _time_ms(client)
    heads = [(queue, to_text(jobs[0][1])) for queue, jobs in zip(queues, peeked, strict=True) if jobs]
    found: dict[str, tuple[int, int]] = {}
    for (queue, _), flat in zip(heads, answers(client, [("SHOW", head) for _, head in heads]), strict=True):
        ctime_ms = _ctime_ms(flat)
        found[queue] = (ctime_ms, max(0, now_ms - ctime_ms)) if ctime_ms else (0, 0)
    return found


def _ctime_ms(flat: Any) -> int:
    """The creation time in the answer of SHOW; 0 when the job is gone: then it pays to look again."""
    if flat is None:
        return 0
    return int(flat[flat.index(b"ctime") + 1]) // 1_000_000
