"""The leader's part: appends to the followers, what they confirm, and from that the commit.

Inputs change the state, and `fill` makes the messages when a batch is taken, so all proposals of a turn go in one
append per follower.

- *Commit*: the highest index that a quorum has synced, if its entry is of the leader's own term (section 5.4.2 and
  figure 8 of the paper). The leader counts itself up to what it has synced, and only if it is a voter.
- *News of the commit*: the next append takes it along. If nothing follows, an empty append takes it after
  `Tuning.commit_delay_ms`, or at once if `eager_commit` is set.
- *Repetition*: while a follower that is heard has not confirmed everything, an empty append is sent every
  `Tuning.repeat_ms` as if it came after all that was sent. The follower refuses it if something before it was lost,
  and the refusal says where to start again. If everything arrived, only the lost answer is repeated. When nothing is
  outstanding there is no deadline.
- *Older entries* that are not in memory are requested from the driver, and sent when it has read them.
- *Removal of the leader*, also by making it a learner: it leads until the entry that removes it is committed. Then it
  sends the commit to all, tells a follower that has the whole log to campaign, and steps down.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.raft.core import Core
from disqued.raft.entry import EMPTY, Entry
from disqued.raft.message import APPEND, PREVOTE, ROUND, SNAPSHOT, TIMEOUT_NOW, Message
from disqued.raft.progress import PROBE, REPLICATE, Progress
from disqued.raft.progress import SNAPSHOT as RECEIVES_SNAPSHOT
from disqued.raft.role import LEADER
from disqued.raft.transfer import Transfer

_MOST_ENTRIES: Final = 1024
"""In one append."""
_LATE_MS: Final = 10
"""A follower that has confirmed nothing of what it was sent for this time does not keep up."""
_ENTRY_BYTES: Final = 24
"""What an entry counts besides its data."""


class Leading:
    """The state of a leader. It is made new by `begin` and has no meaning in another role."""

    def __init__(self, core: Core, transfer: Transfer) -> None:
        self._core = core
        self._transfer = transfer
        self.eager_commit: bool = False
        self.wanted: bool = False
        """Whether `fill` may have something to send."""
        self.repeat_due_ms: i64 = 0
        self.commit_due_ms: i64 = 0
        self.fetches: list[tuple[i64, i64]] = []
        self.snapshots: list[Message] = []
        self.followers: list[Progress] = []
        self._by_replica: dict[bytes, Progress] = {}
        self._voters: list[Progress] = []
        self._is_voter: bool = False
        self._quorum: i64 = 1
        self._own_index: i64 = 0
        """The index of the first entry of this term."""
        self._round_last: i64 = 0
        """The last index of the appends that are on their way (`Tuning.gather_entries`); 0 if there are none."""
        self.held: bool = False
        """Whether a round has ended, and the next one waits for those that were answered to propose again."""
        self._push: bool = False
        """Send the commit index to all followers that do not know it."""
        self._sliced_from: i64 = 0
        self._sliced: list[Entry] = []
        self._sliced_bytes: i64 = 0
        """The entries of the last append, which is often the same for all followers."""

    @property
    def is_confirmed(self) -> bool:
        """Whether an entry of this term is committed, so that the commit index is the newest of the group."""
        return self._core.committed >= self._own_index

    def progress_of(self, replica: bytes) -> Progress | None:
        """Return the progress of a follower or learner."""
        return self._by_replica.get(replica)

    def confirmed_by_all(self) -> i64:
        """Return the index that all followers which are heard have confirmed."""
        index: i64 = self._core.log.last
        for follower in self.followers:
            if follower.match < index and self._core.liveness.heard(follower.replica):
                index = follower.match
        return index

    # --- input --------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Lead from now on, in a term that this replica has won."""
        core = self._core
        core.role = LEADER
        core.leader = core.me
        core.election_due_ms = 0
        self._transfer.end()
        self.repeat_due_ms = 0
        self.commit_due_ms = 0
        self.fetches = []
        self.snapshots = []
        self.followers = []
        self._by_replica = {}
        self._push = False
        self._round_last = 0
        self.held = False
        self._sliced_from = 0
        self.arrange()
        self._own_index = self.append(EMPTY, b"")

    def arrange(self) -> None:
        """Follow the newest members of the log."""
        members = self._core.log.members
        me = self._core.me
        following: i64 = self._core.log.last + 1
        self.followers = []
        for replica in members.all:
            if replica == me:
                continue
            follower = self._by_replica.get(replica)
            if follower is None:
                follower = Progress(replica, following)
                follower.poke = True
            self.followers.append(follower)
        self._by_replica = {follower.replica: follower for follower in self.followers}
        self._voters = [self._by_replica[replica] for replica in self.voting() if replica != me]
        self._is_voter = members.is_voter(me)
        self._quorum = members.quorum
        self.wanted = True

    def voting(self) -> tuple[bytes, ...]:
        """Return the replicas that count for a commit."""
        return self._core.log.members.voters

    def append(self, kind: i64, data: bytes) -> i64:
        """Append an entry and return its index."""
        core = self._core
        log = core.log
        index: i64 = log.last + 1
        log.append(Entry(core.term, index, max(core.now_ms, log.last_time_ms), kind, data))
        self.wanted = True
        return index

    def append_reply(self, message: Message) -> None:
        """Take the answer of a follower to an append or a snapshot."""
        follower = self._by_replica.get(message.sender)
        log = self._core.log
        if follower is None or message.index > log.last:
            return
        follower.commit = message.commit
        if message.flag:
            self._refused(follower, message)
            return
        new = message.index > follower.match
        if new:
            follower.match = message.index
        follower.confirm(follower.match, self._core.now_ms)
        if follower.state == PROBE or (follower.state == RECEIVES_SNAPSHOT and follower.match >= log.snapshot.index):
            follower.replicate()
        elif follower.next <= follower.match:
            follower.next = follower.match + 1
            follower.fetching = False
        self.wanted = True
        if new:
            self.advance()
        if self._core.role == LEADER and self._transfer.to:
            self._transfer.look(follower)
        if self._is_outstanding(follower):
            if self.repeat_due_ms == 0:
                self.repeat_due_ms = self._core.now_ms + self._core.tuning.repeat_ms
        elif self.repeat_due_ms != 0:
            self._settle()

    def _refused(self, follower: Progress, message: Message) -> None:
        """Go back to where the logs may be equal, unless the refusal is an old one."""
        if follower.state == RECEIVES_SNAPSHOT or message.index <= follower.match:
            return
        if follower.state == PROBE and message.index != follower.next - 1:
            return
        equal: i64 = self._core.log.equal_up_to(message.hint, message.log_term)
        follower.probe(max(follower.match, min(message.index - 1, equal)) + 1)
        self.wanted = True

    def advance(self) -> None:
        """Commit what a quorum has synced."""
        core = self._core
        matches = [follower.match for follower in self._voters]
        if self._is_voter:
            matches.append(core.log.stable)
        if len(matches) < self._quorum:
            return
        matches.sort()
        index: i64 = matches[len(matches) - self._quorum]
        if index > core.committed and self.may_commit(index):
            core.commit(index)
            self.wanted = True
            if not self._is_voter and core.log.members_index <= index:
                self._leave()

    def may_commit(self, index: i64) -> bool:
        """Whether an entry that a quorum has may be committed by counting: only if it is of the own term."""
        return self._core.log.term_at(index) == self._core.term

    def _leave(self) -> None:
        """Step down, because the entry that removes this replica is committed."""
        core = self._core
        self._push = True
        self.fill()
        for follower in self._voters:
            if follower.match == core.log.last:
                core.send(core.message(TIMEOUT_NOW, follower.replica))
                break
        core.follow(core.term, b"")

    # --- time and liveness --------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what is due, and see whether a quorum is heard and who can be sent something again."""
        core = self._core
        if not self.hears_quorum():
            core.follow(core.term, b"")
            return
        if self._transfer.due_ms and core.now_ms >= self._transfer.due_ms:
            self._transfer.end()
        if self.commit_due_ms and core.now_ms >= self.commit_due_ms:
            self._push = True
            self.wanted = True
        self._repeat()

    def hears_quorum(self) -> bool:
        """Whether the nodes of a quorum were heard."""
        core = self._core
        count: i64 = 1 if self._is_voter else 0
        for follower in self._voters:
            if core.liveness.heard(follower.replica):
                count += 1
        return count >= self._quorum

    @property
    def is_followed(self) -> bool:
        """Whether a quorum without this replica keeps up, so that its own syncs are not needed at once.

        Of two followers, one is always a little behind when the other one and this replica have committed. So it counts
        if it lacks no more than two rounds, and has confirmed something, or got nothing before, in the last 10 ms.
        """
        core = self._core
        most: i64 = 2 * core.tuning.gather_entries
        count: i64 = 0
        for follower in self._voters:
            if follower.state != REPLICATE:
                continue
            lacks: i64 = core.committed - follower.match
            if lacks <= 0 or (lacks <= most and core.now_ms - follower.since_ms < _LATE_MS):
                count += 1
        return count >= self._quorum

    def poke(self, replica: bytes) -> None:
        """Send an append to a follower that does not know its leader, or whose node was away."""
        follower = self._by_replica.get(replica)
        if follower is not None:
            follower.poke = True
            self.wanted = True

    def greet(self, request: Message) -> None:
        """Make this leader known to a replica that asks for votes.

        One that has been removed and does not know it gets no appends, but an empty round, and asks no more. If its
        term is higher it gets nothing, because its answer would depose this leader.
        """
        core = self._core
        if request.sender in self._by_replica:
            self.poke(request.sender)
        elif request.term <= core.term + (1 if request.kind == PREVOTE else 0):
            core.send(core.message(ROUND, request.sender))

    def restart(self, replica: bytes) -> None:
        """Probe a follower whose node was away: what was under way to it is lost."""
        follower = self._by_replica.get(replica)
        if follower is not None and follower.state != RECEIVES_SNAPSHOT:
            follower.probe(follower.next)
            self.poke(replica)

    def _is_outstanding(self, follower: Progress) -> bool:
        core = self._core
        if follower.state == RECEIVES_SNAPSHOT or follower.fetching:
            return False
        return follower.state == PROBE or follower.match < core.log.last or follower.commit < core.committed

    def _repeat(self) -> None:
        """Repeat what was not answered in time."""
        core = self._core
        self.repeat_due_ms = 0
        for follower in self.followers:
            if not self._is_outstanding(follower) or not core.liveness.heard(follower.replica):
                continue
            due_ms: i64 = follower.sent_ms + core.tuning.repeat_ms
            if due_ms <= core.now_ms:
                follower.poke = True
                self.wanted = True
                due_ms = core.now_ms + core.tuning.repeat_ms
            if self.repeat_due_ms == 0 or due_ms < self.repeat_due_ms:
                self.repeat_due_ms = due_ms

    def _settle(self) -> None:
        """Remove the deadline if all followers have confirmed everything."""
        for follower in self.followers:
            if self._is_outstanding(follower):
                return
        self.repeat_due_ms = 0

    # --- output -------------------------------------------------------------------------------------------------------

    def fill(self) -> None:
        """Send to each follower what it lacks and may get."""
        core = self._core
        self.wanted = False
        round_last = self._find_round()
        if self._round_last > 0 and round_last == 0:
            self.held = self._has_few()
        self._round_last = round_last
        behind = False
        for follower in self.followers:
            self._fill(follower)
            if self._misses_commit(follower):
                behind = True
        self._round_last = self._find_round()
        self._push = False
        if not behind:
            self.commit_due_ms = 0
        elif self.commit_due_ms <= core.now_ms:
            self.commit_due_ms = core.now_ms + core.tuning.commit_delay_ms

    def _fill(self, follower: Progress) -> None:
        core = self._core
        if follower.state == RECEIVES_SNAPSHOT or follower.fetching:
            return
        tuning = core.tuning
        while follower.next <= core.log.last:
            if follower.state == PROBE:
                if follower.waiting:
                    break
            elif follower.is_full(tuning.window_messages, tuning.window_bytes) or self._gathers(follower):
                break
            if not self._send_next(follower):
                return
        if follower.poke or ((self.eager_commit or self._push) and self._misses_commit(follower)):
            self._send_empty(follower)

    def _find_round(self) -> i64:
        """The last index that a voter was sent and has not confirmed, if it is not behind; 0 if there is none.

        If it never confirms, the others commit without it, and then it is behind. Therefore there are no rounds before
        an entry of this term is committed: what was sent by then may be of earlier terms, which cannot be committed.
        """
        last: i64 = 0
        if self.is_confirmed:
            for follower in self._voters:
                if follower.has_sent and follower.match >= self._core.committed and follower.next - 1 > last:
                    last = follower.next - 1
        return last

    def _has_few(self) -> bool:
        """Whether there are fewer entries to send than an append should have."""
        last: i64 = self._core.log.last
        most: i64 = 0
        for follower in self._voters:
            if follower.state == REPLICATE and last - follower.next + 1 > most:
                most = last - follower.next + 1
        return most < self._core.tuning.gather_entries

    def resume(self) -> None:
        """Begin the round that was held."""
        self.held = False
        self.wanted = True

    def _gathers(self, follower: Progress) -> bool:
        """Whether the next append waits for more entries.

        A follower that lacks entries of the round does not wait for it: it may be needed to commit them.
        """
        core = self._core
        if core.log.last - follower.next + 1 >= core.tuning.gather_entries:
            return False
        return follower.has_sent or self.held or (self._round_last > 0 and follower.next > self._round_last)

    def _misses_commit(self, follower: Progress) -> bool:
        """Whether a follower has been sent all entries, but no append to it had the newest commit index."""
        core = self._core
        return follower.commit_sent < core.committed and follower.next > core.log.last and follower.state == REPLICATE

    def _send_next(self, follower: Progress) -> bool:
        """Send the next entries. If they are not in memory, request them, or have a snapshot sent, and return false."""
        core = self._core
        log = core.log
        low: i64 = follower.next
        if log.term_at(low - 1) < 0:
            self._send_snapshot(follower)
            return False
        if low < log.first:
            follower.fetching = True
            high: i64 = min(log.first, low + core.tuning.fetch_entries) - 1
            if (low, high) not in self.fetches:
                self.fetches.append((low, high))
            return False
        if self._sliced_from != low or low + len(self._sliced) - 1 < log.last:
            high = min(log.last, low + _MOST_ENTRIES - 1)
            self._slice(low, log.entries(low, high))
        self._send_entries(follower)
        return True

    def _slice(self, low: i64, entries: list[Entry]) -> None:
        """Take as many entries as one append may have."""
        most: i64 = self._core.tuning.message_bytes
        size: i64 = 0
        count: i64 = 0
        for entry in entries:
            size += len(entry.data) + _ENTRY_BYTES
            if size > most and count > 0:
                size -= len(entry.data) + _ENTRY_BYTES
                break
            count += 1
        self._sliced = entries if count == len(entries) else entries[:count]
        self._sliced_from = low
        self._sliced_bytes = size

    def _send_entries(self, follower: Progress) -> None:
        message = self._append_to(follower)
        message.entries = self._sliced
        last: i64 = self._sliced_from + len(self._sliced) - 1
        follower.commit_sent = min(message.commit, last)
        follower.sent(last, self._sliced_bytes, self._core.now_ms)

    def _send_empty(self, follower: Progress) -> None:
        """Send an append without entries, after all that was sent before."""
        if self._core.log.term_at(follower.next - 1) < 0:
            self._send_snapshot(follower)
            return
        message = self._append_to(follower)
        follower.commit_sent = min(message.commit, message.index)
        if follower.state == PROBE:
            follower.waiting = True

    def _append_to(self, follower: Progress) -> Message:
        core = self._core
        message = core.message(APPEND, follower.replica)
        message.index = follower.next - 1
        message.log_term = core.log.term_at(message.index)
        message.commit = core.committed
        follower.sent_ms = core.now_ms
        follower.poke = False
        if self.repeat_due_ms == 0:
            self.repeat_due_ms = core.now_ms + core.tuning.repeat_ms
        core.send(message)
        return message

    def _send_snapshot(self, follower: Progress) -> None:
        """Have the driver send a snapshot, if the follower's node is heard."""
        core = self._core
        follower.poke = False
        if not core.liveness.heard(follower.replica):
            follower.waiting = True
            return
        message = core.message(SNAPSHOT, follower.replica)
        message.snapshot = core.log.snapshot
        message.commit = core.committed
        follower.wait_for_snapshot()
        follower.sent_ms = core.now_ms
        self.snapshots.append(message)

    def fetched(self, low: i64, entries: list[Entry]) -> None:
        """Send entries that were read from the store to the followers that wait for them.

        Some are missing if the store has a newer snapshot than this core knows.
        """
        entries = _without_gap(low, entries)
        for follower in self.followers:
            if not follower.fetching or follower.next != low:
                continue
            follower.fetching = False
            if entries and self._core.log.term_at(low - 1) >= 0:
                self._slice(low, entries)
                self._send_entries(follower)
                self._sliced_from = 0
            elif not entries:
                self._pause(follower)
        self.wanted = True

    def snapshot_sent(self, replica: bytes, index: i64, done: bool) -> None:
        """Continue after a snapshot was sent, or could not be."""
        follower = self._by_replica.get(replica)
        if follower is None or follower.state != RECEIVES_SNAPSHOT:
            return
        follower.next = max(follower.match, index if done else 0) + 1
        self._pause(follower)

    def _pause(self, follower: Progress) -> None:
        """Send nothing to a follower until it answers, or until the next repetition."""
        follower.probe(follower.next)
        follower.waiting = True
        follower.sent_ms = self._core.now_ms
        if self.repeat_due_ms == 0:
            self.repeat_due_ms = self._core.now_ms + self._core.tuning.repeat_ms


def _without_gap(low: i64, entries: list[Entry]) -> list[Entry]:
    """The entries from `low` on, up to the first one that is missing."""
    for position, entry in enumerate(entries):
        if entry.index != low + position:
            return entries[:position]
    return entries
