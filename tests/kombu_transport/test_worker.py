"""Celery workers against three real nodes, as their users run them."""

from __future__ import annotations

import ast
import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.exceptions import TaskRevokedError

from disqued.client import Client
from disqued.testing.processes import ServerProcess
from kombu_transport.messages import until
from support.celeryworker import CeleryWorker


@pytest.fixture(scope="module")
def tasks(url: str) -> Iterator[Any]:
    """The module of the application in this process, which publishes the tasks."""
    os.environ["BROKER"] = url
    from support import celeryapp  # noqa: PLC0415 - it reads the environment

    celeryapp.app.conf.broker_url = url
    yield celeryapp
    celeryapp.app.close()


@pytest.fixture
def hurried(tasks: Any) -> Iterator[Any]:
    """A connection whose tasks are delivered again 5 s after their worker or their node has gone."""
    with tasks.app.connection(transport_options={"retry": 5}) as connection:
        yield connection


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def began(path: Path) -> list[str]:
    return [line.split()[1] for line in lines_of(path) if line.startswith("begin")]


def ended(path: Path) -> list[str]:
    return [line.split()[1] for line in lines_of(path) if line.startswith("end")]


def running(app: Celery) -> set[str]:
    """The IDs of the tasks that the worker knows to run.

    It learns that after they began, and a cold shutdown waits for those that it does not know to their ends.
    """
    [active] = (app.control.inspect(limit=1, timeout=30).active() or {"no answer": []}).values()
    return {request["id"] for request in active}


def unfinished(broker: Client, queue: str) -> int:
    return len(list(broker.jscan(queue=queue)))


PROCESSES = 2
"""Of a worker."""


def shown(broker: Client, queue: str) -> list[Any]:
    return [broker.show(job_id) for job_id in broker.jscan(queue=queue)]


def left(broker: Client, queue: str) -> set[str]:
    """The names of the tasks of `record` that have not been acknowledged."""
    messages = [json.loads(job.body) for job in shown(broker, queue) if job]
    return {ast.literal_eval(message["headers"]["argsrepr"])[1] for message in messages}


