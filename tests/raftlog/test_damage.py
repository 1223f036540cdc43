"""Damage puts the groups that it concerns out of service and no others; nothing old takes the place of what is lost."""

from __future__ import annotations

from random import Random

import pytest

from disqued.core.host import disk
from disqued.raftlog.record import HEADER_BYTES
from raftlog.shadow import History
from raftlog.stage import Stage, entries, entry, hard

FIRST = "ordered-0000000001.log"


@pytest.fixture
def stage() -> Stage:
    return Stage().start()


def flip_in(stage: Stage, name: str, text: bytes) -> None:
    """Damage the first place where the file has this text."""
    stage.disk.flip(name, 8 * bytes(stage.disk.files[name]).index(text))


def damaged(stage: Stage) -> list[int]:
    return [number for number, group in stage.owner.groups.items() if group.damaged]


def newest(stage: Stage) -> str:
    return max(stage.disk.files)


# --- damage in the newest segment -------------------------------------------------------------------------------------


def test_a_damaged_frame_concerns_the_groups_in_it(stage: Stage) -> None:
    for number in (1, 2, 3):
        stage.log.append(number, entries(1, 2))
    stage.persist()
    stage.log.append(1, [entry(3, data=b"damage this")])
    stage.log.append(2, entries(3, 3))
    stage.persist()
    stage.log.append(3, entries(3, 3))
    stage.persist()
    flip_in(stage, FIRST, b"damage this")
    stage.restart()
    assert damaged(stage) == [1, 2]
    assert stage.fetch(3, 1, 9) == entries(1, 3)


def test_a_lost_vote_is_not_replaced_by_an_older_one(stage: Stage) -> None:
    stage.log.save_hard(1, hard(3, b"first"))
    stage.log.save_hard(2, hard(3, b"first"))
    stage.persist()
    stage.log.save_hard(1, hard(4, b"candidate"))
    stage.persist()
    stage.log.save_hard(2, hard(5, b"other"))
    stage.persist()
    flip_in(stage, FIRST, b"candidate")
    stage.restart()
    assert damaged(stage) == [1]
    assert stage.owner.groups[2].hard == hard(5, b"other")


def test_the_frame_behind_says_which_groups_a_frame_without_head_and_tail_had(stage: Stage) -> None:
    for number in (1, 2):
        stage.log.append(number, entries(1, 1))
    stage.persist()
    start = len(stage.disk.files[FIRST])
    stage.log.append(1, entries(2, 2))
    stage.persist()
    end = len(stage.disk.files[FIRST])
    stage.log.append(2, entries(2, 2))
    stage.persist()
    stage.disk.files[FIRST][start:end] = b"\xff" * (end - start)
    stage.restart()
    assert damaged(stage) == [1]
    assert stage.indexes(2) == [1, 2]


def test_damage_over_several_frames_concerns_all_groups(stage: Stage) -> None:
    for number in (1, 2, 3):
        stage.log.append(number, entries(1, 1))
    stage.persist()
    start = len(stage.disk.files[FIRST])
    for number in (1, 2):
        stage.log.append(number, entries(2, 2))
        stage.persist()
    end = len(stage.disk.files[FIRST])
    stage.log.append(2, entries(3, 3))
    stage.persist()
    stage.disk.files[FIRST][start:end] = b"\xff" * (end - start)
    stage.restart()
    assert damaged(stage) == [1, 2, 3]


def test_a_later_snapshot_proves_that_a_group_is_complete(stage: Stage) -> None:
    for number in (1, 2):
        stage.log.append(number, entries(1, 1))
        stage.log.release(number, 1)
    stage.log.append(1, [entry(2, data=b"damage this")])
    stage.log.release(1, 2)
    stage.persist()
    stage.log.save_snapshot(1, 2, 1, b"", b"state")
    stage.persist()
    flip_in(stage, FIRST, b"damage this")
    stage.restart()
    assert damaged(stage) == [2]
    assert stage.owner.groups[1].snapshot_state == b"state"


def test_a_bit_that_flips_in_the_last_frame_is_damage(stage: Stage) -> None:
    stage.log.save_hard(1, hard(3, b"first"))
    stage.persist()
    stage.log.save_hard(1, hard(4, b"candidate"))
    stage.persist()
    flip_in(stage, FIRST, b"candidate")
    assert damaged(stage.restart()) == [1]


@pytest.mark.parametrize(("group", "size"), [(0, 20), (1, 20), (1, 64)])  # a frame ends with the number of the group
@pytest.mark.parametrize("zeros", [0, 8, 1000])
def test_a_bit_that_flips_in_the_last_tail_is_damage_also_if_zeros_follow(
    stage: Stage, group: int, size: int, zeros: int
) -> None:
    stage.log.append(group, entries(1, 1, size=size))
    stage.persist()
    content = bytes(stage.disk.files[FIRST])
    tail = len(content) - 56
    assert ((len(content) - 8) % 64 == 0) == (size == 64)
    for bit in range(8 * tail, 8 * (tail + HEADER_BYTES), 3):
        stage.disk.put(FIRST, content + bytes(zeros))
        stage.disk.flip(FIRST, bit)
        assert damaged(stage.restart()) == [group]
        stage.disk.perform(disk.DiskWork(disk.REMOVE, newest(stage)))


