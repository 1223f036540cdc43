"""What programs see of their tasks, with a real worker and three real nodes."""

from __future__ import annotations

import functools
import json
import threading
import time
from typing import Any

import pytest
from celery import chain, chord, group, states
from celery.exceptions import TimeoutError as CeleryTimeoutError
from celery.result import AsyncResult, GroupResult

from celery_adapter import tasks
from disqued.celery.errors import ResultTooLarge
from disqued.client import Client
from disqued.testing.processes import wait_until
from support.cluster import RealCluster, RealNode

WAIT_S = 60


def seen_elsewhere(app: Any, result: AsyncResult) -> AsyncResult:
    """The same result as another process sees it: nothing is cached."""
    app.backend._cache.clear()
    return AsyncResult(result.id, app=app)


def until(app: Any, result: AsyncResult, state: str) -> AsyncResult:
    """Wait until a task is in a state."""
    wait_until(lambda: seen_elsewhere(app, result).state == state, f"task is {state}", lambda: "")
    return seen_elsewhere(app, result)


def test_result_and_what_celery_adds_to_it(app: Any) -> None:
    result = tasks.add.delay(1, 2)
    assert result.get(timeout=WAIT_S) == 3
    other = seen_elsewhere(app, result)
    assert (other.state, other.result, other.successful(), other.children) == (states.SUCCESS, 3, True, [])
    assert (other.name, other.args, other.kwargs, other.retries) == ("celery_adapter.tasks.add", [1, 2], {}, 0)
    assert other.queue == "celery"
    assert other.worker
    assert other.date_done is not None


def test_failure_is_raised_with_its_traceback(app: Any) -> None:
    result = tasks.fail.delay("no such image")
    with pytest.raises(ValueError, match="no such image"):
        result.get(timeout=WAIT_S)
    other = seen_elsewhere(app, result)
    assert other.failed()
    assert "raise ValueError(text)" in other.traceback
    assert str(other.get(propagate=False)) == "no such image"


def test_unknown_task_is_pending_and_get_ends_with_its_timeout(app: Any) -> None:
    result = AsyncResult("nobody-ever-sent-this", app=app)
    assert (result.state, result.result) == (states.PENDING, None)
    for timeout_s in (0, 0.2):
        began_s = time.monotonic()
        with pytest.raises(CeleryTimeoutError):
            result.get(timeout=timeout_s)
        assert time.monotonic() - began_s >= timeout_s
    result.forget()


def test_states_on_the_way_are_seen_and_reported(app: Any) -> None:
    result = tasks.step_by_step.delay(3)
    reported: list[tuple[str, Any]] = []

    def is_at(step: int) -> bool:
        return bool(until(app, result, "PROGRESS").info == {"step": step})

    for step in range(3):
        wait_until(functools.partial(is_at, step), "the next step", lambda: "")
        assert not seen_elsewhere(app, result).ready()
        if step < 2:
            tasks.STEPS.release()

    def report(meta: dict[str, Any]) -> None:
        reported.append((meta["status"], meta["result"]))
        tasks.STEPS.release()

    assert result.get(timeout=WAIT_S, on_message=report) == "arrived"
    assert reported == [("PROGRESS", {"step": 2}), (states.SUCCESS, "arrived")]
    assert tasks.STEPS.acquire(blocking=False)


def test_started_and_retry_are_states_and_the_retry_gives_the_result(app: Any, cluster: RealCluster) -> None:
    result = tasks.second_time.delay()
    assert until(app, result, states.STARTED).info["hostname"]
    for _ in range(2):
        tasks.STEPS.release()
    assert result.get(timeout=WAIT_S) == 1
    with Client([cluster.nodes[1].address]) as client:
        entries = [json.loads(line.entry) for line in client.showlog(app.backend.results.job_id(result.id))]
    assert [entry["status"] for entry in entries] == [states.STARTED, states.RETRY, states.STARTED]
    assert entries[1]["result"]["exc_message"] == ["not yet"]


@pytest.mark.usefixtures("app")
def test_groups_chains_and_chords() -> None:
    many = group(tasks.add.s(number, number) for number in range(40))()
    assert many.get(timeout=WAIT_S) == [2 * number for number in range(40)]
    assert sorted(meta["result"] for _, meta in many.iter_native(timeout=WAIT_S)) == [2 * n for n in range(40)]
    linked = chain(tasks.add.s(1, 2), tasks.add.s(3), tasks.add.s(4))()
    assert linked.get(timeout=WAIT_S) == 10
    assert linked.parent.parent.get(timeout=WAIT_S) == 3
    together = chord((tasks.add.s(number, 1) for number in range(10)), tasks.total.s())()
    assert together.get(timeout=WAIT_S) == 55
    broken = chord([tasks.add.s(1, 1), tasks.fail.s("a part")], tasks.total.s())()
    with pytest.raises(Exception, match="a part"):
        broken.get(timeout=WAIT_S)


