"""The cost of the log of ordered queues alone: appending, starting, reading and memory, without sockets and syncs.

    python bench/raftlog.py                                  interpreted
    PYTHONPATH=build/compiled python bench/raftlog.py        compiled

Files are in a temporary directory (`--directory` for another one) and are written and read by system calls through the
disk of the server; a sync does nothing, because its cost is that of the hardware. Appends come in batches of 50 entries
with 1 KB of data, as 50 clients cause them, in turns of 100 groups. The start reads what was appended from the page
cache, as after a crash of the process.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from disqued.core.host import disk
from disqued.core.host.disk import DiskWork
from disqued.raft.entry import NORMAL, Entry
from disqued.raftlog import LogOwner, LogTuning, RaftLog, RecoveredGroup
from disqued.server.files import OpenFile, do
from disqued.testing.host import FakeHost

BATCH = 50
BODY = b"x" * 1024
GROUPS = 100


class DirectDisk:
    """Does all work at once, and syncs nothing. Implements `disqued.core.host.disk.Disk`."""

    def __init__(self) -> None:
        self._files: dict[str, OpenFile] = {}

    def start(self, work: DiskWork) -> None:
        """Do the work."""
        if work.verb != disk.SYNC:
            do(work, self._files.setdefault(work.name, OpenFile(work.name)), None)
        work.finished = True

    perform = start


class Owner(LogOwner):
    """Takes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.groups = 0
        self.damaged_groups = 0
        self.entries: list[Entry] = []

    def recovered(self, group: RecoveredGroup) -> None:
        """Count a group."""
        self.groups += 1
        self.damaged_groups += group.damaged

    def opened(self) -> None:
        """Nothing waits for it."""

    def persisted(self, ticket: int) -> None:
        """Nothing waits for it."""

    def snapshot_saved(self, group: int, index: int) -> None:
        """Nothing waits for it."""

    def fetched(self, _token: object, entries: list[Entry]) -> None:
        """Keep the entries."""
        self.entries = entries

    def wants_snapshot(self, group: int) -> None:
        """There is none: every entry stays."""


class Log:
    """A log with its owner."""

    def __init__(self, host: FakeHost) -> None:
        self.owner = Owner()
        self.log = RaftLog(host, self.owner, LogTuning())
        self.log.open(0)


def resident_bytes() -> int:
    """The resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def timed(name: str, count: int, unit: str, run: Callable[[], object]) -> None:
    """Print how long something takes."""
    gc.collect()
    began = perf_counter()
    run()
    spent = perf_counter() - began
    print(f"{name:<34} {spent:8.2f} s  {count / spent:12,.0f} {unit}/s")


def append(log: RaftLog, count: int) -> None:
    """Append entries, one batch per turn."""
    last = [0] * GROUPS
    for turn in range(count // BATCH):
        group = turn % GROUPS
        first = last[group] + 1
        log.append(group, [Entry(1, first + number, 0, NORMAL, BODY) for number in range(BATCH)])
        last[group] += BATCH
        log.flush(turn)


def read_in_order(log: RaftLog, owner: Owner, group: int) -> None:
    """Fetch all entries of a group."""
    low = 1
    while low <= log.last_index(group):
        log.fetch(group, low, low + 99, None)
        low = int(owner.entries[-1].index) + 1


def main() -> None:
    """Measure everything once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--directory", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        os.chdir(folder)
        host = FakeHost()
        host.disk = DirectDisk()  # type: ignore[assignment]  # a host has a disk of another class
        timed("append", options.entries, "entries", lambda: append(Log(host).log, options.entries))
        gc.collect()
        before = resident_bytes()
        started: list[Log] = []
        timed("start", options.entries, "entries", lambda: started.append(Log(host)))
        log, owner = started[0].log, started[0].owner
        print(f"{'memory per entry after it':<34} {(resident_bytes() - before) / options.entries:8.1f} bytes")
        assert (owner.groups, owner.damaged_groups) == (GROUPS, 0)
        count = int(log.last_index(0))
        timed("read 100 entries at a time", count, "entries", lambda: read_in_order(log, owner, 0))
        os.chdir("/")


if __name__ == "__main__":
    main()
