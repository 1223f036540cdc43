"""The replicas of this node: which groups it has one of, from the log on its disk and from the catalog.

The identity of a replica is the ID of the node and the identity of its log, so a node that lost its disk has no replica
that the catalog names. A group begins with a snapshot of the same content at each of its first replicas (index 1, term
1): the members, and the empty state of its machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import DiskWork
from disqued.errors import shown
from disqued.ordered.applier import Applier
from disqued.ordered.catalog import CATALOG_GROUP, Catalog, OrderedQueue, decode
from disqued.ordered.catalogcopy import COPY_GROUP, CatalogCopy
from disqued.ordered.catalogmachine import CatalogMachine
from disqued.ordered.damaged import DamagedReplicas
from disqued.ordered.damagemessages import is_out_of_service, is_removal
from disqued.ordered.early import EarlyMessages
from disqued.ordered.exchange import Exchange, node_of
from disqued.ordered.payload import NO_LOG
from disqued.ordered.presence import Presence
from disqued.ordered.queuemachine import Agents, QueueMachine, queue_in
from disqued.ordered.recovering import CatalogRecovery, QueueRecovery
from disqued.ordered.replica import Replica
from disqued.ordered.snapshotpayload import Part
from disqued.ordered.stopping import hand_over
from disqued.ordered.storage import Storage, StorageListener
from disqued.raft.group import Group
from disqued.raft.hardstate import HardState
from disqued.raft.members import Members
from disqued.raft.message import APPEND, SNAPSHOT, Message
from disqued.raft.snapshotmeta import SnapshotMeta
from disqued.raft.stored import Stored
from disqued.raft.tuning import Tuning
from disqued.raftlog.log import RaftLog
from disqued.raftlog.owner import RecoveredGroup
from disqued.raftlog.tuning import LogTuning

FILES: Final = "ordered-"
"""How the names of the files of the log begin."""
_FIRST: Final = 1
"""The index and the term of the snapshot with which a group begins."""
GATHER_ENTRIES: Final = 64
"""While a follower has not confirmed what it was sent, the next append waits until it has so many entries."""


class Hosting(StorageListener):
    """The replicas of one node."""

    def __init__(
        self,
        exchange: Exchange,
        presence: Presence,
        agents: Agents,
        catalog: Catalog,
        changed: Callable[[], None],
    ) -> None:
        self._exchange = exchange
        self._presence = presence
        self._agents = agents
        self._catalog = catalog
        self._changed = changed
        """Called when the catalog has changed here."""
        self._storage: Storage | None = None
        self._opened: bool = False
        self._failed: bool = False
        """Whether the log is out of service until the next start, and this node has no replica until then."""
        self._waiting: list[Callable[[], None]] = []
        """What is done when the log is open."""
        self._unsettled: list[OrderedQueue] = []
        """The queues whose groups must change their replicas."""
        self._incomplete: dict[int, None] = {}
        """Other groups that this node leads and that lack a replica, because it was damaged."""
        self._copy = CatalogCopy(catalog)
        self._damaged = DamagedReplicas(exchange)
        self._tuning = Tuning(gather_entries=GATHER_ENTRIES)
        self.log_tuning: LogTuning | None = None
        """Limits of the log instead of those of the configuration; simulations have small segments."""
        self._recovering: dict[int, OrderedQueue] = {}
        """The queues whose replica here is being made the only one."""
        self._early = EarlyMessages()
        self._machine: CatalogMachine | None = None
        self.founders = Members(())
        """The members of group 0, as far as known here."""
        self._to_begin: tuple[bytes, Members] | None = None
        self.why_stopped = ""
        """Why nothing can be written; empty while it can."""

    # --- the log ------------------------------------------------------------------------------------------------------

    @property
    def log_id(self) -> bytes:
        """The identity of the log; zeros while it is not open, and after it has failed."""
        return self._storage.log.data_id if self._storage and self._opened and not self._failed else NO_LOG

    @property
    def identity(self) -> bytes:
        """The identity of the replicas of this node."""
        return self._exchange.node_id + self.log_id

    @property
    def is_founder(self) -> bool:
        """Whether this node has a replica of group 0."""
        return CATALOG_GROUP in self._exchange.replicas

    @property
    def leads_group_0(self) -> bool:
        """Whether this node leads group 0 and knows the newest catalog."""
        replica = self._exchange.replicas.get(CATALOG_GROUP)
        return isinstance(replica, Replica) and replica.raft.is_confirmed and replica.has_applied_all

    @property
    def storage(self) -> Storage:
        """The log. Only for a node that has begun to open it."""
        assert self._storage is not None
        return self._storage

    @property
    def log(self) -> RaftLog | None:
        """The log, to look at; None while this node has none."""
        return None if self._storage is None else self._storage.log

    def open_if_there(self) -> None:
        """Open the log if it has files."""
        work = DiskWork(disk.LIST, FILES)
        self._exchange.state.host.disk.perform(work)
        if work.data:
            self._open()

    @property
    def opens(self) -> bool:
        """Whether the log is being read, so that it is not known which queues are ordered."""
        return self._storage is not None and not self._opened

    def when_open(self, then: Callable[[], None]) -> None:
        """Open the log, and do something when it is open."""
        if self._opened:
            then()
            return
        self._waiting.append(then)
        if self._storage is None:
            self._open()

    def _open(self) -> None:
        state = self._exchange.state
        config = state.config
        always = config.ordered_fsync == "always"
        if not always:
            state.host.log("warning", "ordered-fsync everysec: a loss of power can lose jobs that were accepted")
        tuning = self.log_tuning or LogTuning(sync_always=always, cache_bytes=config.ordered_cache)
        self._storage = Storage(self._exchange, state.host, self, tuning)
        self._storage.log.open(state.now_ms)

    def memory_bytes(self) -> i64:
        """The memory of the recent entries."""
        return 0 if self._storage is None else self._storage.log.cache.size_bytes

    @property
    def wake_ms(self) -> i64:
        """When the log has something to do by the time; 0 for never."""
        return 0 if self._storage is None else self._storage.wake_ms

    def tick(self) -> None:
        """Have the log do what is due."""
        if self._storage is not None and 0 < self._storage.wake_ms <= self._exchange.state.now_ms:
            self._storage.tick(self._exchange.state.now_ms)

    def finish(self) -> str:
        """The node ends: write and sync everything, and wait for that. Returns what failed."""
        if self._storage is None or not self._opened:
            return ""
        return self._storage.log.finish(self._exchange.state.now_ms)

    def flush(self) -> None:
        """The turn ends: write everything."""
        if self._storage is not None:
            self._storage.flush()

    def group_found(self, group: RecoveredGroup) -> None:
        """Take up a replica that is on the disk."""
        number = int(group.group)
        if group.damaged:
            self.group_damaged(number, "records are damaged")
            return
        if group.snapshot_index == 0:
            return
        members = Members.decode(group.snapshot_members)
        if number == COPY_GROUP:
            copy = decode(group.snapshot_state)
            if copy.identity not in self._catalog.ancestors:  # the replica of group 0 here may be newer
                self._copy.found(group.snapshot_index)
                self.know_founders(members)
                self._catalog.take(copy)
                self._changed()
            return
        meta = SnapshotMeta(group.snapshot_index, group.snapshot_term, 0, members)
        changes = [(entry.index, Members.decode(entry.data)) for entry in group.member_entries]
        stored = Stored(group.hard, meta, group.terms, group.last_index, 0, changes, [])
        applier: Applier
        if number == CATALOG_GROUP:
            applier = self._catalog_machine()
        else:
            applier = QueueMachine(self._exchange, self.storage, self._agents, queue_in(group.snapshot_state))
        applier.restore(group.snapshot_state)
        self._add(group.group, stored, applier)

    def log_opened(self) -> None:
        """The log can be used. Before its identity is told to anybody, it must be on the disk."""
        if self.storage.log.groups():
            self._begin_to_use()
            return
        self._copy.begin(self.storage.log)
        self.storage.when_synced(self._begin_to_use)

    def _begin_to_use(self) -> None:
        self._opened = True
        waiting = self._waiting
        self._waiting = []
        for then in waiting:
            then()
        self.follow_catalog()

    def group_damaged(self, group: i64, why: str) -> None:
        """Stop a replica whose records cannot be read."""
        if group == COPY_GROUP:
            self._copy.damaged(self._exchange.state.host, why)
        else:
            self._damaged.add(int(group), why)

    def writes_refused(self, why: str) -> None:
        """Note that the disk takes no writes."""
        self.why_stopped = why
        self._exchange.write_refusal = f"MISCONF the log of ordered queues cannot be written: {why}" if why else ""
        if why:
            hand_over(self._exchange)
        text = f"Ordered queues cannot be written: error={why}" if why else "Ordered queues are written again"
        self._exchange.state.host.log("warning" if why else "notice", text)

    def log_failed(self, why: str) -> None:
        """Stop all replicas: what was not synced may be lost."""
        self._failed = True
        self.why_stopped = why
        self._exchange.write_refusal = f"MISCONF the log of ordered queues failed: {why}"
        self._exchange.state.host.log("warning", f"Ordered queues stop on this node until it restarts: error={why}")
        for group in list(self._exchange.replicas):
            self._stop(group)

    def forget(self) -> None:
        """The node leaves the cluster at once (CLUSTER RESET): it forgets the catalog, and has no replica any more."""
        for group in list(self._exchange.replicas):
            self._end(group)
        if self._storage is not None and self._opened:
            self._copy.remove(self._storage.log)
            self._storage.write_turn()
        self._copy.forget()
        self._machine = None
        self.founders = Members(())
        self._exchange.members.clear()
        self._exchange.leaders.clear()
        self._presence.forget()

    # --- groups -------------------------------------------------------------------------------------------------------

    def found(self, members: Members) -> None:
        """Begin the replica of group 0; the log is open."""
        self.founders = members
        self._exchange.members[CATALOG_GROUP] = members.voters
        if self.is_founder or not members.has(self.identity):
            return
        self._begin(CATALOG_GROUP, members, self._catalog_machine(), leads=members.voters[0] == self.identity)

    def _catalog_machine(self) -> CatalogMachine:
        self._machine = CatalogMachine(self.storage, self._catalog.identity, self._group_0_changed)
        return self._machine

    def _group_0_changed(self) -> None:
        """Use the catalog of group 0, unless it only catches up with what this node knew before."""
        machine = self._machine
        if machine is not None and machine.catalog.version >= self._catalog.version:
            self._catalog.take(machine.catalog)
            self._changed()

    def copy_catalog(self, *, changes: bool) -> None:
        """Write the catalog to the log if that is due: now that it changes, or regularly."""
        if self.log_id != NO_LOG and self.founders.voters and self._copy.is_due(changes=changes):
            self._copy.write(self.storage.log, self.founders)
            self.storage.write_turn()

    def know_founders(self, members: Members) -> None:
        """Another node told who the members of group 0 are."""
        self.founders = members
        self._exchange.members[CATALOG_GROUP] = members.voters

    def follow_catalog(self) -> None:
        """Begin the replicas that the catalog gives this node, and end those of queues that are gone."""
        exchange = self._exchange
        catalog = self._catalog
        identity = self.identity
        self.copy_catalog(changes=True)
        self._unsettled = [queue for queue in catalog.by_group.values() if not queue.settled]
        for group, queue in catalog.by_group.items():
            here = group in exchange.replicas
            if not here:
                exchange.members[group] = queue.replicas
            if not self._opened:
                continue
            if here and self._is_outdated(group, queue):
                self._leave_epoch(group, queue)
            elif not here and not queue.moved and identity in queue.replicas:
                self._begin_queue(queue)
            elif here and queue.settled and identity not in queue.replicas:
                self._end(group)
                exchange.members[group] = queue.replicas
        if self._opened:
            self._damaged.follow(catalog, identity, self.storage.log)
        for group in [group for group in exchange.members if group != CATALOG_GROUP and group not in catalog.by_group]:
            del exchange.members[group]
        for group in [group for group in exchange.replicas if group != CATALOG_GROUP and group not in catalog.by_group]:
            if group <= catalog.last_group:
                self._end(group)

    def _is_outdated(self, group: int, queue: OrderedQueue) -> bool:
        """Whether the queue was recovered since the replica here began (`recovering`)."""
        replica = self._exchange.replicas[group]
        return isinstance(replica, Replica) and replica.epoch < queue.epoch

    def _leave_epoch(self, group: int, queue: OrderedQueue) -> None:
        """End a replica because its queue was recovered; if this is the one that was kept, it continues alone."""
        exchange = self._exchange
        exchange.send()  # messages of the replica must not leave after the next BEAT
        replica = exchange.replicas[group]
        if self.identity != queue.kept:
            exchange.state.host.log(
                "warning",
                f"Replica of an ordered queue was given up, because the queue was recovered from another one: "
                f"queue={shown(queue.name)} group={group}",
            )
            self._end(group)
        elif isinstance(replica, Replica):
            del exchange.replicas[group]
            replica.stop()
            self._recovering[group] = queue
            QueueRecovery(exchange, self.storage, replica, queue, self._recovered).begin()
        exchange.members[group] = queue.replicas
        exchange.leaders.pop(group, None)

    def _recovered(self, stored: Stored, applier: QueueMachine) -> None:
        """The replica that was kept is alone now."""
        self._recovering.pop(int(applier.group), None)
        if self._catalog.by_group.get(int(applier.group)) is None:  # it was dropped meanwhile
            self.storage.log.remove_group(applier.group)
            return
        self._add(applier.group, stored, applier).campaign()
        self.follow_catalog()

    def recover_catalog(self) -> None:
        """Make the replica of group 0 here the only one. Only for a node that has one."""
        replica = self._exchange.replicas.pop(CATALOG_GROUP)
        assert isinstance(replica, Replica)
        replica.stop()
        seats = len(replica.raft.members.voters)
        CatalogRecovery(self._exchange, self.storage, replica, seats, self._catalog_recovered).begin()

    def _catalog_recovered(self, stored: Stored, applier: CatalogMachine) -> None:
        """The replica of group 0 is alone now."""
        self._presence.forget_versions()
        self.know_founders(stored.snapshot.members)
        self._exchange.leaders.pop(CATALOG_GROUP, None)
        self._add(CATALOG_GROUP, stored, applier).campaign()

    def leave_lineage(self) -> None:
        """The catalog was recovered elsewhere: give up the replica of group 0, if there is one."""
        self._exchange.send()  # its messages must not leave after the next BEAT
        self._presence.forget_versions()
        if self.is_founder:
            self._end(CATALOG_GROUP)

    def _begin_queue(self, queue: OrderedQueue) -> None:
        applier = QueueMachine(self._exchange, self.storage, self._agents, queue)
        self._begin(queue.group, Members(queue.replicas), applier, leads=queue.lead == self._exchange.node_id)
        self.take_messages(queue.group, self._early.take(queue.group))

    def _begin(self, group: i64, members: Members, applier: Applier, *, leads: bool) -> None:
        """Begin a group that is new everywhere, unless the replica of this node was there and is damaged."""
        if self._damaged.has(int(group)):
            return
        log = self.storage.log
        hard = HardState(_FIRST, b"")
        log.save_hard(group, hard)
        log.install_snapshot(group, _FIRST, _FIRST, members.encode(), applier.snapshot())
        meta = SnapshotMeta(_FIRST, _FIRST, 0, members)
        replica = self._add(group, Stored(hard, meta, [], _FIRST, 0, [], []), applier)
        if leads:
            replica.campaign()

    def _add(self, group: i64, stored: Stored, applier: Applier) -> Replica:
        exchange = self._exchange
        seed = int.from_bytes(exchange.state.host.random_bytes(4), "big")
        raft = Group(group, self._identity_for_group(), stored, self._presence.liveness, self._tuning, seed)
        replica = Replica(exchange, self.storage, raft, applier, stored.snapshot.index)
        if isinstance(applier, QueueMachine):
            replica.epoch = applier.queue.epoch
        elif isinstance(applier, CatalogMachine):
            replica.epoch = max(applier.catalog.born, self._catalog.born)
        exchange.replicas[int(group)] = replica
        exchange.members[int(group)] = raft.members.voters
        if group == CATALOG_GROUP:
            self.founders = raft.members
        replica.look()
        return replica

    def _identity_for_group(self) -> bytes:
        return self._exchange.node_id + self.storage.log.data_id

    def _end(self, group: int) -> None:
        self._stop(group)
        self.storage.log.remove_group(group)
        self._presence.liveness.forget_group(group)

    def _stop(self, group: int) -> None:
        replica = self._exchange.drop(group)
        assert isinstance(replica, Replica)
        replica.stop()

    def _join(self, group: int, message: Message) -> Replica | None:
        """Begin an empty replica because its leader sends to it; None if the catalog gives this node none.

        Its vote in the term of the leader is given to that leader: it may have voted before it was removed.
        """
        queue = self._catalog.by_group.get(group)
        members = self._catalog.members if group == CATALOG_GROUP else () if queue is None else queue.replicas
        if (
            not self._opened
            or group in self._recovering
            or self.identity not in members
            or message.kind not in {APPEND, SNAPSHOT}
            or not self._damaged.begins(group, self.storage.log)
        ):
            return None
        hard = HardState(message.term, message.sender)
        self.storage.log.save_hard(group, hard)
        applier: Applier
        if queue is None:
            applier = self._catalog_machine()
        else:
            applier = QueueMachine(self._exchange, self.storage, self._agents, queue)
        return self._add(group, Stored(hard, SnapshotMeta(0, 0, 0, Members(())), [], 0, 0, [], []), applier)

    def look_at_groups(self) -> None:
        """Find the groups that this node leads and that lack a replica, or that another node should lead."""
        for group, queue in self._catalog.by_group.items():
            replica = self._exchange.replicas.get(group)
            if not queue.settled or not isinstance(replica, Replica) or not replica.raft.is_leader:
                continue
            if len(replica.raft.members.voters) < len(queue.replicas):
                self._incomplete[group] = None
            elif queue.lead != self._exchange.node_id:
                replica.lead_back(queue.lead)

    def change_replicas(self) -> list[OrderedQueue]:
        """Let the groups that this node leads take a step to their replicas. Returns those that have them now."""
        settled: list[OrderedQueue] = []
        for queue in self._unsettled:
            replica = self._exchange.replicas.get(int(queue.group))
            if isinstance(replica, Replica) and replica.raft.is_leader and replica.change_to(queue.replicas):
                settled.append(queue)
        for group in list(self._incomplete):
            self._complete(group)
        founders = self._exchange.replicas.get(CATALOG_GROUP)
        if isinstance(founders, Replica):
            self.founders = founders.raft.members
            if founders.raft.is_leader and self._catalog.members:
                founders.change_to(self._catalog.members)
            elif not founders.raft.is_leader and self.leaves_group_0:
                self._leave_group_0(founders)
        return settled

    def _complete(self, group: int) -> None:
        """Let a group whose replica was damaged take a step to all its replicas."""
        queue = self._catalog.by_group.get(group)
        replica = self._exchange.replicas.get(group)
        if (
            queue is None
            or not queue.settled
            or not isinstance(replica, Replica)
            or not replica.raft.is_leader
            or replica.change_to(queue.replicas)
        ):
            del self._incomplete[group]

    @property
    def leaves_group_0(self) -> bool:
        """Whether the replica of group 0 here must go. It may not hear that it was removed, as nobody sends it that."""
        members = self._catalog.members
        return self._opened and self.is_founder and bool(members) and self.identity not in members

    def _leave_group_0(self, founders: Replica) -> None:
        """End the replica of group 0 when it was removed from its members."""
        if not founders.raft.members.has(self.identity):
            self._end(CATALOG_GROUP)

    def was_removed(self, catalog: Catalog, members: Members) -> bool:
        """Whether a newer catalog says that this node has no replica of group 0 any more. If so, it is ended."""
        wanted = catalog.members
        if not self._opened or not wanted or self.identity in wanted or members.has(self.identity):
            return False
        self._end(CATALOG_GROUP)
        return True

    # --- other nodes --------------------------------------------------------------------------------------------------

    def take_messages(self, group: i64, messages: list[Message]) -> None:
        """Messages for a replica arrived."""
        replica = self._exchange.replicas.get(int(group))
        if replica is None and messages and messages[0].to == self.identity:
            self._damaged.take(int(group), messages[0])
            replica = self._join(int(group), messages[0])
            if replica is None and group > self._catalog.last_group:
                self._early.keep(group, messages, self._exchange.state.now_ms)
        if not isinstance(replica, Replica) or not messages or is_removal(messages[0]):
            return
        if is_out_of_service(messages[0]):
            replica.lost(messages[0])
            self._incomplete[int(group)] = None
        elif not self._presence.is_from_before(replica, node_of(messages[0].sender)):
            replica.take_messages(messages)

    def take_part(self, node_id: bytes, part: Part, messages: list[Message]) -> None:
        """A part of a snapshot arrived, or a request for one."""
        replica = self._exchange.replicas.get(part.group)
        if replica is None and messages and messages[0].to == self.identity:
            replica = self._join(part.group, messages[0])
        if not isinstance(replica, Replica):
            return
        if not self._presence.is_from_before(replica, node_id):
            replica.take_part(part, messages)

    def cron(self) -> None:
        """Tell which replicas are damaged, and drop messages that waited too long for the catalog."""
        if self._opened:
            self._damaged.tell(self.identity)
        self._early.forget(self._exchange.state.now_ms)