def test_tasks_retries_and_delays_run_once_each(tasks: Any, url: str, tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    with CeleryWorker(tmp_path, url) as worker:
        results = [tasks.add.delay(number, number) for number in range(100)]
        retried = tasks.retried.delay(str(noted), 10)
        began_s = time.time()
        delayed = tasks.record.apply_async((str(tmp_path / "delayed"), "x"), countdown=2)

        assert [result.get(timeout=60) for result in results] == [2 * number for number in range(100)]
        assert retried.get(timeout=60) == 10
        assert lines_of(noted) == [str(number) for number in range(11)]
        delayed.get(timeout=60)
        assert float(lines_of(tmp_path / "delayed")[1].split()[-1]) >= began_s + 2
        assert worker.stop() == 0


def test_eta_of_hours_waits_in_the_broker_and_a_task_that_expired_is_reported(
    tasks: Any, url: str, tmp_path: Path, broker: Client
) -> None:
    expired = tasks.add.apply_async((1, 1), queue="hours", expires=datetime.now(UTC) - timedelta(seconds=1))
    tasks.add.apply_async((1, 1), queue="hours", countdown=86_400)
    for _ in range(2):
        with CeleryWorker(tmp_path, url, "-Q", "hours") as worker:
            with pytest.raises(TaskRevokedError):
                expired.get(timeout=60)
            assert worker.stop() == 0
        until(lambda: unfinished(broker, "hours") == 1, "only the ETA task is left")
        [job_id] = broker.jscan(queue="hours")
        details = broker.show(job_id)
        assert details is not None
        assert (details.nacks, details.additional_deliveries) == (0, 0)


def test_long_task_is_renewed_and_a_worker_killed_with_signal_9_loses_none(
    tasks: Any, hurried: Any, url: str, tmp_path: Path, broker: Client
) -> None:
    """The lease is 5 s. Tasks run for 9 s, then the worker is killed while it has others."""
    noted = tmp_path / "noted"
    options = {"ACKS": "late", "PREFETCH": "2"}
    for name in ("a", "b"):
        tasks.record.apply_async((str(noted), name, 9), queue="killed", connection=hurried)
    with CeleryWorker(tmp_path, url, "-Q", "killed", **options) as worker:
        worker.wait_until(lambda: sorted(ended(noted)) == ["a", "b"], "both tasks run to their ends")
        assert sorted(began(noted)) == ["a", "b"]
        ids = {
            name: tasks.record.apply_async((str(noted), name, seconds), queue="killed", connection=hurried).id
            for name, seconds in {"c": 600, "d": 600, "e": 0, "f": 0}.items()
        }
        worker.wait_until(lambda: {"c", "d"} <= set(began(noted)), "tasks that do not end have begun")
        worker.stop(signal.SIGKILL)
    assert sorted(ended(noted)) == ["a", "b"]

    with CeleryWorker(tmp_path, url, "-Q", "killed", **options) as worker:
        worker.wait_until(lambda: running(tasks.app) >= {ids["c"], ids["d"]}, "both begin again")
        worker.stop(signal.SIGQUIT)
    until(lambda: broker.qcount("killed").leased == 0, "nothing is with a worker")
    assert left(broker, "killed") >= {"c", "d"}
    assert left(broker, "killed") | set(ended(noted)) == set("abcdef"), "no task is lost"


@pytest.mark.slow
def test_stopped_workers_give_back_what_they_have_not_begun_and_count_no_attempt(
    tasks: Any, url: str, tmp_path: Path, broker: Client
) -> None:
    noted = tmp_path / "noted"
    broker.qconf_set("stopped", {"limit": 2})
    options = {"ACKS": "late", "PREFETCH": "500"}
    for number in range(200):
        tasks.record.apply_async((str(noted), number, 0.5), queue="stopped")
    for round_ in range(3):
        with CeleryWorker(tmp_path, url, "-Q", "stopped", **options) as worker:
            worker.wait_until(lambda: len(began(noted)) > 2 * round_, "tasks run")  # noqa: B023 - waits here
            assert worker.stop(signal.SIGTERM) == 0
        assert sorted(began(noted)) == sorted(ended(noted)), "a warm shutdown waits for what runs"
    done = len(set(ended(noted)))
    assert done < 200
    until(lambda: broker.qcount("stopped").leased == 0, "nothing is with a worker")
    queued = broker.qcount("stopped").queued
    assert 200 - done <= queued <= 200 - done + 3 * PROCESSES, "Celery may lose the last result of a process that stops"
    assert broker.qcount("stopped.dead").dead == 0
    assert {(one.nacks, one.additional_deliveries) for one in shown(broker, "stopped")} == {(0, 0)}


@pytest.mark.slow
@pytest.mark.parametrize("soft_s", [0, 2])
def test_cold_and_soft_shutdown_give_back_what_runs_and_count_no_attempt(
    tasks: Any, url: str, tmp_path: Path, broker: Client, soft_s: int
) -> None:
    """Three times, one more than the limit of the queue. In the second soft shutdown the signal is sent twice."""
    noted, queue = tmp_path / "noted", f"cold{soft_s}"
    broker.qconf_set(queue, {"limit": 2})
    names = [f"long{number}" for number in range(2)] + [f"ahead{number}" for number in range(20)]
    for name in names:
        tasks.record.apply_async((str(noted), name, 600), queue=queue)
    options = {"ACKS": "late", "PREFETCH": "500", "SOFT_SHUTDOWN": str(soft_s)}
    for round_ in range(1, 4):
        with CeleryWorker(tmp_path, url, "-Q", queue, **options) as worker:
            worker.wait_until(lambda: len(running(tasks.app)) == PROCESSES, "two tasks run")
            if soft_s and round_ == 2:
                worker.process.send_signal(signal.SIGQUIT)
                worker.wait_until(lambda: "Initiating Soft Shutdown" in worker.output, "it waits")
            worker.stop(signal.SIGQUIT)
        assert ("Initiating Soft Shutdown" in worker.output) is bool(soft_s)
        until(lambda: broker.qcount(queue).queued == len(names), "all are in the queue again")
        counts = [(one.nacks, one.additional_deliveries) for one in shown(broker, queue)]
        assert counts == [(0, 0)] * len(names), worker.output
    assert ended(noted) == []
    assert broker.qcount(f"{queue}.dead").dead == 0


@pytest.mark.slow
def test_task_that_kills_its_process_becomes_a_dead_letter_at_the_limit_of_its_queue(
    tasks: Any, url: str, tmp_path: Path, broker: Client
) -> None:
    broker.qconf_set("poison", {"limit": 3})
    tasks.kill_worker_process.apply_async(queue="poison")
    with CeleryWorker(tmp_path, url, "-Q", "poison", ACKS="late") as worker:
        worker.wait_until(lambda: broker.qcount("poison.dead").dead == 1, "a dead letter")
        assert worker.output.count("kill_worker_process[") >= 3


@pytest.mark.slow
def test_node_that_dies_takes_no_task_with_it(
    tasks: Any, hurried: Any, url: str, tmp_path: Path, nodes: list[ServerProcess]
) -> None:
    """The worker, which uses the node that dies, does not notice, and the tasks that it runs end once."""
    noted = tmp_path / "noted"
    with CeleryWorker(tmp_path, url, "-Q", "failover", ACKS="late", PREFETCH="8") as worker:
        for number in range(60):
            tasks.record.apply_async((str(noted), number, 0.2), queue="failover", connection=hurried)
        worker.wait_until(lambda: len(ended(noted)) > 5, "some ran")
        assert kill_node_of_worker(nodes)
        for number in range(60, 80):
            tasks.record.apply_async((str(noted), number, 0.2), queue="failover", connection=hurried)
        worker.wait_until(lambda: len(set(ended(noted))) == 80, "all ran")
        assert len(ended(noted)) == 80, "none ran twice"
        assert worker.stop() == 0


def kill_node_of_worker(nodes: list[ServerProcess]) -> bool:
    """Kill the node whose client has acknowledged jobs."""
    for node in nodes:
        if "cmd=ackjob" in node.ask("CLIENT LIST"):
            node.kill()
            return True
    return False