def test_a_group_stays_damaged_until_it_is_removed(stage: Stage) -> None:
    stage.log.append(1, [entry(1, data=b"damage this")])
    stage.persist()
    stage.log.append(1, entries(2, 2))
    stage.persist()
    flip_in(stage, FIRST, b"damage this")
    for _ in range(3):
        assert damaged(stage.restart()) == [1]
    stage.log.remove_group(1)
    stage.log.append(1, entries(1, 2))
    stage.persist()
    assert damaged(stage.restart()) == []
    assert stage.fetch(1, 1, 9) == entries(1, 2)


# --- torn ends --------------------------------------------------------------------------------------------------------


def test_a_frame_that_was_cut_off_is_dropped_as_a_whole(stage: Stage) -> None:
    stage.log.append(1, entries(1, 2))
    stage.persist()
    start = len(stage.disk.files[FIRST])
    stage.log.append(1, entries(3, 4))
    stage.log.append(2, entries(1, 1))
    stage.persist()
    content = bytes(stage.disk.files[FIRST])
    for end in range(start, len(content), 8):
        stage.disk.put(FIRST, content[:end])
        stage.restart()
        assert list(stage.owner.groups) == [1]
        assert damaged(stage) == []
        assert stage.indexes(1) == [1, 2]
        stage.disk.perform(disk.DiskWork(disk.REMOVE, newest(stage)))


def test_a_frame_with_pages_that_never_reached_the_disk_is_dropped(stage: Stage) -> None:
    stage.log.append(1, entries(1, 2))
    stage.persist()
    start = len(stage.disk.files[FIRST])
    stage.log.append(1, entries(3, 4, size=300))
    stage.persist()
    page = (start + 127) // 64 * 64
    stage.disk.files[FIRST][page : page + 64] = bytes(64)
    stage.restart()
    assert damaged(stage) == []
    assert stage.indexes(1) == [1, 2]


def test_a_segment_that_was_not_begun_completely_is_dropped(stage: Stage) -> None:
    stage.log.append(1, entries(1, 100, size=200))
    stage.persist()
    name = newest(stage)
    stage.log.append(1, entries(101, 102, size=200))
    stage.persist()
    content = bytes(stage.disk.files[name])
    second = "ordered-0000000099.log"
    for part in (b"", content[:40], content[:100], bytes(200)):
        stage.disk.put(second, part)
        stage.restart()
        assert damaged(stage) == []
        assert stage.indexes(1) == list(range(1, 103))
        assert second not in stage.disk.files
        stage.disk.perform(disk.DiskWork(disk.REMOVE, newest(stage)))


# --- the log as a whole -----------------------------------------------------------------------------------------------


def test_a_log_whose_first_frame_is_lost_begins_again_with_another_identity(stage: Stage) -> None:
    stage.log.save_hard(1, hard(4, b"candidate"))
    stage.persist()
    stage.restart()
    stage.log.save_hard(1, hard(5, b"candidate"))
    stage.persist()
    data_id = stage.log.data_id
    flip_in(stage, newest(stage), b"candidate")
    stage.restart()
    assert stage.owner.groups == {}
    assert stage.log.data_id != data_id
    assert len(stage.disk.files) == 1
    assert any("begins again with a new identity" in text for _, text in stage.host.log_lines)


def test_a_damaged_copy_in_the_first_frame_concerns_its_group(stage: Stage) -> None:
    stage.log.append(1, [entry(1, data=b"damage this")])
    stage.log.append(2, entries(1, 2))
    stage.persist()
    stage.restart()
    stage.log.append(2, entries(3, 3))
    stage.persist()
    flip_in(stage, newest(stage), b"damage this")
    stage.disk.perform(disk.DiskWork(disk.REMOVE, FIRST))
    stage.restart()
    assert damaged(stage) == [1]
    assert stage.indexes(2) == [1, 2, 3]


def test_files_of_junk_are_no_log(stage: Stage) -> None:
    stage.disk.put("ordered-0000000003.log", b"junk")
    stage.disk.put("ordered-0000000004.log", bytes(1000))
    stage.restart()
    assert stage.owner.groups == {}
    stage.log.append(1, entries(1, 1))
    stage.persist()
    assert stage.restart().indexes(1) == [1]
    assert all(name > "ordered-0000000004.log" for name in stage.disk.files)


# --- older segments ---------------------------------------------------------------------------------------------------


