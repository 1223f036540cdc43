"""Entries, hard states and snapshots of groups are read back, now and after a restart, and share syncs."""

from __future__ import annotations

import pytest

from disqued.core.host import disk
from disqued.raft.entry import EMPTY, MEMBERS
from disqued.raftlog.appender import RELAXED_MS
from raftlog.stage import Stage, entries, entry, hard


@pytest.fixture
def stage() -> Stage:
    return Stage().start()


def test_no_file_exists_while_there_is_no_group(stage: Stage) -> None:
    assert stage.log.flush(stage.host.now_ms) == 0
    assert stage.log.wake_ms == 0
    assert stage.disk.files == {}
    assert len(stage.log.data_id) == 8


def test_entries_are_read_back_from_memory_and_after_a_restart_from_the_disk(stage: Stage) -> None:
    written = entries(1, 5)
    stage.log.append(7, written)
    assert stage.log.read(7, 3) == written[2]
    stage.persist()
    stage.restart()
    assert stage.log.read(7, 3) is None
    assert stage.fetch(7, 1, 5) == written
    assert stage.log.read(7, 3) == written[2], "the read fills the cache"


def test_kind_term_and_time_of_an_entry_survive(stage: Stage) -> None:
    written = [entry(1, 2, b"", EMPTY), entry(2, 2, b"members", MEMBERS), entry(3, 4, b"\0" * 100)]
    stage.log.append(1, written)
    stage.persist()
    stage.restart()
    assert stage.fetch(1, 1, 9) == written
    group = stage.owner.groups[1]
    assert group.terms == [(1, 2), (3, 4)]
    assert group.member_entries == [written[1]]
    assert group.last_index == 3


def test_an_entry_replaces_those_from_its_index_on(stage: Stage) -> None:
    stage.log.append(1, entries(1, 6))
    stage.flush()
    stage.log.append(1, entries(4, 5, term=2))
    stage.persist()
    for _ in range(2):
        assert [(found.index, found.term) for found in stage.fetch(1, 1, 9)] == [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)]
        assert [stage.log.term(1, index) for index in range(7)] == [0, 1, 1, 1, 2, 2, 0]
        stage.restart()


def test_replaced_entries_are_gone_from_the_cache(stage: Stage) -> None:
    stage.log.append(1, entries(1, 6))
    stage.log.append(1, entries(2, 2, term=2))
    assert stage.log.read(1, 5) is None
    stage.log.append(1, entries(3, 5, term=2))
    assert [stage.log.read(1, index) for index in range(1, 6)] == entries(1, 1) + entries(2, 5, term=2)


def test_entries_that_leave_a_gap_are_refused(stage: Stage) -> None:
    stage.log.append(1, entries(1, 2))
    with pytest.raises(ValueError, match="entry 4 of group 1 does not follow 2"):
        stage.log.append(1, entries(4, 4))
    stage.log.save_snapshot(1, 2, 1, b"", b"")
    stage.persist()
    with pytest.raises(ValueError, match="entry 2 of group 1 does not follow 2"):
        stage.log.append(1, entries(2, 2))


def test_data_of_more_than_40_megabytes_is_refused(stage: Stage) -> None:
    with pytest.raises(ValueError, match="at most 40 MB"):
        stage.log.append(1, [entry(1, data=bytes((40 << 20) + 1))])
    stage.log.append(1, entries(1, 1))
    stage.persist()


def test_the_latest_hard_state_is_recovered(stage: Stage) -> None:
    stage.log.save_hard(1, hard(3, b"candidate"))
    stage.log.save_hard(2, hard(9))
    stage.persist()
    stage.log.save_hard(1, hard(4))
    stage.persist()
    stage.restart()
    assert stage.owner.groups[1].hard == hard(4)
    assert stage.owner.groups[2].hard == hard(9)


def test_groups_are_recovered_in_order_and_before_the_log_is_open(stage: Stage) -> None:
    for group in (5, 0, 3):
        stage.log.save_hard(group, hard(1))
    stage.persist()
    stage.restart()
    assert list(stage.owner.groups) == [0, 3, 5]


