"""The disk of the server on real files and the one in memory: both keep the same contract."""

from __future__ import annotations

import errno
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

import pytest

from disqued.core.host import disk
from disqued.core.host.disk import Disk, DiskWork
from disqued.server import files
from disqued.server.disk import DIRECT_BYTES, QUICK_NS, FileDisk, QuickSyncs
from disqued.server.files import OpenFile, behind, copy
from disqued.testing.disk import MemoryDisk

TIMEOUT_S: Final = 20.0


class Turns:
    """The part of an event loop that the disk uses, run by the test."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._calls.put(callback)

    call_soon_threadsafe = call_soon

    def run_until(self, condition: Callable[[], object]) -> None:
        deadline_s = time.monotonic() + TIMEOUT_S
        while not condition():
            try:
                self._calls.get(timeout=max(deadline_s - time.monotonic(), 0))()
            except Empty:
                raise AssertionError("the disk does not get on") from None


class Owner:
    """The owner of a disk, which collects finished work."""

    def __init__(self, own: Disk) -> None:
        self.disk = own
        self.turns = Turns()
        self.told: list[DiskWork] = []
        if isinstance(own, FileDisk):
            own.attach(self.turns, self.told.append)  # type: ignore[arg-type]

    def open_ahead(self, name: str) -> None:
        work = DiskWork(disk.OPEN, name)
        work.ahead = True
        self.disk.start(work)
        self.wait(work)

    def start(self, verb: int, name: str, *data: bytes, other: str = "", offset: int = 0, size: int = 0) -> DiskWork:
        work = DiskWork(verb, name)
        work.data = list(data)
        work.other = other
        work.offset = offset
        work.size = size
        self.disk.start(work)
        return work

    def wait(self, *works: DiskWork) -> None:
        self.turns.run_until(lambda: all(work.finished for work in works))

    def do(self, verb: int, name: str, *data: bytes, other: str = "", offset: int = 0, size: int = 0) -> DiskWork:
        """Have something done that works."""
        work = self.start(verb, name, *data, other=other, offset=offset, size=size)
        self.wait(work)
        assert work.error == "", work.error
        return work

    def fails(self, verb: int, name: str, *data: bytes, other: str = "", size: int = 0) -> DiskWork:
        """Have something done that does not work."""
        work = self.start(verb, name, *data, other=other, size=size)
        self.wait(work)
        assert work.error
        return work

    def content(self, name: str) -> bytes:
        return b"".join(self.do(disk.READ, name, size=1 << 20).data)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=[FileDisk, MemoryDisk])
def either(request: pytest.FixtureRequest) -> Owner:
    return Owner(request.param())


@pytest.fixture
def real() -> Owner:
    return Owner(FileDisk())


@pytest.fixture
def size_limit() -> Iterator[Callable[[int], None]]:
    """A function that limits the size of files of this process until the test ends."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


# --- guarantees of both disks -----------------------------------------------------------------------------------------


def test_appended_data_is_read_back(either: Owner) -> None:
    assert either.do(disk.OPEN, "a").size == 0
    either.do(disk.APPEND, "a", b"one", b"", b"two")
    either.do(disk.APPEND, "a", b"three")
    either.do(disk.SYNC, "a")
    assert either.content("a") == b"onetwothree"
    either.do(disk.CLOSE, "a")
    assert either.do(disk.OPEN, "a").size == 11
    either.do(disk.APPEND, "a", b"!")
    assert either.content("a") == b"onetwothree!"


def test_space_ahead_of_the_end_of_a_file_is_not_read(either: Owner) -> None:
    either.open_ahead("a")
    either.do(disk.APPEND, "a", b"one", b"two")
    either.do(disk.APPEND, "a", b"three")
    either.do(disk.SYNC, "a")
    assert either.content("a") == b"onetwothree"
    assert either.do(disk.READ, "a", offset=6, size=100).file_bytes == 11
    assert either.do(disk.OPEN, "a").size == 11
    either.do(disk.TRUNCATE, "a", size=6)
    either.do(disk.APPEND, "a", b"four")
    assert either.content("a") == b"onetwofour"
    either.do(disk.CLOSE, "a")
    assert either.do(disk.OPEN, "a").size == 10
    either.do(disk.APPEND, "a", b"!")
    assert either.content("a") == b"onetwofour!"


