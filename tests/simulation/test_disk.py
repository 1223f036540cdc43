"""The disk in memory keeps the contract of `disqued.core.host.disk`, and no more than that under faults."""

from __future__ import annotations

import errno

import pytest

from disqued.core.host import disk
from disqued.core.host.disk import DiskWork
from disqued.testing.disk import MemoryDisk
from disqued.testing.host import FakeHost

NAME = "disque.aof"
SEEDS = range(60)


def work(verb: int, data: bytes = b"", *, name: str = NAME, other: str = "", size: int = 0) -> DiskWork:
    made = DiskWork(verb, name)
    made.data = [data] if data else []
    made.other = other
    made.size = size
    return made


def do(
    files: MemoryDisk, verb: int, data: bytes = b"", *, name: str = NAME, other: str = "", size: int = 0
) -> DiskWork:
    made = work(verb, data, name=name, other=other, size=size)
    files.start(made)
    return made


def opened(seed: int = 0, *, name: str = NAME) -> tuple[FakeHost, MemoryDisk]:
    host = FakeHost(seed)
    assert do(host.disk, disk.OPEN, name=name).finished
    return host, host.disk


def test_work_is_done_at_once_by_default() -> None:
    _, files = opened()
    assert do(files, disk.APPEND, b"one").finished
    assert do(files, disk.OPEN).size == 3
    read = do(files, disk.READ, size=100)
    assert (read.data, read.error) == ([b"one"], "")


def test_slow_work_completes_later_and_in_order() -> None:
    host, files = opened()
    files.delay_ms[disk.APPEND] = 5
    first = do(files, disk.APPEND, b"one")
    files.delay_ms.clear()
    second = do(files, disk.APPEND, b"two")
    assert not first.finished
    assert not second.finished
    assert files.next_ms == host.now_ms + 5
    host.now_ms += 5
    assert files.take_finished() == [first, second]
    assert files.files[NAME] == b"onetwo"


def test_later_work_completes_after_earlier_slow_work() -> None:
    host, files = opened()
    do(files, disk.APPEND, b"one")
    files.delay_ms[disk.SYNC] = 5
    sync = do(files, disk.SYNC)
    host.now_ms += 5
    removal = do(files, disk.REMOVE)
    assert not removal.finished
    assert files.take_finished() == [sync, removal]
    assert (sync.error, removal.error) == ("", "")


def test_append_does_not_wait_for_a_sync_and_is_not_covered_by_it() -> None:
    _, files = opened()
    do(files, disk.APPEND, b"one")
    files.hold(disk.SYNC)
    do(files, disk.SYNC)
    assert do(files, disk.APPEND, b"two").finished
    files.finish()
    files.take_finished()
    assert files.synced_bytes(NAME) == 3


def test_sync_covers_earlier_work() -> None:
    _, files = opened()
    files.hold(disk.APPEND, disk.SYNC)
    do(files, disk.APPEND, b"one")
    do(files, disk.SYNC)
    do(files, disk.APPEND, b"two")
    files.finish()
    files.take_finished()
    assert files.files[NAME] == b"onetwo"
    assert files.synced_bytes(NAME) == 3


def test_crash_keeps_written_data_and_a_prefix_of_pending_writes() -> None:
    found = set()
    for seed in SEEDS:
        _, files = opened(seed)
        do(files, disk.APPEND, b"one")
        files.hold(disk.APPEND)
        do(files, disk.APPEND, b"two")
        do(files, disk.APPEND, b"end")
        files.crash()
        found.add(bytes(files.files[NAME]))
    assert found <= {b"onetwoend"[:size] for size in range(3, 10)}
    assert {b"one", b"onetwo", b"onetwoend"} <= found


