"""What the groups of a simulated cluster agreed on: watches every replica, and keeps one machine of its own per group.

`watch` puts a `WatchedApplier` between each replica of a node and its machine. So each entry is seen when a replica
applies it, without anything in the nodes that would cost real ones. The first replica that applies an entry defines it.
What is checked at once:

- *State machine safety*: every other replica applies the same entry at this index (term, time, kind and data), and its
  machine has the same digest then. After a snapshot, the digest is that of the index of the snapshot.
- *Election safety*: at most one leader per term.
- *One machine of its own* (`GroupTruth.machine`) applies each entry once. It says which jobs were assigned to whom and
  which ended, so that a job that a client got can be compared with what was agreed.
- *Leases*: a job is assigned again only if the lease is over by the times in the entries, or an entry gave it back, and
  never after its end. This does not rely on the machine, but on the commands in the log.
- *Credit*: after the first entry of a leader no consumer has any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disqued.node import Node
from disqued.ordered.applier import Applier
from disqued.ordered.catalog import CATALOG_GROUP
from disqued.ordered.catalogmachine import CatalogMachine
from disqued.ordered.exchange import GroupReplica, node_of
from disqued.ordered.queuemachine import QueueMachine
from disqued.ordered.replica import Replica
from disqued.ordered.room import ordered_of
from disqued.orderedqueue import commands
from disqued.orderedqueue.add import ADD, add_head
from disqued.orderedqueue.effects import OK, Effects
from disqued.orderedqueue.encoding import Malformed, Reader
from disqued.orderedqueue.machine import Machine, restore
from disqued.raft.entry import EMPTY, Entry

Report = Callable[[str], None]
"""Takes a violation."""
STRIDE: Final = 8
"""Digests are compared at every so many entries, because they take the time of a snapshot."""
SHORT: Final = 6
"""How many characters of IDs are shown."""


class Assignment:
    """A job that a consumer got, as the group agreed."""

    def __init__(self, index: int, claim: int, consumer: bytes, until_ms: int, assigned_ms: int, seen_ms: int) -> None:
        self.index = index
        self.claim = claim
        self.consumer = consumer
        self.until_ms = until_ms
        """When the lease ends by the times in the entries; 0 if the assignment is the end of the job."""
        self.assigned_ms = assigned_ms
        """The time of the entry."""
        self.seen_ms = seen_ms
        """When the first replica applied the entry."""
        self.given_back = False
        """Whether an entry ended the lease, or may have."""


class GroupTruth:
    """What one group agreed on."""

    def __init__(self, group: int, report: Report) -> None:
        self.group = group
        self.name = b""
        """Of the queue; empty for the catalog."""
        self.machine: Machine | None = None
        self._report = report
        self._entries: dict[int, tuple[int, int, int, bytes]] = {}
        """By index: term, time, kind and data."""
        self._digests: dict[int, bytes] = {}
        self._leaders: dict[int, bytes] = {}
        """By term."""
        self.applied = 0
        """The index of the last entry that a replica applied."""
        self.assignments: dict[int, Assignment] = {}
        """By claim, in the order of the entries."""
        self._last: dict[int, Assignment] = {}
        """The last assignment of each job, by index."""
        self.ended: dict[int, int] = {}
        """The outcomes of jobs, by index."""
        self.bodies: dict[int, bytes] = {}
        """The bodies of the jobs that were added, by index."""
        self.uncounted = 0
        """How many NACKs of nodes gave back jobs that came too late for their clients."""

    def leads(self, replica: bytes, term: int) -> None:
        """Check a replica that leads."""
        first = self._leaders.setdefault(term, replica)
        if first != replica:
            self._report(f"election safety: two replicas of {self} lead in term {term}: {first!r} and {replica!r}")

    def applies(self, entry: Entry, who: str, now_ms: int) -> None:
        """Check an entry that a replica is about to apply, and apply it here if it is the first one that does."""
        index = int(entry.index)
        value = (int(entry.term), int(entry.time_ms), int(entry.kind), entry.data)
        known = self._entries.get(index)
        if known is None:
            if index < self.applied:
                self._report(f"{who} applies entry {index} of {self}, where others have none")
            self._entries[index] = value
            self.applied = max(self.applied, index)
            if self.machine is not None and index > self.machine.index:
                self._advance(self.machine, entry, now_ms)
        elif known != value:
            self._report(
                f"state machine safety: {who} applies entry {index} of {self} as {_shown(value)}, others as "
                f"{_shown(known)}"
            )

    def reached(self, index: int, digest: bytes, who: str) -> None:
        """Check the state of a replica after an entry."""
        known = self._digests.setdefault(index, digest)
        if known != digest:
            self._report(f"{who} has another state of {self} than others at {index}")

    def is_at_most_once(self, index: int) -> bool:
        """Whether the assignment of a job was its end (RETRY 0)."""
        last = self._last.get(index)
        return last is not None and last.until_ms == 0

    # --- the machine --------------------------------------------------------------------------------------------------

    def _advance(self, machine: Machine, entry: Entry, now_ms: int) -> None:
        if entry.kind == EMPTY:
            effects = machine.new_leader(entry.index, entry.time_ms)
            if any(consumer.credit > 0 or consumer.ahead for consumer in machine.consumers()):
                self._report(f"a consumer of {self} has credit at the first entry {entry.index} of a leader")
        else:
            self._note_command(machine, entry.data)
            effects = machine.apply(entry.index, entry.time_ms, entry.data)
            if entry.data[:1] == bytes((int(ADD),)) and effects.code == OK and effects.known is None:
                add = add_head(entry.data)
                self.bodies[int(entry.index)] = entry.data[int(add.body_at) :]
        self._note_assigned(machine, effects, now_ms)
        for ended in effects.ended:
            index = int(ended.index)
            if index in self.ended:
                self._report(f"job {index} of {self} ended twice")
            self.ended[index] = int(ended.outcome)
        if entry.index % STRIDE == 0:
            self.reached(int(entry.index), machine.digest(), "the reference")

    def _note_assigned(self, machine: Machine, effects: Effects, now_ms: int) -> None:
        at_ms = int(machine.now_ms)
        for one in effects.assigned:
            index = int(one.index)
            made = Assignment(index, int(one.claim), one.consumer, int(one.until_ms), at_ms, now_ms)
            before = self._last.get(index)
            if index in self.ended:
                self._report(f"job {index} of {self} was assigned again under claim {made.claim} after its end")
            elif before is not None and not before.given_back and at_ms < before.until_ms:
                self._report(
                    f"job {index} of {self} was assigned to {_of(made)} under claim {made.claim} at {at_ms}, but "
                    f"{_of(before)} has it until {before.until_ms}"
                )
            if made.claim in self.assignments:
                self._report(f"claim {made.claim} of {self} was given twice")
            self.assignments[made.claim] = made
            self._last[index] = made

    def _note_command(self, machine: Machine, command: bytes) -> None:
        """Note which leases a command ends or changes."""
        try:
            reader = Reader(command)
            kind = reader.number()
            indexes: list[int] = []
            if kind == commands.NACK:
                nack = commands.read_nack(reader)
                indexes = nack.indexes
                self.uncounted += nack.uncounted
            elif kind == commands.RENEW:
                indexes = [int(commands.read_renew(reader).index)]
            elif kind == commands.PART:
                indexes = self._held_by(commands.read_part(reader).consumer)
            elif kind == commands.NODE and machine.options.single:
                node = commands.read_node(reader)
                indexes = [] if node.up else self._held_at(node.agent)
        except Malformed:
            return
        for index in indexes:
            held = self._last.get(index)
            if held is not None:
                held.given_back = True

    def _held_by(self, consumer: bytes) -> list[int]:
        return [index for index, held in self._last.items() if held.consumer == consumer]

    def _held_at(self, node_id: bytes) -> list[int]:
        return [index for index, held in self._last.items() if node_of(held.consumer) == node_id]

    def __str__(self) -> str:
        """How it is named in reports."""
        return f"queue {self.name.decode('latin-1')}" if self.name else "the catalog"


def _shown(value: tuple[int, int, int, bytes]) -> str:
    term, time_ms, kind, data = value
    return f"term {term}, time {time_ms}, kind {kind}, {data[:40]!r}"


def _of(assignment: Assignment) -> str:
    return assignment.consumer[:SHORT].decode("latin-1") + assignment.consumer[40:].decode("latin-1")


class Truth:
    """What all groups of a cluster agreed on."""

    def __init__(self, report: Report, clock: Callable[[], int]) -> None:
        self._report = report
        self.clock = clock
        """The time of the network."""
        self.groups: dict[int, GroupTruth] = {}
        self.elections = 0
        """How often a replica began to lead."""
        self.entries = 0
        """How many entries were applied, on all replicas."""
        self.restores = 0
        """How many snapshots of other replicas were taken over."""

    def group(self, group: int) -> GroupTruth:
        """The truth about a group."""
        found = self.groups.get(group)
        if found is None:
            found = GroupTruth(group, self._report)
            self.groups[group] = found
        return found

    def of_queue(self, name: bytes) -> GroupTruth | None:
        """The truth about a queue; None if no replica of it has begun."""
        return next((one for one in self.groups.values() if one.name == name), None)

    def watch(self, node: Node) -> None:
        """Watch the replicas of a node that has just been made."""
        exchange = ordered_of(node.state).exchange
        watched = _Watched(self, node.state.view.node_id[:SHORT].decode("ascii"))
        watched.update(exchange.replicas)
        exchange.replicas = watched


class _Watched(dict[int, GroupReplica]):
    """The replicas of a node, each of which is watched."""

    def __init__(self, truth: Truth, who: str) -> None:
        super().__init__()
        self._truth = truth
        self._who = who

    def __setitem__(self, group: int, replica: GroupReplica) -> None:
        """Watch a replica that begins."""
        assert isinstance(replica, Replica)
        replica.applier = WatchedApplier(self._truth, self._who, replica, replica.applier)
        super().__setitem__(group, replica)


class WatchedApplier(Applier):
    """Tells the truth what a replica does, and passes everything on to its machine."""

    def __init__(self, truth: Truth, who: str, replica: Replica, inner: Applier) -> None:
        self._truth = truth
        self._group = truth.group(int(replica.group))
        self._who = who
        self._replica = replica
        self.inner = inner
        self.eager = inner.eager
        if isinstance(inner, QueueMachine):
            self._group.name = inner.queue.name
            if self._group.machine is None:
                self._group.machine = restore(inner.machine.snapshot())
            self._check_state()

    @property
    def machine(self) -> Machine:
        """The machine of the queue."""
        assert isinstance(self.inner, QueueMachine)
        return self.inner.machine

    def _check_state(self) -> None:
        """Check the state that was restored from a snapshot."""
        if int(self.machine.index) > 0:
            self._group.reached(int(self.machine.index), self.machine.digest(), self._who)

    def apply(self, entry: Entry, *, leads: bool, wanted: bool) -> bytes:
        """Apply an entry, and check the state after it."""
        self._truth.entries += 1
        self._group.applies(entry, self._who, self._truth.clock())
        result = self.inner.apply(entry, leads=leads, wanted=wanted)
        self.eager = self.inner.eager
        if isinstance(self.inner, CatalogMachine):
            self._group.reached(int(entry.index), self.inner.catalog.encode(), self._who)
        elif entry.index % STRIDE == 0:
            self._group.reached(int(entry.index), self.machine.digest(), self._who)
        return result

    def restore(self, state: bytes) -> None:
        """Take the state of another replica."""
        self._truth.restores += 1
        self.inner.restore(state)
        self.eager = self.inner.eager
        if self._group.group != CATALOG_GROUP:
            self._check_state()

    def led(self, *, leads: bool, leader: bytes) -> None:
        """Check who leads."""
        if leads:
            self._truth.elections += 1
            self._group.leads(self._replica.raft.replica, int(self._replica.raft.term))
        self.inner.led(leads=leads, leader=leader)
        self.eager = self.inner.eager

    def members_changed(self, voters: tuple[bytes, ...]) -> None:
        """Pass it on."""
        self.inner.members_changed(voters)

    def lost_replica(self, replica: bytes) -> None:
        """Pass it on."""
        self.inner.lost_replica(replica)

    def found_replica(self, replica: bytes) -> None:
        """Pass it on."""
        self.inner.found_replica(replica)

    def end(self) -> None:
        """Pass it on."""
        self.inner.end()

    def read(self, question: bytes, entries: dict[int, Entry]) -> tuple[bytes, list[int]]:
        """Pass it on."""
        return self.inner.read(question, entries)

    def snapshot(self) -> bytes:
        """Pass it on."""
        return self.inner.snapshot()

    def needed(self) -> list[int]:
        """Pass it on."""
        return self.inner.needed()

    def watch_nodes(self) -> list[bytes]:
        """Pass it on."""
        return self.inner.watch_nodes()

    def deadline_ms(self) -> int:
        """Pass it on."""
        return int(self.inner.deadline_ms())

    def due(self) -> bytes:
        """Pass it on."""
        return self.inner.due()

    def body_read(self, entries: list[Entry]) -> None:
        """Pass it on."""
        self.inner.body_read(entries)