def test_reading_ends_with_the_file(either: Owner) -> None:
    either.do(disk.OPEN, "a")
    either.do(disk.APPEND, "a", b"0123456789")
    for offset, size, expected in ((0, 4, b"0123"), (8, 4, b"89"), (10, 4, b""), (20, 4, b"")):
        work = either.do(disk.READ, "a", offset=offset, size=size)
        assert b"".join(work.data) == expected
        assert work.file_bytes == 10


def test_a_file_that_is_not_there_is_missing(either: Owner) -> None:
    for verb in (disk.READ, disk.TRUNCATE, disk.REPLACE, disk.KEEP):
        work = either.fails(verb, "none", other="b", size=1)
        assert (work.error, work.missing, work.full) == ("No such file or directory", True, False)
    either.do(disk.REMOVE, "none")


def test_files_are_listed_by_the_beginning_of_their_names(either: Owner) -> None:
    assert either.do(disk.LIST, "log-").data == []
    for name in ("log-2", "log-1", "other", "log-3"):
        either.do(disk.OPEN, name)
    either.do(disk.REMOVE, "log-3")
    assert either.do(disk.LIST, "log-").data == [b"log-1", b"log-2"]


def test_append_continues_at_the_end_of_a_truncated_file(either: Owner) -> None:
    either.do(disk.OPEN, "a")
    either.do(disk.APPEND, "a", b"0123456789")
    either.do(disk.TRUNCATE, "a", size=4)
    either.do(disk.APPEND, "a", b"x")
    assert either.content("a") == b"0123x"


def test_work_continues_on_the_new_file_after_a_replace(either: Owner) -> None:
    for name in ("old", "new"):
        either.do(disk.OPEN, name)
        either.do(disk.APPEND, name, name.encode())
    replace = either.start(disk.REPLACE, "new", other="old")
    append = either.start(disk.APPEND, "old", b", then more")
    either.wait(replace, append)
    assert (replace.error, append.error) == ("", "")
    assert either.content("old") == b"new, then more"
    assert either.fails(disk.READ, "new", size=1).missing


def test_files_that_are_not_open_can_be_renamed(either: Owner) -> None:
    either.do(disk.OPEN, "a")
    either.do(disk.APPEND, "a", b"body")
    either.do(disk.CLOSE, "a")
    either.do(disk.REPLACE, "a", other="b")
    assert either.content("b") == b"body"
    assert either.fails(disk.READ, "a").missing


def test_hard_link_survives_the_removal_of_the_file(either: Owner) -> None:
    for name in ("a", "new"):
        either.do(disk.OPEN, name)
        either.do(disk.APPEND, name, name.encode())
    either.do(disk.KEEP, "a", other="kept")
    assert either.fails(disk.KEEP, "new", other="kept").error == "File exists"
    either.do(disk.REPLACE, "new", other="a")
    assert (either.content("a"), either.content("kept")) == (b"new", b"a")
    either.do(disk.REMOVE, "a")
    assert either.content("kept") == b"a"


def test_perform_finishes_earlier_work_first(either: Owner) -> None:
    either.do(disk.OPEN, "a")
    started = [either.start(verb, "a", *data) for verb, data in ((disk.SYNC, ()), (disk.APPEND, (b"x",))) * 3]
    last = DiskWork(disk.SYNC, "a")
    either.disk.perform(last)
    assert last.finished
    assert all(work.finished for work in started)


# --- real files only: order, threads, the working directory -----------------------------------------------------------