def test_saved_groups_of_any_size_are_restored_until_they_are_deleted(app: Any) -> None:
    for count in (2, 5000):
        saved = GroupResult(f"group-{count}", [AsyncResult(f"{n * 7919:036x}", app=app) for n in range(count)], app=app)
        saved.save()
        app.backend._cache.clear()
        restored = GroupResult.restore(saved.id, app=app)
        assert [result.id for result in restored.results] == [result.id for result in saved.results]
        saved.delete()
        app.backend._cache.clear()
        assert GroupResult.restore(saved.id, app=app) is None


@pytest.mark.usefixtures("app")
def test_callbacks_run_when_results_arrive() -> None:
    arrived: list[str] = []
    first, second = tasks.add.delay(1, 1), tasks.add.delay(2, 2)
    first.then(lambda result: arrived.append(f"first {result.result}"))
    assert second.get(timeout=WAIT_S) == 4
    first.get(timeout=WAIT_S)
    assert arrived == ["first 2"]


def test_forgotten_result_is_pending(app: Any) -> None:
    result = tasks.add.delay(1, 1)
    result.get(timeout=WAIT_S)
    result.forget()
    other = seen_elsewhere(app, result)
    assert other.state == states.PENDING
    with pytest.raises(CeleryTimeoutError):
        other.get(timeout=0.1)


def test_success_stands_and_failures_are_replaced(app: Any) -> None:
    store = app.backend.store_result
    for state, value, shown in (
        (states.FAILURE, OSError("worker lost"), states.FAILURE),
        (states.STARTED, {}, states.FAILURE),
        (states.REVOKED, OSError("revoked"), states.REVOKED),
        (states.SUCCESS, 42, states.SUCCESS),
        (states.SUCCESS, 43, states.SUCCESS),
        (states.FAILURE, OSError("late"), states.SUCCESS),
    ):
        store("a-task-run-twice", value, state)
        app.backend._cache.clear()
        assert AsyncResult("a-task-run-twice", app=app).state == shown
    assert AsyncResult("a-task-run-twice", app=app).get(timeout=WAIT_S) == 42


def test_value_that_is_too_large_fails_the_task(app: Any) -> None:
    assert len(tasks.noise.delay(40_000).get(timeout=WAIT_S)) == 80_000, "it is compressed"
    result = tasks.noise.delay(80_000)
    with pytest.raises(
        ResultTooLarge, match=r"has 9\d* bytes after compression, and nodes keep 65536: store it elsewhere"
    ):
        result.get(timeout=WAIT_S)
    assert seen_elsewhere(app, result).failed()


@pytest.mark.usefixtures("app")
def test_failure_with_a_long_text_is_stored_short() -> None:
    with pytest.raises(ValueError, match=r"^[0-9a-f]{2000} \[\.\.\.\]$"):
        tasks.fail_at_length.delay(80_000).get(timeout=WAIT_S)


def test_task_that_reports_too_much_is_done(app: Any, cluster: RealCluster) -> None:
    for reports, length in ((3000, 1), (20, 8000), (30, 3000)):
        result = tasks.chatty.delay(reports, length)
        assert result.get(timeout=WAIT_S) == reports
    with Client([cluster.nodes[0].address]) as client:
        assert 50 < len(client.showlog(app.backend.results.job_id(result.id))) < 1000 or length > 1


@pytest.mark.usefixtures("app")
def test_threads_wait_for_their_tasks_over_shared_results() -> None:
    """Eight threads use the result objects of one thread, so they share a consumer."""
    results = [tasks.add.delay(number, 0) for number in range(64)]
    found: list[int] = []

    def collect(part: list[AsyncResult]) -> None:
        found.extend(result.get(timeout=WAIT_S) for result in part)

    threads = [threading.Thread(target=collect, args=(results[number::8],)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(64))


def test_get_returns_although_the_node_dies_at_which_it_waits(app: Any, cluster: RealCluster) -> None:
    result = tasks.step_by_step.delay(1)
    until(app, result, "PROGRESS")
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(result.get(timeout=WAIT_S)))
    thread.start()
    waiting: list[RealNode] = []

    def waits() -> bool:
        waiting[:] = [node for node in cluster.nodes if node.info("clients")["blocked_clients"] != "0"]
        return bool(waiting)

    cluster.wait_until(waits, "get waits")
    [node] = waiting
    node.kill()
    tasks.STEPS.release()
    thread.join()
    assert found == ["arrived"]
    assert tasks.add.delay(1, 1).get(timeout=WAIT_S) == 2
    node.restart()
    cluster.wait_whole()
