"""Clients of a simulated cluster: they add, fetch and acknowledge jobs, correctly or not, as determined by the seed.

A client is connected to one node, with a latency of one millisecond, and switches to another one when the connection is
lost or a reply takes too long. It records what it did and saw in the history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final, TypeAlias

from disqued.client import ResponseError
from disqued.testing import priorities
from disqued.testing.cluster import Cluster, Member
from disqued.testing.history import Attempt, Delivery, History
from disqued.testing.local import LocalClient, Reply

REPLY_TIMEOUT_MS: Final = 4000
"""How long a client waits for a reply before it switches to another node."""
AWAY_MS: Final = 1
RECONNECT_MS: Final = 100
QUEUES: Final = ("mail", "print", "bill")
QUEUED_EARLY_S: Final = 7
"""The delay of at-most-once jobs that are queued (ENQUEUE) long before it is over."""
QUEUED_AFTER_MS: Final = 1200
"""How long after such a job was added it is queued: its record is synced by then, and that of its end is not."""
_PATTERNS: Final = {"mail": "ma*", "print": "[o-q]*t", "bill": "b?ll"}
"""A pattern for each of these queues that matches no other one."""
SPARE: Final = "spare"
"""A queue from which workers fetch only at the end."""


class Lost:
    """The result of a command whose reply never arrived."""


LOST: Final = Lost()
Answer: TypeAlias = "Reply | Lost"
Then: TypeAlias = Callable[[Answer], None]


class World:
    """The state that all clients share."""

    def __init__(self, cluster: Cluster, history: History, chance: Random, options: Random) -> None:
        self.cluster = cluster
        self.history = history
        self.chance = chance
        self.options = options
        """Draws the options that were added after many seeds were known; `chance` yields what it did before."""
        self.producing = True
        self.prioritised = False
        """Whether jobs have priorities and metadata."""
        self.always_acks = False
        """Whether workers acknowledge every job at once."""

    @property
    def now_ms(self) -> int:
        """Virtual time."""
        return self.cluster.network.now_ms

    def later(self, delay_ms: float, action: Callable[[], None]) -> None:
        """Schedule an action."""
        self.cluster.network.later(max(1, int(delay_ms)), action)

    def alive(self) -> list[Member]:
        """Members that accept connections."""
        return [member for member in self.cluster.members if member.alive]


class _Call:
    """A command that waits for its reply."""

    def __init__(self, then: Then, on_sent: Callable[[Reply], None] | None) -> None:
        self.then = then
        self.on_sent = on_sent
        self.done = False

    def finish(self, answer: Answer) -> None:
        if not self.done:
            self.done = True
            self.then(answer)


class Caller:
    """One client."""

    def __init__(self, world: World, home: int, chance: Random | None = None) -> None:
        self.world = world
        self.home = home
        """The member it prefers."""
        self._chance = chance or world.chance
        self._connection: LocalClient | None = None
        self._member: Member | None = None
        self._calls: deque[_Call] = deque()

    @property
    def member(self) -> Member | None:
        """The member it is connected to."""
        return self._member if self._connection is not None else None

    def connect(self) -> bool:
        """Connect unless connected, preferably to its home; False if no member is reachable."""
        if self._connection is not None and not self._connection.closed:
            return True
        alive = self.world.alive()
        if not alive:
            return False
        world = self.world
        stay = world.always_acks or self._chance.random() < 0.8
        at_home = [member for member in alive if member.number == self.home]
        self._member = at_home[0] if at_home and stay else self._chance.choice(alive)
        connection = self._member.client()
        connection.listener = lambda: self._receive(connection)
        self._connection = connection
        return True

    def hang_up(self) -> None:
        """Close the connection; outstanding replies are lost."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.listener = None
            connection.disconnect()
        self._lose()

    def _lose(self) -> None:
        calls, self._calls = self._calls, deque()
        for call in calls:
            self.world.later(AWAY_MS, lambda call=call: call.finish(LOST))  # type: ignore[misc]

    def call(self, then: Then, *words: bytes | str | int, on_sent: Callable[[Reply], None] | None = None) -> None:
        """Send a command. `on_sent` is called when the reply leaves the node, and `then` when it arrives."""
        call = _Call(then, on_sent)
        if not self.connect():
            self.world.later(RECONNECT_MS, lambda: call.finish(LOST))
            return
        connection = self._connection
        assert connection is not None
        self._calls.append(call)
        self.world.later(AWAY_MS, lambda: self._send(connection, words))
        self.world.later(REPLY_TIMEOUT_MS, lambda: self._time_out(call))

    def _send(self, connection: LocalClient, words: tuple[bytes | str | int, ...]) -> None:
        if not connection.closed:
            connection.send(*words)
        elif connection is self._connection:
            self._connection = None
            self._lose()

    def _time_out(self, call: _Call) -> None:
        if not call.done and call in self._calls:
            self.hang_up()

    def _receive(self, connection: LocalClient) -> None:
        """Handle replies or the loss of the connection, during the turn of the node."""
        if connection is not self._connection:
            return
        for reply in connection.replies():
            call = self._calls.popleft()
            if call.on_sent is not None:
                call.on_sent(reply)
            self.world.later(AWAY_MS, lambda call=call, reply=reply: call.finish(reply))  # type: ignore[misc]
        if connection.closed:
            self._connection = None
            self._lose()


