"""A log on a simulated disk, its owner that writes down what it is told, and restarts."""

from __future__ import annotations

from disqued.raft.entry import NORMAL, Entry
from disqued.raft.hardstate import HardState
from disqued.raftlog import LogOwner, LogTuning, RaftLog, RecoveredGroup
from disqued.testing.host import FakeHost

SMALL = {
    "segment_bytes": 16 << 10,
    "slice_bytes": 1 << 10,
    "read_bytes": 2 << 10,
    "near_bytes": 512,
    "far_bytes": 2 << 10,
    "shared_bytes": 4 << 10,
}


def tuning(**changes: int) -> LogTuning:
    """Small segments."""
    return LogTuning(**{**SMALL, **changes})  # type: ignore[arg-type]  # the values of a flag are numbers, too


class Owner(LogOwner):
    """Writes down what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[int, RecoveredGroup] = {}
        self.open = False
        self.ticket = 0
        self.saved: list[tuple[int, int]] = []
        self.answers: dict[object, list[Entry]] = {}
        self.broken: list[int] = []
        self.wanted: list[int] = []
        self.blocks: list[str] = []
        self.failure = ""

    def recovered(self, group: RecoveredGroup) -> None:
        assert not self.open
        assert all(number < group.group for number in self.groups)
        self.groups[group.group] = group

    def opened(self) -> None:
        self.open = True

    def persisted(self, ticket: int) -> None:
        assert ticket > self.ticket
        self.ticket = ticket

    def snapshot_saved(self, group: int, index: int) -> None:
        self.saved.append((group, index))

    def fetched(self, token: object, entries: list[Entry]) -> None:
        assert token not in self.answers
        self.answers[token] = entries

    def damaged(self, group: int, why: str) -> None:
        assert why
        self.broken.append(group)

    def wants_snapshot(self, group: int) -> None:
        self.wanted.append(group)

    def blocked(self, why: str) -> None:
        self.blocks.append(why)

    def failed(self, why: str) -> None:
        assert not self.failure
        self.failure = why


class Stage:
    """One node's log, over several starts."""

    def __init__(self, seed: int = 0, **changes: int) -> None:
        self.host = FakeHost(seed)
        self.disk = self.host.disk
        self.tuning = tuning(**changes)
        self.log: RaftLog
        self.owner: Owner
        self._tokens = 0

    def begin(self, owner: Owner | None = None) -> Stage:
        """Start the log, without waiting for slow works."""
        self.owner = owner or Owner()
        self.log = RaftLog(self.host, self.owner, self.tuning)
        self.log.open(self.host.now_ms)
        return self

    def start(self) -> Stage:
        """Start the log, and wait until it is open."""
        self.begin()
        self.settle()
        assert self.owner.open, self.owner.failure or "the log is not open"
        return self

    def restart(self) -> Stage:
        """The process ends and starts again."""
        self.disk.crash()
        return self.start()

    def lose_power(self) -> Stage:
        """The machine loses power and starts again."""
        self.disk.lose_power()
        return self.start()

    def deliver(self) -> bool:
        """Pass on the works that are finished by now."""
        finished = self.disk.take_finished()
        for work in finished:
            if work.owner is not None:
                work.owner.disk_done(work)
        return bool(finished)

    def settle(self) -> None:
        """Let the disk do everything that is not held or slow."""
        while self.deliver():
            pass

    def release(self) -> None:
        """Let the disk do what was held."""
        self.disk.repair()
        self.disk.finish()
        self.settle()

    def wait(self, milliseconds: int) -> None:
        """Let time pass."""
        self.host.now_ms += milliseconds
        self.settle()
        if 0 < self.log.wake_ms <= self.host.now_ms:
            self.log.tick(self.host.now_ms)
        self.settle()

    def flush(self) -> int:
        """End the turn."""
        ticket = self.log.flush(self.host.now_ms)
        self.settle()
        return ticket

    def persist(self) -> None:
        """End the turn, which must be safe then."""
        ticket = self.flush()
        assert self.log.safe >= ticket

    def fetch(self, group: int, low: int, high: int) -> list[Entry]:
        """Fetch entries; the disk must not be held."""
        self._tokens += 1
        self.log.fetch(group, low, high, self._tokens)
        self.settle()
        return self.owner.answers.pop(self._tokens)

    def indexes(self, group: int) -> list[int]:
        """The indexes of all entries that can be fetched."""
        return [entry.index for entry in self.fetch(group, 1, 1 << 40)]

    def bodies(self, group: int) -> list[bytes]:
        """The data of all entries that can be fetched."""
        return [entry.data for entry in self.fetch(group, 1, 1 << 40)]


def entry(index: int, term: int = 1, data: bytes = b"body", kind: int = NORMAL) -> Entry:
    return Entry(term, index, 1000 + index, kind, data)


def entries(low: int, high: int, term: int = 1, size: int = 8) -> list[Entry]:
    """Entries from `low` to `high`, with data of this size that tells them apart."""
    return [entry(index, term, (b"%d/%d " % (term, index)).ljust(size, b".")) for index in range(low, high + 1)]


def hard(term: int, vote: bytes = b"") -> HardState:
    return HardState(term, vote)
