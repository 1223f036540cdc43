"""A replica on this node: drives the Raft core of one group, its log on disk, and its machine.

At the end of each turn the replica takes the batches of its core (`raft.batch`) and carries them out in their order:
what must be written goes to the log that all groups share, messages go into the frames of this turn, and committed
entries are applied to the machine. A proposal is answered when its entry is applied. If another leader replaced the
entry before it was committed, it took no effect, and the request is sent to that leader.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.timers.alarm import Alarm
from disqued.errors import ReplyError
from disqued.ordered.applier import Applier
from disqued.ordered.changing import DONE as DONE_CHANGING
from disqued.ordered.changing import LEAD_AGAIN_MS, Changing, lags
from disqued.ordered.counters import COMMIT_TIME, ELECTIONS, PROPOSALS
from disqued.ordered.damagemessages import removal
from disqued.ordered.exchange import Exchange, GroupReplica, node_of
from disqued.ordered.payload import pack_answered
from disqued.ordered.requests import COMMAND, DONE, NOT_LEADER, READ, REFUSED, UNKNOWN
from disqued.ordered.snapshotpayload import Part
from disqued.ordered.storage import TO_APPLY, TO_COPY, TO_DELIVER, TO_READ, TO_SEND, Storage
from disqued.ordered.transfers import Transfers
from disqued.raft.batch import Batch
from disqued.raft.entry import EMPTY, MEMBERS, Entry
from disqued.raft.group import Group
from disqued.raft.message import Message
from disqued.raft.snapshotmeta import SnapshotMeta

MOST_UNCOMMITTED: Final = 20_000
"""How many entries may wait for a majority."""
MOST_ROUNDS: Final = 100
"""How often the disk is asked for one question; it returns a few megabytes at a time."""
HELD_MS: Final = 1
"""How long entries wait at most for others, to be sent together (`Group.held`)."""
MOST_APPLIED: Final = 2000
"""How many entries are applied in one turn; the rest follows in the next one."""


class Proposal:
    """A request whose entry is not applied yet."""

    def __init__(self, term: i64, origin: bytes, number: i64) -> None:
        self.term: i64 = term
        self.origin = origin
        """The node that asked; empty for this one."""
        self.number: i64 = number
        """0 if nobody waits for the result."""


class Question:
    """A question that is being answered."""

    def __init__(self, origin: bytes, number: i64, data: bytes) -> None:
        self.origin = origin
        self.number: i64 = number
        self.data = data
        self.entries: dict[int, Entry] = {}
        """What was read for it from the disk."""
        self.rounds: i64 = 0


class _Wake(Alarm):
    """Wakes a replica."""

    def __init__(self, replica: Replica) -> None:
        super().__init__()
        self._replica = replica

    def ring(self, state: object) -> None:  # noqa: ARG002 - the replica knows its node
        """Have it look at its deadlines."""
        self._replica.wake()


class Replica(GroupReplica):
    """The replica of one group."""

    def __init__(self, exchange: Exchange, storage: Storage, raft: Group, applier: Applier, applied: i64) -> None:
        super().__init__()
        self._exchange = exchange
        self._storage = storage
        self.raft = raft
        self.applier = applier
        self.group: i64 = raft.group
        self.applied: i64 = applied
        """The index of the last entry that was applied."""
        self._applied_time_ms: i64 = 0
        self._committed: i64 = applied
        self._proposals: dict[int, Proposal] = {}
        """By the index of their entries."""
        self._questions: list[Question] = []
        """Those that wait for the disk."""
        self._reads: dict[int, Question] = {}
        """Those that wait until a majority has confirmed that this node leads, by token; PING asks nothing."""
        self._token: i64 = 0
        self._confirmed: deque[tuple[i64, i64]] = deque()
        """Confirmed reads: the token, and the index that must be applied first."""
        self._led_ms: i64 = 0
        """Since when this node leads, or when it last tried to let another one lead; 0 while it does not."""
        self._watch: bool = False
        """This node has begun to lead, and has not looked at the nodes of consumers."""
        self._fetching: bool = False
        self._to_apply: dict[int, Entry] = {}
        """Committed entries that were read from the disk."""
        self._transfers = Transfers(exchange, storage, raft, self)
        self._changing = Changing(exchange, raft)
        self._installing: i64 | None = None
        """The index of a received snapshot that is being written."""
        self._persisted: i64 = 0
        """The last ticket that is synced but for this snapshot."""
        self._saving: SnapshotMeta | None = None
        """The snapshot that is being written."""
        self.stopped: bool = False
        self._held_turn: i64 = 0
        """The turn in which entries began to wait for others (`Group.held`), 0 while none do."""
        self._held_ms: i64 = 0
        """Until when they wait."""
        self._enough: i64 = 0
        """They wait no longer when the log has entries up to here."""
        self.epoch: i64 = 0
        """The version of the catalog at which the queue was recovered from one replica; 0 if it never was."""
        self._due_ms: i64 = 0
        """The deadline of the machine that has been proposed for."""
        self._wake = _Wake(self)

    # --- requests -----------------------------------------------------------------------------------------------------

    def accept(self, origin: bytes, number: i64, kind: i64, data: bytes) -> None:
        """Take a request."""
        if kind == COMMAND:
            self.propose(origin, number, data)
            return
        if not self.raft.is_leader:
            self._not_leader(origin, number)
            return
        question = Question(origin, number, data)
        if kind == READ:
            self._read(question)
            return
        self._token += 1
        self._reads[int(self._token)] = question
        if not self.raft.read(self._token, self._exchange.state.now_ms):
            del self._reads[int(self._token)]
            self._not_leader(origin, number)
        self._exchange.at_turn_end(self)

    def propose(self, origin: bytes, number: i64, data: bytes) -> None:
        """Propose a command; `number` is 0 if nobody waits for the result."""
        refusal = self._refusal() if number != 0 and self.raft.is_leader else ""
        if refusal:
            self._answer(origin, number, REFUSED, refusal.encode("utf-8", "surrogateescape"))
            return
        index = self.raft.propose(data, self._exchange.state.now_ms)
        if index == 0:
            if number != 0:
                self._not_leader(origin, number)
            return
        self._exchange.state.counters.add(PROPOSALS)
        if number != 0:
            self._proposals[int(index)] = Proposal(self.raft.term, origin, number)
        self._exchange.at_turn_end(self)

    def _refusal(self) -> str:
        """Why no more commands are taken now; empty if they are."""
        if self.raft.last - self._committed > MOST_UNCOMMITTED:
            return "OOM too many commands of this queue wait for the disks of its other replicas; try again later"
        return self._exchange.write_refusal

    def _not_leader(self, origin: bytes, number: i64) -> None:
        leader = self.raft.leader
        self._answer(origin, number, NOT_LEADER, node_of(leader) if leader and not self.raft.is_leader else b"")

    def _read(self, question: Question) -> None:
        """Answer a question, or read first what the answer needs."""
        origin, number, entries = question.origin, question.number, question.entries
        try:
            answer, missing = self.applier.read(question.data, entries)
            for index in missing:
                entry = self._storage.log.read(self.group, index)
                if entry is not None:
                    entries[index] = entry
            if missing and missing[-1] in entries:
                answer, missing = self.applier.read(question.data, entries)
        except ReplyError as error:
            self._answer(origin, number, REFUSED, error.text.encode("utf-8", "surrogateescape"))
            return
        left = [index for index in missing if index not in entries]
        if left and question.rounds < MOST_ROUNDS:
            question.rounds += 1
            self._questions.append(question)
            self._storage.fetch(self, self.group, left[0], max(left[0], left[-1]), TO_READ)
        else:
            self._answer(origin, number, DONE, answer)

    def _answer(self, origin: bytes, number: i64, status: i64, data: bytes) -> None:
        if origin:
            self._exchange.add(origin, kinds.PROPOSED, pack_answered(int(number), int(status), data))
            return
        waiting = self._exchange.numbered.get(int(number))
        if waiting is not None:
            waiting.answer(number, status, data)

    # --- messages -----------------------------------------------------------------------------------------------------

    def take_messages(self, messages: list[Message]) -> None:
        """Messages of other replicas arrived."""
        now_ms = self._exchange.state.now_ms
        for message in messages:
            self.raft.step(message, now_ms)
        self._exchange.at_turn_end(self)

    def lost(self, message: Message) -> None:
        """The replica that sent this is damaged: it leads no more, hands out no jobs, and must leave the group."""
        if self.raft.leader == message.sender:
            self.take_messages([message])
        if self.raft.members.has(message.sender):
            self.applier.lost_replica(message.sender)
        if self._changing.remove_damaged(message.sender):
            self._exchange.add_messages(self.group, [removal(message, self.raft.term)])

    def persisted(self, ticket: i64) -> None:
        """The writes of a batch are synced. While a snapshot is installed, which takes several turns, none counts."""
        if self._installing is not None:
            self._persisted = max(self._persisted, ticket)
            return
        self.raft.persisted(ticket)
        self._exchange.at_turn_end(self)

    def look(self) -> None:
        """Nodes fell silent, or are heard again."""
        self.raft.tick(self._exchange.state.now_ms)
        self.watch_nodes()
        self._exchange.at_turn_end(self)

    def watch_nodes(self) -> None:
        """Have the machine know which nodes with consumers are gone, or have started again."""
        if self.raft.is_confirmed and self.applied >= self._committed:
            for command in self.applier.watch_nodes():
                self.propose(b"", 0, command)

    def campaign(self) -> None:
        """Ask for votes at once, in a new group."""
        self.raft.campaign(self._exchange.state.now_ms)
        self._exchange.at_turn_end(self)

    def stop(self) -> None:
        """Do nothing more."""
        self._exchange.state.lifecycle.timers.disarm(self._wake)
        self._transfers.stop()
        for proposal in self._proposals.values():
            self._answer(proposal.origin, proposal.number, UNKNOWN, b"")
        for question in self._questions + list(self._reads.values()):
            self._answer(question.origin, question.number, NOT_LEADER, b"")
        self._proposals = {}
        self._questions = []
        self._reads = {}
        self._confirmed.clear()
        self.stopped = True
        self.applier.end()

    def snapshot_saved(self, index: i64) -> None:
        """A snapshot is synced: the core can forget the entries before, or confirm it to the leader."""
        if self._installing == index:
            self._installing = None
            self.persisted(self._persisted)
            return
        meta = self._saving
        if meta is not None and meta.index == index:
            self._saving = None
            self.raft.compacted(meta)
            self._exchange.at_turn_end(self)

    def wants_snapshot(self) -> None:
        """Write a snapshot of the machine as it is now."""
        if self._saving is not None or self.applied <= self.raft.snapshot.index:
            return
        meta = self.raft.snapshot_meta(self.applied, self._applied_time_ms)
        self._saving = meta
        self._storage.log.save_snapshot(
            self.group, meta.index, meta.term, meta.members.encode(), self.applier.snapshot()
        )
        self._storage.write_turn()
        self._exchange.at_turn_end(self)

    def lags(self) -> dict[bytes, int]:
        """How many entries the replicas of other nodes have not confirmed, by node; empty if this node follows."""
        return lags(self.raft)

    def wake(self) -> None:
        """A deadline has come."""
        now_ms = self._exchange.state.now_ms
        deadline_ms = self.raft.deadline_ms()
        if 0 < deadline_ms <= now_ms:
            self.raft.tick(now_ms)
        self._transfers.give_up()
        self._keep_time()
        self._exchange.at_turn_end(self)

    def _keep_time(self) -> None:
        """Propose what the machine has to do at this time, once."""
        if not self.raft.is_leader:
            return
        due_ms = self.applier.deadline_ms()
        if 0 < due_ms <= self._exchange.state.now_ms and due_ms != self._due_ms:
            self._due_ms = due_ms
            self.propose(b"", 0, self.applier.due())

    # --- members ------------------------------------------------------------------------------------------------------

    def change_to(self, wanted: tuple[bytes, ...]) -> bool:
        """Take the next step to the replicas that the group must have; True if it has them. Only the leader does."""
        if not self.raft.is_confirmed:
            return False
        outcome = self._changing.next_step(wanted)
        self._exchange.at_turn_end(self)
        return outcome == DONE_CHANGING

    @property
    def has_applied_all(self) -> bool:
        """Whether all entries are applied that are known to be committed."""
        return self.applied >= self._committed

    def hand_over(self) -> None:
        """Let another replica lead."""
        self._changing.hand_over(self.raft.members.voters)
        self._exchange.at_turn_end(self)

    def lead_back(self, lead: bytes) -> None:
        """Let the node that should lead do so, if this one has led for a while."""
        now_ms = self._exchange.state.now_ms
        if self.raft.is_confirmed and now_ms - self._led_ms >= LEAD_AGAIN_MS:
            self._led_ms = now_ms
            self._changing.lead_back(lead)
            self._exchange.at_turn_end(self)

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def _offer_snapshot(self, message: Message) -> None:
        """Send the state of the machine to a follower."""
        if self._transfers.is_sending_to(message.to):
            self.raft.snapshot_sent(message.to, 0, False)
            return
        message.snapshot = self.raft.snapshot_meta(self.applied, self._applied_time_ms)
        self._transfers.offer(message, self.applier.snapshot(), self.applier.needed())

    def take_part(self, part: Part, messages: list[Message]) -> None:
        """A part of a snapshot arrived, an offer of one, or a request."""
        self._transfers.take_part(part, messages)

    def _install(self, meta: SnapshotMeta) -> None:
        """The core takes the snapshot that was received."""
        state = self._transfers.take_state()
        log = self._storage.log
        log.install_snapshot(self.group, meta.index, meta.term, meta.members.encode(), state)
        self._storage.write_turn()
        self.applier.restore(state)
        self.applied = meta.index
        self._applied_time_ms = meta.time_ms
        self._to_apply = {}

    # --- the end of a turn --------------------------------------------------------------------------------------------

    def turn_ends(self) -> None:
        """Carry out the batches of the core, and apply what is committed."""
        if not self.stopped:
            self._end_turn()

    def _end_turn(self) -> None:
        self._resume()
        batch = self.raft.take()
        while batch is not None and not self.stopped:
            self._carry_out(batch)
            batch = self.raft.take()
        self._apply()
        if self.stopped:  # the log cannot be read
            return
        if self.raft.held and self._held_turn == 0:
            self._hold()
        self._arm()

    def _hold(self) -> None:
        """Entries wait from now on until half of those that were answered propose again, for a millisecond at most."""
        self._held_turn = self._exchange.turn
        self._held_ms = self._exchange.state.now_ms + HELD_MS
        self._enough = self.raft.last + self.applier.returning // 2
        self.applier.returning = 0

    def _resume(self) -> None:
        """Have entries sent that waited long enough, one turn at least."""
        exchange = self._exchange
        is_over = self.raft.last >= self._enough or exchange.state.now_ms >= self._held_ms
        if not self.raft.held:
            self._held_turn = 0
        elif is_over and self._held_turn != exchange.turn:
            self._held_turn = 0
            self.raft.resume()

    def _carry_out(self, batch: Batch) -> None:
        log = self._storage.log
        if batch.hard is not None:
            log.save_hard(self.group, batch.hard)
        if batch.restore is not None:
            self._install(batch.restore)
        if batch.entries:
            log.append(self.group, batch.entries)
        if batch.restore is not None:
            self._installing = batch.restore.index
            self._persisted = batch.ticket
        elif batch.writes:
            self._storage.wrote(self, batch.ticket, relaxed=batch.relaxed)
        if batch.messages:
            self._exchange.add_messages(self.group, batch.messages)
        self._committed = batch.committed
        for token, index in batch.reads:
            self._confirmed.append((token, index))
        for message in batch.snapshots:
            self._offer_snapshot(message)
        for low, high in batch.fetches:
            self._storage.fetch(self, self.group, low, high, TO_SEND)
        if batch.changed:
            self._role_changed()

    def _role_changed(self) -> None:
        leads = self.raft.is_leader
        if leads and self._led_ms == 0:
            self._exchange.state.counters.add(ELECTIONS)
        if not leads or self._led_ms == 0:
            self._led_ms = self._exchange.state.now_ms if leads else 0
        self._exchange.members[int(self.group)] = self.raft.members.all
        self.applier.members_changed(self.raft.members.voters)
        self._due_ms = 0
        self.applier.led(leads=leads, leader=node_of(self.raft.leader))
        self._exchange.leaders[int(self.group)] = node_of(self.raft.leader)

    def _apply(self) -> None:
        """Apply committed entries, as many as a turn may."""
        raft = self.raft
        leads = raft.is_leader
        until: i64 = min(self._committed, self.applied + MOST_APPLIED)
        while self.applied < until and not self.stopped:
            index: i64 = self.applied + 1
            entry = self._to_apply.pop(int(index), None)
            if entry is None:
                entry = self._storage.log.read(self.group, index)
            if entry is None:
                if not self._fetching:
                    self._fetching = True
                    self._storage.fetch(self, self.group, index, until, TO_APPLY)
                break
            self.applied = index
            self._applied_time_ms = entry.time_ms
            self._apply_one(entry, leads=leads)
        if self._confirmed:
            self._answer_reads()
        if self.applied < self._committed and not self._fetching:
            self._exchange.next_turn(self)
        if leads:
            if raft.eager_commit != self.applier.eager:
                raft.eager_commit = self.applier.eager
            if (self._watch or self.applier.doubts_nodes) and raft.is_confirmed and self.applied == self._committed:
                self._watch = False
                self.applier.doubts_nodes = False
                self.watch_nodes()
            self._keep_time()

    def _apply_one(self, entry: Entry, *, leads: bool) -> None:
        result = b""
        proposal = self._proposals.pop(int(entry.index), None)
        if entry.kind == MEMBERS:
            self._storage.log.release(self.group, entry.index)
        else:
            result = self.applier.apply(entry, leads=leads, wanted=proposal is not None)
            if entry.kind == EMPTY and leads:
                self._watch = True
        if proposal is None:
            return
        if proposal.term == entry.term:
            state = self._exchange.state
            state.counters.observe(COMMIT_TIME, max(state.now_ms - entry.time_ms, 0))
            self._answer(proposal.origin, proposal.number, DONE, result)
        else:
            self._not_leader(proposal.origin, proposal.number)

    def fetched(self, low: i64, entries: list[Entry], purpose: i64) -> None:
        """Entries were read from the disk."""
        if self.stopped:
            return
        if purpose == TO_SEND:
            self.raft.fetched(low, entries)
        elif purpose == TO_DELIVER:
            self.applier.body_read(entries)
        elif purpose == TO_COPY:
            self._transfers.read(entries)
        elif purpose == TO_READ:
            questions = self._questions
            self._questions = []
            for question in questions:
                question.entries.update({int(entry.index): entry for entry in entries})
                self._read(question)
        else:
            self._fetching = False
            for entry in entries:
                self._to_apply[int(entry.index)] = entry
        self._exchange.at_turn_end(self)

    def _answer_reads(self) -> None:
        waiting: deque[tuple[i64, i64]] = deque()
        for token, index in self._confirmed:
            if index > self.applied:
                waiting.append((token, index))
                continue
            question = self._reads.pop(int(token))
            if index == 0:
                self._not_leader(question.origin, question.number)
            elif question.data:
                self._read(question)
            else:
                self._answer(question.origin, question.number, DONE, b"")
        self._confirmed = waiting

    def _arm(self) -> None:
        """Wake up for the next deadline of the core or of the machine."""
        deadline_ms = self.raft.deadline_ms()
        if self.raft.is_leader:
            due_ms = self.applier.deadline_ms()
            if due_ms > 0 and due_ms != self._due_ms and (deadline_ms == 0 or due_ms < deadline_ms):
                deadline_ms = due_ms
        give_up_ms = self._transfers.give_up_ms
        if give_up_ms > 0:
            deadline_ms = give_up_ms if deadline_ms == 0 else min(deadline_ms, give_up_ms)
        if self.raft.held:
            deadline_ms = self._held_ms
        timers = self._exchange.state.lifecycle.timers
        if deadline_ms > 0:
            timers.arm(self._wake, max(deadline_ms, self._exchange.state.now_ms))
        elif self._wake.awake_ms != 0:
            timers.disarm(self._wake)