class Producer:
    """Adds jobs with random options: one after the other, or up to `at_once` in a pipeline."""

    def __init__(self, world: World, home: int, pause_ms: int, at_once: int = 1) -> None:
        self._world = world
        self._caller = Caller(world, home)
        self._pause_ms = pause_ms
        self._at_once = at_once
        self._unanswered = 0

    def start(self) -> None:
        """Start to work."""
        self._world.later(self._world.chance.random() * self._pause_ms, self._add)

    def _add(self) -> None:
        world = self._world
        if not world.producing:
            return
        if not self._caller.connect():
            world.later(RECONNECT_MS, self._add)
            return
        self._unanswered = world.chance.randint(1, self._at_once) if self._at_once > 1 else 1
        for _ in range(self._unanswered):
            self._send(self._draw())
        if world.chance.random() < 0.02:
            world.later(1 + world.chance.random() * 20, self._caller.hang_up)

    def add_spare(self, count: int) -> None:
        """Add jobs with one copy to a queue from which no worker fetches yet."""
        if self._caller.connect():
            self._unanswered = count + 1  # more are not added after the last reply
            for _ in range(count):
                self._send(replace(self._draw(), queue=SPARE, replicate=1, sync=0, retry_s=5, ttl_s=3600, delay_s=0))

    def _send(self, attempt: Attempt) -> None:
        world = self._world
        words = self._words(attempt)
        world.history.attempts.append(attempt)
        world.history.note(world.now_ms, f"add {attempt.number} at {attempt.member}: {' '.join(map(str, words))}")
        self._caller.call(
            lambda answer: self._answered(attempt, answer if isinstance(answer, Lost) else _only(answer)),
            *words,
            on_sent=lambda reply: self._reply_sent(attempt, _only(reply)),
        )

    def _draw(self) -> Attempt:
        world = self._world
        chance = world.chance
        replicate = chance.choice((1, 1, 2, 2, 3))
        retry_s = chance.choice((0, 1, 2, 5)) if replicate == 1 else chance.choice((1, 1, 2, 5))
        ttl_s = chance.choice((2, 8, 20)) if retry_s == 0 or chance.random() < 0.1 else 3600
        member = self._caller.member
        assert member is not None
        delay_s = chance.choice((0, 0, 0, 0, 1))
        if retry_s == 0 and world.history.policy and chance.random() < 0.3:
            delay_s = QUEUED_EARLY_S
        queue = chance.choice(QUEUES)
        asynchronous = chance.random() < 0.15
        timeout_ms = chance.choice((100, 300, 1000))
        sync = 0
        if not asynchronous and world.options.random() < 0.3:
            sync = world.options.randint(1, replicate)
        attempt = Attempt(
            number=len(world.history.attempts),
            at_ms=world.now_ms,
            queue=queue,
            replicate=replicate,
            retry_s=retry_s,
            ttl_s=ttl_s,
            delay_s=delay_s,
            asynchronous=asynchronous,
            sync=sync,
            by_list=world.options.random() < 0.1,
            timeout_ms=timeout_ms,
            losses_before=world.history.all_losses,
            member=member.number,
        )
        if world.prioritised:
            priorities.choose(attempt)
        return attempt

    @staticmethod
    def _words(attempt: Attempt) -> list[bytes | str | int]:
        words: list[bytes | str | int] = ["ADDTO", 1] if attempt.by_list else ["ADDJOB"]
        words += [attempt.queue, attempt.body, attempt.timeout_ms]
        words += ["REPLICATE", attempt.replicate, "RETRY", attempt.retry_s, "TTL", attempt.ttl_s]
        if attempt.delay_s:
            words += ["DELAY", attempt.delay_s]
        if attempt.asynchronous:
            words.append("ASYNC")
        if attempt.sync:
            words += ["SYNC", attempt.sync]
        return words + priorities.options(attempt)

    def _reply_sent(self, attempt: Attempt, reply: Reply) -> None:
        """Record which nodes have the job when the reply leaves the node.

        A node may have crashed since it confirmed its copy, and a job that was acknowledged meanwhile needs no copies.
        """
        if not isinstance(reply, bytes):
            return
        world = self._world
        history = world.history
        attempt.told_ms = world.now_ms
        for member in world.cluster.members:
            loaded = member.alive and not member.node.state.loading
            has_job = member.node.state.lifecycle.table.get(reply) is not None
            if has_job if loaded else reply in history.away.get(member.number, ()):
                attempt.holders.append((member.number, history.losses(member.number)))
        if attempt.retry_s > 0 and not attempt.acks_sent_ms:
            attempt.copies_short = max(0, attempt.promised - len(attempt.holders))
            leaving = sum(member.alive and member.node.state.view.leaving for member in world.cluster.members)
            leaving += sum(at_ms >= attempt.at_ms for at_ms in history.stayed_ms.values())
            excused = history.all_losses - attempt.losses_before + leaving
            if attempt.copies_short > excused and world.now_ms < attempt.expires_ms:
                history.violate(world.now_ms, f"job {attempt.number} has {attempt.copies_short} copies too few")
        accepting = world.cluster.members[attempt.member - 1].node.state
        job = accepting.lifecycle.table.get(reply)
        if job is not None and not job.is_dummy and job.body != attempt.body:
            history.violate(world.now_ms, f"the reply to the add of {attempt.body!r} is the ID of {job.body!r}")
        if job is not None:
            history.promise(attempt.member, job)
        elif attempt.replicate > 1:
            history.rare["external replication while leaving"] += accepting.view.leaving
            history.rare["external replication while out of memory"] += accepting.lifecycle.memory.level() > 0

    def _answered(self, attempt: Attempt, answer: Answer) -> None:
        world = self._world
        if isinstance(answer, bytes):
            attempt.job_id = answer
            attempt.added_ms = world.now_ms
            held = ",".join(str(number) for number, _ in attempt.holders)
            world.history.note(world.now_ms, f"added {attempt.number} as {answer.decode()} held by {held}")
            if attempt.delay_s == QUEUED_EARLY_S:
                world.later(QUEUED_AFTER_MS, lambda: self._queue(answer))
        else:
            if str(answer).startswith("NOREPL Timeout"):
                attempt.refused_ms = world.now_ms
            world.history.rare["refused for a failing disk"] += str(answer).startswith("MISCONF")
            world.history.note(world.now_ms, f"not added {attempt.number}: {describe(answer)}")
        self._unanswered -= 1
        if self._unanswered == 0:
            world.later(world.chance.random() * 2 * self._pause_ms, self._add)

    def _queue(self, job_id: bytes) -> None:
        """Queue a job before its delay ends."""
        if self._caller.connect():
            self._caller.call(lambda _: None, "ENQUEUE", job_id)


