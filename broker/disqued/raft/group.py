"""One Raft group at one replica: inputs go in, one ordered batch of output comes out.

The group has no I/O, no clock and no chance. The driver passes time, messages and what it has written, and carries out
the batches (`Batch` says in which order). It calls `take` until there is none. `deadline_ms` says when `tick` is due
next. A new group needs a first `tick`, which starts the wait for an election; or the driver lets a replica `campaign`.

There are no heartbeats: see `Liveness` for what the driver reports about the nodes. A group whose followers have
confirmed everything sends nothing and has no deadline.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.raft.batch import Batch
from disqued.raft.changes import Changes
from disqued.raft.core import Core
from disqued.raft.election import Election
from disqued.raft.entry import NORMAL, Entry
from disqued.raft.following import Following
from disqued.raft.hardstate import HardState
from disqued.raft.leading import Leading
from disqued.raft.liveness import Liveness
from disqued.raft.members import Members
from disqued.raft.message import (
    APPEND,
    APPEND_REPLY,
    PREVOTE,
    PREVOTE_REPLY,
    ROUND,
    ROUND_REPLY,
    SNAPSHOT,
    TIMEOUT_NOW,
    VOTE,
    VOTE_REPLY,
    Message,
)
from disqued.raft.progress import Progress
from disqued.raft.reads import Reads
from disqued.raft.role import CANDIDATE, LEADER, PRE_CANDIDATE
from disqued.raft.snapshotmeta import SnapshotMeta
from disqued.raft.stored import Stored
from disqued.raft.transfer import Transfer
from disqued.raft.tuning import Tuning


class Group:
    """A replica of a group. `seed` decides the waits before elections and should differ between nodes."""

    def __init__(
        self, group: i64, replica: bytes, stored: Stored, liveness: Liveness, tuning: Tuning, seed: i64
    ) -> None:
        core = Core(group, replica, stored, liveness, tuning, seed)
        self._core: Core = core
        self._transfer: Transfer = Transfer(core)
        self._leading: Leading = Leading(core, self._transfer)
        self._reads: Reads = Reads(core, self._leading)
        self._election: Election = Election(core, self._leading)
        self._following: Following = Following(core)
        self._changes: Changes = Changes(core, self._leading, self._transfer)
        self._told_committed: i64 = core.committed
        self._told_role: i64 = core.role
        self._told_leader: bytes = core.leader
        self._told_term: i64 = core.term
        self._told_members: Members = core.log.members
        """What the last batch contained."""

    # --- questions ----------------------------------------------------------------------------------------------------

    @property
    def group(self) -> i64:
        """The number of the group."""
        return self._core.group

    @property
    def replica(self) -> bytes:
        """The identity of this replica."""
        return self._core.me

    @property
    def role(self) -> i64:
        """The role: see `disqued.raft.role`."""
        return self._core.role

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads."""
        return self._core.role == LEADER

    @property
    def leader(self) -> bytes:
        """The leader, `b""` if none is known."""
        return self._core.leader

    @property
    def term(self) -> i64:
        """The term."""
        return self._core.term

    @property
    def committed(self) -> i64:
        """The commit index as far as it is known here."""
        return self._core.committed

    @property
    def last(self) -> i64:
        """The last index of the log."""
        return self._core.log.last

    @property
    def members(self) -> Members:
        """The newest members in the log, committed or not."""
        return self._core.log.members

    @property
    def changes_members(self) -> bool:
        """Whether the newest members are not known to be committed."""
        return self._core.log.members_index > self._core.committed

    @property
    def snapshot(self) -> SnapshotMeta:
        """The snapshot that the log begins with."""
        return self._core.log.snapshot

    @property
    def is_confirmed(self) -> bool:
        """Whether this replica leads and an entry of its term is committed."""
        return self._core.role == LEADER and self._leading.is_confirmed

    @property
    def transferring(self) -> bytes:
        """The replica to which this leader is transferring the leadership, `b""` if none."""
        return self._transfer.to if self._core.role == LEADER else b""

    @property
    def eager_commit(self) -> bool:
        """Whether an empty append follows a commit at once, instead of the news going with the next append."""
        return self._leading.eager_commit

    @eager_commit.setter
    def eager_commit(self, eager: bool) -> None:
        self._leading.eager_commit = eager
        self._leading.wanted = True

    @property
    def held(self) -> bool:
        """Whether entries wait for others to be sent with them: call `resume`, after a millisecond at the latest."""
        return self._core.role == LEADER and self._leading.held

    def resume(self) -> None:
        """Send what was held."""
        if self._core.role == LEADER:
            self._leading.resume()

    def term_at(self, index: i64) -> i64:
        """Return the term of an entry, or -1 if the log does not have it or the snapshot covers it."""
        return self._core.log.term_at(index)

    def entries(self, low: i64, high: i64) -> list[Entry] | None:
        """Return the entries from one index to another, or None if some are not in memory: the store has them."""
        log = self._core.log
        return log.entries(low, high) if log.first <= low and high <= log.last else None

    def progress_of(self, replica: bytes) -> Progress | None:
        """Return what this leader knows about a follower or learner; None if it does not lead. Not to be changed."""
        return self._leading.progress_of(replica) if self._core.role == LEADER else None

    def confirmed_by_all(self) -> i64:
        """Return the index that all followers which are heard have confirmed; the last index if this is no leader.

        A snapshot beyond it makes the leader send snapshots to followers that are only a little behind.
        """
        return self._leading.confirmed_by_all() if self._core.role == LEADER else self._core.log.last

    def snapshot_meta(self, index: i64, time_ms: i64) -> SnapshotMeta:
        """Return what to store with a snapshot of the machine at a committed index whose entry has this time."""
        log = self._core.log
        assert log.snapshot.index <= index <= self._core.committed
        return SnapshotMeta(index, log.term_at(index), time_ms, log.members_at(index))

    def deadline_ms(self) -> i64:
        """Return when `tick` is due, 0 if only a change of the liveness needs one."""
        core = self._core
        due_ms = core.election_due_ms
        if core.role == LEADER:
            for other_ms in (
                self._leading.repeat_due_ms,
                self._leading.commit_due_ms,
                self._transfer.due_ms,
                self._reads.due_ms,
            ):
                if other_ms != 0 and (due_ms == 0 or other_ms < due_ms):
                    due_ms = other_ms
        return due_ms

    # --- input --------------------------------------------------------------------------------------------------------

    def tick(self, now_ms: i64) -> None:
        """Do what is due, and look at the liveness of the nodes, which may have changed."""
        self._core.now_ms = now_ms
        if self._core.role == LEADER:
            self._leading.tick()
            self._reads.tick()
        else:
            self._election.tick()

    def campaign(self, now_ms: i64) -> None:
        """Ask for votes now, for a new group or one that is known to have no leader."""
        self._core.now_ms = now_ms
        if self._core.role != LEADER:
            self._election.ask()

    def propose(self, data: bytes, now_ms: i64) -> i64:
        """Append a command and return its index, or 0 if this replica does not lead or transfers the leadership."""
        core = self._core
        core.now_ms = now_ms
        if core.role != LEADER or self._transfer.to:
            return 0
        return self._leading.append(NORMAL, data)

    def change_members(self, members: Members, now_ms: i64) -> str:
        """Append an entry with new members, one voter more or less. Return an empty text, or the reason why not."""
        self._core.now_ms = now_ms
        return self._changes.change_members(members)

    def transfer(self, replica: bytes, now_ms: i64) -> str:
        """Begin to transfer the leadership to a voter. Return an empty text, or the reason why not."""
        self._core.now_ms = now_ms
        return self._changes.transfer(replica)

    def read(self, token: i64, now_ms: i64) -> bool:
        """Ask for an index that contains all that is committed now. False if this replica does not lead."""
        self._core.now_ms = now_ms
        return self._reads.add(token)

    def node_returned(self, replica: bytes, now_ms: i64) -> None:
        """Let the leader look for what a follower has, because the follower's node has restarted or was away."""
        self._core.now_ms = now_ms
        if self._core.role == LEADER:
            self._leading.restart(replica)

    def persisted(self, ticket: i64) -> None:
        """Note that everything of the batches up to a ticket is synced."""
        core = self._core
        core.synced = max(core.synced, ticket)
        core.log.persisted(ticket)
        for message in core.release():
            if message.to == core.me:
                self._election.reply(message)
            else:
                core.send(message)
        if core.role == LEADER:
            self._leading.advance()

    def fetched(self, low: i64, entries: list[Entry]) -> None:
        """Take the entries from an index on that a batch requested. None if the store cannot read them now."""
        if self._core.role == LEADER:
            self._leading.fetched(low, entries)

    def snapshot_sent(self, replica: bytes, index: i64, done: bool) -> None:
        """Note that the snapshot at an index was sent to a replica, or that sending it failed."""
        if self._core.role == LEADER:
            self._leading.snapshot_sent(replica, index, done)

    def compacted(self, meta: SnapshotMeta) -> None:
        """Forget the entries up to a snapshot that is synced here (`snapshot_meta`)."""
        if self._core.log.snapshot.index < meta.index <= self._core.committed:
            self._core.log.compact(meta)

    # --- messages -----------------------------------------------------------------------------------------------------

    def step(self, message: Message, now_ms: i64) -> None:
        """Take a message. One for another identity is ignored."""
        core = self._core
        core.now_ms = now_ms
        if message.to != core.me or message.sender == core.me or not self._agree_on_term(message):
            return
        kind: i64 = message.kind
        if kind == APPEND_REPLY:
            if core.role == LEADER:
                self._leading.append_reply(message)
        elif kind in (APPEND, SNAPSHOT, ROUND, TIMEOUT_NOW):
            self._step_from_leader(message)
        elif kind in (PREVOTE, VOTE):
            self._election.request(message)
        elif kind in (PREVOTE_REPLY, VOTE_REPLY):
            self._election.reply(message)
        elif kind == ROUND_REPLY and core.role == LEADER:
            self._reads.reply(message)

    def _agree_on_term(self, message: Message) -> bool:
        """Take over a higher term, answer a lower one, and return whether the message has to be handled further."""
        core = self._core
        kind: i64 = message.kind
        if kind in (PREVOTE, VOTE) and self._election.refuses_all(message):
            self._election.refuse(message)
            return False
        if message.term > core.term:
            if kind == APPEND_REPLY and core.role == LEADER and self._leading.progress_of(message.sender) is None:
                return False  # A removed replica does not depose the leader.
            if kind == PREVOTE or (kind == PREVOTE_REPLY and not message.flag):
                return True
            core.follow(message.term, message.sender if kind in (APPEND, SNAPSHOT, ROUND, TIMEOUT_NOW) else b"")
            return True
        if message.term == core.term:
            return True
        if kind in (APPEND, SNAPSHOT, ROUND, TIMEOUT_NOW):
            # A leader of the past steps down when it sees the term.
            reply = core.message(APPEND_REPLY, message.sender)
            reply.flag = True
            core.send(reply)
        elif kind in (PREVOTE, VOTE):
            self._election.refuse(message)
        return False

    def _step_from_leader(self, message: Message) -> None:
        core = self._core
        if core.role == LEADER:
            return
        if core.leader != message.sender or core.role in (PRE_CANDIDATE, CANDIDATE):
            core.follow(core.term, message.sender)
        core.liveness.admit(core.group)
        if message.kind == APPEND:
            self._following.append(message)
        elif message.kind == SNAPSHOT:
            self._following.snapshot(message)
        elif message.kind == ROUND:
            self._reads.answer(message)
        elif core.is_voter:
            self._election.campaign(transfer=True)

    # --- output -------------------------------------------------------------------------------------------------------

    def take(self) -> Batch | None:
        """Return what must be done now, or None if there is nothing."""
        core = self._core
        log = core.log
        self._reads.look()
        if core.role == LEADER and self._leading.wanted:
            self._leading.fill()
        writes = log.has_writes
        changed = self._has_changed()
        if (
            not (writes or changed or core.hard_is_due or core.outbox or core.committed != self._told_committed)
            and not (self._reads.results or self._leading.fetches or self._leading.snapshots)
        ):  # fmt: skip
            return None
        ticket: i64 = core.ticket + 1
        restore = log.restore
        batch = Batch(ticket, core.committed, core.outbox, log.take(ticket))
        batch.restore = restore
        if core.hard_is_due:
            batch.hard = HardState(core.term, core.vote)
        elif restore is None and core.role == LEADER:
            batch.relaxed = self._leading.is_followed
        core.ticket = ticket
        core.outbox = []
        batch.reads = self._reads.results
        self._reads.results = []
        batch.fetches = self._leading.fetches
        self._leading.fetches = []
        batch.snapshots = self._leading.snapshots
        self._leading.snapshots = []
        batch.changed = changed
        batch.role = core.role
        batch.leader = core.leader
        batch.term = core.term
        self._told_committed = core.committed
        log.trim(core.committed)
        return batch

    def _has_changed(self) -> bool:
        """Whether role, leader, term or members differ from those of the last batch; note the new ones."""
        core = self._core
        if (
            core.role == self._told_role
            and core.term == self._told_term
            and core.leader == self._told_leader
            and core.log.members is self._told_members
        ):
            return False
        self._told_role = core.role
        self._told_leader = core.leader
        self._told_term = core.term
        self._told_members = core.log.members
        return True
