"""Steering: the leader of group 0 keeps the replicas where they should be, and leaders report that their groups are.

What to change is decided by `placement`. Every change goes through the catalog, so a new leader of group 0 continues
where the last one was.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.ordered.catalog import (
    CATALOG_GROUP,
    Catalog,
    OrderedQueue,
    pack_members,
    pack_replicas,
    pack_settled,
)
from disqued.ordered.choosing import Candidate
from disqued.ordered.clients import Clients
from disqued.ordered.exchange import Exchange, node_of
from disqued.ordered.hosting import Hosting
from disqued.ordered.payload import NO_LOG, Beat
from disqued.ordered.placement import Nodes, Plan, balance, extended, planned, repairs, replaced, without_leaving
from disqued.ordered.requests import Unanswered

LEAD_MS: Final = 5000
"""How often leaders look whether other nodes should lead their groups, and whether replicas are missing."""
LOOK_MS: Final = 2000
"""How often the leader of group 0 looks."""
ABSENT_MS: Final = 30_000
"""A node that was a member and has been none for this time has left."""
SETTLE_MS: Final = 500
"""How often leaders compare the members of their groups with the catalog."""


class Steering:
    """What one node does about the places of replicas."""

    def __init__(self, exchange: Exchange, hosting: Hosting, catalog: Catalog, clients: Clients) -> None:
        self._exchange = exchange
        self._hosting = hosting
        self._catalog = catalog
        self._clients = clients
        self._looked_ms: i64 = 0
        self._settled_ms: i64 = 0
        self._lead_ms: i64 = 0
        self._seen: object = None
        """What the last look found, if there was nothing to do: the same needs no other look."""
        self._absent_ms: dict[bytes, int] = {}
        """Since when nodes with replicas are no members."""

    def cron(self, beats: dict[bytes, Beat], candidates: list[Candidate]) -> None:
        """Take the steps that are due. `candidates` can have replicas."""
        now_ms = self._exchange.state.now_ms
        if now_ms - self._settled_ms >= SETTLE_MS:
            self._settled_ms = now_ms
            for queue in self._hosting.change_replicas():
                self._submit(pack_settled(queue))
        if now_ms - self._lead_ms >= LEAD_MS:
            self._lead_ms = now_ms
            self._hosting.look_at_groups()
        if self._hosting.leads_group_0 and now_ms - self._looked_ms >= LOOK_MS:
            self._looked_ms = now_ms
            self._look(beats, candidates)

    def _submit(self, data: bytes) -> None:
        deadline_ms = self._exchange.state.now_ms + LOOK_MS
        # If it is lost, the next look finds what is left to do.
        self._clients.client(CATALOG_GROUP).submit(Unanswered(data, deadline_ms, repeated=False))

    def _look(self, beats: dict[bytes, Beat], candidates: list[Candidate]) -> None:
        """Write the next changes into the catalog."""
        nodes = Nodes(candidates, self._leaving(), self._logs(beats))
        quiet = all(not self._exchange.is_silent(peer) for peer in self._exchange.state.view.peers)
        seen = (int(self._catalog.version), nodes, quiet)
        if seen == self._seen:
            return
        self._seen = None
        members = replaced(self._catalog.members or self._hosting.founders.voters, b"", nodes)
        if quiet:
            members = without_leaving(members, nodes)
        members = extended(members, b"", self._catalog.seats, nodes)
        if sorted(members) != sorted(self._catalog.members):
            self._submit(pack_members(members))
        if sorted(members) != sorted(self._hosting.founders.voters):
            return
        changes = repairs(self._catalog, nodes)
        if not changes and quiet:
            even = balance(self._catalog, nodes)
            changes = [] if even is None else [even]
        if not changes and not self._absent_ms:
            self._seen = seen
        for change in changes:
            self._submit(pack_replicas(change.queue, change.replicas, change.lead))

    def _logs(self, beats: dict[bytes, Beat]) -> dict[bytes, bytes]:
        """The logs of the nodes that are there, except for those that are still being read."""
        logs = {
            node_id: beat.log
            for node_id, beat in beats.items()
            if beat.catalog == self._catalog.identity and beat.log != NO_LOG and not self._exchange.is_silent(node_id)
        }
        logs[self._exchange.node_id] = self._hosting.log_id
        return logs

    def _leaving(self) -> list[bytes]:
        """The nodes with replicas that leave, or have left."""
        state = self._exchange.state
        view = state.view
        found = [view.node_id] if view.leaving else []
        found += [peer.id for peer in view.peers.values() if peer.flags & kinds.NODE_LEAVING]
        replicas = [one for queue in self._catalog.by_group.values() for one in queue.replicas]
        absent: dict[bytes, int] = {}
        for node_id in dict.fromkeys(node_of(one) for one in (*replicas, *self._hosting.founders.voters)):
            if not view.knows(node_id):
                absent[node_id] = self._absent_ms.get(node_id, int(state.now_ms))
        self._absent_ms = absent
        return found + [node_id for node_id, since_ms in absent.items() if state.now_ms - since_ms >= ABSENT_MS]

    def plan(self, beats: dict[bytes, Beat], candidates: list[Candidate]) -> Plan:
        """What is under way, and what follows. The leader of group 0 looks again at once."""
        self._looked_ms = 0
        self._seen = None
        return planned(self._catalog, Nodes(candidates, self._leaving(), self._logs(beats)))

    def move(self, queue: OrderedQueue, from_node: bytes, to: Candidate) -> bytes:
        """The change of the catalog that moves one replica."""
        replicas = tuple([to.replica if node_of(one) == from_node else one for one in queue.replicas])
        lead = queue.lead if queue.lead != from_node else node_of(to.replica)
        return pack_replicas(queue, replicas, lead)
