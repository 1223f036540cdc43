"""The ordered room of one node: its replicas, the catalog, and the requests and consumers of its clients.

A node without a catalog does nothing: it has no file, sends no message and has no timer. It learns a catalog by the
founding of group 0 (`founding`), or from another member (BEAT tells versions, CATALOG the content). Then it opens its
log, begins the replicas that the catalog gives it, and takes over the commands about ordered queues (`commands`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.clients.blocked import JobWait
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Peer
from disqued.core.fates.fate import NOTHING, Fate
from disqued.core.jobs.job import Job
from disqued.core.runtime.outbox import send
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import time_out
from disqued.core.telemetry.fields import Fields
from disqued.core.timers.alarm import Alarm
from disqued.errors import CommandSyntaxError, Loading, shown
from disqued.ordered.catalog import CATALOG_GROUP, Catalog, MalformedCatalogError, decode
from disqued.ordered.choosing import Candidate
from disqued.ordered.clients import Clients
from disqued.ordered.consumers import Consumers
from disqued.ordered.exchange import Exchange, node_of
from disqued.ordered.founding import Foundation
from disqued.ordered.hosting import Hosting
from disqued.ordered.incoming import Incoming
from disqued.ordered.jobids import group_of, index_of
from disqued.ordered.leading import Leading
from disqued.ordered.payload import NO_CATALOG, NO_LOG, Beat, Told, pack_beat, pack_catalog
from disqued.ordered.presence import Presence
from disqued.ordered.steering import Steering
from disqued.ordered.stopping import hand_over, losing
from disqued.raft.members import Members

NAME: Final = "ordered"
FOUNDER_BEHIND_MS: Final = 3000
"""A replica of group 0 whose catalog has been older than that of others for this time may have been removed."""
ASK_EVERY_MS: Final = 500
"""After which time a newer catalog is asked for again, if none came."""

Alternative: TypeAlias = Callable[[NodeState, Session, list[bytes]], bool]
"""Runs a request if it is about ordered queues; False if it is not."""


class OrderedRoom(Room):
    """The ordered queues, as one node has them."""

    def __init__(
        self, state: NodeState, alternatives: dict[bytes, Alternative], subcommands: dict[bytes, Alternative]
    ) -> None:
        super().__init__(state)
        self.exchange = Exchange(state)
        self.catalog = Catalog()
        self.clients = Clients(self.exchange)
        self.consumers = Consumers(self.exchange, self.clients)
        self.leading = Leading(self.exchange, self.clients, self.catalog)
        self.exchange.duties = self.leading
        self.incoming = Incoming(self.exchange, self.clients, self.catalog)
        self.presence = Presence(self.exchange)
        self.hosting = Hosting(self.exchange, self.presence, self.consumers, self.catalog, self.catalog_changed)
        self.beats: dict[bytes, Beat] = {}
        """What each node said last."""
        self.conflict = b""
        """The identity of another catalog that a member knows; empty if there is none."""
        self.foundation = Foundation(self.exchange, self.hosting, self.catalog, self.clients)
        self.steering = Steering(self.exchange, self.hosting, self.catalog, self.clients)
        self._alternatives = alternatives
        """What commands do with ordered queues, by the name of the command."""
        self._rerouted: bool = False
        self._catalog_is_new: bool = False
        self._known: dict[bytes, bool] = {}
        """The names in the catalog. The values have no meaning."""
        self._subcommands = subcommands
        """Those of CLUSTER ORDERED."""
        self.redrives: dict[bytes, Alarm] = {}
        """The tasks of REDRIVE that run or ran on this node, by queue."""
        self.waits: list[Callable[[], bool]] = []
        """Called when the catalog has changed, when a node is heard, and regularly, until they return True."""
        self._asked_ms: i64 = 0
        self._behind_ms: i64 = 0
        """Since when others know a newer catalog than this node; 0 while none does."""

    @property
    def has_catalog(self) -> bool:
        """Whether this node knows a catalog."""
        return self.catalog.identity != NO_CATALOG

    def count_heard(self, replicas: tuple[bytes, ...]) -> int:
        """How many of the nodes with these replicas are there."""
        return sum(1 for replica in replicas if not self.exchange.is_silent(node_of(replica)))

    # --- events -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Take up the replicas that are on the disk. Until the log is read, commands about queues are refused."""
        self.hosting.open_if_there()
        if self.hosting.opens and not self._rerouted:
            self._reroute()

    def turn_ends(self) -> None:
        """Carry out what the groups decided in this turn, and send their messages."""
        state = self.state
        self.exchange.turn += 1
        while state.ready.turn_work:
            state.ready.turn_work = False
            if self._catalog_is_new:
                self._follow_catalog()
            self.exchange.run_work()
            self.hosting.flush()
        self.exchange.send()
        state.ready.turn_work = False

    def last_records(self) -> str:
        """The node shuts down: write everything."""
        return self.hosting.finish()

    def deadline_ms(self) -> i64:
        """At once while replicas have more to apply."""
        return self.state.now_ms if self.exchange.later else self.hosting.wake_ms

    def due(self) -> None:
        """Continue with what was too much for one turn."""
        later = self.exchange.later
        self.exchange.later = []
        for work in later:
            self.exchange.at_turn_end(work)
        self.hosting.tick()

    def cron(self) -> None:
        """Say that this node is there, and look whether the others are."""
        if not self.state.loading:
            self.foundation.repeat()
        if self.has_catalog and not self.state.loading:
            self._beat()
            self.hosting.cron()
            self.presence.look_around()
            self.consumers.check()
            self.steering.cron(self.beats, self.candidates())
            self.hosting.copy_catalog(changes=False)
            self.leading.follow_settings()
            self.leading.fates.forget_old()
            self.incoming.adopt()
            self._look()

    def cluster_reset(self) -> None:
        """Forget the ordered queues: they are the cluster's."""
        self.catalog.take(Catalog())
        self.hosting.forget()
        for group in self.clients.groups():
            self.clients.end(group)
            self.consumers.group_gone(group)
        self.beats.clear()

    def buffered_bytes(self) -> i64:
        """The memory of the recent entries, and of the machines."""
        return self.hosting.memory_bytes()

    def leaving_changed(self) -> None:
        """This node begins to leave: it leads nothing any more."""
        if self.state.view.leaving:
            hand_over(self.exchange)

    def still_needed(self) -> str:
        """Replicas must move to other nodes."""
        left = len(self.exchange.replicas)
        return f"replicas of ordered queues that must move to other nodes: {left}" if left else ""

    def leaving_status(self) -> Fields:
        """How many replicas are still here."""
        return [("ordered-replicas-left", len(self.exchange.replicas))] if self.has_catalog else []

    def unsafe_to_stop(self) -> str:
        """Why stopping this node now would leave an ordered queue without a majority, or for a while without leader.

        The caller is about to stop the node, so it begins to hand over what it leads.
        """
        lost = losing(self.exchange, self.presence.liveness)
        if lost:
            queue = self.catalog.by_group.get(lost[0])
            name = "the catalog" if queue is None else shown(queue.name)
            return f"{len(lost)} ordered queues would have no majority, one of them is {name}"
        left = hand_over(self.exchange)
        return f"{left} ordered queues are led here and are being handed over" if left else ""

    def peer_restarted(self, peer: Peer) -> None:
        """A node started again: it leads nothing."""
        self.beats.pop(peer.id, None)
        self.presence.restarted(peer.id)

    def peer_forgotten(self, peer: Peer) -> None:
        """A node is no longer a member."""
        self.beats.pop(peer.id, None)

    def consumer_gone(self, session: Session) -> None:
        """A client that took jobs of SINGLE queues is gone."""
        self.consumers.session_closed(session)

    def queue_of(self, job_id: bytes) -> bytes:
        """The ordered queue of a job; empty if it is of none."""
        queue = self.catalog.by_word.get(group_of(job_id))
        return b"" if queue is None or index_of(job_id) == 0 else queue.name

    def keeps_queue(self, queue: bytes) -> bool:
        """Whether a queue is ordered."""
        return queue in self.catalog.by_name

    def successor_wanted(self, job: Job) -> None:
        """Add a job that was moved from a queue of jobs."""
        self.incoming.add(job)

    def fate_outside(self, job_id: bytes) -> Fate:
        """What replicas of this node know about the end of a job, or of its chain of moves."""
        return self.leading.fates.fate_of(job_id) if self.has_catalog else NOTHING

    def ordered_queues(self, session: Session, words: list[bytes]) -> None:
        """CLUSTER ORDERED."""
        run = self._subcommands.get(words[0].upper())
        if run is None or not run(self.state, session, words):
            raise CommandSyntaxError

    # --- the catalog --------------------------------------------------------------------------------------------------

    def catalog_changed(self) -> None:
        """The catalog here is newer than before: follow it once in this turn, because that goes through all queues."""
        self._catalog_is_new = True
        self.state.ready.turn_work = True

    def _follow_catalog(self) -> None:
        """Begin and end replicas, and continue what waited for a change of the catalog."""
        self._catalog_is_new = False
        self.hosting.follow_catalog()
        by_group = self.catalog.by_group
        for group in [group for group in self.clients.groups() if group != CATALOG_GROUP and group not in by_group]:
            self.clients.end(group)
            self.consumers.group_gone(group)
        if by_group and not self._rerouted:
            self._reroute()
        self._end_waits()
        self._look()
        if self.has_catalog and not self.state.loading:
            self._beat()
        self.state.ready.turn_work = True

    def _end_waits(self) -> None:
        """End the waits for jobs of queues that this node took for queues of jobs; their clients ask again."""
        queues = self.state.lifecycle.queues
        for name in self.catalog.by_name:
            if name in self._known:
                continue
            self._known[name] = True
            queue = queues.get(name)
            while queue is not None and queue.first_wait is not None:
                wait = queue.first_wait
                assert isinstance(wait, JobWait)  # no other kind stands in the line of a queue
                time_out(self.state, wait.blocked)
                queue = queues.get(name)
        for name in [name for name in self._known if name not in self.catalog.by_name]:
            del self._known[name]

    def _reroute(self) -> None:
        """Have commands look whether they are about ordered queues, now that there are some."""
        self._rerouted = True
        for entry in self.state.command_entries:
            alternative = self._alternatives.get(entry.name)
            if alternative is not None:
                entry.handler = _Routed(alternative, entry.handler).run

    def tell_catalog(self, peer: Peer) -> None:
        """Send the catalog to a node."""
        told = Told(self.catalog.identity, self.hosting.founders.encode(), self.catalog.encode())
        send(self.state, peer, self.state.bus.other(kinds.CATALOG, pack_catalog(told)))

    def learn_catalog(self, told: Told) -> None:
        """Another node told its catalog."""
        try:
            catalog = decode(told.data)
            members = Members.decode(told.members)
        except (MalformedCatalogError, ValueError):
            return
        if self.has_catalog and catalog.identity != self.catalog.identity:
            if self.catalog.identity in catalog.ancestors:
                self._take_recovered(catalog, members)
            elif catalog.identity not in self.catalog.ancestors:
                self.conflict = catalog.identity
            return
        if catalog.identity != told.catalog or catalog.version < self.catalog.version:
            return
        if self.hosting.is_founder and not self.hosting.was_removed(catalog, members):
            return
        self._asked_ms = 0
        self.catalog.take(catalog)
        self.hosting.know_founders(members)
        self.hosting.when_open(self.catalog_changed)

    def _take_recovered(self, catalog: Catalog, members: Members) -> None:
        """The catalog that this node knows was lost, and recovered from a replica of group 0 of another node."""
        self.hosting.leave_lineage()
        self.conflict = b""
        self.catalog.take(catalog)
        self.hosting.know_founders(members)
        self.hosting.when_open(self.catalog_changed)

    # --- the other nodes ----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """See which waits are over."""
        waits = self.waits
        self.waits = []
        for look in waits:  # which may begin another wait
            if not look():
                self.waits.append(look)

    def _beat(self) -> None:
        """Tell all nodes that know ordered queues that this one is there."""
        state = self.state
        beat = Beat(self.hosting.log_id, self.catalog.identity, int(self.catalog.version), self.hosting.is_founder)
        frame = state.bus.other(kinds.BEAT, pack_beat(beat))
        for peer in state.view.peers.values():
            if peer.features & kinds.FEATURE_ORDERED and not peer.in_handshake:
                send(state, peer, frame)

    def heard(self, peer: Peer, beat: Beat) -> None:
        """A node is there."""
        state = self.state
        self.beats[peer.id] = beat
        self.presence.note_version(peer.id, beat.version if beat.catalog == self.catalog.identity else -1)
        self.presence.heard(peer.id, beat.log)
        self._look()
        if beat.catalog == NO_CATALOG:
            return
        if self.has_catalog and beat.catalog != self.catalog.identity:
            asks = beat.catalog not in self.catalog.ancestors
        else:
            asks = self._is_behind(beat)
        if asks and self._asked_ms + ASK_EVERY_MS <= state.now_ms:
            self._asked_ms = state.now_ms
            send(state, peer, state.bus.other(kinds.CATALOGASK, b""))

    def _is_behind(self, beat: Beat) -> bool:
        """Whether to ask a node for its catalog. A replica of group 0 gets it by its log, unless it was removed."""
        if self.has_catalog and beat.version <= self.catalog.version and not self.hosting.leaves_group_0:
            self._behind_ms = 0
            return False
        if not self.hosting.is_founder:
            return True
        now_ms = self.state.now_ms
        if self._behind_ms == 0:
            self._behind_ms = now_ms
        return now_ms - self._behind_ms >= FOUNDER_BEHIND_MS

    @property
    def misses_beats(self) -> bool:
        """Whether a reachable member has not said yet that it knows a catalog."""
        for peer in self.state.view.reachable:
            beat = self.beats.get(peer.id)
            if peer.features & kinds.FEATURE_ORDERED and (beat is None or beat.catalog == NO_CATALOG):
                return True
        return False

    def candidates(self) -> list[Candidate]:
        """The nodes that may have replicas of new queues, this one included. Those that read their logs have none."""
        state = self.state
        found: list[Candidate] = []
        if not state.view.leaving and self.hosting.log_id != NO_LOG:
            found.append(Candidate(self.hosting.identity, state.view.zone))
        for peer in state.view.reachable:
            beat = self.beats.get(peer.id)
            if beat is None or beat.log == NO_LOG or beat.catalog != self.catalog.identity:
                continue
            if not self.exchange.is_silent(peer.id):
                found.append(Candidate(peer.id + beat.log, peer.zone))
        return found


class _Routed:
    """Runs a command on ordered queues, or as always if the request is not about any."""

    def __init__(self, alternative: Alternative, handler: Callable[[NodeState, Session, list[bytes]], None]) -> None:
        self._alternative = alternative
        self._handler = handler

    def run(self, state: NodeState, session: Session, args: list[bytes]) -> None:
        """The handler of the command. Raises Loading while it is not known which queues are ordered."""
        if ordered_of(state).hosting.opens:
            raise Loading
        if not self._alternative(state, session, args):
            self._handler(state, session, args)


def ordered_of(state: NodeState) -> OrderedRoom:
    """The ordered room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, OrderedRoom)
    return room