class Gates:
    """Syncs that block until the test continues them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Semaphore(0)
        self.free = threading.Semaphore(0)
        monkeypatch.setattr(files, "sync_data", self._sync)

    def _sync(self, descriptor: int) -> None:
        self.begun.release()
        assert self.free.acquire(timeout=TIMEOUT_S)
        os.fdatasync(descriptor)


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch) -> Gates:
    return Gates(monkeypatch)


def test_an_append_is_done_at_once_and_by_a_thread_during_a_sync(real: Owner, gates: Gates) -> None:
    real.do(disk.OPEN, "a")
    assert real.start(disk.APPEND, "a", b"one").finished
    sync = real.start(disk.SYNC, "a")
    gates.begun.acquire()
    appends = [real.start(disk.APPEND, "a", b"%d" % number) for number in range(5)]
    assert not any(work.finished for work in appends)
    real.wait(*appends)
    assert not sync.finished
    gates.free.release()
    real.wait(sync)
    assert real.start(disk.APPEND, "a", b".").finished
    assert real.told[1:] == [*appends, sync]
    assert real.content("a") == b"one01234."


def test_other_work_waits_for_a_sync_and_later_appends_wait_for_it(real: Owner, gates: Gates) -> None:
    for name in ("a", "new"):
        real.do(disk.OPEN, name)
    real.told.clear()
    works = [
        real.start(disk.SYNC, "a"),
        real.start(disk.REPLACE, "new", other="a"),
        real.start(disk.APPEND, "a", b"one"),
        real.start(disk.SYNC, "a"),
        real.start(disk.TRUNCATE, "a", size=2),
        real.start(disk.CLOSE, "a"),
    ]
    gates.begun.acquire()
    other = real.do(disk.OPEN, "other")
    gates.free.release(2)
    real.wait(*works)
    assert real.told == [other, *works]
    assert real.content("a") == b"on"


def test_hanging_system_call_blocks_only_its_file(real: Owner, directory: Path) -> None:
    os.mkfifo(directory / "hangs")
    stuck = real.start(disk.READ, "hangs", size=10)  # until somebody writes to it
    real.do(disk.OPEN, "a")
    real.do(disk.APPEND, "a", b"x")
    real.do(disk.SYNC, "a")
    last = DiskWork(disk.SYNC, "a")
    real.disk.perform(last)
    assert (last.finished, stuck.finished) == (True, False)
    writer = os.open(directory / "hangs", os.O_WRONLY)
    real.wait(stuck)
    os.close(writer)
    assert stuck.error == "Illegal seek"


def test_large_write_is_done_by_a_thread(real: Owner) -> None:
    real.do(disk.OPEN, "a")
    much = real.start(disk.APPEND, "a", b"x" * DIRECT_BYTES, b"y")
    assert not much.finished
    real.wait(much)
    assert real.do(disk.READ, "a", offset=DIRECT_BYTES - 1, size=10).data == [b"xy"]


def test_other_finished_work_is_reported_after_perform(real: Owner) -> None:
    real.do(disk.OPEN, "a")
    sync = real.start(disk.SYNC, "a")
    last = DiskWork(disk.APPEND, "a")
    last.data = [b"x"]
    real.disk.perform(last)
    real.wait(sync)
    real.turns.run_until(lambda: sync in real.told)
    assert last not in real.told


def test_a_signal_is_handled_while_a_sync_hangs_although_it_does_not_interrupt_the_wait(
    real: Owner, gates: Gates
) -> None:
    """It reaches another thread. The handler ends what hangs."""
    real.do(disk.OPEN, "a")

    def send() -> None:
        gates.begun.acquire()
        time.sleep(0.1)  # the main thread waits for the sync
        os.kill(os.getpid(), signal.SIGUSR1)

    sender = threading.Thread(target=send)
    former = signal.signal(signal.SIGUSR1, lambda *_: gates.free.release())
    try:
        sender.start()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        sync = DiskWork(disk.SYNC, "a")
        real.disk.perform(sync)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
        signal.signal(signal.SIGUSR1, former)
    sender.join()
    assert sync.error == ""


def test_an_open_file_stays_when_the_working_directory_changes(
    real: Owner, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real.do(disk.OPEN, "a")
    elsewhere = directory / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    real.do(disk.APPEND, "a", b"x")
    assert (directory / "a").read_bytes() == b"x"
    real.do(disk.OPEN, "temp")  # as a rewrite does: the file moves with it
    real.do(disk.APPEND, "temp", b"y")
    real.do(disk.REPLACE, "temp", other="a")
    real.do(disk.APPEND, "a", b"z")
    assert (elsewhere / "a").read_bytes() == b"yz"
    assert (directory / "a").read_bytes() == b"x"
    real.do(disk.CLOSE, "a")
    monkeypatch.chdir(directory)
    assert real.content("a") == b"x"


def test_a_large_file_that_was_replaced_is_closed_and_keeps_its_content_under_another_name(
    real: Owner, directory: Path
) -> None:
    content = os.urandom(1000) * (files.FREED_BYTES // 1000 + 1)
    real.do(disk.OPEN, "a")
    real.do(disk.APPEND, "a", content)
    (directory / "backup").hardlink_to(directory / "a")
    real.do(disk.OPEN, "temp")
    real.do(disk.REPLACE, "temp", other="a")
    for thread in threading.enumerate():
        if thread.name == "close":
            thread.join(TIMEOUT_S)
    opened = [link for link in Path("/proc/self/fd").iterdir() if link.exists()]
    assert not any(link.samefile(directory / "backup") for link in opened)
    assert (directory / "backup").read_bytes() == content


def test_a_file_that_was_replaced_is_closed_when_the_file_system_takes_no_advice(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "posix_fadvise", refuse, raising=False)
    (directory / "a").write_bytes(b"x")
    descriptor = os.open(directory / "a", os.O_RDONLY)
    files.close_in_parts(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


# --- real files only: space ahead of the end -------------------------------------------------------------------------


def test_a_file_with_space_ahead_of_its_end_keeps_its_size_until_that_is_used_up(real: Owner, directory: Path) -> None:
    real.open_ahead("a")
    part = b"x" * 10_000
    sizes = []
    for _ in range(60):
        real.do(disk.APPEND, "a", part)
        sizes.append((directory / "a").stat().st_size)
    assert len(set(sizes)) == 3
    assert (directory / "a").read_bytes() == (part * 60).ljust(sizes[-1], b"\0")
    real.do(disk.CLOSE, "a")
    assert (directory / "a").read_bytes() == part * 60


def test_nothing_is_left_of_an_append_to_a_file_with_space_ahead_that_fails_half_way(
    real: Owner, directory: Path, size_limit: Callable[[int], None]
) -> None:
    real.open_ahead("a")
    real.do(disk.APPEND, "a", b"whole")
    size_limit(300_000)
    data = b"x" * 400_000
    assert real.fails(disk.APPEND, "a", data).error == "File too large"
    assert (directory / "a").read_bytes() == b"whole"
    real.do(disk.APPEND, "a", data[:299_000])
    assert real.content("a") == b"whole" + data[:299_000]
    size_limit(resource.RLIM_INFINITY)
    real.do(disk.APPEND, "a", data)
    assert real.content("a") == b"whole" + data[:299_000] + data


# --- real files only: when it does not work ---------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [1, 5000])
def test_nothing_is_left_of_an_append_that_fails_half_way(
    real: Owner, directory: Path, size_limit: Callable[[int], None], pieces: int
) -> None:
    real.do(disk.OPEN, "a")
    real.do(disk.APPEND, "a", b"whole")
    size_limit(8192)
    data = [b"x" * (20_000 // pieces)] * pieces
    assert real.fails(disk.APPEND, "a", *data).error == "File too large"
    assert (directory / "a").read_bytes() == b"whole"
    size_limit(resource.RLIM_INFINITY)
    real.do(disk.APPEND, "a", *data)
    assert (directory / "a").read_bytes() == b"whole" + b"".join(data)


def test_remains_of_a_failed_append_are_removed_before_the_next_write(real: Owner, directory: Path) -> None:
    real.do(disk.OPEN, "a")
    real.do(disk.APPEND, "a", b"whole, half")
    file = real.disk._lines["a"].file  # type: ignore[attr-defined]
    file.surplus_from = 5
    real.do(disk.APPEND, "a", b" again")
    assert (directory / "a").read_bytes() == b"whole again"


def test_errors_have_the_text_of_the_system(real: Owner, directory: Path) -> None:
    (directory / "d").mkdir()
    assert real.fails(disk.OPEN, "d").error == "Is a directory"
    assert real.fails(disk.OPEN, "x" * 300).error == "File name too long"
    (directory / "full").symlink_to("/dev/full")
    real.do(disk.OPEN, "full")
    work = real.fails(disk.APPEND, "full", b"x")
    assert (work.error, work.full) == ("No space left on device", True)


def test_a_copy_is_whole_or_not_there(directory: Path, size_limit: Callable[[int], None]) -> None:
    source = directory / "a"
    source.write_bytes(b"x" * 100_000)
    copy(source, directory / "b")
    assert (directory / "b").read_bytes() == source.read_bytes()
    with pytest.raises(FileExistsError):
        copy(source, directory / "b")
    size_limit(50_000)
    with pytest.raises(OSError, match="File too large"):
        copy(source, directory / "c")
    assert not (directory / "c").exists()


def test_remains_of_a_short_write_are_removed(directory: Path) -> None:
    data = [b"abc", b"", b"de"]
    left = [b"".join(behind(data, count)) for count in range(6)]
    assert left == [b"abcde", b"bcde", b"cde", b"de", b"e", b""]
    assert OpenFile("a").path == directory / "a"


# --- syncs in the event loop ------------------------------------------------------------------------------------------


@pytest.fixture
def syncing(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that synced."""
    names: list[str] = []
    sync = files.sync_data

    def record(descriptor: int) -> None:
        names.append(threading.current_thread().name)
        sync(descriptor)

    monkeypatch.setattr(files, "sync_data", record)
    return names


