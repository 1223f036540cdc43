"""The plan of the pipeline, the table that refuses old claims, and the account of all tasks."""

from __future__ import annotations

import pytest

from disqued.client import JobId
from disqued.demo.tasks import COUNTS, GROUP, LIST, TASKS, TOTAL, URGENT, Account, Table, Task, plan

CHAIN = (Task("first"), Task("second", ("first",)), Task("third", ("first", "second"), "file", URGENT))


def account() -> Account:
    return Account({task.name: task for task in CHAIN})


def test_every_task_comes_after_its_parents_in_the_plan() -> None:
    seen: set[str] = set()
    for task in (task for group in plan(["a.py", "b.py"]) for task in group):
        assert seen.issuperset(task.after)
        assert len(task.after) <= 64
        seen.add(task.name)
    assert len(seen) == TASKS


def test_each_count_is_in_one_sum_and_each_sum_in_the_total() -> None:
    tasks = {task.name: task for group in plan(["a.py"]) for task in group}
    counts = [task.name for task in tasks.values() if task.file]
    summed = [name for task in tasks.values() if task.name.startswith("sum") for name in task.after]
    assert sorted(summed) == sorted(counts)
    assert len(counts) == COUNTS
    assert tasks[TOTAL].after == tuple(name for name in tasks if name.startswith("sum"))
    assert all(tasks[name].after == (LIST,) for name in counts)


def test_files_are_used_again_when_there_are_few() -> None:
    files = [task.file for group in plan(["a.py", "b.py"]) for task in group if task.file]
    assert files[:3] == ["a.py", "b.py", "a.py"]


def test_a_group_and_its_sum_are_urgent_together() -> None:
    groups = plan(["a.py"])[1:-1]
    assert [group[0].priority for group in groups[:5]] == [URGENT, 0, 0, 0, URGENT]
    assert all(len({task.priority for task in group}) == 1 for group in groups)
    assert len(groups[0]) == GROUP + 1


def test_table_refuses_a_lower_claim_and_keeps_the_value() -> None:
    table = Table()
    assert table.write("task", 10, 1)
    assert table.write("task", 10, 2), "the same worker writes again"
    assert table.write("task", 11, 3)
    assert not table.write("task", 10, 4)
    assert (table.greatest("task"), table.refused) == (11, 1)
    assert table.greatest("other") == 0


def test_task_that_is_delivered_before_its_parents_ended_is_early() -> None:
    early = account()
    early.delivered("second", 1, 1.0)
    assert early.early == ["second"]
    right = account()
    right.ends("first", 1.0)
    right.delivered("second", 1, 2.0)
    assert right.early == []


def test_task_is_stalled_when_it_is_not_done_and_its_parents_are() -> None:
    told = account()
    for number, task in enumerate(CHAIN):
        told.added(task, JobId(f"D-{number}"), 1.0)
    assert (list(told.stalled()), told.progress) == ([("first", "D-0")], 3)
    told.ended("first")
    assert (list(told.stalled()), told.progress) == ([("second", "D-1")], 4)


def test_second_delivery_needs_a_greater_claim() -> None:
    told = account()
    assert told.delivered("first", 5, 1.0)
    assert not told.delivered("first", 6, 2.0)
    assert told.lower == []
    assert not told.delivered("first", 6, 3.0)
    assert told.lower == ["first"]


@pytest.mark.parametrize(("added_s", "wait_s"), [(1.0, 2.0), (4.0, 1.0)])
def test_wait_begins_when_the_task_is_added_and_its_parents_have_ended(added_s: float, wait_s: float) -> None:
    told = account()
    told.added(CHAIN[2], JobId("D-1"), added_s)
    told.ends("first", 2.0)
    told.ends("second", 3.0)
    told.delivered("third", 1, 5.0)
    assert list(told.waits_of(urgent=True)) == [wait_s]
    assert list(told.waits_of(urgent=False)) == []


def test_all_tasks_are_done_when_each_acknowledgement_was_answered() -> None:
    told = account()
    for task in CHAIN:
        told.ends(task.name, 1.0)
        assert not told.is_complete
        told.ended(task.name)
    assert told.is_complete
