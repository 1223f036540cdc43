"""Founding the catalog: CLUSTER ORDERED INIT makes group 0, once in the life of a cluster.

The node of the command asks all members that it can reach (ASK). Each opens its log and answers with its identity and
the catalog that it knows (TOLD), or that it has just answered another founder (BUSY). If all answered and nobody knows
a catalog, the node draws the identity of the new one and names the members of group 0 to them (BEGIN). Each begins its
replica and confirms (BEGUN). The node of the command repeats ASK and BEGIN to nodes that have not answered. A replica
of group 0 that knows no leader repeats BEGIN to the others, so the founding ends even if the node of the command dies.

It is never done by gossip: the two sides of a partition would each found a catalog. Two that meet nevertheless are
never merged.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.clients.session import Blocked, Session
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import release, suspend
from disqued.errors import QueueExists, ReplyError
from disqued.ordered.catalog import CATALOG_GROUP, Catalog
from disqued.ordered.clients import Clients
from disqued.ordered.exchange import Exchange, node_of
from disqued.ordered.hosting import Hosting
from disqued.ordered.payload import CATALOG_BYTES, NO_CATALOG, NO_LOG, Founding, pack_founding
from disqued.ordered.requests import DONE, PING, Request
from disqued.raft.members import Members
from disqued.resp.writer import OK

ASK: Final = 0
TOLD: Final = 1
BUSY: Final = 2
BEGIN: Final = 3
BEGUN: Final = 4
MOST_MEMBERS: Final = 5
REPEAT_MS: Final = 1000
_TIMEOUT_MS: Final = 10_000
_RESERVED_MS: Final = 10_000
"""For how long a node that answered a founder answers no other one."""


class Reservation:
    """Which founder a node has answered, so that it answers no other one meanwhile."""

    def __init__(self) -> None:
        self._founder = b""
        self._until_ms: i64 = 0

    def grants(self, founder: bytes, now_ms: i64) -> bool:
        """Reserve this node for a founder; False if it is reserved for another one."""
        if self._founder not in {b"", founder} and now_ms < self._until_ms:
            return False
        self._founder = founder
        self._until_ms = now_ms + _RESERVED_MS
        return True


class _Founder(Blocked):
    """A client that waits until the catalog is founded, and how far that is."""

    def __init__(self, session: Session, number: int, nodes: list[bytes], asked: list[bytes]) -> None:
        super().__init__(session)
        self.number = number
        self.nodes = nodes
        """The nodes that are named to have replicas of group 0."""
        self.logs = dict.fromkeys(asked, NO_LOG)
        """The log of each node that was asked; zeros while it has not answered."""
        self.begins: bool = False
        """Whether the members were named."""
        self.identity = NO_CATALOG
        """The identity of the new catalog, as soon as the members are named."""
        self.members = b""
        """The members that were named."""
        self.begun: dict[bytes, bool] = {}
        """The nodes that have begun. The values have no meaning."""

    def ring(self, state: NodeState) -> None:
        """The time is over."""
        if self.begins:
            text = (
                f"ERR only {len(self.begun)} of {len(self.nodes)} nodes have begun; the others follow by themselves: "
                "see CLUSTER ORDERED STATUS"
            )
        else:
            answered = sum(1 for log in self.logs.values() if log != NO_LOG)
            text = f"ERR only {answered} of {len(self.logs)} members answered, and no catalog was founded; try again"
        release(state, self, ReplyError(text).encode())


class _FirstLeader(Request):
    """Is answered when group 0 has a leader."""

    def __init__(self, state: NodeState, founder: _Founder, deadline_ms: i64) -> None:
        super().__init__(PING, b"", deadline_ms, repeated=True)
        self._state = state
        self._founder = founder

    def answered(self, status: i64, data: bytes) -> None:  # noqa: ARG002 - there is no data
        """Reply to the client."""
        founder = self._founder
        if status == DONE and founder.session.blocked is founder:
            release(self._state, founder, OK)


class Foundation:
    """The part of one node in founding the catalog."""

    def __init__(self, exchange: Exchange, hosting: Hosting, catalog: Catalog, clients: Clients) -> None:
        self._exchange = exchange
        self._hosting = hosting
        self._catalog = catalog
        self._clients = clients
        self._reservation = Reservation()
        self._founder: _Founder | None = None
        self._repeated_ms: i64 = 0

    # --- the node of the command --------------------------------------------------------------------------------------

    def found(self, session: Session, nodes: list[bytes]) -> None:
        """Found the catalog for a client. Raises ReplyError if that is refused."""
        state = self._exchange.state
        if self._catalog.identity != NO_CATALOG:
            raise _exists(self._catalog.identity)
        self._require_nodes(nodes)
        if not self._reservation.grants(self._exchange.node_id, state.now_ms):
            raise ReplyError("ERR another node founds the catalog just now; see CLUSTER ORDERED STATUS")
        number = int.from_bytes(state.host.random_bytes(6), "big")
        asked = [self._exchange.node_id, *[peer.id for peer in state.view.reachable]]
        founder = _Founder(session, number, nodes, asked)
        self._founder = founder
        suspend(state, founder)
        state.lifecycle.timers.arm(founder, state.now_ms + _TIMEOUT_MS)
        self._repeated_ms = state.now_ms
        self._ask(founder)
        self._hosting.when_open(self._opened)

    def _ask(self, founder: _Founder) -> None:
        """Ask the nodes that have not answered, or have them begin."""
        own = self._exchange.node_id
        if not founder.begins:
            for node_id, log in founder.logs.items():
                if node_id != own and log == NO_LOG:
                    self._send(node_id, Founding(ASK, founder.number, NO_CATALOG, NO_LOG, b""))
            return
        for node_id in founder.nodes:
            if node_id != own and node_id not in founder.begun:
                self._send(node_id, Founding(BEGIN, founder.number, founder.identity, NO_LOG, founder.members))

    def _require_nodes(self, nodes: list[bytes]) -> None:
        """Raise ReplyError unless these nodes can be members of group 0, and all members know ordered queues."""
        if not 1 <= len(nodes) <= MOST_MEMBERS:
            raise ReplyError(f"ERR CLUSTER ORDERED INIT takes 1 to {MOST_MEMBERS} node IDs, {len(nodes)} were given")
        view = self._exchange.state.view
        for peer in view.reachable:
            if not peer.features & kinds.FEATURE_ORDERED:
                raise ReplyError(f"ERR node {peer.id.decode()} does not know ordered queues; upgrade it first")
        reachable = {peer.id: True for peer in view.reachable} | {self._exchange.node_id: True}
        for node_id in nodes:
            if node_id not in reachable:
                raise ReplyError(f"ERR node {node_id.decode('ascii', 'replace')} is no member that can be reached")

    def _opened(self) -> None:
        """The log of this node is open."""
        founder = self._founder
        if founder is None or founder.session.blocked is not founder:
            return
        if self._catalog.identity != NO_CATALOG:
            release(self._exchange.state, founder, _exists(self._catalog.identity).encode())
        else:
            founder.logs[self._exchange.node_id] = self._hosting.log_id
            self._continue(founder)

    def _continue(self, founder: _Founder) -> None:
        """Name the members when all nodes have answered."""
        if founder.begins or founder.session.blocked is not founder:
            return
        if any(log == NO_LOG for log in founder.logs.values()):
            return
        founder.begins = True
        founder.identity = self._exchange.state.host.random_bytes(CATALOG_BYTES)
        members = Members(tuple([node_id + founder.logs[node_id] for node_id in founder.nodes]))
        founder.members = members.encode()
        self._ask(founder)
        if self._exchange.node_id in founder.nodes:
            self._begin(founder.identity, members)
            self._has_begun(founder, self._exchange.node_id)

    def _has_begun(self, founder: _Founder, node_id: bytes) -> None:
        if node_id in founder.begun:
            return
        founder.begun[node_id] = True
        if all(node_id in founder.begun for node_id in founder.nodes):
            state = self._exchange.state
            self._clients.client(CATALOG_GROUP).submit(_FirstLeader(state, founder, state.now_ms + _TIMEOUT_MS))

    # --- all nodes ----------------------------------------------------------------------------------------------------

    def step(self, node_id: bytes, step: Founding, members: Members | None) -> None:
        """Take a step that another node sent."""
        founder = self._founder
        if step.step == ASK:
            self._answer(node_id, step)
        elif step.step == BEGIN and members is not None:
            if self._catalog.identity in {NO_CATALOG, step.catalog} and self._hosting.log_id != NO_LOG:
                self._begin(step.catalog, members)
                self._send(node_id, Founding(BEGUN, step.number, step.catalog, self._hosting.log_id, b""))
        elif founder is not None and founder.number == step.number and founder.session.blocked is founder:
            self._answered(founder, node_id, step)

    def _answer(self, node_id: bytes, step: Founding) -> None:
        """Answer a founder when the log of this node is open."""
        if not self._reservation.grants(node_id, self._exchange.state.now_ms):
            self._send(node_id, Founding(BUSY, step.number, NO_CATALOG, NO_LOG, b""))
            return
        self._hosting.when_open(_Telling(self, node_id, step.number).tell)

    def tell(self, node_id: bytes, number: int) -> None:
        """Tell a founder which log and which catalog this node has."""
        self._send(node_id, Founding(TOLD, number, self._catalog.identity, self._hosting.log_id, b""))

    def _answered(self, founder: _Founder, node_id: bytes, step: Founding) -> None:
        """A node answered this founder."""
        state = self._exchange.state
        if step.step == BUSY:
            release(state, founder, ReplyError("ERR another node founds the catalog just now; try again").encode())
        elif step.step == TOLD and step.catalog != NO_CATALOG:
            release(state, founder, _exists(step.catalog).encode())
        elif step.step == TOLD and node_id in founder.logs:
            founder.logs[node_id] = step.log
            self._continue(founder)
        elif step.step == BEGUN:
            self._has_begun(founder, node_id)

    def _begin(self, identity: bytes, members: Members) -> None:
        """Have a replica of group 0."""
        self._catalog.identity = identity
        self._hosting.found(members)
        self._exchange.state.ready.turn_work = True

    def repeat(self) -> None:
        """Ask again for what is missing, or tell the members of group 0 again to begin while they have no leader."""
        now_ms = self._exchange.state.now_ms
        if now_ms - self._repeated_ms < REPEAT_MS:
            return
        founder = self._founder
        if founder is not None and founder.session.blocked is founder:
            self._repeated_ms = now_ms
            self._ask(founder)
            return
        if not self._hosting.is_founder or self._exchange.leaders.get(CATALOG_GROUP) or self._catalog.version > 0:
            return
        self._repeated_ms = now_ms
        members = self._hosting.founders
        for replica in members.voters:
            if node_of(replica) != self._exchange.node_id:
                step = Founding(BEGIN, 0, self._catalog.identity, NO_LOG, members.encode())
                self._send(node_of(replica), step)

    def _send(self, node_id: bytes, step: Founding) -> None:
        self._exchange.add(node_id, kinds.FOUND, pack_founding(step))


class _Telling:
    """Tells a founder about this node when its log is open."""

    def __init__(self, foundation: Foundation, node_id: bytes, number: int) -> None:
        self._foundation = foundation
        self._node_id = node_id
        self._number = number

    def tell(self) -> None:
        """Tell it."""
        self._foundation.tell(self._node_id, self._number)


def _exists(identity: bytes) -> ReplyError:
    return QueueExists(f"the cluster has a catalog of ordered queues already: {identity.hex()}")
