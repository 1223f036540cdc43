"""A cluster of replicas of one Raft group in virtual time, with a network, disks and a machine, all in memory.

Each member drives a real `Group` as a node does: it writes the batches to a disk whose syncs take time, sends messages
that take time, applies committed entries, and notes whom it hears. The machine of the tests is a digest of all entries.

Scenarios control the faults themselves: `partition`, `crash`, `hold_disk`, `drop`. The simulator (`raftsim`) draws them
from a seed. Every event is checked (`RaftChecks`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

from disqued.raft.batch import Batch
from disqued.raft.codec import decode, encode
from disqued.raft.entry import NORMAL, Entry
from disqued.raft.group import Group
from disqued.raft.hardstate import HardState
from disqued.raft.liveness import Liveness
from disqued.raft.members import Members
from disqued.raft.message import Message
from disqued.raft.role import LEADER
from disqued.raft.snapshotmeta import SnapshotMeta
from disqued.raft.stored import Stored, stored_entries
from disqued.raft.tuning import Tuning
from disqued.testing.raftchecks import RaftChecks, Violation, digest_after

GROUP: Final = 7
BEAT_MS: Final = 50
SILENT_MS: Final = 200
START_MS: Final = 1_000_000
RECOVERED_ENTRIES: Final = 3
"""Recovery passes no more entries to a group, so that the older ones are fetched."""


def short_times() -> Tuning:
    """Return times that suit runs of a few seconds, and small bounds, so that they are reached."""
    return Tuning(
        election_ms=SILENT_MS,
        jitter_ms=SILENT_MS,
        repeat_ms=100,
        commit_delay_ms=10,
        message_bytes=400,
        window_messages=8,
        window_bytes=2000,
        fetch_entries=8,
        memory_bytes=4000,
    )


class Write:
    """A write of one batch, or a snapshot of the machine (ticket 0), that is not synced yet."""

    def __init__(self, ticket: int) -> None:
        self.ticket = ticket
        self.hard: HardState | None = None
        self.snapshot: SnapshotMeta | None = None
        self.digest = 0
        self.restores = False
        self.entries: list[Entry] = []


class RaftDisk:
    """What is synced, and what is not yet. A crash loses the second, or all but the first few writes of it."""

    def __init__(self, members: Members) -> None:
        self.hard = HardState(0, b"")
        self.snapshot = SnapshotMeta(0, 0, 0, members)
        self.digest = 0
        self.entries: dict[int, Entry] = {}
        self.pending: list[Write] = []

    def sync(self, count: int) -> None:
        """Sync the oldest writes."""
        for write in self.pending[:count]:
            if write.hard is not None:
                self.hard = write.hard
            if write.snapshot is not None and write.snapshot.index > self.snapshot.index:
                self.snapshot, self.digest = write.snapshot, write.digest
                kept = {} if write.restores else self.entries
                self.entries = {index: entry for index, entry in kept.items() if index > write.snapshot.index}
            store(self.entries, write.entries)
        del self.pending[:count]

    def stored(self) -> Stored:
        """Return what recovery finds: of most entries only the terms."""
        entries = [self.entries[index] for index in sorted(self.entries)]
        found = stored_entries(self.hard, self.snapshot, entries)
        found.tail = found.tail[-RECOVERED_ENTRIES:]
        return found


def store(entries: dict[int, Entry], new: list[Entry]) -> None:
    """Append entries; if the first one has an index that is there, they replace it and what follows."""
    if new:
        index = int(new[0].index)
        while entries.pop(index, None) is not None:
            index += 1
        for entry in new:
            entries[entry.index] = entry


class Member:
    """A node with its replica."""

    def __init__(self, name: str, members: Members) -> None:
        self.name = name
        self.data_id = 0
        self.disk = RaftDisk(members)
        self.up = False
        self.process = 0
        """Counts the starts, so that events of an earlier process are ignored."""
        self.group: Group = None  # type: ignore[assignment]  # set by start()
        self.liveness = Liveness(SILENT_MS)
        self.processes: dict[bytes, int] = {}
        """The process of each replica that was heard."""
        self.entries: dict[int, Entry] = {}
        """The log as written, synced or not."""
        self.applied = 0
        self.digest = 0
        self.committed = 0
        self.syncing = False
        self.disk_held = False
        self.wake_ms = 0
        self.held_ms = 0
        """Since when entries wait for others (`Group.held`)."""
        self.incoming: dict[int, int] = {}
        """Received snapshots: the digest by index."""
        self.commands: list[bytes] = []
        """The commands applied by this process."""

    @property
    def replica(self) -> bytes:
        """The identity: node and data."""
        return f"{self.name}.{self.data_id}".encode()

    @property
    def is_leader(self) -> bool:
        """Whether its replica leads, as far as it knows."""
        return self.up and self.group.is_leader


class RaftCluster:
    """Members, the network between them, and the time."""

    def __init__(self, names: str = "abc", tuning: Tuning | None = None, seed: int = 1) -> None:
        self.now_ms = START_MS
        self.tuning = tuning or short_times()
        self.seed = seed
        self.checks = RaftChecks()
        self.members: dict[str, Member] = {}
        self.by_replica: dict[bytes, Member] = {}
        self.blocked: dict[tuple[str, str], bool] = {}
        """The directions in which nothing arrives."""
        self.drop: Callable[[Message], bool] | None = None
        """Which messages are lost."""
        self.sent: list[Message] = []
        self.recording = False
        self.through_codec = True
        self.events = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._tokens = 0
        self.reads: dict[int, int] = {}
        first = Members(tuple(f"{name}.0".encode() for name in names))
        for name in names:
            self.add(name, first)
        self.at(self.now_ms, self._beat)

    def __getitem__(self, name: str) -> Member:
        return self.members[name]

    # --- time ---------------------------------------------------------------------------------------------------------

    def at(self, time_ms: int, event: Callable[[], None]) -> None:
        """Run a function at a time."""
        self._number += 1
        heapq.heappush(self._queue, (time_ms, self._number, event))

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        self.run_until(lambda: False, duration_ms)

    def run_until(self, condition: Callable[[], bool], most_ms: int) -> bool:
        """Let time pass until a condition holds; return whether it did in time."""
        end_ms = self.now_ms + most_ms
        while not condition():
            if self._queue[0][0] > end_ms:
                self.now_ms = end_ms
                return condition()
            self.now_ms, _, event = heapq.heappop(self._queue)
            self.events += 1
            event()
        return True

    # --- members ------------------------------------------------------------------------------------------------------

    def add(self, name: str, members: Members | None = None) -> Member:
        """Start a node, with the first members of a new group or without any."""
        member = Member(name, members or Members(()))
        self.members[name] = member
        self.start(name)
        return member

    def start(self, name: str) -> None:
        """Start the process of a node with what its disk has."""
        member = self.members[name]
        assert not member.up
        self.by_replica[member.replica] = member
        member.up = True
        member.process += 1
        member.liveness = Liveness(SILENT_MS)
        member.processes = {}
        member.entries = dict(member.disk.entries)
        member.applied = int(member.disk.snapshot.index)
        member.committed = member.applied
        member.digest = member.disk.digest
        member.incoming = {}
        member.commands = []
        member.syncing = False
        member.wake_ms = 0
        seed = self.seed * 31 + ord(name[0])
        member.group = Group(GROUP, member.replica, member.disk.stored(), member.liveness, self.tuning, seed)
        member.group.tick(self.now_ms)
        self.work(member)

    def crash(self, name: str, keep: int = 0) -> None:
        """Stop a process. Of the writes that are not synced, the oldest `keep` survive."""
        member = self.members[name]
        assert member.up
        member.up = False
        member.disk.sync(keep)
        member.disk.pending = []

    def empty(self, name: str, same_identity: bool = False) -> None:
        """Take the disk of a stopped node away; it gets another identity."""
        member = self.members[name]
        assert not member.up
        member.disk = RaftDisk(member.disk.snapshot.members if same_identity else Members(()))
        if not same_identity:
            member.data_id += 1

    @property
    def leader(self) -> Member | None:
        """The leader of the highest term, if any."""
        leaders = [member for member in self.members.values() if member.is_leader]
        return max(leaders, key=lambda member: int(member.group.term), default=None)

    def elect(self, name: str) -> Member:
        """Let a replica campaign and win."""
        member = self.members[name]
        member.group.campaign(self.now_ms)
        self.work(member)
        assert self.run_until(lambda: member.is_leader and bool(member.group.is_confirmed), 500), f"{name} does not win"
        return member

    def propose(self, data: bytes, name: str = "") -> int:
        """Propose a command at a node, or at the leader; return the index, 0 if it was refused."""
        member = self.members[name] if name else self.leader
        if member is None:
            return 0
        index = int(member.group.propose(data, self.now_ms))
        self.work(member)
        return index

    def read(self, name: str) -> int:
        """Begin a read; return its token, or 0 if it was refused."""
        self._tokens += 1
        member = self.members[name]
        self.checks.reads(self._tokens)
        accepted = member.group.read(self._tokens, self.now_ms)
        self.work(member)
        return self._tokens if accepted else 0

    def change(self, name: str, members: Members) -> str:
        """Change the members at a leader; return why not."""
        member = self.members[name]
        reason = member.group.change_members(members, self.now_ms)
        self.work(member)
        return str(reason)

    def transfer(self, name: str, to: str) -> str:
        """Transfer the leadership; return why not."""
        member = self.members[name]
        reason = member.group.transfer(self.members[to].replica, self.now_ms)
        self.work(member)
        return str(reason)

    def compact(self, name: str) -> None:
        """Write a snapshot of what a replica has applied."""
        member = self.members[name]
        if member.applied > member.group.snapshot.index:
            write = Write(0)
            applied = member.entries[member.applied]
            write.snapshot = member.group.snapshot_meta(member.applied, applied.time_ms)
            write.digest = member.digest
            member.disk.pending.append(write)
            self._start_sync(member)

    # --- network ------------------------------------------------------------------------------------------------------

    def partition(self, *names: str) -> None:
        """Separate nodes from all others, but not from each other."""
        for one in self.members:
            for other in self.members:
                if (one in names) != (other in names):
                    self.blocked[one, other] = True

    def heal(self) -> None:
        """Connect all nodes."""
        self.blocked.clear()
        self.drop = None

    def delays(self, message: Message) -> tuple[int, ...]:  # noqa: ARG002 - the simulator looks at it
        """Return after how many milliseconds a message arrives, once for each time that it does."""
        return (1,)

    def _send(self, sender: Member, message: Message) -> None:
        if self.recording:
            self.sent.append(message)
        to = self.by_replica.get(message.to)
        if to is None or (self.drop is not None and self.drop(message)):
            return
        if self.through_codec:
            ((_, (message,)),) = decode(encode(GROUP, [message]), sender.replica, message.to)
        for delay_ms in self.delays(message):
            self.at(self.now_ms + delay_ms, _Arrival(self, sender, to, message))

    def arrive(self, sender: Member, to: Member, message: Message) -> None:
        """Deliver a message, unless the way is blocked by now or the receiver is down."""
        if to.up and not self.blocked.get((sender.name, to.name)):
            if to.liveness.hear(message.sender, self.now_ms):
                to.group.tick(self.now_ms)
            to.group.step(message, self.now_ms)
            self.work(to)

    def hears(self, one: Member, other: Member) -> bool:
        """Whether the beat of another node arrives."""
        return other.up and not self.blocked.get((other.name, one.name))

    def _beat(self) -> None:
        """Exchange the beats of all nodes."""
        self.at(self.now_ms + BEAT_MS, self._beat)
        for member in list(self.members.values()):
            if not member.up:
                continue
            changed = len(member.liveness.expire(self.now_ms)) > 0
            for other in self.members.values():
                if other is member or not self.hears(member, other):
                    continue
                replica = other.replica
                changed = member.liveness.hear(replica, self.now_ms) or changed
                changed = self._compare(member, other) or changed
                if member.processes.get(replica) != other.process:
                    member.processes[replica] = other.process
                    member.group.node_returned(replica, self.now_ms)
                    changed = True
            if changed:
                member.group.tick(self.now_ms)
                self.work(member)

    def _compare(self, member: Member, other: Member) -> bool:
        """Compare the digest in the beat of a node with what its listener believes: whether it leads."""
        group = member.group
        if group.leader != other.replica or (other.group.is_leader and other.group.term >= group.term):
            return False
        if member.liveness.denies(other.replica, GROUP, group.term):
            return False
        member.liveness.deny(other.replica, GROUP, group.term)
        return True

    # --- carrying out batches -----------------------------------------------------------------------------------------

    def work(self, member: Member) -> None:
        """Carry out all batches of a member."""
        group = member.group
        if group.held and self.now_ms > member.held_ms > 0:
            group.resume()
            member.held_ms = 0
        while (batch := group.take()) is not None:
            self._carry(member, batch)
        if not group.held:
            member.held_ms = 0
        elif member.held_ms == 0:
            member.held_ms = self.now_ms
        due_ms = member.held_ms + 1 if group.held else int(group.deadline_ms())
        if due_ms and (member.wake_ms == 0 or due_ms < member.wake_ms):
            member.wake_ms = max(due_ms, self.now_ms)
            self.at(member.wake_ms, _Wake(self, member, member.process, member.wake_ms))

    def wake(self, member: Member, process: int, time_ms: int) -> None:
        """Tick a member if its deadline is due, else wait for the new one."""
        if member.up and member.process == process and member.wake_ms == time_ms:
            member.wake_ms = 0
            due_ms = int(member.group.deadline_ms())
            if due_ms and due_ms <= self.now_ms:
                member.group.tick(self.now_ms)
            self.work(member)

    def _carry(self, member: Member, batch: Batch) -> None:
        group = member.group
        if batch.changed and batch.role == LEADER and self.checks.leads(member.replica, group):
            self._check_votes(group)
        if batch.writes:
            self._write(member, batch)
        for message in batch.messages:
            self._send(member, message)
        if self.checks.commits(group, member.committed):
            self._check_commit(group)
        member.committed = int(batch.committed)
        while member.applied < batch.committed:
            self._apply(member)
        for token, index in batch.reads:
            self.checks.answers(int(token), int(index))
            self.reads[int(token)] = int(index)
        for low, high in batch.fetches:
            entries = [member.entries[index] for index in range(low, high + 1) if index in member.entries]
            self.at(self.now_ms + 1, _Fetched(self, member, member.process, int(low), entries))
        for message in batch.snapshots:
            self.send_snapshot(member, message)
        if batch.changed and batch.role == LEADER:
            self.elected(member)

    def _voters(self, group: Group) -> list[Member]:
        """The voters of a group, or none of them if one has lost its disk."""
        voters = [self.by_replica[replica] for replica in group.members.voters]
        lost = any(member.replica not in group.members.voters for member in voters)
        return [] if lost else voters

    def _check_votes(self, group: Group) -> None:
        """Check that a new leader was elected by synced votes."""
        if voters := self._voters(group):
            term = int(group.term)
            hard = [member.disk.hard for member in voters]
            synced = [one.term > term or (one.term == term and one.vote == group.replica) for one in hard]
            self.checks.durable(group, synced, f"votes in term {term}")

    def _check_commit(self, group: Group) -> None:
        """Check that what a leader commits is synced."""
        if voters := self._voters(group):
            index = int(group.committed)
            term = int(group.term_at(index))
            synced = [
                member.disk.snapshot.index >= index
                or (index in member.disk.entries and member.disk.entries[index].term == term)
                for member in voters
            ]
            self.checks.durable(group, synced, f"entry {index}")

    def elected(self, member: Member) -> None:
        """Do what a test wants when a member has become leader, or leads with other members."""

    def _write(self, member: Member, batch: Batch) -> None:
        write = Write(int(batch.ticket))
        write.hard = batch.hard
        write.entries = batch.entries
        if batch.restore is not None:
            write.restores = True
            write.snapshot = batch.restore
            write.digest = member.incoming[int(batch.restore.index)]
            member.applied = int(batch.restore.index)
            member.digest = write.digest
            member.entries = {}
            self.checks.restores(member.replica, member.applied, member.digest)
        if batch.entries:
            self.checks.writes(member.replica, member.group, batch.entries)
            store(member.entries, batch.entries)
        member.disk.pending.append(write)
        self._start_sync(member)

    def _apply(self, member: Member) -> None:
        entry = member.entries.get(member.applied + 1)
        if entry is None:
            raise Violation(f"{member.replica!r} commits {member.applied + 1}, which it does not have")
        member.digest = digest_after(member.digest, entry)
        member.applied += 1
        if entry.kind == NORMAL:
            member.commands.append(entry.data)
        self.checks.applies(member.replica, entry, member.digest)

    def send_snapshot(self, sender: Member, message: Message) -> None:
        """Send the snapshot of a member, with the bytes that it has now."""
        meta = sender.disk.snapshot
        message.snapshot = meta
        digest = sender.disk.digest
        process = sender.process
        to = self.by_replica.get(message.to)

        def arrive() -> None:
            done = to is not None and to.up and not self.blocked.get((sender.name, to.name))
            if to is not None and done:
                to.incoming[int(meta.index)] = digest
                self.arrive(sender, to, message)
            if sender.up and sender.process == process:
                sender.group.snapshot_sent(message.to, meta.index, done)
                self.work(sender)

        self.at(self.now_ms + self.snapshot_ms(), arrive)

    def snapshot_ms(self) -> int:
        """Return how long it takes to send a snapshot."""
        return 10

    # --- disks --------------------------------------------------------------------------------------------------------

    def hold_disk(self, name: str) -> None:
        """Let the syncs of a node take until `release_disk`."""
        self.members[name].disk_held = True

    def release_disk(self, name: str) -> None:
        """Let the syncs of a node finish again."""
        member = self.members[name]
        member.disk_held = False
        self._start_sync(member)

    def sync_ms(self, member: Member) -> int:  # noqa: ARG002 - the simulator looks at it
        """Return how long the next sync of a member takes."""
        return 1

    def _start_sync(self, member: Member) -> None:
        if not member.syncing and not member.disk_held and member.disk.pending:
            member.syncing = True
            count = len(member.disk.pending)
            self.at(self.now_ms + self.sync_ms(member), _Synced(self, member, member.process, count))

    def synced(self, member: Member, process: int, count: int) -> None:
        """Finish a sync of the oldest writes."""
        if not member.up or member.process != process:
            return
        member.syncing = False
        if member.disk_held:
            return
        done = member.disk.pending[:count]
        member.disk.sync(count)
        for write in done:
            if write.snapshot is not None and not write.restores:
                member.group.compacted(write.snapshot)
                for index in [index for index in member.entries if index <= write.snapshot.index]:
                    del member.entries[index]
        tickets = [write.ticket for write in done if write.ticket]
        if tickets:
            member.group.persisted(tickets[-1])
        self._start_sync(member)
        self.work(member)

    def fetched(self, member: Member, process: int, low: int, entries: list[Entry]) -> None:
        """Give a group the entries that it requested."""
        if member.up and member.process == process:
            member.group.fetched(low, entries)
            self.work(member)


class _Arrival:
    def __init__(self, cluster: RaftCluster, sender: Member, to: Member, message: Message) -> None:
        self._cluster, self._sender, self._to, self._message = cluster, sender, to, message

    def __call__(self) -> None:
        self._cluster.arrive(self._sender, self._to, self._message)


class _Wake:
    def __init__(self, cluster: RaftCluster, member: Member, process: int, time_ms: int) -> None:
        self._cluster, self._member, self._process, self._time_ms = cluster, member, process, time_ms

    def __call__(self) -> None:
        self._cluster.wake(self._member, self._process, self._time_ms)


class _Fetched:
    def __init__(self, cluster: RaftCluster, member: Member, process: int, low: int, entries: list[Entry]) -> None:
        self._cluster, self._member, self._process, self._low, self._entries = cluster, member, process, low, entries

    def __call__(self) -> None:
        self._cluster.fetched(self._member, self._process, self._low, self._entries)


class _Synced:
    def __init__(self, cluster: RaftCluster, member: Member, process: int, count: int) -> None:
        self._cluster, self._member, self._process, self._count = cluster, member, process, count

    def __call__(self) -> None:
        self._cluster.synced(self._member, self._process, self._count)
