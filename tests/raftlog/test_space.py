"""The disk is bounded by what is live, whatever consumers do, and nothing live is ever deleted."""

from __future__ import annotations

from random import Random

import pytest

from disqued.core.host import disk
from raftlog.stage import Stage, entries, entry, hard

SEGMENT_BYTES = 16 << 10


class Model:
    """What the log must have, group by group, and the load that changes it."""

    def __init__(self, stage: Stage, seed: int, groups: int, *, stuck: bool) -> None:
        self.stage = stage
        self.chance = Random(seed)
        self.bodies: dict[int, dict[int, bytes]] = {group: {} for group in range(1, groups + 1)}
        """All entries in the log, by group and index."""
        self.needed: dict[int, set[int]] = {group: set() for group in self.bodies}
        self.last = dict.fromkeys(self.bodies, 0)
        self.snapshots = dict.fromkeys(self.bodies, (0, b""))
        self.terms = dict.fromkeys(self.bodies, 0)
        self.stuck = stuck
        """Whether the first job of each group is never released."""

    def add(self) -> None:
        group = self.chance.choice(list(self.bodies))
        for _ in range(self.chance.randint(1, 8)):
            index = self.last[group] + 1
            body = self.chance.randbytes(self.chance.randint(0, 300))
            self.stage.log.append(group, [entry(index, 1, body)])
            self.bodies[group][index] = body
            self.needed[group].add(index)
            self.last[group] = index

    def release(self) -> None:
        """Consumers finish jobs, oldest first or anywhere."""
        group = self.chance.choice(list(self.bodies))
        jobs = sorted(self.needed[group])
        if self.stuck and jobs and jobs[0] == 1:
            jobs = jobs[1:]
        count = min(len(jobs), self.chance.randint(1, 12))
        for index in jobs[:count] if self.chance.random() < 0.7 else self.chance.sample(jobs, count):
            self.stage.log.release(group, index)
            self.needed[group].discard(index)
            if index <= self.snapshots[group][0]:
                del self.bodies[group][index]

    def vote(self) -> None:
        group = self.chance.choice(list(self.bodies))
        self.terms[group] += 1
        self.stage.log.save_hard(group, hard(self.terms[group], b"candidate"))

    def save(self, group: int) -> None:
        index = self.last[group]
        if index > self.snapshots[group][0]:
            state = self.chance.randbytes(self.chance.randint(0, 3000))
            self.stage.log.save_snapshot(group, index, 1, b"members", state)
            self.stage.persist()
            self.snapshots[group] = (index, state)
            needed = self.needed[group]
            self.bodies[group] = {index: body for index, body in self.bodies[group].items() if index in needed}

    def turn(self) -> None:
        draw = self.chance.random()
        if draw < 0.5:
            self.add()
        elif draw < 0.95:
            self.release()
        else:
            self.vote()
        self.stage.persist()
        wanted, self.stage.owner.wanted = self.stage.owner.wanted, []
        for group in wanted:
            self.save(group)

    def check(self) -> None:
        """Everything that must be there can be read."""
        for group, bodies in self.bodies.items():
            found = self.stage.fetch(group, 1, 1 << 40)
            assert {found.index: found.data for found in found} == bodies
        assert self.stage.owner.broken == []

    def check_recovered(self) -> None:
        """The same after a start."""
        for group, recovered in self.stage.owner.groups.items():
            assert not recovered.damaged
            assert recovered.hard.term == self.terms[group]
            assert (recovered.snapshot_index, recovered.snapshot_state) == self.snapshots[group]
            assert recovered.last_index == self.last[group]
            self.replay(group)
        self.check()

    def replay(self, group: int) -> None:
        """The machine begins at its snapshot and releases again what later entries released."""
        bodies = self.bodies[group]
        for index in self.stage.indexes(group):
            if index not in bodies:
                assert index <= self.snapshots[group][0]
                self.stage.log.release(group, index)
        for index in bodies.keys() - self.needed[group]:
            self.stage.log.release(group, index)

    @property
    def needed_bytes(self) -> int:
        """The bytes of the records that the machines and the snapshots need."""
        bodies = sum(
            48 + (len(self.bodies[group][index]) + 7 & ~7) for group, needed in self.needed.items() for index in needed
        )
        return bodies + sum(48 * (len(state) // 1024 + 1) + len(state) for _, state in self.snapshots.values())


@pytest.mark.parametrize("stuck", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_disk_is_bounded_under_a_random_load(seed: int, *, stuck: bool) -> None:
    stage = Stage(seed=seed).start()
    model = Model(stage, seed, groups=1 + seed, stuck=stuck)
    rewritten = deleted = 0
    for turn in range(3000):
        model.turn()
        assert stage.log.idle, "the disk does everything at once"
        files = sum(map(len, stage.disk.files.values()))
        assert files == stage.log.disk_bytes
        assert files <= 2 * model.needed_bytes + 3 * SEGMENT_BYTES, f"turn {turn}"
        if turn % 1000 == 999:
            model.check()
            rewritten += stage.log.rewritten
            deleted += stage.disk.done["remove"]
            stage.lose_power()
            model.check_recovered()
    assert rewritten > 3
    assert deleted > 10


def test_the_disk_is_bounded_while_consumers_stand_still_and_after_a_purge() -> None:
    stage = Stage().start()
    for turn in range(400):
        stage.log.append(1, entries(turn * 4 + 1, turn * 4 + 4, size=200))
        stage.persist()
    assert stage.log.disk_bytes <= 2 * stage.log.live_bytes + 3 * SEGMENT_BYTES
    for index in range(1, 1601):
        stage.log.release(1, index)
    stage.flush()
    assert stage.owner.wanted == [1]
    stage.log.save_snapshot(1, 1600, 1, b"", b"state")
    stage.persist()
    assert stage.log.disk_bytes <= 3 * SEGMENT_BYTES
    assert len(stage.disk.files) <= 2
    assert stage.restart().owner.groups[1].snapshot_state == b"state"


def test_the_first_job_of_an_old_segment_survives_all_later_ones() -> None:
    stage = Stage().start()
    kept = entry(1, data=b"never released")
    stage.log.append(1, [kept])
    for turn in range(1, 300):
        stage.log.append(1, entries(turn * 4 - 2, turn * 4 + 1, size=200))
        stage.persist()
        for index in range(turn * 4 - 2, turn * 4 + 2):
            stage.log.release(1, index)
        if turn % 20 == 0:
            stage.log.save_snapshot(1, turn * 4 + 1, 1, b"", b"")
            stage.persist()
            assert stage.log.disk_bytes <= 3 * SEGMENT_BYTES
    assert "ordered-0000000001.log" not in stage.disk.files
    assert stage.fetch(1, 1, 1) == [kept]
    stage.lose_power()
    assert stage.fetch(1, 1, 1) == [kept]


def test_a_group_is_asked_for_a_snapshot_once_until_it_has_one() -> None:
    stage = Stage().start()
    for turn in range(30):
        stage.log.append(1, entries(turn * 4 + 1, turn * 4 + 4, size=100))
        stage.persist()
        for index in range(turn * 4 + 1, turn * 4 + 5):
            stage.log.release(1, index)
    assert stage.owner.wanted == [1]


def test_those_groups_are_asked_that_hold_most() -> None:
    stage = Stage().start()
    for group, count in ((1, 2), (2, 60), (3, 5)):
        stage.log.append(group, entries(1, count, size=100))
        for index in range(1, count + 1):
            stage.log.release(group, index)
    stage.persist()
    assert stage.owner.wanted == [2]


def test_a_segment_is_deleted_only_after_the_copies_are_synced() -> None:
    stage = Stage().start()
    first = "ordered-0000000001.log"
    stage.log.append(1, entries(1, 100, size=200))
    stage.persist()
    for index in range(2, 101):
        stage.log.release(1, index)
    stage.disk.hold(disk.SYNC)
    stage.log.save_snapshot(1, 100, 1, b"", b"")
    stage.log.flush(stage.host.now_ms)
    stage.settle()
    assert first in stage.disk.files
    while stage.disk.pending:
        assert first in stage.disk.files
        assert stage.disk.pending[0].verb == disk.SYNC
        stage.disk.finish(1)
        stage.settle()
    assert first not in stage.disk.files
    assert stage.indexes(1) == [1]


def test_a_segment_that_comes_back_after_a_loss_of_power_changes_nothing() -> None:
    stage = Stage().start()
    stage.log.append(1, entries(1, 60, size=200))
    stage.log.append(2, entries(1, 5))
    stage.persist()
    first = bytes(stage.disk.files["ordered-0000000001.log"])
    stage.log.append(1, entries(3, 3, term=2))
    stage.log.remove_group(2)
    stage.persist()
    stage.log.append(1, entries(4, 70, term=2, size=200))
    stage.persist()
    for index in range(1, 70):
        stage.log.release(1, index)
    stage.log.save_snapshot(1, 69, 2, b"", b"")
    stage.persist()
    stage.settle()
    assert "ordered-0000000001.log" not in stage.disk.files
    stage.disk.put("ordered-0000000001.log", first)
    stage.restart()
    assert list(stage.owner.groups) == [1]
    assert stage.fetch(1, 1, 99) == entries(70, 70, term=2, size=200)
    assert "ordered-0000000001.log" not in stage.disk.files


def test_a_live_entry_takes_16_bytes_of_memory_and_less() -> None:
    stage = Stage(segment_bytes=1 << 20).start()
    stage.log.append(1, entries(1, 2000))
    group = stage.log.group_of(1)
    assert group is not None
    assert group.places.itemsize * len(group.places) == 8 * 2000
    stage.log.save_snapshot(1, 2000, 1, b"", b"")
    stage.persist()
    for index in range(1, 2000):
        stage.log.release(1, index)
    stage.log.append(1, entries(2001, 2001))
    stage.log.save_snapshot(1, 2001, 1, b"", b"")
    stage.persist()
    assert len(group.places) == 0
    assert list(group.old_indexes) == [2000, 2001]
    assert len(group.old_places) == 2


@pytest.mark.parametrize("slow", [disk.APPEND, disk.SYNC])
def test_a_segment_is_rewritten_only_once_its_end_is_written(slow: int) -> None:
    """Otherwise the rewriting did not find its last records, and took their groups for damaged."""
    stage = Stage().start()
    last = 0
    for turn in range(120):
        stage.disk.delay_ms = {slow: 7}
        for index in range(last + 1, last + 11):
            stage.log.append(1, [entry(index, 1, bytes(300))])
            if index % 10 != turn % 3:
                stage.log.release(1, index)
        last += 10
        if turn % 2:
            stage.log.save_snapshot(1, last, 1, b"members", bytes(600))
        stage.log.flush(stage.host.now_ms)
        stage.wait(1)
    stage.disk.delay_ms = {}
    stage.wait(100)
    assert stage.owner.broken == []
    assert stage.log.rewritten > 0
