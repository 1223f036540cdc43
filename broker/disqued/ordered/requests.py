"""Requests of this node to the leaders of groups, and the clients that wait for them.

Any node takes commands. What changes or reads an ordered queue becomes a `Request`, which the `GroupClient` of the
group sends to the leader: to the replica of this node, or in a PROPOSE to another node. Requests of one turn leave
together and in order.

A leader that is not one any more says so, and who is (NOT_LEADER); the request goes there next. Until a leader is
known, its replicas are tried in turn. When the answer of a leader is lost, for example because its node dies, nobody
knows whether the request took effect. Requests that may be `repeated` are sent again to the next leader; for others,
the outcome is UNKNOWN. While no leader can be found, requests wait until their deadline; they took no effect then
(NO_LEADER), unless they were sent before (UNKNOWN).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.cluster.peer import Link
from disqued.core.timers.alarm import Alarm
from disqued.ordered.counters import REQUEST_TIME, WITHOUT_LEADER
from disqued.ordered.exchange import Answered, Exchange, node_of
from disqued.ordered.payload import pack_asked

COMMAND: Final = 0
"""The data is a command of the machine; the answer has its result."""
READ: Final = 1
"""The data is a question (`reading`), which the leader answers from its machine."""
PING: Final = 2
"""Answered as soon as the leader has committed an entry of its term."""
EXACT: Final = 3
"""A question that the leader answers when a majority has confirmed that it still leads (`Group.read`)."""

DONE: Final = 0
"""It took effect; the data is the result."""
NOT_LEADER: Final = 1
"""It took no effect, because the receiver is not the leader; the data is the node that it takes for the leader."""
REFUSED: Final = 2
"""It took no effect; the data is the error line."""
UNKNOWN: Final = 3
"""It may have taken effect, or may still take effect."""
NO_LEADER: Final = 4
"""It took no effect, because no leader was found until the deadline."""

RETRY_MS: Final = 100
"""How often the next replica is asked while no leader is known, and waiting requests are looked at."""
MOST_WAITING: Final = 100_000
"""How many requests of a node may wait for one group."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Request:
    """One request to the leader of a group. A subclass says what happens with the outcome."""

    def __init__(self, kind: i64, data: bytes, deadline_ms: i64, *, repeated: bool) -> None:
        self.kind: i64 = kind
        self.data = data
        self.deadline_ms: i64 = deadline_ms
        """Until when it waits for a leader or for the answer; 0 for any time."""
        self.repeated = repeated
        """Whether it may be sent again when the outcome is unknown, because taking effect twice does no harm."""
        self.number: i64 = 0
        self.link: Link | None = None
        """The connection on which it was sent; None for the replica of this node."""
        self.began_ms: i64 = 0
        """When it was submitted."""
        self.over: bool = False
        """Nobody wants the answer any more."""
        self.doubtful: bool = False
        """Whether it was sent before to a leader whose answer was lost, so it may have taken effect in any case."""

    def answered(self, status: i64, data: bytes) -> None:
        """The outcome is known: DONE, REFUSED, UNKNOWN or NO_LEADER."""
        raise NotImplementedError


class Unanswered(Request):
    """A request whose outcome does not matter to anybody here."""

    def __init__(self, data: bytes, deadline_ms: i64, *, repeated: bool) -> None:
        # Without its own `__init__`, an instance of a compiled class never leaves the memory if the class inherits one.
        super().__init__(COMMAND, data, deadline_ms, repeated=repeated)

    def answered(self, status: i64, data: bytes) -> None:
        """Nothing follows."""


class _Look(Alarm):
    """Has a client look at its requests that wait."""

    def __init__(self, client: GroupClient) -> None:
        super().__init__()
        self._client = client

    def ring(self, state: object) -> None:  # noqa: ARG002 - the client knows its node
        """Look at them."""
        self._client.look()


