"""The log on the disk of the server: real files and threads."""

from __future__ import annotations

from pathlib import Path
from queue import Empty, SimpleQueue

import pytest

from disqued.core.host.disk import DiskWork
from disqued.raftlog import RaftLog
from disqued.server.disk import FileDisk
from disqued.testing.host import FakeHost
from raftlog.stage import Owner, entries, hard, tuning

WAIT_S = 20


class Loop:
    """As much of an event loop as the disk needs: it takes calls from threads."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[object] = SimpleQueue()

    def call_soon_threadsafe(self, call: object) -> None:
        self._calls.put(call)

    call_soon = call_soon_threadsafe

    def turn(self) -> None:
        """Run the next call."""
        call = self._calls.get(timeout=WAIT_S)
        assert callable(call)
        call()

    def drain(self) -> None:
        """Run what is there."""
        while True:
            try:
                call = self._calls.get_nowait()
            except Empty:
                return
            assert callable(call)
            call()


class Process:
    """A process with a log in the working directory."""

    def __init__(self, **changes: int) -> None:
        self.loop = Loop()
        disk = FileDisk()
        disk.attach(self.loop, self._done)  # type: ignore[arg-type]  # a loop of the test
        host = FakeHost()
        host.disk = disk  # type: ignore[assignment]  # a host of the tests has one in memory
        self.owner = Owner()
        self.log = RaftLog(host, self.owner, tuning(**changes))
        self.log.open(0)
        while not self.owner.open:
            self.loop.turn()

    def _done(self, work: DiskWork) -> None:
        if work.owner is not None:
            work.owner.disk_done(work)

    def persist(self) -> None:
        ticket = self.log.flush(0)
        while self.log.safe < ticket:
            self.loop.turn()

    def rest(self) -> None:
        while not self.log.idle:
            self.loop.turn()

    def fetch(self, group: int) -> list[bytes]:
        self.log.fetch(group, 1, 1 << 40, "token")
        while "token" not in self.owner.answers:
            self.loop.turn()
        return [entry.data for entry in self.owner.answers.pop("token")]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_entries_hard_states_and_snapshots_survive_on_real_files(tmp_path: Path) -> None:
    process = Process()
    for turn in range(50):
        process.log.append(1, entries(turn * 4 + 1, turn * 4 + 4, size=200))
        process.log.save_hard(2, hard(turn + 1, b"candidate"))
        process.persist()
    for index in range(2, 200):
        process.log.release(1, index)
    process.log.save_snapshot(1, 198, 1, b"members", b"state" * 500)
    process.persist()
    process.rest()
    kept = [entry.data for entry in (entries(1, 1, size=200) + entries(199, 200, size=200))]
    assert process.fetch(1) == kept
    assert process.log.finish(0) == ""
    files = sorted(path.name for path in tmp_path.iterdir())
    assert "ordered-0000000001.log" not in files
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == process.log.disk_bytes
    again = Process()
    assert again.owner.groups[2].hard == hard(50, b"candidate")
    assert again.owner.groups[1].snapshot_state == b"state" * 500
    assert again.log.data_id == process.log.data_id
    assert again.fetch(1) == kept


def test_many_turns_share_the_syncs_of_real_files() -> None:
    process = Process(segment_bytes=1 << 20)
    for turn in range(500):
        process.log.append(turn % 7, entries(turn // 7 + 1, turn // 7 + 1))
        process.log.flush(0)
        process.loop.drain()
    process.persist()
    assert process.log.syncs <= 500
    assert len(Process().fetch(0)) == 72


def test_a_start_without_files_makes_none(tmp_path: Path) -> None:
    Process()
    assert list(tmp_path.iterdir()) == []


def test_a_torn_end_of_a_real_file_is_cut_off(tmp_path: Path) -> None:
    process = Process()
    process.log.append(1, entries(1, 2))
    process.persist()
    process.log.append(1, entries(3, 4))
    process.persist()
    path = tmp_path / "ordered-0000000001.log"
    content = path.read_bytes().rstrip(b"\0")
    path.write_bytes(content[:-30] + bytes(1000))
    assert len(Process().fetch(1)) == 2
    assert len(path.read_bytes()) < len(content)


def test_a_process_that_is_killed_leaves_zeros_behind_what_it_wrote(tmp_path: Path) -> None:
    process = Process()
    for turn in range(20):
        process.log.append(1, entries(turn + 1, turn + 1))
        process.persist()
        sizes = {path.stat().st_size for path in tmp_path.iterdir()}
        assert len(sizes) == 1
        assert process.log.disk_bytes < sizes.pop()
    again = Process()
    assert len(again.fetch(1)) == 20
    assert again.owner.groups[1].damaged is False
