"""Reading entries: from memory, from the disk, and for many groups at once."""

from __future__ import annotations

import pytest

from disqued.core.host import disk
from raftlog.stage import Stage, entries, entry


@pytest.fixture
def stage() -> Stage:
    return Stage().start()


def test_entries_in_a_row_cost_few_reads() -> None:
    stage = Stage(near_bytes=64 << 10).start()
    stage.log.append(1, entries(1, 100, size=50))
    stage.persist()
    stage.restart()
    stage.disk.hold(disk.READ)
    for index in range(1, 51):
        stage.log.fetch(1, index, index, index)
    assert len(stage.disk.pending) <= 2
    stage.release()
    assert [stage.owner.answers[index][0].index for index in range(1, 51)] == list(range(1, 51))


def test_entries_are_read_before_they_are_written() -> None:
    stage = Stage(cache_bytes=0).start()
    stage.disk.hold(disk.APPEND)
    stage.log.append(1, entries(1, 2))
    stage.log.flush(stage.host.now_ms)
    stage.log.append(1, entries(3, 4))
    assert stage.fetch(1, 1, 4) == entries(1, 4)


def test_a_fetch_is_answered_without_entries_when_the_group_is_removed_meanwhile(stage: Stage) -> None:
    stage.log.append(1, entries(1, 2))
    stage.persist()
    stage.restart()
    stage.disk.hold(disk.READ)
    stage.log.fetch(1, 1, 2, "token")
    stage.log.remove_group(1)
    stage.release()
    assert stage.owner.answers == {"token": []}
    assert stage.fetch(1, 1, 2) == []


def test_a_fetch_returns_the_entry_that_replaced_the_one_it_was_reading(stage: Stage) -> None:
    stage.log.append(1, entries(1, 2))
    stage.persist()
    stage.restart()
    stage.disk.hold(disk.READ)
    stage.log.fetch(1, 2, 2, "token")
    stage.log.append(1, entries(2, 3, term=2))
    stage.release()
    assert stage.owner.answers == {"token": entries(2, 2, term=2)}


def test_a_fetch_of_much_data_is_cut_off_and_continued(stage: Stage) -> None:
    stage.log.append(1, [entry(index, data=bytes(3 << 20)) for index in (1, 2, 3)])
    stage.persist()
    stage.restart()
    assert [found.index for found in stage.fetch(1, 1, 3)] == [1, 2]
    assert [found.index for found in stage.fetch(1, 3, 3)] == [3]


def test_the_cache_is_bounded_by_bytes() -> None:
    stage = Stage(cache_bytes=40_000).start()
    stage.log.append(1, entries(1, 1000, size=160))
    stage.persist()
    in_memory = [index for index in range(1, 1001) if stage.log.read(1, index) is not None]
    assert 70 <= len(in_memory) <= 101
    assert in_memory[-1] == 1000
    assert stage.bodies(1) == [found.data for found in entries(1, 1000, size=160)]


def test_fetches_of_one_range_are_all_answered_if_the_read_ends_just_when_the_second_begins() -> None:
    """The work was finished, but the log was not told yet."""
    stage = Stage(cache_bytes=0).start()
    stage.log.append(1, entries(1, 20))
    stage.persist()
    stage.disk.delay_ms = {disk.READ: 5}
    stage.log.fetch(1, 1, 3, "first")
    stage.host.now_ms += 5
    finished = stage.disk.take_finished()
    assert [work.finished for work in finished] == [True]
    stage.log.fetch(1, 2, 4, "second")
    for work in finished:
        assert work.owner is not None
        work.owner.disk_done(work)
    for _ in range(10):
        stage.wait(5)
    assert [entry.index for entry in stage.owner.answers["first"]] == [1, 2, 3]
    assert [entry.index for entry in stage.owner.answers["second"]] == [2, 3, 4]


def interleaved(groups: int, count: int) -> Stage:
    """A log without a cache, in which the entries of many groups alternate."""
    stage = Stage(segment_bytes=4 << 20, cache_bytes=0).start()
    for index in range(1, count + 1):
        for group in range(groups):
            stage.log.append(group, [entry(index)])
        stage.persist()
    return stage.restart()


def fetch_all(stage: Stage, groups: int, count: int) -> None:
    """All groups fetch their entries at once."""
    stage.disk.hold(disk.READ)
    for group in range(groups):
        stage.log.fetch(group, 1, count, group)
    stage.release()


def test_groups_that_fetch_at_once_read_each_part_of_the_log_once() -> None:
    stage = interleaved(50, 40)
    fetch_all(stage, 50, 40)
    assert stage.owner.answers == {group: [entry(index) for index in range(1, 41)] for group in range(50)}
    assert int(stage.log.reads) < 1.1 * int(stage.log.disk_bytes) / int(stage.tuning.far_bytes)


def test_groups_that_fetch_later_than_the_others_read_together_too() -> None:
    stage = interleaved(50, 40)
    stage.disk.delay_ms = {disk.READ: 5}
    for group in range(25):
        stage.log.fetch(group, 1, 40, group)
    stage.wait(5)
    stage.wait(5)
    for group in range(25, 50):
        stage.log.fetch(group, 1, 40, group)
    while len(stage.owner.answers) < 50:
        stage.wait(5)
    assert stage.owner.answers == {group: [entry(index) for index in range(1, 41)] for group in range(50)}
    assert int(stage.log.reads) < 1.1 * int(stage.log.disk_bytes) / int(stage.tuning.far_bytes)


def test_fetches_of_very_many_groups_end_early_so_that_they_do_not_hold_all_entries() -> None:
    stage = interleaved(300, 80)
    fetch_all(stage, 300, 80)
    answers = {group: stage.owner.answers.pop(group) for group in range(300)}
    assert 64 <= min(len(found) for found in answers.values()) < 80
    for group, found in answers.items():
        assert found + stage.fetch(group, len(found) + 1, 80) == [entry(index) for index in range(1, 81)]


def test_a_fetch_is_not_held_back_by_later_ones_nearer_to_the_beginning() -> None:
    stage = interleaved(50, 40)
    stage.disk.delay_ms = {disk.READ: 5}
    stage.log.fetch(0, 1, 1, "first")
    stage.log.fetch(0, 40, 40, "far")
    rounds = 0
    while "far" not in stage.owner.answers:
        rounds += 1
        stage.log.fetch(1 + rounds % 40, 1 + rounds % 5, 1 + rounds % 5, rounds)
        stage.wait(5)
        assert rounds < 10


def test_a_fetch_follows_an_entry_that_is_replaced_in_another_segment_while_it_waits() -> None:
    stage = Stage(cache_bytes=0).start()
    stage.log.append(1, [entry(1)])
    stage.log.append(3, entries(1, 8, size=400))
    stage.log.append(2, [entry(1)])
    stage.persist()
    for index in range(9, 99):
        stage.log.append(3, entries(index, index, size=400))
        stage.persist()
    stage.restart()
    stage.disk.delay_ms = {disk.READ: 5}
    stage.log.fetch(1, 1, 1, "first")
    stage.log.fetch(2, 1, 1, "second")
    stage.log.append(2, [entry(1, term=2)])
    stage.persist()
    for _ in range(5):
        stage.wait(5)
    assert stage.owner.answers == {"first": [entry(1)], "second": [entry(1, term=2)]}