class GroupClient(Answered):
    """The requests of one node to one group."""

    def __init__(self, exchange: Exchange, group: i64) -> None:
        super().__init__()
        self._exchange = exchange
        self.group: i64 = group
        self.leader = b""
        """The node that is taken for the leader; empty while none is known."""
        self._turn: i64 = 0
        """Which replica is asked next while no leader is known."""
        self._next_try_ms: i64 = 0
        self._unsent: deque[Request] = deque()
        self._sent: dict[int, Request] = {}
        """By number, in the order in which they were sent."""
        self._look = _Look(self)

    @property
    def waiting(self) -> int:
        """How many requests have no answer yet."""
        return len(self._unsent) + len(self._sent)

    def submit(self, request: Request) -> None:
        """Send a request at the end of this turn, or when there is a leader."""
        if self.waiting >= MOST_WAITING:
            request.answered(REFUSED, b"OOM too many requests wait for the leader of this queue")
            return
        request.began_ms = self._exchange.state.now_ms
        self._unsent.append(request)
        self._exchange.at_turn_end(self)
        if self._look.awake_ms == 0:
            self._arm()

    def learn(self, leader: bytes) -> None:
        """A node is said to lead the group now; empty if nobody does."""
        if leader != self.leader:
            self.leader = leader
            if leader and self._unsent:
                self._exchange.at_turn_end(self)

    def turn_ends(self) -> None:
        """Send what can be sent now."""
        if not self._unsent:
            return
        now_ms = self._exchange.state.now_ms
        target = self.leader or self._exchange.leaders.get(int(self.group), b"")
        if target and self._exchange.is_silent(target):
            target = b""
        if not target:
            if now_ms < self._next_try_ms:
                return
            target = self._candidate()
            self._next_try_ms = now_ms + RETRY_MS
        if target == self._exchange.node_id:
            self._send_here()
        elif target:
            self._send_to(target)

    def _candidate(self) -> bytes:
        """The next node to ask while no leader is known; empty if no node with a replica is there."""
        exchange = self._exchange
        nodes = [node_of(replica) for replica in exchange.members.get(int(self.group), ())]
        nodes = [node_id for node_id in nodes if not exchange.is_silent(node_id)]
        if not nodes:
            return b""
        self._turn += 1
        return nodes[int(self._turn) % len(nodes)]

    def _send_here(self) -> None:
        replica = self._exchange.replicas.get(int(self.group))
        if replica is None:
            self.leader = b""
            return
        requests = self._unsent
        self._unsent = deque()
        for request in requests:
            if not request.over:
                self._number(request, None)
                replica.accept(b"", request.number, request.kind, request.data)

    def _send_to(self, target: bytes) -> None:
        peer = self._exchange.state.view.peers.get(target)
        link = None if peer is None else peer.link
        if link is None or link.closed or not link.answered:
            self.leader = b""
            return
        requests = self._unsent
        self._unsent = deque()
        for request in requests:
            if not request.over:
                self._number(request, link)
                part = pack_asked(int(request.number), int(self.group), int(request.kind), request.data)
                self._exchange.add(target, kinds.PROPOSE, part)

    def _number(self, request: Request, link: Link | None) -> None:
        number = self._exchange.next_number()
        request.number = number
        request.link = link
        self._sent[int(number)] = request
        self._exchange.numbered[int(number)] = self

    def answer(self, number: i64, status: i64, data: bytes) -> None:
        """Take the answer to a request."""
        request = self._sent.pop(int(number), None)
        self._exchange.numbered.pop(int(number), None)
        if request is None or request.over:
            return
        if status != NOT_LEADER:
            state = self._exchange.state
            state.counters.observe(REQUEST_TIME, state.now_ms - request.began_ms)
            if status == REFUSED and request.doubtful:
                request.answered(UNKNOWN, b"")
            else:
                request.answered(status, data)
            return
        self._unsent.append(request)
        here = request.link is None
        self.learn(b"" if here and data == self._exchange.node_id else data)
        if self.leader:
            self._exchange.at_turn_end(self)

    def look(self) -> None:
        """Look at what waits: answers that will not come, deadlines, and the next replica to ask."""
        now_ms = self._exchange.state.now_ms
        for request in list(self._sent.values()):
            if self._is_lost(request):
                self._lose(request)
            elif 0 < request.deadline_ms <= now_ms:
                self._forget(request)
                request.answered(UNKNOWN, b"")
        if self._unsent:
            requests = self._unsent
            self._unsent = deque()
            for request in requests:
                if request.over:
                    continue
                if 0 < request.deadline_ms <= now_ms:
                    self._exchange.state.counters.add(WITHOUT_LEADER)
                    request.answered(UNKNOWN if request.doubtful else NO_LEADER, b"")
                else:
                    self._unsent.append(request)
            if self.leader and self._exchange.is_silent(self.leader):
                self.leader = b""
            self._exchange.at_turn_end(self)
        if self.waiting:
            self._arm()

    def _is_lost(self, request: Request) -> bool:
        """Whether the answer to a request will not come: its connection, or the node there, is gone."""
        link = request.link
        if link is None:
            return False
        peer = link.peer
        return link.closed or peer is None or peer.link is not link or self._exchange.is_silent(peer.id)

    def _lose(self, request: Request) -> None:
        self._forget(request)
        self.leader = b""
        if request.over:
            return
        if request.repeated:
            request.doubtful = request.kind == COMMAND
            self._unsent.append(request)
        else:
            request.answered(UNKNOWN, b"")

    def _forget(self, request: Request) -> None:
        self._sent.pop(int(request.number), None)
        self._exchange.numbered.pop(int(request.number), None)

    def end(self) -> None:
        """The queue is gone."""
        requests = [*self._sent.values(), *self._unsent]
        for request in requests:
            self._exchange.numbered.pop(int(request.number), None)
        self._sent = {}
        self._unsent = deque()
        self._exchange.state.lifecycle.timers.disarm(self._look)
        for request in requests:
            if not request.over:
                request.answered(UNKNOWN, b"")

    def _arm(self) -> None:
        """Look again soon."""
        state = self._exchange.state
        state.lifecycle.timers.arm(self._look, state.now_ms + RETRY_MS)
