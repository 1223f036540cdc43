"""Whenever the process or the machine stops, the log has all that was persisted, as it was after some operation."""

from __future__ import annotations

import pytest

from raftlog.shadow import History
from raftlog.stage import Stage

TURNS = 40


def run(seed: int, works: int, *, power: bool, **changes: int) -> bool:
    """Stop after this many works of the disk; returns False if the run ended before that."""
    stage = Stage(seed, segment_bytes=3000, slice_bytes=512, **changes)
    stage.disk.hold()
    stage.begin()
    history = History(stage, seed)
    done = 0
    for _ in range(TURNS):
        for _ in range(history.chance.randint(1, 4)):
            if stage.owner.open:
                history.operate()
        history.flush()
        for _ in range(history.chance.randint(0, 6)):
            if done == works or not stage.disk.pending:
                break
            stage.disk.finish(1)
            stage.deliver()
            done += 1
        if done == works:
            break
    safe = history.safe
    stage.disk.repair()
    if power:
        stage.lose_power()
    else:
        stage.restart()
    if any(group.damaged for group in stage.owner.groups.values()):
        assert power, "a few zeros in the middle of a page look like damage"
        return True
    if power and not stage.tuning.sync_always:
        safe = 0
    found = history.fitting(safe)
    assert found is not None, f"{safe} of {len(history.states) - 1} operations are persisted"
    carry_on(history, found)
    return done == works


def carry_on(history: History, found: int) -> None:
    """The log works from where it was found, and survives a loss of power."""
    stage = history.stage
    history.groups = history.states[found]
    history.states = [{}]
    history.tickets = []
    for number, shadow in history.groups.items():
        for index in stage.indexes(number):
            if index not in shadow.needed:
                stage.log.release(number, index)
    for _ in range(10):
        history.operate()
        history.flush()
        stage.settle()
    stage.wait(1000)
    stage.lose_power()
    assert history.fitting(len(history.states) - 1) is not None
    assert stage.owner.broken == []


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_log_has_all_that_was_persisted_wherever_it_stops(seed: int, *, power: bool) -> None:
    works = 0
    while run(seed, works, power=power):
        works += 1
    assert works > 60


@pytest.mark.parametrize("seed", range(2))
def test_a_process_that_ends_loses_nothing_that_was_written_with_everysec(seed: int) -> None:
    works = 0
    while run(seed, works, power=False, sync_always=False):
        works += 1
    assert works > 40


@pytest.mark.parametrize("seed", range(2))
def test_a_loss_of_power_leaves_the_state_after_some_operation_with_everysec(seed: int) -> None:
    works = 0
    while run(seed, works, power=True, sync_always=False):
        works += 1
    assert works > 40


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_start_that_stops_anywhere_loses_nothing(seed: int, *, power: bool) -> None:
    stage = Stage(seed, segment_bytes=3000, slice_bytes=512).start()
    history = History(stage, seed)
    for _ in range(40):
        history.operate()
        history.flush()
    stage.disk.crash()
    for works in range(40):
        stage.disk.hold()
        stage.begin()
        for _ in range(works):
            stage.disk.finish(1)
            stage.deliver()
        stage.disk.repair()
        if power:
            stage.lose_power()
        else:
            stage.restart()
        assert not any(group.damaged for group in stage.owner.groups.values())
        assert history.fitting(len(history.states) - 1) is not None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_histories_survive_stops_and_losses_of_power(seed: int) -> None:
    for power in (False, True):
        works = 0
        while run(seed, works, power=power):
            works += 1
