"""The log of this node as its replicas use it: who wrote what in a turn, and who fetched which entries.

All replicas write to one log, which is flushed once at the end of a turn. A flush has a ticket, and so has each batch
of a core. `Storage` keeps which batches a flush contains, and tells their replicas when it is synced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.host.host import Host
from disqued.ordered.exchange import Exchange, GroupReplica
from disqued.raft.entry import Entry
from disqued.raftlog.log import RaftLog
from disqued.raftlog.owner import LogOwner, RecoveredGroup
from disqued.raftlog.tuning import LogTuning

TO_SEND: Final = 0
TO_APPLY: Final = 1
TO_DELIVER: Final = 2
TO_READ: Final = 3
TO_COPY: Final = 4
"""What entries are fetched for: a follower that is behind, the machine, consumers, questions, or a snapshot."""
_START_MS: Final = 5000
"""For this time after the log was opened, replicas wait for each other before they read what they apply."""
_PAUSE_MS: Final = 100
_LONGEST_MS: Final = 2000
"""They begin when none has joined them for `_PAUSE_MS`, or when the first of them has waited for this time."""


class _Written:
    """What one flush contains."""

    def __init__(self) -> None:
        self.ticket: i64 = 0
        self.batches: list[tuple[GroupReplica, i64]] = []


class _Fetch:
    """Entries that were asked for."""

    def __init__(self, replica: GroupReplica, low: i64, purpose: i64) -> None:
        self.replica = replica
        self.low: i64 = low
        self.purpose: i64 = purpose


class _Beginnings:
    """The first fetches of replicas after a start.

    The leaders of a thousand groups become known one after the other. If each group read its entries at once, most of
    the log would be read for each of them; so they begin together (`raftlog.fetches`).
    """

    def __init__(self) -> None:
        self._begun: set[int] = set()
        self._until_ms: i64 = 0
        """0 until the log is open."""
        self._first_ms: i64 = 0
        self.due_ms: i64 = 0
        """When those that wait begin; 0 if none waits."""
        self._waiting: list[tuple[_Fetch, i64, i64, i64]] = []

    def opened(self, now_ms: i64) -> None:
        """The log was opened."""
        self._until_ms = now_ms + _START_MS

    def hold(self, fetch: _Fetch, group: i64, low: i64, high: i64, now_ms: i64) -> bool:
        """Let the first fetch of a group after a start wait for others; returns False for all other fetches."""
        if 0 < self._until_ms <= now_ms or group in self._begun:
            return False
        self._begun.add(int(group))
        if not self._waiting:
            self._first_ms = now_ms
        self._waiting.append((fetch, group, low, high))
        self.due_ms = min(now_ms + _PAUSE_MS, self._first_ms + _LONGEST_MS)
        return True

    def take(self) -> list[tuple[_Fetch, i64, i64, i64]]:
        """All that wait; they begin."""
        waiting, self._waiting = self._waiting, []
        self.due_ms = 0
        return waiting


@mypyc_attr(allow_interpreted_subclasses=True)
class StorageListener:
    """What the room does about the log as a whole."""

    def group_found(self, group: RecoveredGroup) -> None:
        """A group is on the disk."""
        raise NotImplementedError

    def log_opened(self) -> None:
        """All groups were found, and the log can be used."""
        raise NotImplementedError

    def group_damaged(self, group: i64, why: str) -> None:
        """The replica here cannot be used any more."""
        raise NotImplementedError

    def writes_refused(self, why: str) -> None:
        """The disk takes no writes; empty when it does again."""
        raise NotImplementedError

    def log_failed(self, why: str) -> None:
        """Nothing will be written any more until the next start."""
        raise NotImplementedError


class Storage(LogOwner):
    """The log of one node, and who waits for it."""

    def __init__(self, exchange: Exchange, host: Host, listener: StorageListener, tuning: LogTuning) -> None:
        self._exchange = exchange
        self._listener = listener
        self.log = RaftLog(host, self, tuning)
        self._turn: list[tuple[GroupReplica, i64]] = []
        """The batches that were written in this turn."""
        self._relaxed: bool = True
        """Whether nobody waits for the sync of one of them."""
        self._writes: bool = False
        """Whether there is more to write than batches."""
        self._flushes: deque[_Written] = deque()
        """Those that may not be synced yet."""
        self._then: list[tuple[i64, Callable[[], None]]] = []
        """What waits for a ticket."""
        self._watchers: dict[int, Callable[[], None]] = {}
        """What is done when the next snapshot of a group is synced."""
        self._safe: i64 = 0
        """The last ticket that is synced."""
        self._beginnings = _Beginnings()

    def wrote(self, replica: GroupReplica, ticket: i64, *, relaxed: bool) -> None:
        """The writes of a batch were handed to the log; nobody waits for their sync if they are `relaxed`."""
        self._turn.append((replica, ticket))
        self._relaxed = self._relaxed and relaxed

    def flush(self) -> None:
        """The turn ends: write everything."""
        if not self._turn and not self._writes:
            return
        written = _Written()
        written.batches = self._turn
        relaxed = self._relaxed and not self._writes
        self._turn = []
        self._writes = False
        self._relaxed = True
        written.ticket = self.log.flush(self._exchange.state.now_ms, relaxed=relaxed)
        self._flushes.append(written)
        self._confirm()

    def when_synced(self, then: Callable[[], None]) -> None:
        """Flush what was written so far, and do something when it is synced."""
        ticket = self.log.flush(self._exchange.state.now_ms)
        if ticket <= self._safe:
            then()
        else:
            self._then.append((ticket, then))

    def write_turn(self) -> None:
        """Flush at the end of this turn, although no batch was written."""
        self._writes = True
        self._exchange.state.ready.turn_work = True

    def watch(self, group: i64, then: Callable[[], None]) -> None:
        """Do something when the snapshot of a group that is being saved is synced."""
        self._watchers[int(group)] = then

    def fetch(self, replica: GroupReplica, group: i64, low: i64, high: i64, purpose: i64) -> None:
        """Read entries; the replica gets them later."""
        fetch = _Fetch(replica, low, purpose)
        now_ms = self._exchange.state.now_ms
        if purpose != TO_APPLY or not self._beginnings.hold(fetch, group, low, high, now_ms):
            self.log.fetch(group, low, high, fetch)

    @property
    def wake_ms(self) -> i64:
        """When `tick` must be called; 0 for never."""
        log_ms = self.log.wake_ms
        due_ms = self._beginnings.due_ms
        return min(log_ms, due_ms) if log_ms > 0 and due_ms > 0 else max(log_ms, due_ms)

    def tick(self, now_ms: i64) -> None:
        """Do what is due by the time."""
        if 0 < self._beginnings.due_ms <= now_ms:
            for fetch, group, low, high in self._beginnings.take():
                self.log.fetch(group, low, high, fetch)
        if 0 < self.log.wake_ms <= now_ms:
            self.log.tick(now_ms)

    # --- what the log says --------------------------------------------------------------------------------------------

    def recovered(self, group: RecoveredGroup) -> None:
        """A group was found at the start."""
        self._listener.group_found(group)

    def opened(self) -> None:
        """The log can be used."""
        self._beginnings.opened(self._exchange.state.now_ms)
        self._listener.log_opened()

    def persisted(self, ticket: i64) -> None:
        """A flush is synced."""
        self._safe = max(self._safe, ticket)
        self._confirm()

    def _confirm(self) -> None:
        """Tell the replicas whose batches are synced."""
        while self._flushes and self._flushes[0].ticket <= self._safe:
            for replica, ticket in self._flushes.popleft().batches:
                replica.persisted(ticket)
        if self._then:
            ready = [then for ticket, then in self._then if ticket <= self._safe]
            self._then = [(ticket, then) for ticket, then in self._then if ticket > self._safe]
            for then in ready:
                then()

    def snapshot_saved(self, group: i64, index: i64) -> None:
        """A snapshot is synced."""
        watcher = self._watchers.pop(int(group), None)
        if watcher is not None:
            watcher()
            return
        replica = self._exchange.replicas.get(int(group))
        if replica is not None:
            replica.snapshot_saved(index)

    def fetched(self, token: object, entries: list[Entry]) -> None:
        """Entries were read."""
        assert isinstance(token, _Fetch)
        token.replica.fetched(token.low, entries, token.purpose)

    def damaged(self, group: i64, why: str) -> None:
        """A record cannot be read."""
        self._listener.group_damaged(group, why)

    def wants_snapshot(self, group: i64) -> None:
        """A snapshot would free much of the disk."""
        replica = self._exchange.replicas.get(int(group))
        if replica is not None:
            replica.wants_snapshot()

    def blocked(self, why: str) -> None:
        """The disk takes no writes, or takes them again."""
        self._listener.writes_refused(why)

    def failed(self, why: str) -> None:
        """The log is out of service."""
        self._listener.log_failed(why)
