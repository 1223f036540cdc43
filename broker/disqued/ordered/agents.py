"""Agents: a consumer of an ordered queue, as its node sees it, and the clients that it gets jobs for.

All clients of a node that take jobs of a queue are one consumer of its group; in a SINGLE queue each client is one. The
agent of a consumer tells the group how many jobs it can place (CREDIT), at most once per turn and one request at a
time. The group answers with the number of jobs that it has assigned to the consumer so far. So the agent knows which
assignments are still on their way, and a GETJOB that does not wait knows when it has seen all there is.

Assignments come from the replica of this node, or in DELIVER from the leader, numbered, and in the order of their
claims. If one is missing, because a frame was lost or the replica came by a snapshot, the consumer joins again and asks
the leader for the jobs that it has by then and did not see. A job for which no client waits any more is given back and
does not count as an attempt.

The client of a SINGLE queue with PREFETCH 1 gets its jobs *ahead*: the group assigns the next one when the client
acknowledges the last one, so the agent has it when the client asks. It holds the job for a fourth of a second, which is
short beside any lease. Then it gives the job back, and asks again only with the client.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.ordered.delivered import Delivered
from disqued.ordered.deliverypayload import unpack_deliveries
from disqued.ordered.exchange import Exchange, TurnWork
from disqued.ordered.payload import MalformedPayloadError
from disqued.ordered.reading import pack_question
from disqued.ordered.requests import COMMAND, DONE, READ, GroupClient, Request, Unanswered
from disqued.ordered.results import unpack
from disqued.orderedqueue.commands import Credit, Join, Nack
from disqued.orderedqueue.effects import NO_CONSUMER, NODE_DOWN, OK

HOLD_MS: Final = 300
"""How long an agent waits before it asks again a group that refused, or that has its node for gone."""
CHECK_MS: Final = 2000
"""After this time, an agent without a local replica asks how many assignments there were."""
RETURN_MS: Final = 10_000
AHEAD_MS: Final = 250
"""How long an agent holds a job for a client that has not asked for it."""
MOST_PLACES: Final = 1024
"""How many jobs an agent asks for at once."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Taker:
    """Somebody who takes jobs from an agent: a GETJOB."""

    def __init__(self, wanted: i64, *, waits: bool) -> None:
        self.wanted: i64 = wanted
        """How many more jobs it takes."""
        self.waits = waits
        """Whether it waits for jobs that come later. Otherwise it ends when it has seen what there is."""
        self.asked: bool = False
        """Whether a CREDIT that counts it was sent."""

    def is_over(self) -> bool:
        """Whether it takes no more jobs."""
        raise NotImplementedError

    def take(self, agent: Agent, job: Delivered) -> None:
        """Take a job."""
        raise NotImplementedError

    def seen_all(self, agent: Agent) -> None:
        """There are no more jobs now, and it does not wait."""
        raise NotImplementedError


class _CreditRequest(Request):
    """A CREDIT or JOIN of an agent."""

    def __init__(self, agent: Agent, data: bytes, *, joins: bool) -> None:
        super().__init__(COMMAND, data, 0, repeated=True)
        self._agent = agent
        self._joins = joins

    def answered(self, status: i64, data: bytes) -> None:
        """Note what the group knows now."""
        self._agent.credited(status, data, joins=self._joins)


class _LeasesRequest(Request):
    """Asks for the jobs that the consumer has, and that its agent may not have seen."""

    def __init__(self, agent: Agent, question: bytes) -> None:
        super().__init__(READ, question, 0, repeated=True)
        self._agent = agent

    def answered(self, status: i64, data: bytes) -> None:
        """Take them."""
        self._agent.leases_told(data if status == DONE else b"")