def test_damage_in_an_older_segment_concerns_the_groups_whose_live_records_are_gone(stage: Stage) -> None:
    stage.log.append(1, [entry(1, data=b"damage this")])
    stage.log.append(2, [entry(1, data=b"and this"), *entries(2, 3)])
    stage.log.append(3, entries(1, 60, size=200))
    stage.persist()
    stage.log.release(2, 1)
    stage.log.save_snapshot(2, 3, 1, b"", b"")
    stage.log.append(3, entries(61, 70, size=200))
    stage.persist()
    assert newest(stage) != FIRST
    for text in (b"damage this", b"and this"):
        flip_in(stage, FIRST, text)
    stage.restart()
    assert damaged(stage) == [1]
    assert stage.indexes(2) == [2, 3]
    assert stage.indexes(3) == list(range(1, 71))


def test_a_lost_segment_concerns_the_groups_that_had_live_records_in_it(stage: Stage) -> None:
    stage.log.append(1, entries(1, 100, size=200))
    stage.persist()
    stage.log.append(2, entries(1, 3))
    stage.persist()
    stage.disk.perform(disk.DiskWork(disk.REMOVE, FIRST))
    stage.restart()
    assert damaged(stage) == [1]
    assert stage.fetch(2, 1, 9) == entries(1, 3)


def test_a_lost_part_of_a_snapshot_concerns_its_group(stage: Stage) -> None:
    stage.log.append(1, entries(1, 1))
    stage.log.save_snapshot(1, 1, 1, b"", b"a" * 1500 + b"damage this" + b"b" * 1500)
    stage.persist()
    stage.log.append(2, entries(1, 80, size=200))
    stage.persist()
    stage.log.append(2, entries(81, 82, size=200))
    stage.persist()
    flip_in(stage, FIRST, b"damage this")
    assert damaged(stage.restart()) == [1]


def test_a_segment_that_cannot_be_read_concerns_its_groups_only(stage: Stage) -> None:
    stage.log.append(1, entries(1, 100, size=200))
    stage.persist()
    stage.log.append(2, entries(1, 3))
    stage.persist()
    stage.disk.crash()
    stage.disk.hold(disk.READ)
    stage.begin()
    while [work.name for work in stage.disk.pending] != [FIRST] or stage.disk.pending[0].offset == 0:
        stage.disk.finish(1)
        stage.deliver()
    stage.disk.fail(disk.READ, times=1)
    stage.disk.held.clear()
    stage.disk.finish()
    stage.settle()
    assert damaged(stage) == [1]
    assert stage.owner.open


# --- damage while the log is used -------------------------------------------------------------------------------------


def test_an_entry_that_cannot_be_read_puts_its_group_out_of_service(stage: Stage) -> None:
    stage.log.append(1, [entry(1, data=b"damage this"), *entries(2, 3)])
    stage.log.append(2, entries(1, 2))
    stage.persist()
    stage.restart()
    flip_in(stage, newest(stage), b"damage this")
    assert stage.fetch(2, 1, 2) == entries(1, 2)
    assert stage.fetch(1, 1, 3) == []
    assert stage.owner.broken == [1]
    stage.flush()
    assert damaged(stage.restart()) == [1]


def test_a_segment_with_damage_is_kept_until_the_group_is_removed(stage: Stage) -> None:
    stage.log.append(1, [entry(1, data=b"damage this"), *entries(2, 100, size=200)])
    stage.log.append(2, entries(1, 3))
    stage.persist()
    flip_in(stage, FIRST, b"damage this")
    for index in range(2, 101):
        stage.log.release(1, index)
    stage.log.save_snapshot(1, 100, 1, b"", b"")
    stage.persist()
    assert stage.owner.broken == [1]
    assert FIRST in stage.disk.files
    assert stage.fetch(2, 1, 3) == entries(1, 3)
    stage.log.remove_group(1)
    stage.persist()
    assert FIRST not in stage.disk.files
    assert stage.restart().fetch(2, 1, 3) == entries(1, 3)


@pytest.mark.parametrize("seed", range(4))
def test_any_flipped_bit_is_told_or_changes_nothing(seed: int) -> None:
    stage = Stage(seed, segment_bytes=3000, slice_bytes=512).start()
    history = History(stage, seed)
    for _ in range(60):
        history.operate()
        history.flush()
    content = {name: bytes(data) for name, data in stage.disk.files.items()}
    chance = Random(seed)
    data_id = stage.log.data_id
    told = 0
    for _ in range(300):
        for name in list(stage.disk.files):
            stage.disk.perform(disk.DiskWork(disk.REMOVE, name))
        for name, data in content.items():
            stage.disk.put(name, data)
        victim = chance.choice(sorted(content))
        stage.disk.flip(victim, chance.randrange(8 * len(content[victim])))
        stage.start()
        if stage.log.data_id != data_id:
            assert stage.owner.groups == {}
            told += 1
            continue
        groups = stage.owner.groups
        assert groups.keys() >= history.groups.keys()
        for number, shadow in history.groups.items():
            assert groups[number].damaged or shadow.fits(stage, number)
        told += bool(damaged(stage))
    assert 0 < told < 300
