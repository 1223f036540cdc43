"""Recovering a group without a majority: one replica continues alone (CLUSTER ORDERED RECOVER).

The catalog names the replica that is kept, and the version at which this was decided: the epoch of the queue. The node
of that replica applies everything in its log, committed or not, because what only a lost leader knew to be committed is
in it too. Then it ends its log with an entry and a snapshot under a term that no other replica can have reached, whose
only member is itself. The leader of group 0 adds other replicas afterwards as usual.

A replica of an earlier epoch that returns is ended as soon as its node knows the catalog. Until then, replicas of the
new epoch take no message of its node: each tells the version of its catalog (BEAT), and messages of a node that tells
an older one than the epoch, or none, are dropped. So old replicas can change nothing, even if they elect a leader.

The newest jobs are lost if the kept replica had not received them. The same holds for acknowledgements, so acknowledged
jobs may be delivered again. If the node stops before the snapshot is on its disk, it begins again.

The catalog is recovered in the same way from a replica of group 0, without an entry in it. It gets a new identity, and
names its former ones. A node with a former one takes the recovered catalog and ends its replica of group 0; until then
its messages to the new group 0 are dropped, because it tells another identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disqued.errors import shown
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.catalogmachine import CatalogMachine
from disqued.ordered.counters import RECOVERED
from disqued.ordered.exchange import Exchange, GroupReplica
from disqued.ordered.payload import CATALOG_BYTES
from disqued.ordered.queuemachine import QueueMachine
from disqued.ordered.replica import MOST_APPLIED, Replica
from disqued.ordered.storage import TO_APPLY, Storage
from disqued.raft.entry import EMPTY, MEMBERS, Entry
from disqued.raft.hardstate import HardState
from disqued.raft.members import Members
from disqued.raft.snapshotmeta import SnapshotMeta
from disqued.raft.stored import Stored

TERMS_AHEAD: Final = 1 << 20
"""How far the term of a recovered group is above the one that the kept replica knows: lost replicas were not so far."""


class Recovery(GroupReplica):
    """A replica that becomes the only one of its group."""

    def __init__(self, exchange: Exchange, storage: Storage, replica: Replica) -> None:
        super().__init__()
        self.exchange = exchange
        self._storage = storage
        self.group: i64 = replica.group
        self.identity = replica.raft.replica
        self._term: i64 = replica.raft.term
        self._applied: i64 = replica.applied
        self.applier = replica.applier
        self._time_ms: i64 = exchange.state.now_ms

    def begin(self) -> None:
        """Begin at the end of this turn. The replica has been stopped."""
        self.exchange.at_turn_end(self)

    def turn_ends(self) -> None:
        """Apply the rest of the log, a part in each turn."""
        last = self._storage.log.last_index(self.group)
        until: i64 = min(last, self._applied + MOST_APPLIED)
        while self._applied < until:
            entry = self._storage.log.read(self.group, self._applied + 1)
            if entry is None:
                self._storage.fetch(self, self.group, self._applied + 1, last, TO_APPLY)
                return
            self._apply(entry)
        if self._applied < last:
            self.exchange.next_turn(self)
        else:
            self._end_log(last + 1)

    def fetched(self, low: i64, entries: list[Entry], purpose: i64) -> None:  # noqa: ARG002 - there is one
        """Entries were read from the disk."""
        for entry in entries:
            if entry.index == self._applied + 1:
                self._apply(entry)
        if entries:
            self.exchange.at_turn_end(self)

    def _apply(self, entry: Entry) -> None:
        self._applied = entry.index
        self._time_ms = max(self._time_ms, entry.time_ms)
        if entry.kind == MEMBERS:
            self._storage.log.release(self.group, entry.index)
        else:
            self.applier.apply(entry, leads=False, wanted=False)

    def _end_log(self, index: i64) -> None:
        """Write the last entry and the snapshot of the old members."""
        log = self._storage.log
        term = self._term + TERMS_AHEAD
        log.save_hard(self.group, HardState(term, b""))
        entry = Entry(term, index, self._time_ms, EMPTY, b"")
        log.append(self.group, [entry])
        self._apply(entry)
        members = Members((self.identity,))
        state = self.state_at(index)
        log.save_snapshot(self.group, index, term, members.encode(), state)
        meta = SnapshotMeta(index, term, self._time_ms, members)
        stored = Stored(HardState(term, b""), meta, [], index, self._time_ms, [], [])
        self._storage.watch(self.group, _Saved(self, stored, state).report)
        self._storage.write_turn()

    def state_at(self, index: i64) -> bytes:
        """The state of the machine with which the group begins again."""
        raise NotImplementedError

    def saved(self, stored: Stored, state: bytes) -> None:
        """All is on the disk: continue with what is stored."""
        raise NotImplementedError


class _Saved:
    """Continues when the snapshot is on the disk."""

    def __init__(self, recovery: Recovery, stored: Stored, state: bytes) -> None:
        self._recovery = recovery
        self._stored = stored
        self._state = state

    def report(self) -> None:
        """Count it, and continue."""
        recovery = self._recovery
        recovery.exchange.state.counters.add(RECOVERED)
        recovery.saved(self._stored, self._state)


class QueueRecovery(Recovery):
    """The replica of a queue becomes the only one."""

    def __init__(
        self,
        exchange: Exchange,
        storage: Storage,
        replica: Replica,
        queue: OrderedQueue,
        done: Callable[[Stored, QueueMachine], None],
    ) -> None:
        super().__init__(exchange, storage, replica)
        self._queue = queue
        self._done = done

    def state_at(self, index: i64) -> bytes:  # noqa: ARG002 - a base
        """The state of the queue, which is of the new epoch."""
        assert isinstance(self.applier, QueueMachine)
        self.applier.queue = self._queue
        return self.applier.snapshot()

    def saved(self, stored: Stored, state: bytes) -> None:  # noqa: ARG002 - the machine has it
        """Continue alone."""
        applier = self.applier
        assert isinstance(applier, QueueMachine)
        self.exchange.state.host.log(
            "warning",
            "Ordered queue was recovered from the replica of this node alone, jobs may be lost or come again: "
            f"queue={shown(self._queue.name)} group={self.group} index={stored.last} jobs={applier.machine.count}",
        )
        self._done(stored, applier)


class CatalogRecovery(Recovery):
    """The replica of group 0 becomes the only one, and the catalog gets another identity."""

    def __init__(
        self,
        exchange: Exchange,
        storage: Storage,
        replica: Replica,
        seats: int,
        done: Callable[[Stored, CatalogMachine], None],
    ) -> None:
        super().__init__(exchange, storage, replica)
        self._seats = seats
        self._done = done

    def state_at(self, index: i64) -> bytes:
        """The catalog with its new identity."""
        assert isinstance(self.applier, CatalogMachine)
        identity = self.exchange.state.host.random_bytes(CATALOG_BYTES)
        return self.applier.catalog.recovered(identity, self.identity, self._seats, index)

    def saved(self, stored: Stored, state: bytes) -> None:
        """Continue alone, and tell the new identity. Before, a crash would leave the others with a lost catalog."""
        applier = self.applier
        assert isinstance(applier, CatalogMachine)
        applier.restore(state)
        catalog = applier.catalog
        self.exchange.state.host.log(
            "warning",
            "Catalog of ordered queues was recovered from the replica of this node alone, queues may be missing: "
            f"catalog={catalog.identity.hex()} before={catalog.ancestors[-1].hex()} queues={len(catalog.by_name)}",
        )
        self._done(stored, applier)