def test_a_removed_group_begins_from_nothing(stage: Stage) -> None:
    stage.log.append(1, entries(1, 3))
    stage.log.save_hard(1, hard(2, b"x"))
    stage.persist()
    stage.log.remove_group(1)
    assert stage.log.groups() == []
    stage.log.append(1, entries(1, 1, term=9))
    stage.persist()
    stage.restart()
    assert stage.owner.groups[1].hard == hard(0)
    assert stage.fetch(1, 1, 9) == entries(1, 1, term=9)
    stage.log.remove_group(1)
    stage.persist()
    assert stage.restart().owner.groups == {}


# --- identity ---------------------------------------------------------------------------------------------------------


def test_the_data_id_is_kept_from_the_first_record_on(stage: Stage) -> None:
    stage.log.save_hard(1, hard(1))
    stage.persist()
    first = stage.log.data_id
    assert stage.restart().log.data_id == first
    assert stage.lose_power().log.data_id == first


def test_a_node_that_lost_its_disk_has_another_data_id(stage: Stage) -> None:
    stage.log.save_hard(1, hard(1))
    stage.persist()
    first = stage.log.data_id
    for name in list(stage.disk.files):
        stage.disk.perform(disk.DiskWork(disk.REMOVE, name))
    stage.start()
    assert stage.owner.groups == {}
    assert stage.log.data_id != first


def test_segments_of_another_log_are_deleted(stage: Stage) -> None:
    stage.log.append(1, entries(1, 3))
    stage.persist()
    other = Stage(seed=1).start()
    other.log.append(1, entries(1, 3))
    other.log.append(9, entries(1, 3))
    other.persist()
    stage.disk.put("ordered-0000000000.log", b"no segment has this number")
    stage.restart()
    stage.disk.put("ordered-0000000001.log", bytes(other.disk.files["ordered-0000000001.log"]))
    stage.restart()
    assert "ordered-0000000001.log" not in stage.disk.files
    assert "ordered-0000000000.log" in stage.disk.files
    assert list(stage.owner.groups) == [1]


# --- snapshots --------------------------------------------------------------------------------------------------------


def test_a_snapshot_replaces_the_released_entries_up_to_its_index(stage: Stage) -> None:
    stage.log.append(1, entries(1, 6))
    for index in (1, 2, 4, 6):
        stage.log.release(1, index)
    assert stage.indexes(1) == [1, 2, 3, 4, 5, 6]
    stage.log.save_snapshot(1, 4, 1, b"members", b"state")
    stage.persist()
    assert stage.owner.saved == [(1, 4)]
    for _ in range(2):
        assert stage.indexes(1) == [3, 5, 6]
        assert (stage.log.first_index(1), stage.log.last_index(1), stage.log.term(1, 4)) == (5, 6, 1)
        stage.restart()
    group = stage.owner.groups[1]
    assert (group.snapshot_index, group.snapshot_term) == (4, 1)
    assert (group.snapshot_members, group.snapshot_state) == (b"members", b"state")
    assert not group.damaged


def test_an_entry_below_the_snapshot_is_gone_when_it_is_released(stage: Stage) -> None:
    stage.log.append(1, entries(1, 4))
    stage.log.save_snapshot(1, 4, 1, b"", b"")
    stage.persist()
    stage.log.release(1, 2)
    assert stage.indexes(1) == [1, 3, 4]


def test_a_large_state_is_written_in_parts_and_recovered(stage: Stage) -> None:
    state = bytes(range(256)) * 40
    stage.disk.hold(disk.SYNC)
    stage.log.append(1, entries(1, 3))
    stage.log.save_snapshot(1, 3, 1, b"m", state)
    stage.log.flush(stage.host.now_ms)
    assert stage.log.first_index(1) == 1, "ten slices, of which one was written"
    stage.release()
    assert stage.owner.saved == [(1, 3)]
    assert stage.restart().owner.groups[1].snapshot_state == state


