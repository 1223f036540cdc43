"""Recovering a queue that has lost the majority of its replicas: one replica goes on alone (CLUSTER ORDERED RECOVER).

The catalog names the replica that is kept, and the version at which this was decided: the epoch of the queue. The node
of that replica applies everything in its log, committed or not, because what only a lost leader knew to be committed is
in it too. Then it ends its log with an entry and a snapshot under a term that no other replica can have reached, whose
only member is itself. The leader of group 0 adds other replicas afterwards as usual.

A replica of an earlier epoch that returns is ended as soon as its node knows the catalog. Until then, replicas of the
new epoch take no message of its node: each tells the version of its catalog (BEAT), and messages of a node that tells
an older one than the epoch, or none, are dropped. So old replicas can change nothing, even if they elect a leader.

The newest jobs are lost if the kept replica had not received them. The same holds for acknowledgements, so acknowledged
jobs may be delivered again. If the node stops before the snapshot is on its disk, it begins again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disqued.errors import shown
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.counters import RECOVERED
from disqued.ordered.exchange import Exchange, GroupReplica
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

    def __init__(
        self,
        exchange: Exchange,
        storage: Storage,
        replica: Replica,
        queue: OrderedQueue,
        done: Callable[[Stored, QueueMachine], None],
    ) -> None:
        super().__init__()
        self._exchange = exchange
        self._storage = storage
        self._group: i64 = replica.group
        self._identity = replica.raft.replica
        self._term: i64 = replica.raft.term
        self._applied: i64 = replica.applied
        applier = replica.applier
        assert isinstance(applier, QueueMachine)
        self._applier = applier
        self._queue = queue
        self._done = done
        self._meta = replica.raft.snapshot

    def turn_ends(self) -> None:
        """Apply the rest of the log, a part in each turn."""
        last = self._storage.log.last_index(self._group)
        until: i64 = min(last, self._applied + MOST_APPLIED)
        while self._applied < until:
            entry = self._storage.log.read(self._group, self._applied + 1)
            if entry is None:
                self._storage.fetch(self, self._group, self._applied + 1, last, TO_APPLY)
                return
            self._apply(entry)
        if self._applied < last:
            self._exchange.next_turn(self)
        else:
            self._end_log(last + 1)

    def fetched(self, entries: list[Entry], purpose: i64) -> None:  # noqa: ARG002 - there is one
        """Entries were read from the disk."""
        for entry in entries:
            if entry.index == self._applied + 1:
                self._apply(entry)
        if entries:
            self._exchange.at_turn_end(self)

    def _apply(self, entry: Entry) -> None:
        self._applied = entry.index
        if entry.kind == MEMBERS:
            self._storage.log.release(self._group, entry.index)
        else:
            self._applier.apply(entry, leads=False, wanted=False)

    def _end_log(self, index: i64) -> None:
        """Write the last entry and the snapshot of the old members."""
        log = self._storage.log
        term = self._term + TERMS_AHEAD
        time_ms: i64 = max(self._exchange.state.now_ms, self._applier.machine.now_ms)
        entry = Entry(term, index, time_ms, EMPTY, b"")
        hard = HardState(term, b"")
        log.save_hard(self._group, hard)
        log.append(self._group, [entry])
        self._apply(entry)
        self._applier.queue = self._queue
        members = Members((self._identity,))
        self._meta = SnapshotMeta(index, term, time_ms, members)
        log.save_snapshot(self._group, index, term, members.encode(), self._applier.snapshot())
        self._storage.watch(self._group, self._saved)
        self._storage.write_turn()

    def _saved(self) -> None:
        """The snapshot is on the disk."""
        meta = self._meta
        state = self._exchange.state
        state.counters.add(RECOVERED)
        state.host.log(
            "warning",
            "Ordered queue was recovered from the replica of this node alone, jobs may be lost or come again: "
            f"queue={shown(self._queue.name)} group={self._group} index={meta.index} "
            f"jobs={self._applier.machine.count}",
        )
        hard = HardState(meta.term, b"")
        self._done(Stored(hard, meta, [], meta.index, meta.time_ms, [], []), self._applier)