def jobs_in(reply: Reply) -> list[tuple[bytes, bytes, int]]:
    """The ID and body of each job in a reply to GETJOB, and how often it was requeued before."""
    assert isinstance(reply, list)
    jobs: list[tuple[bytes, bytes, int]] = []
    for job in reply:
        match job:
            case [bytes(), bytes(job_id), bytes(body), b"nacks", int(nacks), b"additional-deliveries", int(more)]:
                jobs.append((job_id, body, nacks + more))
            case _:
                raise AssertionError(job)
    return jobs


def _only(reply: Reply) -> Reply:
    """The reply to the only ADDJOB of an ADDTO; any other reply as it is."""
    return reply[0] if isinstance(reply, list) and len(reply) == 1 else reply


def describe(answer: Answer) -> str:
    """A reply as the trace shows it."""
    if isinstance(answer, Lost):
        return "lost"
    return str(answer)


def is_loading(answer: Answer) -> bool:
    """Whether the node replied that it is loading its jobs."""
    return str(answer).startswith("LOADING ")


class Worker:
    """Fetches jobs and treats them at random."""

    def __init__(self, world: World, home: int) -> None:
        self._world = world
        self._caller = Caller(world, home)
        self._other = Caller(world, home + 1)
        """Acknowledges some jobs at another node."""
        self._later = Caller(world, home)
        """Sends commands while the worker waits for its next job."""

    def start(self) -> None:
        """Start to work."""
        self._world.later(self._world.chance.random() * 100, self._get)

    def finish(self, attempt: Attempt) -> None:
        """Acknowledge a job that another worker got."""
        self._finish([(attempt.deliveries[-1].job_id, attempt)], "ACKJOB", self._caller)

    def take_spare(self) -> None:
        """Fetch spare jobs, wherever they are, and keep them."""
        if self._caller.connect() and self._caller.member is not None:
            number = self._caller.member.number
            words: list[bytes | str | int] = ["GETJOB", "WITHCOUNTERS", "TIMEOUT", 1500, "COUNT", 3, "FROM", SPARE]
            self._caller.call(lambda _: None, *words, on_sent=lambda reply: self._reply_sent(number, reply))

    def _get(self) -> None:
        world = self._world
        if not self._caller.connect():
            world.later(RECONNECT_MS, self._get)
            return
        count = 1 if world.chance.random() < 0.8 else 3
        member = self._caller.member
        assert member is not None
        queues = (*QUEUES, SPARE) if world.always_acks else tuple(world.chance.sample(QUEUES, 2))
        words: list[bytes | str | int] = ["GETJOB", "WITHCOUNTERS", "TIMEOUT", 1500, "COUNT", count]
        if not world.always_acks and world.options.random() < 0.3:
            words += ["FROMPATTERN", *[_PATTERNS[queue] for queue in queues]]
        else:
            words += ["FROM", *queues]
        self._caller.call(self._got, *words, on_sent=lambda reply: self._reply_sent(member.number, reply))

    def _reply_sent(self, member: int, reply: Reply) -> None:
        """Record the delivery of jobs when they leave the node."""
        world = self._world
        history = world.history
        if not isinstance(reply, list):
            return
        history.rare["delivery while another node loads"] += any(
            other.alive and other.node.state.loading for other in world.cluster.members
        )
        for job_id, body, counted in jobs_in(reply):
            attempt = history.attempt_of(body)
            if attempt is None:
                history.violate(world.now_ms, f"{job_id!r} was delivered, but never added: {body!r}")
                continue
            attempt.deliveries.append(Delivery(world.now_ms, member, job_id, counted))
            history.last_delivery_ms = world.now_ms
            history.note(world.now_ms, f"delivered {attempt.number} by {member}, counted {counted}")
            if world.prioritised and not history.faulty:
                priorities.check_delivery(world.cluster.members[member - 1], attempt, history)

    def _got(self, answer: Answer) -> None:
        world = self._world
        if isinstance(answer, list):
            self._work([(job_id, world.history.attempt_of(body)) for job_id, body, _ in jobs_in(answer)])
        elif isinstance(answer, Lost | ResponseError):
            if not isinstance(answer, Lost):
                self._caller.hang_up()
            world.later(RECONNECT_MS, self._get)
        else:
            self._get()

    def _work(self, jobs: list[tuple[bytes, Attempt | None]]) -> None:
        """Treat the jobs in a random way, then fetch more."""
        world = self._world
        draw = 0.0 if world.always_acks else world.chance.random()
        delay_ms = 1.0
        if draw < 0.70:
            self._finish(jobs, "ACKJOB", self._caller)
        elif draw < 0.78:
            self._finish(jobs, "ACKJOB", self._other)
        elif draw < 0.83:
            self._finish(jobs, "FASTACK" if self._fastack_reaches_all() else "ACKJOB", self._caller)
        elif draw < 0.88:
            self._nack(jobs)
        elif draw < 0.93:
            self._finish_late(jobs)
        elif draw < 0.97:
            for later_ms in (1, 600, 1200, 1800):
                world.later(later_ms, lambda: self._work_on(jobs))
            world.later(1900, lambda: self._finish(jobs, "ACKJOB", self._later))
        else:
            self._caller.hang_up()
            delay_ms = 500.0
        world.later(delay_ms, self._get)

    def _fastack_reaches_all(self) -> bool:
        """Whether FASTACK finishes jobs at all their holders, or there are faults, with which they may come back.

        Between distant nodes, a holder may not know the last node that was asked for a copy.
        """
        history = self._world.history
        return history.distance_ms == 0 and (history.faulty or self._world.cluster.is_whole())

    def _finish_late(self, jobs: list[tuple[bytes, Attempt | None]]) -> None:
        """Acknowledge jobs after a while, at another node if nodes may have restarted from their files meanwhile."""
        world = self._world
        late_ms = world.chance.random() * 2500
        elsewhere = bool(world.history.policy) and world.chance.random() < 0.7
        world.later(late_ms, lambda: self._finish(jobs, "ACKJOB", self._other if elsewhere else self._later))

    def _finish(self, jobs: list[tuple[bytes, Attempt | None]], command: str, caller: Caller) -> None:
        world = self._world
        attempts = [attempt for _, attempt in jobs if attempt is not None]
        if not caller.connect():
            return
        member = caller.member
        assert member is not None
        held: set[int] = set()
        """Attempts whose job the member has."""
        sent_ms = world.now_ms
        for attempt in attempts:
            attempt.acks_sent_ms.append(sent_ms)
            if self.has(member, attempt):
                held.add(attempt.number)
            elif attempt.deliveries:
                world.history.rare["acknowledged at a node without the job"] += 1
            world.history.note(world.now_ms, f"{command} {attempt.number} to {member.number}")
        safely = command == "ACKJOB"  # FASTACK is sent only once
        kept_by = (member.number, len(member.past_counters))
        caller.call(
            lambda answer: self._finished(attempts, sent_ms, answer, kept_by, held if safely else None),
            command,
            *[job_id for job_id, _ in jobs],
        )

    def has(self, member: Member, attempt: Attempt) -> bool:
        """Whether a member has the job that a worker got."""
        job = member.node.state.lifecycle.table.get(attempt.deliveries[-1].job_id) if attempt.deliveries else None
        return job is not None and not job.is_dummy

    def _finished(
        self, attempts: list[Attempt], sent_ms: int, answer: Answer, kept_by: tuple[int, int], held: set[int] | None
    ) -> None:
        """Record the reply to an ACKJOB, and who keeps the acknowledgement: of FASTACK (`held` is None) nobody does."""
        world = self._world
        for attempt in attempts:
            if is_loading(answer):
                attempt.acks_sent_ms.remove(sent_ms)
            elif isinstance(answer, int) and not attempt.ack_replied_ms:
                attempt.ack_replied_ms = world.now_ms
                if held is not None:
                    attempt.ack_kept_by = kept_by if attempt.number in held else (0, 0)
                    attempt.ack_settled = world.cluster.is_whole()

    def _nack(self, jobs: list[tuple[bytes, Attempt | None]]) -> None:
        world = self._world
        for _, attempt in jobs:
            if attempt is not None:
                attempt.nacks_ms.append(world.now_ms)
                world.history.note(world.now_ms, f"NACK {attempt.number}")
        self._caller.call(lambda _: None, "NACK", *[job_id for job_id, _ in jobs])

    def _work_on(self, jobs: list[tuple[bytes, Attempt | None]]) -> None:
        for job_id, attempt in jobs:
            self._later.call(partial(self._worked, attempt), "WORKING", job_id)

    def _worked(self, attempt: Attempt | None, answer: Answer) -> None:
        if attempt is not None and isinstance(answer, int):
            attempt.works_ms.append(self._world.now_ms)
        self._world.history.rare["WORKING too late"] += str(answer).startswith("TOOLATE")


