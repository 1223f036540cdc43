"""Reads the backlog of all nodes, leases jobs and acknowledges them: the driver's side of a stream.

The reader first asks every node for the lengths of its queues, then leases from each node its share of a batch, so that
a busy node cannot starve another one. It does not ask a node that failed to answer again before a pause that grows with
each failure, so a node that hangs costs a few seconds and not every batch. This module does not know Spark.

Every node serves the whole of an ordered queue. So the reader counts and leases its jobs at one node only, the first
that answers: their order is kept, and a queue with a single active consumer has one consumer.

A reply of GETJOB is handled column by column: all IDs, all bodies. An object for each job would double the time. The
next GETJOB, or ACKJOB, is sent before that, so that the node works meanwhile.
"""

from __future__ import annotations

import dataclasses
import gc
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from disqued.client import Client, ConnectionFailed, DisqueError, ResponseError
from disqued.client.wire import Reply, to_text
from pyspark_disque.brokers import Brokers, Member, is_retryable
from pyspark_disque.clock import Clock
from pyspark_disque.offsets import ID_HEAD, ID_TAIL, JobGroup, kind_of
from pyspark_disque.options import Options

T = TypeVar("T")
Lengths: TypeAlias = Mapping[str, int]

REPLY_TIMEOUT_S: Final = 5
"""Nodes answer the requests of this module immediately, so a node without a reply after this time is unreachable."""
MEMBERS_TTL_S: Final = 1.0
"""How long the list of members is cached."""
TYPES_TTL_S: Final = 10.0
"""How long the types of queues are cached; they change only when somebody makes or removes an ordered queue."""
FIRST_RETRY_S: Final = 0.5
MAX_RETRY_S: Final = 15.0
FIRST_COUNT: Final = 64
MAX_COUNT: Final = 2000
"""The maximum number of jobs of one GETJOB; a node serves no other client meanwhile."""
MAX_REPLY_BYTES: Final = 8 << 20
"""The approximate size limit of a GETJOB reply; the size of the last bodies determines the next count."""
ACKS_PER_CALL: Final = 1000
NO_REQUEUE: Final = -1
"""What a node tells of a job that it delivers only once."""
_SYNTAX_ERROR: Final = "ERR syntax error"
_NO_TYPES: Final = ("ERR unknown command", "NOPERM")
"""Errors to QTYPE of nodes that do not know it, or do not let this user use it."""
_BODY: Final = itemgetter(2)


class LeasedJobs(NamedTuple):
    """Jobs that were just leased, with their bodies.

    `requeue_at_s` is when the first lease ends, by the clock of the reader: infinity if none does, and the time of the
    request if the node did not tell.
    """

    group: JobGroup
    bodies: Sequence[bytes]
    requeue_at_s: float

    def without(self, ids: AbstractSet[bytes]) -> LeasedJobs:
        """Leave out the jobs with these IDs."""
        if ids.isdisjoint(self.group.ids):
            return self
        kept = [number for number, job_id in enumerate(self.group.ids) if job_id not in ids]
        return self._replace(
            group=self.group._replace(ids=tuple(self.group.ids[number] for number in kept)),
            bodies=[self.bodies[number] for number in kept],
        )


def in_order(leased: Iterable[LeasedJobs]) -> list[LeasedJobs]:
    """Join the jobs of each node, queue and kind, in the order of a `Manifest`."""
    parts: dict[tuple[str, str, str], list[LeasedJobs]] = {}
    for jobs in leased:
        if jobs.group.ids:
            parts.setdefault((jobs.group.node, jobs.group.queue, jobs.group.kind), []).append(jobs)
    return [
        LeasedJobs(
            JobGroup(node, queue, tuple(chain.from_iterable(jobs.group.ids for jobs in joined))),
            list(chain.from_iterable(jobs.bodies for jobs in joined)),
            min(jobs.requeue_at_s for jobs in joined),
        )
        for (node, queue, _), joined in sorted(parts.items())
    ]