class Agent(TurnWork):
    """One consumer."""

    def __init__(
        self, exchange: Exchange, client: GroupClient, queue: bytes, consumer: bytes, *, takes_ahead: bool
    ) -> None:
        super().__init__()
        self._exchange = exchange
        self._client = client
        self.group: i64 = client.group
        self.queue = queue
        self.consumer = consumer
        self.takers: deque[Taker] = deque()
        self.joined: bool = False
        self._joined_before: bool = False
        self._join_claim: i64 = 0
        """The last claim in the queue when it joined: later ones are counted."""
        self._asked_ms: i64 = 0
        self._held_ms: i64 = 0
        """Until when it does not ask, because the group has its node for gone."""
        self._under_way: bool = False
        """Whether a request has no answer yet."""
        self._request: Request | None = None
        """The last CREDIT or JOIN."""
        self._seen: i64 = 0
        """How many assignments have come since it joined."""
        self._placed: i64 = 0
        """How many of them takers have."""
        self._credit: i64 = 0
        """What the group takes for its credit now."""
        self._expected: i64 = 0
        """How many assignments there were when the last CREDIT was applied."""
        self.arriving: deque[Delivered] = deque()
        """Assigned jobs, the first of which may wait for its body."""
        self._takes_ahead = takes_ahead
        """Whether the client gets jobs ahead."""
        self._ahead: bool = False
        """Whether the group assigns jobs ahead now."""
        self._waits_ms: i64 = 0
        """Since when a job waits for the client to ask; 0 if none does."""
        self.last_claim: i64 = 0

    @property
    def may_have_joined(self) -> bool:
        """Whether the group may know the consumer, also if the answer to its JOIN has not come yet."""
        return self._joined_before or self._under_way

    # --- takers -------------------------------------------------------------------------------------------------------

    def add(self, taker: Taker) -> None:
        """Get jobs for somebody."""
        self.takers.append(taker)
        if self.arriving:
            self.place()
        self._exchange.at_turn_end(self)

    def changed(self) -> None:
        """Takers wait no more: less credit may be right."""
        self._exchange.at_turn_end(self)

    def _wanted(self) -> i64:
        """How many more jobs can be placed."""
        wanted: i64 = 0
        for taker in self.takers:
            if not taker.is_over():
                wanted += taker.wanted
        return min(max(wanted - len(self.arriving), 0), MOST_PLACES)

    def turn_ends(self) -> None:
        """Tell the group how many jobs can be placed, if it believes something else."""
        if self._under_way or self._exchange.state.now_ms < self._held_ms:
            return
        while self.takers and self.takers[0].is_over():
            self.takers.popleft()
        if not self.joined:
            if self.takers:
                self._send(Join(self.consumer, self._exchange.node_id).encode(), joins=True)
            return
        wanted = self._wanted()
        fresh = False
        for taker in self.takers:
            if not taker.asked and not taker.waits and not taker.is_over():
                fresh = True
        if wanted == self._credit and not fresh:
            return
        for taker in self.takers:
            taker.asked = True
        self._credit = wanted
        self._ahead = self._takes_ahead and wanted > 0
        self._send(Credit(self.consumer, wanted, self._seen, ahead=self._ahead).encode(), joins=False)

    def _send(self, data: bytes, *, joins: bool) -> None:
        self._under_way = True
        self._asked_ms = self._exchange.state.now_ms
        self._request = _CreditRequest(self, data, joins=joins)
        self._client.submit(self._request)

    def credited(self, status: i64, data: bytes, *, joins: bool) -> None:
        """A CREDIT or JOIN was answered."""
        self._under_way = False
        result = unpack(data)
        if status != DONE:
            self._held_ms = self._exchange.state.now_ms + HOLD_MS
            self.forget_credit()
        elif joins and result.code == OK:
            self._has_joined(result.value)
        elif joins or result.code in {NODE_DOWN, NO_CONSUMER}:
            self.joined = False
            if result.code == NODE_DOWN:
                self._held_ms = self._exchange.state.now_ms + HOLD_MS
        else:
            self._expected = max(self._expected, result.value)
            self._conclude()
        if status == DONE or self.takers:
            self._exchange.at_turn_end(self)

    def _has_joined(self, claim: i64) -> None:
        """The group counts from here on; it gives no credit yet, so nothing is assigned meanwhile."""
        self.joined = True
        self._join_claim = claim
        self._seen = 0
        self._placed = 0
        self._credit = 0
        self._expected = 0
        if not self._joined_before:
            self._joined_before = True
            self.last_claim = claim
        elif claim > self.last_claim:
            self._under_way = True
            question = pack_question([b"leases", self.consumer, b"%d" % self.last_claim])
            self._client.submit(_LeasesRequest(self, question))

    def leases_told(self, data: bytes) -> None:
        """The leader told which jobs the consumer has."""
        self._under_way = False
        with suppress(MalformedPayloadError):
            for delivery in unpack_deliveries(data):
                job = Delivered(delivery.assigned)
                job.fill(delivery.data, delivery.time_ms)
                self.assigned(job)
        self._exchange.at_turn_end(self)

    def forget_credit(self) -> None:
        """The group has a new leader, which does not know the credit."""
        self._credit = -1
        self._ahead = False
        for taker in self.takers:
            taker.asked = False
        if self.takers:
            self._exchange.at_turn_end(self)

    def check(self, now_ms: i64) -> None:
        """Look whether assignments that came in messages were lost. Called for agents without a local replica."""
        if self._under_way or not self.joined or not self.takers:
            return
        if now_ms - self._asked_ms < CHECK_MS:
            return
        if self._seen < self._expected:
            self.rejoin()
        else:
            self._credit = -1
            self._exchange.at_turn_end(self)

    def ask_again(self, now_ms: i64) -> None:
        """Ask again if this agent has waited for that."""
        if 0 < self._held_ms <= now_ms:
            self._held_ms = 0
            self._exchange.at_turn_end(self)

    def rejoin(self) -> None:
        """Join the group again before the next CREDIT."""
        self.joined = False
        self._held_ms = 0
        self._return_held()
        self.forget_credit()

    def abandoned(self) -> None:
        """The replica here reads no more bodies: forget the jobs from the first one on that misses it, and join again.

        Then the leader tells which jobs the consumer has.
        """
        kept = 0
        for job in self.arriving:
            if not job.complete:
                self.last_claim = job.claim - 1
                break
            kept += 1
        while len(self.arriving) > kept:
            self.arriving.pop()
        self.rejoin()

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def assigned(self, job: Delivered) -> None:
        """The group assigned a job to this consumer; its body may still be missing.

        Before this agent has joined, it is one of the former process of the node: the replica applies its log again.
        """
        if job.claim <= self.last_claim or not self._joined_before:
            return
        self.last_claim = job.claim
        if job.claim > self._join_claim:
            self._seen += 1
            job.counted = True
            if self._credit > 0:
                self._credit -= 1
        self.arriving.append(job)
        self.place()

    def delivered(self, job: Delivered, number: i64) -> None:
        """The leader sent an assigned job, with its number since the consumer joined."""
        if job.claim <= self._join_claim or number == self._seen + 1:
            self.assigned(job)
        elif number > self._seen + 1 and self.joined:
            self.rejoin()

    def place(self) -> None:
        """Hand out the jobs whose bodies are here."""
        arriving = self.arriving
        while arriving and arriving[0].complete:
            taker = self._next_taker()
            if taker is None and self._ahead and not arriving[0].lost:
                if self._waits_ms == 0:
                    self._waits_ms = self._exchange.state.now_ms
                break
            self._waits_ms = 0
            job = arriving.popleft()
            if job.counted:
                self._placed += 1
            if job.lost:
                continue
            if taker is None:
                self._give_back(job)
            else:
                taker.wanted -= 1
                taker.take(self, job)
        self._conclude()
        self._exchange.at_turn_end(self)

    def _next_taker(self) -> Taker | None:
        takers = self.takers
        while takers:
            taker = takers[0]
            if not taker.is_over() and taker.wanted > 0:
                return taker
            takers.popleft()
        return None

    def let_go(self, now_ms: i64) -> None:
        """Give back a job that was held long enough, and get no more until the client asks."""
        if 0 < self._waits_ms <= now_ms - AHEAD_MS:
            self._end_ahead()
            self._return_held()

    def _end_ahead(self) -> None:
        """Have the group assign no jobs ahead, before one that is given back can be assigned again."""
        credit = Credit(self.consumer, 0, self._seen)
        self._credit = 0
        # If it is lost, another job comes, and is given back as well.
        self._client.submit(Unanswered(credit.encode(), self._exchange.state.now_ms + RETURN_MS, repeated=True))

    def _return_held(self) -> None:
        """Give back the jobs that wait for the client."""
        self._ahead = False
        self.place()

    def leave(self) -> None:
        """The client is gone: give back what it did not get."""
        self.takers.clear()
        if self._ahead:
            self._end_ahead()
        self._return_held()

    def _give_back(self, job: Delivered) -> None:
        """Nobody waits for the job."""
        if job.until_ms == 0:
            return
        nack = Nack([int(job.index)], [int(job.claim)])
        nack.uncounted = True
        # Repeated or lost, it does no harm: the lease ends.
        self._client.submit(Unanswered(nack.encode(), self._exchange.state.now_ms + RETURN_MS, repeated=True))

    def _conclude(self) -> None:
        """Tell those who do not wait that they have seen everything."""
        if self._under_way or self._placed < self._expected:
            return
        for taker in list(self.takers):
            if taker.asked and not taker.waits and not taker.is_over():
                taker.seen_all(self)

    def end(self) -> None:
        """The queue, or the consumer, is gone."""
        if self._request is not None:
            self._request.over = True  # repeated after the PART, a JOIN would bring the consumer back
        for taker in list(self.takers):
            if not taker.is_over():
                taker.seen_all(self)
        self.takers.clear()