def start_quick(owner: Owner, name: str) -> DiskWork:
    work = DiskWork(disk.SYNC, name)
    work.quick = True
    owner.disk.start(work)
    return work


def test_quick_sync_is_done_by_the_event_loop_when_the_turn_has_ended(real: Owner, syncing: list[str]) -> None:
    real.do(disk.OPEN, "a")
    real.start(disk.APPEND, "a", b"one")
    sync = start_quick(real, "a")
    assert syncing == []
    assert real.start(disk.APPEND, "a", b"two").finished
    real.wait(sync)
    assert syncing == [threading.current_thread().name]
    assert real.told[-1] is sync
    assert real.content("a") == b"onetwo"


def test_perform_does_a_quick_sync_that_waits_first(real: Owner, syncing: list[str]) -> None:
    real.do(disk.OPEN, "a")
    sync = start_quick(real, "a")
    last = DiskWork(disk.TRUNCATE, "a")
    real.disk.perform(last)
    assert sync.finished
    assert last.finished
    real.turns.run_until(lambda: sync in real.told)
    assert real.told.count(sync) == 1
    assert len(syncing) == 1


def test_syncs_that_are_slow_on_average_are_left_to_threads_for_longer_and_longer() -> None:
    syncs = QuickSyncs()
    now_ns = 0
    pauses = []
    for _ in range(3):
        while syncs.allowed(now_ns):
            syncs.took(now_ns, now_ns + 2 * QUICK_NS)
            now_ns += 2 * QUICK_NS
        began_ns = now_ns
        while not syncs.allowed(now_ns):
            now_ns += QUICK_NS
        pauses.append((now_ns - began_ns) // 1_000_000_000)
    assert pauses == [1, 2, 4]


def test_single_slow_sync_changes_nothing_on_a_fast_disk() -> None:
    syncs = QuickSyncs()
    now_ns = 0
    for number in range(1000):
        took_ns = 50 * QUICK_NS if number % 20 == 0 else QUICK_NS // 10
        syncs.took(now_ns, now_ns + took_ns)
        now_ns += took_ns
        assert syncs.allowed(now_ns)
