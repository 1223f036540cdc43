"""Disks that are full, fail, hang or are slow: nothing is confirmed too early, and nothing is lost or out of order."""

from __future__ import annotations

import errno

import pytest

from disqued.core.host import disk
from raftlog.stage import Owner, Stage, entries, hard


@pytest.fixture
def stage() -> Stage:
    stage = Stage().start()
    stage.log.save_hard(1, hard(1))
    stage.persist()
    return stage


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_write_that_fails_is_repeated_each_second_in_order(stage: Stage, error: int) -> None:
    stage.disk.fail(disk.APPEND, error=error)
    tickets = []
    for index in range(1, 6):
        stage.log.append(1, entries(index, index))
        tickets.append(stage.flush())
        stage.wait(400)
    assert stage.owner.ticket < tickets[0]
    [why] = stage.owner.blocks
    assert why.startswith("can't write to ordered-0000000001.log: ")
    assert 2 <= stage.disk.failed["write to"] <= 3
    stage.disk.repair()
    stage.wait(1000)
    assert stage.owner.blocks == [why, ""]
    assert stage.owner.ticket == tickets[-1]
    assert stage.lose_power().fetch(1, 1, 9) == entries(1, 5)


def test_entries_are_not_lost_when_the_disk_is_full_at_a_new_segment(stage: Stage) -> None:
    stage.disk.fill(17_000)
    for index in range(1, 100):
        stage.log.append(1, entries(index, index, size=300))
        stage.flush()
    assert stage.owner.blocks
    stage.disk.repair()
    stage.wait(1000)
    assert stage.owner.blocks[-1] == ""
    assert stage.lose_power().fetch(1, 1, 99) == entries(1, 99, size=300)


def test_the_log_opens_when_the_full_disk_has_space_again(stage: Stage) -> None:
    stage.log.append(1, entries(1, 3))
    stage.persist()
    stage.disk.crash()
    stage.disk.fill()
    stage.begin().settle()
    assert [stage.owner.open, len(stage.owner.blocks)] == [False, 1]
    stage.disk.repair()
    stage.wait(1000)
    assert stage.owner.open
    assert stage.indexes(1) == [1, 2, 3]


def test_a_sync_that_fails_ends_the_service_of_the_log(stage: Stage) -> None:
    stage.log.append(1, entries(1, 2))
    stage.persist()
    stage.disk.fail(disk.SYNC, times=1)
    stage.log.append(1, entries(3, 4))
    ticket = stage.flush()
    assert stage.owner.failure == stage.log.failure == "can't sync ordered-0000000001.log: Input/output error"
    written = dict(stage.disk.done)
    stage.log.append(1, entries(5, 6))
    stage.log.save_hard(1, hard(7))
    stage.log.save_snapshot(1, 2, 1, b"", b"")
    stage.log.remove_group(2)
    assert stage.flush() == ticket
    stage.wait(5000)
    assert stage.owner.ticket < ticket
    assert dict(stage.disk.done) == written
    assert stage.log.wake_ms == 0


@pytest.mark.parametrize("seed", range(20))
def test_what_a_failed_sync_left_in_memory_is_not_trusted_after_a_restart(seed: int) -> None:
    stage = Stage(seed).start()
    stage.log.append(1, entries(1, 2))
    stage.persist()
    stage.disk.fail(disk.SYNC, times=1)
    stage.log.append(1, entries(3, 4, size=500))
    stage.flush()
    stage.restart()
    assert stage.indexes(1) == [1, 2, 3, 4], "the process sees them, and others may have counted on them since"
    stage.lose_power()
    assert stage.fetch(1, 1, 9) == entries(1, 2) + entries(3, 4, size=500)
    assert not stage.owner.groups[1].damaged


def test_a_disk_that_hangs_delays_only_what_it_must(stage: Stage) -> None:
    stage.disk.hold(disk.APPEND)
    stage.log.append(1, entries(1, 2))
    first = stage.flush()
    stage.log.append(1, entries(3, 4))
    second = stage.flush()
    assert stage.log.read(1, 4) is not None
    assert stage.owner.ticket < first < second
    stage.release()
    assert stage.owner.ticket == second


def test_a_slow_disk_gets_larger_writes(stage: Stage) -> None:
    stage.disk.delay_ms = {disk.SYNC: 10}
    syncs = stage.disk.done["sync"]
    for turn in range(100):
        stage.log.append(2, entries(turn + 1, turn + 1))
        stage.log.flush(stage.host.now_ms)
        stage.wait(1)
    stage.wait(20)
    stage.wait(20)
    assert stage.owner.ticket == stage.log.flush(stage.host.now_ms)
    assert stage.disk.done["sync"] - syncs <= 11


def test_a_file_that_cannot_be_removed_is_removed_later() -> None:
    stage = Stage().start()
    stage.log.append(1, entries(1, 100, size=200))
    stage.persist()
    stage.disk.fail(disk.REMOVE, error=errno.EIO, times=1)
    for index in range(1, 101):
        stage.log.release(1, index)
    stage.log.save_snapshot(1, 100, 1, b"", b"")
    stage.persist()
    stage.log.save_hard(1, hard(1))
    stage.persist()
    stage.settle()
    assert "ordered-0000000001.log" not in stage.disk.files


def test_a_log_that_cannot_be_read_is_out_of_service(stage: Stage) -> None:
    stage.disk.crash()
    stage.disk.fail(disk.READ)
    stage.begin().settle()
    assert stage.owner.failure == "can't read ordered-0000000001.log: Input/output error"
    assert not stage.owner.open


def test_the_owner_may_add_entries_when_it_is_told_that_others_are_persisted(stage: Stage) -> None:
    class Chain(Owner):
        def persisted(self, ticket: int) -> None:
            super().persisted(ticket)
            last = stage.log.last_index(1)
            if last < 10:
                stage.log.append(1, entries(last + 1, last + 1))
                stage.log.flush(stage.host.now_ms)

    stage.disk.crash()
    stage.begin(Chain()).settle()
    stage.log.append(1, entries(1, 1))
    stage.flush()
    assert stage.log.last_index(1) == 10
    assert stage.log.idle
    assert stage.owner.ticket == stage.log.safe