class Observer:
    """Inspects jobs and queues periodically, and pauses a queue on all nodes for a while."""

    def __init__(self, world: World, home: int) -> None:
        self._world = world
        self._caller = Caller(world, home)

    def start(self) -> None:
        """Start to work."""
        self._world.later(700, self._look)

    def _look(self) -> None:
        world = self._world
        chance = world.chance
        if not world.producing:
            return
        queue = chance.choice(QUEUES)
        draw = chance.random()
        attempts = world.history.attempts
        if draw < 0.2 and attempts:
            job_id = chance.choice(attempts[-20:]).job_id
            if job_id is not None:
                self._caller.call(self._looked, "SHOW", job_id)
        elif draw < 0.35:
            self._caller.call(self._looked, "QPEEK", queue, 3)
        elif draw < 0.5:
            self._caller.call(self._looked, "QSTAT", queue)
        elif draw < 0.6:
            self._caller.call(self._looked, "JSCAN", "0", "REPLY", "all")
        elif draw < 0.7:
            self._pause(queue, chance.choice(("in", "out", "all")))
        elif draw < 0.8:
            self._caller.call(self._looked, "CLUSTER", "NODES")
        world.later(200 + chance.random() * 800, self._look)

    def _looked(self, answer: Answer) -> None:
        if isinstance(answer, ResponseError) and not is_loading(answer):
            self._world.history.violate(self._world.now_ms, f"a read-only command was refused: {answer}")

    def _pause(self, queue: str, how: str) -> None:
        world = self._world
        world.history.note(world.now_ms, f"PAUSE {queue} {how} bcast")
        self._caller.call(self._looked, "PAUSE", queue, how, "bcast")
        world.later(
            200 + world.chance.random() * 1500,
            lambda: self._caller.call(self._looked, "PAUSE", queue, "none", "bcast"),
        )