def test_a_snapshot_counts_only_when_it_is_complete(stage: Stage) -> None:
    stage.log.append(1, entries(1, 3))
    stage.log.save_snapshot(1, 1, 1, b"", b"old")
    stage.persist()
    stage.disk.hold(disk.SYNC)
    stage.log.save_snapshot(1, 3, 1, b"", bytes(9000))
    stage.log.flush(stage.host.now_ms)
    stage.disk.repair()
    stage.restart()
    group = stage.owner.groups[1]
    assert (group.snapshot_index, group.snapshot_state) == (1, b"old")
    assert stage.indexes(1) == [1, 2, 3]


def test_a_later_snapshot_takes_the_place_of_one_that_is_not_complete(stage: Stage) -> None:
    stage.log.append(1, entries(1, 3))
    stage.log.save_snapshot(1, 1, 1, b"", bytes(9000))
    stage.disk.hold(disk.SYNC)
    stage.log.flush(stage.host.now_ms)
    stage.log.save_snapshot(1, 2, 1, b"", b"second")
    stage.release()
    stage.flush()
    assert stage.owner.saved == [(1, 2)]
    assert stage.restart().owner.groups[1].snapshot_state == b"second"


def test_a_snapshot_needs_the_entry_at_its_index(stage: Stage) -> None:
    stage.log.append(1, entries(1, 3))
    for index, term in ((4, 1), (3, 2), (0, 0)):
        with pytest.raises(ValueError, match="has no entry"):
            stage.log.save_snapshot(1, index, term, b"", b"")


def test_a_received_snapshot_replaces_everything(stage: Stage) -> None:
    stage.log.append(1, entries(1, 8))
    stage.persist()
    bodies = [entry(3, 2, b"three"), entry(50, 4, b"fifty"), entry(60, 5, b"sixty")]
    stage.log.receive_entries(1, bodies[:2])
    stage.persist()
    stage.log.receive_entries(1, bodies[2:])
    assert stage.indexes(1) == list(range(1, 9))
    stage.log.install_snapshot(1, 70, 6, b"m", b"state")
    stage.persist()
    assert stage.owner.saved == [(1, 70)]
    stage.log.append(1, entries(71, 72, term=6))
    stage.persist()
    for _ in range(3):
        assert stage.fetch(1, 1, 99) == bodies + entries(71, 72, term=6)
        stage.restart()
    assert stage.owner.groups[1].snapshot_state == b"state"


def test_entries_that_follow_a_received_snapshot_may_be_in_the_same_turn(stage: Stage) -> None:
    stage.log.install_snapshot(1, 70, 6, b"m", bytes(5000))
    stage.log.append(1, entries(71, 72, term=6))
    stage.persist()
    stage.restart()
    assert stage.indexes(1) == [71, 72]
    assert stage.owner.groups[1].snapshot_state == bytes(5000)


def test_received_entries_of_a_snapshot_that_was_given_up_are_gone(stage: Stage) -> None:
    stage.log.append(1, entries(1, 2))
    stage.log.receive_entries(1, entries(5, 6))
    stage.persist()
    live = stage.log.live_bytes
    stage.log.abandon_snapshot(1)
    assert stage.log.live_bytes < live
    stage.log.install_snapshot(1, 9, 1, b"", b"")
    stage.persist()
    assert stage.indexes(1) == []
    assert stage.restart().indexes(1) == []


# --- one sync for all -------------------------------------------------------------------------------------------------


def test_a_turn_costs_one_append_and_one_sync_for_all_groups() -> None:
    stage = Stage(segment_bytes=1 << 20).start()
    stage.log.save_hard(0, hard(1))
    stage.persist()
    before = stage.disk.done.copy()
    for group in range(100):
        stage.log.append(group, entries(1, 2))
        stage.log.save_hard(group, hard(1))
    stage.persist()
    assert stage.disk.done - before == {"write to": 1, "sync": 1}


def test_what_arrives_during_a_sync_shares_the_next_one(stage: Stage) -> None:
    stage.disk.hold(disk.SYNC)
    tickets = []
    for turn in range(1, 6):
        stage.log.append(turn, entries(1, 1))
        tickets.append(stage.flush())
    assert stage.owner.ticket == 0
    stage.disk.finish()
    stage.settle()
    assert tickets[0] <= stage.owner.ticket < tickets[1] == tickets[-1]
    stage.disk.finish()
    stage.settle()
    assert stage.owner.ticket == tickets[-1]
    assert stage.disk.done["sync"] == 2