@dataclass(slots=True)
class Outage:
    """The outage of a node that does not answer: its start, and when to ask the node again."""

    since_s: float
    pause_s: float = FIRST_RETRY_S
    retry_at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """The lengths of the non-empty queues at each member that answers, and the members that do not answer."""

    lengths: Mapping[Member, Lengths]
    unreachable: tuple[Member, ...]

    @property
    def waiting(self) -> int:
        """The number of queued jobs at the members that answer."""
        return sum(sum(lengths.values()) for lengths in self.lengths.values())


@dataclass(frozen=True, slots=True)
class OldestJob:
    """The oldest job of a queue at a member; `age_ms` is measured by the member's own clock."""

    member: Member
    queue: str
    ctime_ms: int
    age_ms: int


@dataclass(slots=True)
class JobReader:
    """Reads from all nodes of the cluster. For use by one thread."""

    options: Options
    clock: Clock
    brokers: Brokers = field(init=False)
    had_failures: bool = False
    """Whether a node ever failed to answer: then jobs may be missing from the queues until their retry time."""
    _members: tuple[Member, ...] = ()
    _members_until_s: float = 0.0
    _outages: dict[str, Outage] = field(default_factory=dict)
    count: int = FIRST_COUNT
    """The number of jobs that the next GETJOB asks for."""
    _without_requeue: set[str] = field(default_factory=set)
    """The members that do not know GETJOB WITHREQUEUE, by ID."""
    _is_ordered: dict[str, bool] = field(default_factory=dict)
    """Whether a queue is ordered, by name."""
    _types_until_s: float = 0.0

    def __post_init__(self) -> None:
        self.brokers = Brokers(
            dataclasses.replace(self.options, timeout_s=min(self.options.timeout_s, REPLY_TIMEOUT_S))
        )

    def close(self) -> None:
        """Close all connections."""
        self.brokers.close()

    # --- members ------------------------------------------------------------------------------------------------------

    def members(self) -> tuple[Member, ...]:
        """Return the members, refreshed every second.

        Raises:
            ConnectionFailed: no node can be reached.
        """
        now_s = self.clock.now_s()
        if not self._members or now_s >= self._members_until_s:
            self._members = self.brokers.members()
            self._members_until_s = self.clock.now_s() + MEMBERS_TTL_S
            ids = {member.id for member in self._members}
            self._outages = {member_id: outage for member_id, outage in self._outages.items() if member_id in ids}
        return self._members

    def is_single_node(self) -> bool:
        """Return whether the cluster has only one node, so that no job can move."""
        return self.options.discover and len(self.members()) == 1

    def unreachable_for_s(self, member: Member) -> float:
        """Return for how long a member has not answered; 0 if it does."""
        outage = self._outages.get(member.id)
        return 0.0 if outage is None else self.clock.now_s() - outage.since_s

    def call(self, member: Member, request: Callable[[Client], T]) -> T | None:
        """Send a request to a member and return the result; None if it is unreachable or in its retry pause."""
        now_s = self.clock.now_s()
        outage = self._outages.get(member.id)
        if outage is not None and now_s < outage.retry_at_s:
            return None
        try:
            result = request(self.brokers.at(member.address))
        except DisqueError as error:
            if not is_retryable(error):
                raise
            self.had_failures = True
            self._without_requeue.discard(member.id)  # another version may run there when it is back
            outage = self._outages.setdefault(member.id, Outage(now_s))
            outage.retry_at_s = self.clock.now_s() + outage.pause_s
            outage.pause_s = min(outage.pause_s * 2, MAX_RETRY_S)
            return None
        self._outages.pop(member.id, None)
        return result

    # --- backlog ------------------------------------------------------------------------------------------------------

    def backlog(self) -> Backlog:
        """Return the backlog of all nodes.

        Raises:
            ConnectionFailed: no node answers.
        """
        lengths: dict[Member, Lengths] = {}
        for member in self.members():
            found = self.call(member, self._lengths)
            if found is not None:
                lengths[member] = found
        unreachable = tuple(member for member in self.members() if member not in lengths)
        if not lengths:
            raise ConnectionFailed(f"no node answers: {', '.join(member.address for member in unreachable)}")
        return Backlog(self._ordered_once(lengths), unreachable)

    def _lengths(self, client: Client) -> Lengths:
        names = self.queues_at(client)
        lengths = execute_all(client, [("QLEN", name) for name in names])
        return {name: length for name, length in zip(names, lengths, strict=True) if length}

    def _ordered_once(self, lengths: dict[Member, Lengths]) -> dict[Member, Lengths]:
        """Leave out the ordered queues at all members but the first."""
        if len(lengths) < 2:
            return lengths
        ordered = self.ordered_among(dict.fromkeys(chain.from_iterable(lengths.values())))
        home = next(iter(lengths))
        return {
            member: known
            if member == home or ordered.isdisjoint(known)
            else {name: length for name, length in known.items() if name not in ordered}
            for member, known in lengths.items()
        }

    def ordered_among(self, names: Iterable[str]) -> AbstractSet[str]:
        """Return those of the queues that are ordered, as the first member that answers knows."""
        now_s = self.clock.now_s()
        if now_s >= self._types_until_s:
            self._is_ordered.clear()
            self._types_until_s = now_s + TYPES_TTL_S
        names = list(names)
        unknown = [name for name in names if name not in self._is_ordered]
        if unknown:
            for member in self.members():
                found = self.call(member, partial(_are_ordered, names=unknown))
                if found is not None:
                    self._is_ordered.update(zip(unknown, found, strict=True))
                    break
        return {name for name in names if self._is_ordered.get(name)}

    def queues_at(self, client: Client) -> Sequence[str]:
        """Return the names of the queues to read at a node."""
        names = self.options.queue_names()
        if names is not None:
            return names
        matches = re.compile(self.options.queue_pattern or "").fullmatch
        return list(dict.fromkeys(name for name in client.qscan(page_size=1000) if matches(name)))

    def oldest_jobs(self, backlog: Backlog) -> list[OldestJob]:
        """Return the oldest job of each queue in the backlog; with age 0 if it was removed meanwhile."""
        found: list[OldestJob] = []
        for member, lengths in backlog.lengths.items():
            ages = self.call(member, partial(_oldest_jobs, queues=tuple(lengths)))
            if ages is not None:
                found.extend(OldestJob(member, queue, ctime_ms, age_ms) for queue, (ctime_ms, age_ms) in ages.items())
        return found

    def pending_requeues(self, backlog: Backlog, until_ms: int) -> dict[str, float]:
        """Return the unqueued jobs created up to `until_ms`, with the seconds within which each is requeued."""
        found: dict[str, float] = {}
        for member in backlog.lengths:
            for job_id, within_s in self.call(member, partial(self._unqueued, until_ms=until_ms)) or ():
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
        """Return the latest clock of all nodes, in milliseconds since the Unix epoch.

        Raises:
            ConnectionFailed: no node answers.
        """
        times = [time_ms for member in self.members() if (time_ms := self.call(member, _time_ms)) is not None]
        if not times:
            raise ConnectionFailed("no node answers TIME")
        return max(times)

    # --- leases -------------------------------------------------------------------------------------------------------

    def lease(self, backlog: Backlog, limit: int) -> list[LeasedJobs]:
        """Lease up to `limit` jobs of the backlog, from each node its share."""
        counts = {member: sum(lengths.values()) for member, lengths in backlog.lengths.items() if lengths}
        leased: list[LeasedJobs] = []
        for member, share in shares(counts, limit).items():
            leased += self.lease_at(member, tuple(backlog.lengths[member]), share)
        return in_order(_each_once(leased))

    def probe(self, backlog: Backlog) -> list[LeasedJobs]:
        """Lease a job from each empty queue: this makes nodes fetch jobs from others, and finds new ones."""
        leased: list[LeasedJobs] = []
        for member, lengths in backlog.lengths.items():
            queues = [name for name in self.call(member, self.queues_at) or () if name not in lengths]
            if member != next(iter(backlog.lengths)):
                ordered = self.ordered_among(queues)
                queues = [name for name in queues if name not in ordered]
            leased += self.lease_at(member, queues, 1) if queues else ()
        return in_order(_each_once(leased))

    def lease_at(self, member: Member, queues: Sequence[str], share: int) -> Iterator[LeasedJobs]:
        """Lease up to `share` jobs from one member; fewer if it has fewer, or is unreachable. Yields each reply."""
        flags = () if member.id in self._without_requeue else ("WITHREQUEUE",)
        requests = Requests(self, flags, queues, share)
        try:
            with closing(self.brokers.at(member.address).execute_ahead(requests)) as replies:
                yield from self._leases(member, requests, replies)
        except ResponseError as error:
            if not flags or str(error) != _SYNTAX_ERROR:
                raise
            self._without_requeue.add(member.id)
            yield from self.lease_at(member, queues, share)

    def _leases(
        self, member: Member, requests: Requests, replies: Iterator[Reply | DisqueError]
    ) -> Iterator[LeasedJobs]:
        while True:
            with _without_collections():
                reply = self.call(member, partial(_next_reply, replies=replies))
                if reply is None:
                    return
                sent_s = requests.sent_s.popleft()
                if reply:
                    average = sum(map(len, map(_BODY, reply))) // len(reply) + 100
                    self.count = max(1, min(self.count * 4, MAX_COUNT, MAX_REPLY_BYTES // average))
                    leased = list(_leased(member.id, reply, sent_s))
                else:
                    requests.left = 0  # those already sent may still bring jobs
                    leased = []
                del reply
            yield from leased

    # --- acknowledgements ---------------------------------------------------------------------------------------------

    def acknowledge(self, groups: Iterable[JobGroup]) -> None:
        """Acknowledge jobs at the node that granted the lease, or else at any other node, which informs the cluster.

        Raises:
            ConnectionFailed: no node accepts it. Some jobs may be acknowledged; acknowledging them again is harmless.
        """
        by_node: dict[str, list[bytes]] = {}
        for group in groups:
            by_node.setdefault(group.node, []).extend(group.ids)
        command = "FASTACK" if self.options.ack_mode == "fast" else "ACKJOB"
        for node, ids in by_node.items():
            if not any(
                self.call(member, partial(_acknowledge, command=command, ids=ids))
                for member in by_preference(self.members(), node)
            ):
                raise ConnectionFailed(f"no node accepts the acknowledgement of {len(ids)} jobs")


class Requests(Iterator[tuple[str | int, ...]]):
    """The GETJOBs of one lease. Each is made when it is sent, so its COUNT follows from the replies so far.

    `sent_s` has the times of those without a reply; `left` is the number of jobs to ask for.
    """

    def __init__(self, reader: JobReader, flags: tuple[str, ...], queues: Sequence[str], share: int) -> None:
        self.sent_s: deque[float] = deque()
        self.left = share
        self._reader = reader
        self._flags = flags
        self._queues = queues

    def __next__(self) -> tuple[str | int, ...]:
        if self.left <= 0:
            raise StopIteration
        count = min(self.left, self._reader.count)
        self.left -= count
        self.sent_s.append(self._reader.clock.now_s())
        return ("GETJOB", "NOHANG", *self._flags, "COUNT", count, "FROM", *self._queues)


def _next_reply(_: Client, replies: Iterator[Reply | DisqueError]) -> list[Any] | None:
    """Return the jobs in the next GETJOB reply; None after the last one."""
    for reply in replies:
        if isinstance(reply, DisqueError):
            raise reply
        jobs: Any = reply or []
        return list(jobs)
    return None


def _acknowledge(client: Client, command: str, ids: Sequence[bytes]) -> bool:
    parts = (ids[first : first + ACKS_PER_CALL] for first in range(0, len(ids), ACKS_PER_CALL))
    with closing(client.execute_ahead((command, *part) for part in parts)) as replies:
        for reply in replies:
            if isinstance(reply, DisqueError):
                raise reply
    return True


@contextmanager
def _without_collections() -> Iterator[None]:
    """Pause the search for reference cycles: thousands of lists in a reply trigger it, and none is in a cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _leased(node: str, reply: Sequence[Sequence[Any]], now_s: float) -> Iterator[LeasedJobs]:
    """Yield the jobs of a GETJOB reply, by queue and kind."""
    queues, ids, bodies, *more = zip(*reply, strict=True)
    head, tail = ids[0][:ID_HEAD], ids[0][ID_TAIL:]
    are_alike = all(map(bytes.startswith, ids, repeat(head))) and all(map(bytes.endswith, ids, repeat(tail)))
    if len(set(queues)) > 1 or not are_alike:
        kinds: dict[tuple[bytes, str], list[Sequence[Any]]] = {}
        for job in reply:
            kinds.setdefault((job[0], kind_of(job[1])), []).append(job)
        for jobs in kinds.values():
            yield from _leased(node, jobs, now_s)
        return
    remaining_ms = min(set(more[1]) - {NO_REQUEUE}, default=math.inf) if more else 0
    yield LeasedJobs(JobGroup(node, to_text(queues[0]), ids), bodies, now_s + remaining_ms / 1000)


def _each_once(leased: Iterable[LeasedJobs]) -> Iterator[LeasedJobs]:
    """Leave out jobs that were delivered before, for example by another node."""
    known: set[bytes] = set()
    for jobs in leased:
        yield jobs.without(known)
        known.update(jobs.group.ids)


def shares(counts: Mapping[Member, int], limit: int) -> dict[Member, int]:
    """Return how many jobs to lease from each node: in proportion to its backlog, the largest first."""
    total = sum(counts.values())
    ordered = sorted(counts, key=lambda member: (-counts[member], member))
    if total <= limit:
        return {member: counts[member] for member in ordered}
    given = {member: limit * counts[member] // total for member in ordered}
    for member in ordered[: limit - sum(given.values())]:
        given[member] += 1
    return {member: share for member, share in given.items() if share}


def by_preference(members: Iterable[Member], node: str) -> list[Member]:
    """Return the members in the order in which to ask them: `node` first, then by priority."""
    return sorted(members, key=lambda member: (member.id != node, member.priority))


def execute_all(client: Client, calls: Sequence[tuple[str | bytes | int, ...]]) -> list[Any]:
    """Send commands as a pipeline and return the replies.

    Raises:
        DisqueError: a reply is an error.
    """
    replies: list[Any] = []
    for reply in client.execute_many(calls):
        if isinstance(reply, DisqueError):
            raise reply
        replies.append(reply)
    return replies


def _are_ordered(client: Client, names: Sequence[str]) -> list[bool]:
    """Return for each queue whether it is ordered. Where QTYPE cannot be used, all are taken for queues of jobs."""
    try:
        return [to_text(kind) == "ordered" for kind in execute_all(client, [("QTYPE", name) for name in names])]
    except ResponseError as error:
        if not str(error).startswith(_NO_TYPES):
            raise
        return [False] * len(names)


def _time_ms(client: Client) -> int:
    [(seconds, micros)] = execute_all(client, [("TIME",)])
    return int(seconds) * 1000 + int(micros) // 1000


def _oldest_jobs(client: Client, queues: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return creation time and age of the oldest job of each queue, both in milliseconds."""
    if not queues:
        return {}
    peeked = execute_all(client, [("QPEEK", queue, 1) for queue in queues])
    now_ms = _time_ms(client)
    oldest = {queue: to_text(jobs[0][1]) for queue, jobs in zip(queues, peeked, strict=True) if jobs}
    shown = execute_all(client, [("SHOW", job_id) for job_id in oldest.values()])
    found: dict[str, tuple[int, int]] = {}
    for queue, flat in zip(oldest, shown, strict=True):
        ctime_ms = _ctime_ms(flat)
        found[queue] = (ctime_ms, max(0, now_ms - ctime_ms)) if ctime_ms else (0, 0)
    return found


def _ctime_ms(flat: Any) -> int:
    """Return the creation time in a SHOW reply; 0 if the job no longer exists, so that the queue is read again."""
    if flat is None:
        return 0
    return int(flat[flat.index(b"ctime") + 1]) // 1_000_000
