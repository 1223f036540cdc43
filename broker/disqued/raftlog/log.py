"""The log of all Raft groups of a node: one file is appended to, and one sync makes the entries of all groups safe.

The room adds entries, hard states and snapshots during a turn and calls `flush` at its end. `flush` returns a ticket;
`LogOwner.persisted` says up to which ticket everything is safe. Everything that is added is one ordered stream, so what
a later ticket covers includes what earlier ones cover. The state in memory changes at once.

**Disk.** Segments are named `ordered-NNNNNNNNNN.log`, in the working directory like all files of a node: the disk knows
no folders, and `LIST` finds them by the beginning of their names. There is no file before the first record.

**Space.** When nothing is under way, the files have at most twice the bytes of the live records, plus three segments:
one that is appended to, one that is being rewritten, and what a snapshot could free before the owner is asked for one.

**Faults.** A write that fails is repeated each second, in order (`LogOwner.blocked`). A sync that fails ends the
service of the log until the next start (`failed`). A record that cannot be read concerns one group (`damaged`), and so
does damage found at a start, as far as can be proven (`lastsegment`): the owner must remove the group. Until it does,
the log remembers over restarts that the group is damaged.

**Identity.** `data_id` is drawn when the log begins from nothing, so a node that lost its disk has another one. It is
kept on disk with the first record.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.host.disk import DiskOwner, DiskWork
from disqued.core.host.host import Host
from disqued.raft.entry import Entry
from disqued.raft.hardstate import HardState
from disqued.raftlog import record
from disqued.raftlog.appender import Appender
from disqued.raftlog.cache import MOST_SLOTS, EntryCache, key_of
from disqued.raftlog.fetches import Fetch, Fetches
from disqued.raftlog.grouplog import GroupLog, ReceivedEntries
from disqued.raftlog.owner import LogOwner
from disqued.raftlog.recovery import Recovery
from disqued.raftlog.rewriter import Rewriter
from disqued.raftlog.snapshots import Snapshots
from disqued.raftlog.stateloader import StateLoader
from disqued.raftlog.tuning import LARGEST_DATA, LogTuning

_READING: Final = 0
_BEGINNING: Final = 1
_STATES: Final = 2
_OPEN: Final = 3


class RaftLog(DiskOwner):
    """The log. Open it first, and wait for `LogOwner.opened`."""

    def __init__(self, host: Host, owner: LogOwner, tuning: LogTuning) -> None:
        super().__init__()
        self._host = host
        self._owner = owner
        self._tuning = tuning
        self._appender = Appender(host.disk, self, tuning)
        self._writer = self._appender.writer
        self._segments = self._appender.segments
        self._groups = self._appender.groups
        self.cache = EntryCache(tuning.cache_bytes)
        self._fetches = Fetches(host.disk, self, tuning, self._appender, self.cache)
        self._rewriter = Rewriter(host.disk, self, tuning, self._appender)
        self._snapshots = Snapshots(tuning, self._appender)
        self._recovery = Recovery(host.disk, self, tuning, self._segments)
        self._states: StateLoader | None = None
        self._phase: i64 = _READING
        self._first_frame: i64 = 0
        """The frame that must be synced before the log is open."""
        self._now_ms: i64 = 0
        self._next_slot: i64 = 1
        self._releasable: i64 = 0
        """About how many bytes snapshots would free that the owner was not asked for."""
        self._told_safe: i64 = 0
        self._told_blocked = ""
        self._told_failure: bool = False
        self._advancing: bool = False

    # --- what others look at ------------------------------------------------------------------------------------------

    @property
    def data_id(self) -> bytes:
        """The identity of this log, 8 bytes; empty before it is open."""
        return self._appender.data_id

    @property
    def safe(self) -> i64:
        """The last ticket that is persisted."""
        return self._told_safe

    @property
    def failure(self) -> str:
        """Why the log is out of service; empty if it is not."""
        return self._writer.failure

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written, rewritten or deleted."""
        quiet = self._writer.idle and self._appender.empty and self._snapshots.idle and self._rewriter.idle
        return quiet and not self._segments.uneven

    @property
    def wake_ms(self) -> i64:
        """When `tick` must be called; 0 if it need not."""
        writer_ms = self._writer.wake_ms
        frame_ms = self._appender.due_ms
        if frame_ms == 0 or self._appender.due:  # it is written as soon as the writer is free
            return writer_ms
        return frame_ms if writer_ms == 0 else min(writer_ms, frame_ms)

    @property
    def disk_bytes(self) -> i64:
        """The size of all segments."""
        return self._segments.disk_bytes

    @property
    def live_bytes(self) -> i64:
        """The size of all live records."""
        return self._segments.live

    @property
    def syncs(self) -> i64:
        """How often the log synced."""
        return self._writer.syncs

    @property
    def rewritten(self) -> i64:
        """How many segments were rewritten."""
        return self._rewriter.rewritten

    @property
    def reads(self) -> i64:
        """How often the disk was read for fetches."""
        return self._fetches.count

    def group_of(self, group: i64) -> GroupLog | None:
        """What the log knows of a group, to look at."""
        return self._groups.get(group)

    def groups(self) -> list[int]:
        """The groups, ascending."""
        return sorted(self._groups)

    def first_index(self, group: i64) -> i64:
        """The index behind the snapshot of a group; 1 if there is none."""
        log = self._groups.get(group)
        return log.first if log is not None else 1

    def last_index(self, group: i64) -> i64:
        """The index of the last entry or of the snapshot of a group; 0 if it has neither."""
        log = self._groups.get(group)
        return log.last if log is not None else 0

    def term(self, group: i64, index: i64) -> i64:
        """The term of an entry, or of the snapshot; 0 if it is not known."""
        log = self._groups.get(group)
        return log.term_of(index) if log is not None else 0

    # --- adding -------------------------------------------------------------------------------------------------------

    def _group(self, number: i64) -> GroupLog:
        """A group, which begins to exist if it did not."""
        group = self._groups.get(number)
        if group is None:
            group = GroupLog(number, self._slot(), self._segments)
            self._groups[number] = group
        return group

    def _slot(self) -> i64:
        """A number for a group that no entry in the cache has."""
        if self._next_slot == MOST_SLOTS:
            self.cache.clear()
            self._next_slot = 1
            for group in self._groups.values():
                group.slot = self._next_slot
                self._next_slot += 1
        slot = self._next_slot
        self._next_slot += 1
        return slot

    def append(self, group: i64, entries: list[Entry]) -> None:
        """Append entries with consecutive indexes, in place of all from the first of these indexes on.

        Raises ValueError if they do not follow what is there, or if the data of one is larger than 40 MB.
        """
        log = self._group(group)
        if log.installing:
            self._snapshots.finish(log)
        appender = self._appender
        cache = self.cache
        for entry in entries:
            data = entry.data
            index = entry.index
            log.check_append(index)
            if len(data) > LARGEST_DATA:
                raise ValueError(f"entry {index} of group {group} has {len(data)} bytes, at most 40 MB are possible")
            place = appender.add(record.ENTRY, entry.kind, group, entry.term, index, entry.time_ms, data)
            log.append(index, entry.term, place)
            cache.put(key_of(log.slot, index), entry)

    def save_hard(self, group: i64, hard: HardState) -> None:
        """Save the term and the vote of a group; a group that is not known begins to exist."""
        log = self._group(group)
        self._appender.add(record.HARD, 0, group, hard.term, -1, -1, hard.vote)
        log.hard_term = hard.term
        log.vote = hard.vote

    def save_snapshot(self, group: i64, index: i64, term: i64, members: bytes, state: bytes) -> None:
        """Save a snapshot of this replica; of the entries up to `index`, those that are not released stay.

        `LogOwner.snapshot_saved` follows. Large states are written over several turns. Raises ValueError if the log
        does not have the entry at `index`.
        """
        log = self._group(group)
        if index <= log.snapshot.index or log.term_of(index) != term:
            raise ValueError(f"group {group} has no entry {index} of term {term} above its snapshot")
        self._snapshots.save(log, index, term, members, state, install=False)

    def receive_entries(self, group: i64, entries: list[Entry]) -> None:
        """Keep entries that belong to a snapshot that is being received: those whose body is still needed.

        Raises ValueError unless their indexes are higher than those of the calls before.
        """
        log = self._group(group)
        received = log.received
        if received is None:
            received = log.received = ReceivedEntries()
        for entry in entries:
            if received.indexes and i64(received.indexes[-1]) >= entry.index:
                raise ValueError(f"entry {entry.index} of group {group} is out of order")
            place = self._appender.add(
                record.BODY, entry.kind, group, entry.term, entry.index, entry.time_ms, entry.data
            )
            received.add(entry.index, entry.term, place)
            if place != 0:
                self._segments.gain(place)

    def install_snapshot(self, group: i64, index: i64, term: i64, members: bytes, state: bytes) -> None:
        """Save a snapshot of another replica, which with the received entries replaces everything of the group.

        `LogOwner.snapshot_saved` follows. Raises ValueError if an entry above `index` was received.
        """
        log = self._group(group)
        received = log.received
        if received is not None and received.indexes and i64(received.indexes[-1]) > index:
            raise ValueError(f"entries above the snapshot {index} of group {group} were received with it")
        self._snapshots.save(log, index, term, members, state, install=True)

    def abandon_snapshot(self, group: i64) -> None:
        """Drop the entries of a snapshot that is not received completely."""
        log = self._groups.get(group)
        if log is not None:
            if log.installing:
                log.abandon_pending()
            log.abandon_received()

    def remove_group(self, group: i64) -> None:
        """Forget a group, and that it is damaged. A group of the same number begins from nothing."""
        log = self._groups.pop(group, None)
        if log is not None:
            log.drop()
            self._appender.add(record.REMOVED, 0, group, -1, -1, -1, b"")

    def release(self, group: i64, index: i64) -> None:
        """The machine needs the body of this entry no more.

        Must be called for every entry that was applied, also for those that never had a body that is needed: the log
        asks for snapshots by this. Entries above the snapshot stay until a snapshot covers them.
        """
        log = self._groups.get(group)
        if log is None:
            return
        if index <= log.snapshot.index:
            self._appender.released[group] = log
        freed = log.release(index)
        if not log.asked:
            self._releasable += freed

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, group: i64, index: i64) -> Entry | None:
        """An entry if it is in memory."""
        log = self._groups.get(group)
        if log is None:
            return None
        place = log.place_of(index)
        return self._fetches.entry_at(log, index, place) if place != 0 else None

    def fetch(self, group: i64, low: i64, high: i64, token: object) -> None:
        """Read the entries from `low` to `high`, both included; `LogOwner.fetched` follows, perhaps at once.

        Entries that are not in the log are left out. More than 4 MB are cut off: fetch the rest.
        """
        log = self._groups.get(group)
        if log is None:
            self._owner.fetched(token, [])
            return
        self._fetches.start(Fetch(log, low, high, token))
        self._report_fetches()

    def _report_fetches(self) -> bool:
        """Tell the owner what was fetched."""
        fetches = self._fetches
        if not fetches.finished and not fetches.damaged:
            return False
        finished, fetches.finished = fetches.finished, []
        damaged, fetches.damaged = fetches.damaged, []
        self._tell_damaged(damaged)
        for fetch in finished:
            self._owner.fetched(fetch.token, fetch.entries)
        return True

    def _tell_damaged(self, groups: list[int]) -> None:
        for number in groups:
            log = self._groups.get(number)
            if log is not None:
                self._appender.add_state(log)  # which says that it is damaged
                self._appender.want_written()
                self._owner.damaged(number, "a record of the ordered log cannot be read")

    # --- turns --------------------------------------------------------------------------------------------------------

    def open(self, now_ms: i64) -> None:
        """Start to read the log."""
        self._now_ms = now_ms
        self._advance()

    def flush(self, now_ms: i64, *, relaxed: bool = False) -> i64:
        """End a turn: have what was added written and synced. Returns a ticket for `LogOwner.persisted`.

        If nothing was added the ticket is an earlier one, which may be persisted already (`safe`). If nobody waits for
        it (`relaxed`), it may be written and synced later, together with that of other turns.
        """
        self._now_ms = now_ms
        if not self._snapshots.idle:
            relaxed = False
            self._snapshots.write()
        appender = self._appender
        ticket = appender.last_frame
        if not appender.empty:
            if relaxed:
                appender.allow_later(now_ms)
            else:
                appender.want_written()
        self._advance()
        return ticket

    def tick(self, now_ms: i64) -> None:
        """Do what is due by the time (`wake_ms`)."""
        self._now_ms = now_ms
        self._advance()

    def finish(self, now_ms: i64) -> str:
        """Write and sync everything, and wait for the disk: the node ends. Returns the error, if any."""
        self._now_ms = now_ms
        while not self._snapshots.idle and not self._writer.failure:
            self._snapshots.write()
        if not self._appender.empty and not self._writer.failure:
            self._appender.close()
        error = self._writer.finish(now_ms)
        self._advance()
        return error

    def disk_done(self, work: DiskWork) -> None:
        """Continue after work."""
        states = self._states
        if (
            self._writer.done(work, self._now_ms)
            or self._fetches.done(work)
            or self._rewriter.done(work)
            or self._recovery.done(work)
            or (states is not None and states.done(work))
        ):
            self._advance()

    def _advance(self) -> None:
        """Do all that can be done now. The owner may call the log while it is told something."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._step():
                pass
        finally:
            self._advancing = False

    def _step(self) -> bool:
        """Do one thing; returns False when there is nothing."""
        if self._phase != _OPEN and self._starting():
            return True
        writer = self._writer
        appender = self._appender
        if 0 < appender.due_ms <= self._now_ms:
            appender.want_written()
        if appender.due and writer.free:
            if not appender.empty:
                appender.close()
            appender.due = False
        writer.advance(self._now_ms)
        if appender.due and writer.free:
            return True
        if self._report_writes() or self._report_fetches():
            return True
        if self._phase != _OPEN:
            return False
        if not self._snapshots.idle and writer.idle:
            self._snapshots.write()
            appender.want_written()
            return True
        if self._rewriter.step():
            if self._rewriter.damaged:
                damaged, self._rewriter.damaged = self._rewriter.damaged, []
                self._tell_damaged(damaged)
            return True
        return self._ask_for_snapshots()

    def _report_writes(self) -> bool:
        """Tell the owner what changed."""
        writer = self._writer
        owner = self._owner
        if writer.failure:
            if self._told_failure:
                return False
            self._told_failure = True
            writer.drop_queue()
            owner.failed(writer.failure)
            return True
        if writer.blocked != self._told_blocked:
            self._told_blocked = writer.blocked
            owner.blocked(writer.blocked)
            return True
        saved = self._snapshots.take_saved()
        safe = writer.safe
        if safe > self._told_safe:
            self._told_safe = safe
            if self._phase == _OPEN:
                owner.persisted(safe)
        elif not saved:
            return False
        for group, index in saved:
            owner.snapshot_saved(group, index)
        return True

    def _ask_for_snapshots(self) -> bool:
        """Ask the owner for snapshots of the groups that hold most of what could be freed."""
        limit = self._tuning.segment_bytes // 2
        if self._releasable <= limit:
            return False
        total: i64 = 0
        candidates: list[tuple[i64, i64]] = []
        for group in self._groups.values():
            if not group.asked and group.releasable > 0 and group.pending is None:
                total += group.releasable
                candidates.append((-group.releasable, group.number))
        candidates.sort()
        self._releasable = total
        if total <= limit:
            return False
        for freed, number in candidates:
            if self._releasable <= limit // 2:
                break
            self._releasable += freed
            self._groups[number].asked = True
            self._owner.wants_snapshot(number)
        return True

    # --- starting -----------------------------------------------------------------------------------------------------

    def _starting(self) -> bool:
        """Do the next thing of the start; returns False when it must wait."""
        if self._phase == _READING:
            return self._read_log()
        if self._phase == _BEGINNING:
            if self._writer.synced < self._first_frame:
                return False
            self._phase = _STATES
            self._states = StateLoader(
                self._host.disk, self, self._segments, [self._groups[number] for number in sorted(self._groups)]
            )
            return True
        states = self._states
        assert states is not None, "the states are being read"
        group = states.take()
        if group is not None:
            found = self._recovery.describe(group)
            found.snapshot_state = states.state()
            self._owner.recovered(found)
            return True
        if states.ended:
            self._phase = _OPEN
            self._states = None
            self._recovery.forget()
            self._owner.opened()
            return True
        work = states.step()
        return work is not None and work.finished and states.done(work)

    def _read_log(self) -> bool:
        recovery = self._recovery
        if recovery.failure:
            if self._writer.failure:
                return False
            self._writer.failure = recovery.failure
            return True
        if not recovery.ended:
            work = recovery.step()
            return work is not None and work.finished and recovery.done(work)
        for note in recovery.notes:
            self._host.log("warning", f"Ordered log: {note}")
        if recovery.lost:
            self._host.log("warning", "Ordered log: nothing of it can be read. It begins again with a new identity.")
        appender = self._appender
        appender.data_id = recovery.data_id or self._host.random_bytes(record.DATA_ID_BYTES)
        appender.next_number = recovery.highest + 1
        for number, group in recovery.groups.items():
            group.slot = self._slot()
            self._groups[number] = group
        if recovery.highest > 0:
            appender.roll(recovery.bodies.copies)
            self._first_frame = appender.last_frame
            self._writer.want_synced(self._first_frame)
            self._rewriter.discard_later(recovery.leftovers, self._first_frame)
        self._phase = _BEGINNING
        return True