def test_power_loss_keeps_synced_data() -> None:
    found = set()
    for seed in SEEDS:
        _, files = opened(seed)
        do(files, disk.APPEND, b"1" * 100)
        do(files, disk.SYNC)
        do(files, disk.APPEND, b"2" * 100)
        files.lose_power()
        data = bytes(files.files[NAME])
        assert data[:100] == b"1" * 100
        assert set(data[100:]) <= set(b"2\0")
        found.add((len(data), data[100:].strip(b"2") != b""))
    assert (100, False) in found
    assert (200, False) in found
    assert any(zeros for _, zeros in found)


def test_power_loss_may_lose_data_of_a_failed_sync_despite_a_later_sync() -> None:
    taken = 0
    for seed in SEEDS:
        _, files = opened(seed)
        do(files, disk.APPEND, b"one")
        files.fail(disk.SYNC, times=1)
        assert do(files, disk.SYNC).error == "Input/output error"
        assert do(files, disk.SYNC).error == ""
        assert files.synced_bytes(NAME) == 0
        files.lose_power()
        taken += files.files[NAME] == bytes(3)
    assert 0 < taken < len(SEEDS)


def test_file_is_replaced_atomically() -> None:
    found = set()
    for seed in SEEDS:
        _, files = opened(seed)
        do(files, disk.APPEND, b"old")
        do(files, disk.SYNC)
        do(files, disk.OPEN, name="temp")
        do(files, disk.APPEND, b"new", name="temp")
        files.hold(disk.REPLACE)
        do(files, disk.REPLACE, name="temp", other=NAME)
        files.lose_power()
        found.add(bytes(files.files[NAME]))
    assert found == {b"old", b"new"}


def test_work_on_a_replaced_file_applies_to_the_new_file() -> None:
    _, files = opened()
    do(files, disk.OPEN, name="temp")
    do(files, disk.APPEND, b"new", name="temp")
    do(files, disk.KEEP, other="kept")
    files.hold(disk.REPLACE)
    do(files, disk.REPLACE, name="temp", other=NAME)
    do(files, disk.APPEND, b"er")
    files.finish()
    files.take_finished()
    assert files.files == {NAME: b"newer", "kept": b""}


def test_power_loss_may_remove_a_new_file_that_was_not_synced() -> None:
    there = set()
    for seed in SEEDS:
        _, files = opened(seed)
        do(files, disk.OPEN, name="synced")
        do(files, disk.SYNC, name="synced")
        files.lose_power()
        assert "synced" in files.files
        there.add(NAME in files.files)
    assert there == {True, False}


def test_full_disk_refuses_a_write_that_does_not_fit() -> None:
    _, files = opened()
    do(files, disk.OPEN, name="other")
    do(files, disk.APPEND, b"other", name="other")
    files.fill(spare_bytes=3)
    refused = do(files, disk.APPEND, b"four")
    assert (refused.error, refused.full) == ("No space left on device", True)
    assert do(files, disk.APPEND, b"two").error == ""
    do(files, disk.REMOVE, name="other")
    assert do(files, disk.APPEND, b"four").error == ""
    assert files.files == {NAME: b"twofour"}


@pytest.mark.parametrize(
    ("error", "failing", "working"),
    [
        (errno.EROFS, disk.APPEND, disk.READ),
        (errno.EIO, disk.SYNC, disk.READ),
        (errno.ENOSPC, disk.APPEND, disk.SYNC),
    ],
)
def test_disk_fails_until_it_is_repaired(error: int, failing: int, working: int) -> None:
    _, files = opened()
    files.fail(error=error)
    assert do(files, failing, b"" if failing == disk.SYNC else b"x").error
    assert do(files, working, size=1).error == ""
    files.repair()
    assert do(files, failing).error == ""


def test_node_that_waits_for_its_disk_finds_pending_work_done() -> None:
    _, files = opened()
    files.hold()
    started = do(files, disk.APPEND, b"one")
    waited = work(disk.SYNC)
    files.perform(waited)
    assert waited.finished
    assert files.synced_bytes(NAME) == 3
    assert files.take_finished() == [started]