def test_nothing_is_persisted_before_the_sync(stage: Stage) -> None:
    stage.disk.hold(disk.SYNC)
    stage.log.append(1, entries(1, 1))
    ticket = stage.flush()
    assert stage.owner.ticket < ticket
    stage.release()
    assert stage.owner.ticket == stage.log.safe == ticket


def test_everysec_persists_at_the_write_and_syncs_after_a_second() -> None:
    stage = Stage(sync_always=False).start()
    stage.log.append(1, entries(1, 1))
    stage.persist()
    synced = stage.disk.done["sync"]
    for turn in range(2, 20):
        stage.log.append(1, entries(turn, turn))
        stage.persist()
    assert stage.disk.done["sync"] == synced
    stage.wait(1000)
    assert stage.disk.done["sync"] == synced + 1
    assert stage.log.wake_ms == 0
    assert stage.lose_power().indexes(1) == list(range(1, 20))


# --- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [disk.OPEN, disk.APPEND, disk.SYNC])
def test_everything_is_synced_when_the_node_ends(verb: int) -> None:
    stage = Stage().start()
    stage.disk.hold(verb)
    stage.log.append(1, entries(1, 2))
    stage.log.flush(stage.host.now_ms)
    stage.log.append(1, entries(3, 200, size=100))
    stage.log.save_snapshot(1, 2, 1, b"", bytes(5000))
    assert stage.log.finish(stage.host.now_ms) == ""
    stage.disk.repair()
    stage.lose_power()
    assert stage.indexes(1) == list(range(1, 201))
    assert stage.owner.groups[1].snapshot_index == 2


def test_a_full_disk_is_told_when_the_node_ends(stage: Stage) -> None:
    stage.disk.fail(disk.APPEND)
    stage.log.append(1, entries(1, 2))
    assert stage.log.finish(stage.host.now_ms) == "can't write to ordered-0000000001.log: Input/output error"


def test_what_nobody_waits_for_is_written_and_synced_after_a_time(stage: Stage) -> None:
    stage.log.append(1, entries(1, 1))
    stage.persist()
    stage.log.append(1, entries(2, 2))
    ticket = stage.log.flush(stage.host.now_ms, relaxed=True)
    stage.settle()
    assert stage.log.wake_ms == stage.host.now_ms + RELAXED_MS
    stage.wait(RELAXED_MS - 1)
    assert stage.log.safe < ticket
    stage.wait(1)
    assert stage.owner.ticket == ticket
    assert stage.log.wake_ms == 0


def test_what_nobody_waits_for_shares_the_sync_of_what_somebody_waits_for(stage: Stage) -> None:
    stage.log.append(1, entries(1, 1))
    stage.persist()
    syncs = stage.log.syncs
    for index in (2, 3):
        stage.log.append(1, entries(index, index))
        stage.log.flush(stage.host.now_ms, relaxed=True)
        stage.settle()
    stage.log.append(2, entries(1, 1))
    stage.persist()
    assert stage.log.syncs == syncs + 1


def test_flush_without_new_records_syncs_what_nobody_waited_for(stage: Stage) -> None:
    stage.log.append(1, entries(1, 1))
    stage.log.flush(stage.host.now_ms, relaxed=True)
    stage.settle()
    stage.persist()


def test_frame_is_synced_at_once_if_one_of_its_turns_is_not_relaxed(stage: Stage) -> None:
    stage.log.append(1, entries(1, 1))
    stage.persist()
    stage.disk.hold(disk.APPEND)
    stage.log.append(1, entries(2, 2))
    stage.log.flush(stage.host.now_ms)
    for relaxed in (False, True):
        stage.log.append(1, entries(3 + relaxed, 3 + relaxed))
        ticket = stage.log.flush(stage.host.now_ms, relaxed=relaxed)
    stage.release()
    assert stage.log.safe >= ticket
