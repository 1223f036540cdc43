"""Clients of simulated ordered queues: they note what they do and see, and compare it with what the groups agreed on.

Producers send one ADDJOB after the other. Some have a KEY, and repeat an ADDJOB whose outcome is unknown until it is
known. Workers take jobs in all ways of GETJOB, and acknowledge them, give them back, renew them, forget them, hang with
them, or disconnect. An administrator pauses queues, asks questions, and makes and drops other queues.

What is checked at once, against `orderedtruth`:

- The ID in the answer of an ADDJOB names an entry that the group agreed on, with this body.
- A job that a client gets was assigned to a consumer of its node, under this claim, and no claim arrives twice.

The rest is checked at the end by `orderedcheckers`, from `QueueLoad.seen` (what clients got) and `assigned` (what the
group agreed on, also if the client was gone).
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from disqued.client import ResponseError
from disqued.ordered.exchange import node_of
from disqued.ordered.jobids import index_of
from disqued.testing.orderedcheckers import Acked, Added, Delivered, OrderedHistory
from disqued.testing.workload import RECONNECT_MS, Caller, Lost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from disqued.testing.local import Reply
    from disqued.testing.orderedtruth import Assignment, Truth
    from disqued.testing.workload import Answer, World

GROUPS: Final = 3
"""How many group keys the jobs of a queue have."""
TTL_S: Final = 36_000
"""No job ends by its life, also if clocks differ."""
WINDOW_S: Final = 7_200
_FORGOTTEN: Final = frozenset({"lost_disk", "bit_rot"})
"""Faults after which a node may not know which queues are ordered."""
_UNKNOWN: Final = frozenset({"NOREPL"})
"""Errors after which nobody knows whether a command took effect."""


class QueueLoad:
    """One queue, and what its clients saw."""

    def __init__(
        self,
        name: str,
        declared: tuple[bytes | str | int, ...] = (),
        *,
        single: bool = False,
        prefetch: int = 0,
        groups: int = 0,
    ) -> None:
        self.name = name
        self.declared = declared
        """The options of QNEW."""
        self.single = single
        self.prefetch = prefetch
        self.groups = groups
        self.seen = OrderedHistory(single=single, prefetch=prefetch)
        self.last_number = 0
        self.received: dict[int, str] = {}
        """Who received a job, by its claim."""

    def assigned(self, truth: Truth) -> OrderedHistory:
        """The history with all assignments, also those that no client received."""
        history = OrderedHistory(single=self.single, prefetch=self.prefetch)
        history.added = self.seen.added
        group = truth.of_queue(self.name.encode())
        for one in group.assignments.values() if group is not None else ():
            assert group is not None
            number = number_in(group.bodies[one.index])
            history.delivered.append(_delivered(number, one))
        return history


def number_in(body: bytes) -> int:
    """The number of a job, from its body."""
    return int(body.rpartition(b" ")[2])


def _delivered(number: int, one: Assignment) -> Delivered:
    return Delivered(number, one.index, one.claim, one.consumer.decode("latin-1"), one.seen_ms)


class OrderedLoad:
    """What all clients of a run share."""

    def __init__(self, world: World, truth: Truth, chance: Random) -> None:
        self.world = world
        self.truth = truth
        self.chance = chance
        self.queues: list[QueueLoad] = []
        self.unfinished = 0
        """How many ADDJOBs will be sent again, because their outcome is not known."""

    def violate(self, text: str) -> None:
        """Report a violation."""
        self.world.history.violate(self.world.now_ms, text)


class _Draft:
    """A job that a producer adds."""

    def __init__(self, number: int, words: list[bytes | str | int], *, key: bytes, group: bytes, retry_s: int) -> None:
        self.number = number
        self.words = words
        self.key = key
        self.group = group
        self.retry_s = retry_s
        self.delayed = "DELAY" in words


class OrderedProducer:
    """Adds jobs to one queue, one after the other."""

    def __init__(self, load: OrderedLoad, queue: QueueLoad, home: int, pause_ms: int) -> None:
        self._load = load
        self._queue = queue
        self._name = f"{queue.name} {home}"
        self._caller = Caller(load.world, home, load.chance)
        self._pause_ms = pause_ms

    def start(self) -> None:
        """Start to work."""
        self._load.world.later(self._load.chance.random() * self._pause_ms, self._add)

    def _add(self) -> None:
        if self._load.world.producing:
            self._send(self._draw())

    def _draw(self) -> _Draft:
        chance = self._load.chance
        queue = self._queue
        queue.last_number += 1
        number = queue.last_number
        retry_s = chance.choice((1, 1, 2, 2, 5, 5, 0) if not queue.single else (1, 2, 5))
        timeout_ms = chance.choice((300, 1000, 3000, 0))
        words: list[bytes | str | int] = ["ADDJOB", queue.name, b"job %d" % number, timeout_ms]
        words += ["RETRY", retry_s, "TTL", TTL_S]
        key = group = b""
        if chance.random() < 0.35:
            key = b"key %d" % number
            words += ["KEY", key, "WINDOW", WINDOW_S]
        if queue.groups and chance.random() < 0.9:
            group = b"group %d" % chance.randint(1, queue.groups)
            words += ["GROUP", group]
        if chance.random() < 0.08:
            words += ["DELAY", 1]
        return _Draft(number, words, key=key, group=group, retry_s=retry_s)

    def _send(self, draft: _Draft) -> None:
        world = self._load.world
        add = Added(draft.number, self._name, world.now_ms)
        add.retry_s = draft.retry_s
        add.key = draft.key
        add.group = draft.group
        add.delayed = draft.delayed
        self._queue.seen.added.append(add)
        world.history.note(world.now_ms, f"add {self._queue.name} {draft.number} at {self._caller.home}")
        self._caller.call(lambda answer: self._answered(draft, add, answer), *draft.words)
        if self._load.chance.random() < 0.02:
            world.later(1 + self._load.chance.random() * 20, self._caller.hang_up)

    def _answered(self, draft: _Draft, add: Added, answer: Answer) -> None:
        load = self._load
        world = load.world
        forgetful = not _FORGOTTEN.isdisjoint(world.history.faults)
        if isinstance(answer, bytes) and index_of(answer) == 0 and forgetful:
            # A node without its copy of the catalog takes the queue for a queue of jobs until it is told (`incoming`).
            world.history.rare["added before the catalog was known"] += 1
        elif isinstance(answer, bytes):
            add.answered_ms = world.now_ms
            add.index = int(index_of(answer))
            self._check(draft, add.index)
        elif isinstance(answer, Lost) or (isinstance(answer, ResponseError) and answer.prefix in _UNKNOWN):
            if draft.key:
                load.unfinished += 1
                world.later(RECONNECT_MS, lambda: self._again(draft))
                return
        else:
            assert isinstance(answer, ResponseError), answer
            add.answered_ms = world.now_ms
            add.refused = True
            world.history.rare[f"refused {answer.prefix}"] += 1
        world.later(1 + load.chance.random() * self._pause_ms, self._add)

    def _again(self, draft: _Draft) -> None:
        """Repeat an ADDJOB whose outcome is not known: with the same key, it is the same job."""
        self._load.unfinished -= 1
        self._send(draft)

    def _check(self, draft: _Draft, index: int) -> None:
        """Check that the answered ID names a job that the group agreed on."""
        group = self._load.truth.of_queue(self._queue.name.encode())
        body = b"" if group is None else group.bodies.get(index, b"")
        if body != b"job %d" % draft.number:
            self._load.violate(f"{self._queue.name}: job {draft.number} was answered with index {index}: {body!r}")


class _Got:
    """A job that a worker has."""

    def __init__(self, queue: QueueLoad, number: int, job_id: bytes, claim: int) -> None:
        self.queue = queue
        self.number = number
        self.job_id = job_id
        self.claim = claim


class OrderedWorker:
    """Takes jobs of some queues. A `careful` one acknowledges each at once."""

    def __init__(self, load: OrderedLoad, queues: Sequence[QueueLoad], home: int, *, careful: bool = False) -> None:
        self._load = load
        self._queues = {queue.name.encode(): queue for queue in queues}
        self._names = [queue.name for queue in queues]
        self._caller = Caller(load.world, home, load.chance)
        self._careful = careful
        self._retired = False

    def start(self) -> None:
        """Start to work."""
        self._load.world.later(self._load.chance.random() * 200, self._get)

    def retire(self) -> None:
        """Disconnect, and do nothing more."""
        self._retired = True
        self._caller.hang_up()

    # --- getting ------------------------------------------------------------------------------------------------------

    def _get(self) -> None:
        if self._retired:
            return
        chance = self._load.chance
        names = chance.sample(self._names, chance.randint(1, len(self._names))) if not self._careful else self._names
        way = chance.random()
        words: tuple[bytes | str | int, ...] = ("TIMEOUT", 1500)
        if way < 0.25:
            words = ("NOHANG", "COUNT", chance.randint(1, 5))
        elif way < 0.4 or self._careful:
            words = ("TIMEOUT", 1500, "COUNT", chance.randint(2, 5))
        got: list[_Got] = []
        self._caller.call(
            lambda answer: self._work(got, answer),
            *("GETJOB", *words, "WITHCLAIM", "FROM", *names),
            on_sent=lambda reply: got.extend(self._receive(reply)),
        )
        if not self._careful and chance.random() < 0.04:
            self._load.world.later(1 + chance.random() * 30, self._caller.hang_up)

    def _receive(self, reply: Reply) -> list[_Got]:
        """Note the jobs in a reply when it leaves the node, and check that the group assigned them to it."""
        if not isinstance(reply, list):
            return []
        found: list[_Got] = []
        member = self._caller.member
        for row in reply:
            match row:
                case [bytes(name), bytes(job_id), bytes(body), b"claim", int(claim), b"lease", int()]:
                    queue = self._queues[name]
                    number = number_in(body)
                    node_id = b"" if member is None else member.id
                    self._check(queue, body, int(index_of(job_id)), claim, node_id)
                    found.append(_Got(queue, number, job_id, claim))
                case _:
                    raise AssertionError(row)
        return found

    def _check(self, queue: QueueLoad, body: bytes, index: int, claim: int, node_id: bytes) -> None:
        load = self._load
        what = f"{queue.name}: {body.decode()} with index {index} and claim {claim}"
        group = load.truth.of_queue(queue.name.encode())
        one = None if group is None else group.assignments.get(claim)
        if group is None or one is None or one.index != index or group.bodies.get(index) != body:
            load.violate(f"{what} was received, but the group never assigned it")
            return
        if node_of(one.consumer) != node_id:
            load.violate(f"{what} was received at {node_id!r}, but was assigned to {one.consumer!r}")
        before = queue.received.setdefault(claim, f"{node_id[:6].decode()} at {load.world.now_ms}")
        if before != queue.received[claim] or any(have.claim == claim for have in queue.seen.delivered):
            load.violate(f"{what} was received twice, first by {before}")
        queue.seen.delivered.append(_delivered(number_in(body), one))
        load.world.history.note(load.world.now_ms, f"got {what} at {node_id[:6].decode()}")

    # --- working ------------------------------------------------------------------------------------------------------

    def _work(self, got: list[_Got], answer: Answer) -> None:
        load = self._load
        if self._retired:
            return
        if len(got) > 1 and load.chance.random() < 0.3:
            self._ack_all(got)
        else:
            for job in got:
                self._do(job)
        pause_ms = RECONNECT_MS if isinstance(answer, Lost) or not got else 1
        load.world.later(pause_ms, self._get)

    def _do(self, job: _Got) -> None:
        world, chance = self._load.world, self._load.chance
        way = 0.0 if self._careful else chance.random()
        if way < 0.45:
            self._ack(job)
        elif way < 0.6:
            world.later(300 + chance.random() * 4000, lambda: self._ack(job))
        elif way < 0.7:
            self._say(job, "NACK")
        elif way < 0.75:
            self._say(job, "NACK", "DELAY", 1)
        elif way < 0.78:
            self._caller.call(lambda _: None, "ENQUEUE", job.job_id)
        elif way < 0.87:
            self._say(job, "WORKING", "FOR", chance.choice((1, 3, 6)))
            world.later(500 + chance.random() * 5000, lambda: self._ack(job))
        elif way < 0.91:
            self._caller.hang_up()
        elif way < 0.95:
            world.later(6000 + chance.random() * 6000, lambda: self._ack(job))

    def _say(self, job: _Got, command: str, *options: str | int) -> None:
        if not self._retired:
            self._caller.call(lambda _: None, command, job.job_id, "CLAIM", job.claim, *options)

    def _ack(self, job: _Got) -> None:
        if self._retired:
            return
        world = self._load.world
        claim = job.claim if self._load.chance.random() < 0.6 else 0
        ack = Acked(job.number, claim, world.now_ms)
        job.queue.seen.acked.append(ack)
        words = ("CLAIM", claim) if claim else ()
        self._caller.call(lambda answer: self._acked([ack], answer), "ACKJOB", job.job_id, *words)

    def _ack_all(self, got: list[_Got]) -> None:
        """Acknowledge several jobs in one request."""
        acks = [Acked(job.number, 0, self._load.world.now_ms) for job in got]
        for job, ack in zip(got, acks, strict=True):
            job.queue.seen.acked.append(ack)
        self._caller.call(lambda answer: self._acked(acks, answer), "ACKJOB", *[job.job_id for job in got])

    def _acked(self, acks: list[Acked], answer: Answer) -> None:
        """The reply says how many jobs were ended; only if these are all of them it says which."""
        if answer == len(acks):
            for ack in acks:
                ack.ended = True
                ack.answered_ms = self._load.world.now_ms


class OrderedAdmin:
    """Pauses queues, asks questions, and makes and drops other queues."""

    def __init__(self, load: OrderedLoad, home: int) -> None:
        self._load = load
        self._caller = Caller(load.world, home, load.chance)
        self._extras = 0

    def start(self) -> None:
        """Start to work."""
        self._load.world.later(300, self._act)

    def _act(self) -> None:
        load = self._load
        chance = load.chance
        if not load.world.producing:
            return
        load.world.later(150 + chance.random() * 600, self._act)
        queue = chance.choice(load.queues)
        way = chance.random()
        if way < 0.15:
            pause = chance.choice(("in", "out", "all"))
            self._caller.call(lambda _: load.world.later(300, lambda: self.free(queue)), "PAUSE", queue.name, pause)
        elif way < 0.3:
            self._extras += 1
            name = f"extra{self._extras}"
            replicas = chance.choice((1, 3, 3))
            self._caller.call(lambda _: self._use(name), "QNEW", name, "ORDERED", "REPLICAS", replicas)
        elif way < 0.5:
            self._caller.call(self._counted, "QLEN", queue.name)
        elif way < 0.7:
            self._caller.call(lambda _: None, "QPEEK", queue.name, chance.choice((3, -3)))
        elif way < 0.85:
            self._caller.call(lambda _: None, "QSTAT", queue.name)
        else:
            self._caller.call(lambda _: None, "CLUSTER", "ORDERED", "STATUS")

    def _counted(self, answer: Answer) -> None:
        if isinstance(answer, int) and answer < 0:
            self._load.violate(f"QLEN is {answer}")

    def _use(self, name: str) -> None:
        """Add a job to a queue that was made, and drop the queue."""
        self._caller.call(lambda _: None, "ADDJOB", name, b"job 1", 500)
        self._load.world.later(
            400, lambda: self._caller.call(lambda _: None, "QDROP", name, *self._load.chance.choice(((), ("FORCE",))))
        )

    def free(self, queue: QueueLoad) -> None:
        """End the pause of a queue, and try again until that is confirmed."""
        self._caller.call(lambda answer: self._freed(queue, answer), "PAUSE", queue.name, "none")

    def _freed(self, queue: QueueLoad, answer: Answer) -> None:
        if answer != b"none":
            self._load.world.later(RECONNECT_MS, lambda: self.free(queue))
