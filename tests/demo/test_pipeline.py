"""The scene of dependent tasks: what its workers do when two of them had one task, and how long it waits."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from disqued.client import Client, JobId
from disqued.demo import pipeline
from disqued.demo.cluster import BrokerNode, Cluster
from disqued.demo.pipeline import Pipeline, result_of
from disqued.demo.stalled import describe
from disqued.demo.tasks import LIST
from disqued.demo.workers import WorkFailedError
from disqued.testing.processes import ServerProcess


def ended_by_a_stale_worker(client: Client) -> JobId:
    """A task that is done, and whose result is still to come: nodes ignore that of a lower claim than they know."""
    job_id: JobId = client.add("demo:tasks", "count-650", replicate=1, retry_s=3, retain_s=60)
    client.ack(job_id, claim=7)
    return job_id


def test_sum_waits_for_the_result_of_the_last_worker_of_a_task(server: ServerProcess) -> None:
    with Client([f"127.0.0.1:{server.port}"]) as client, Client([f"127.0.0.1:{server.port}"]) as last:
        job_id = ended_by_a_stale_worker(client)
        late = threading.Timer(0.3, last.ack, [job_id], {"claim": 9, "result": "12"})
        late.start()
        assert result_of(client, job_id) == 12
        late.join()


def test_result_that_does_not_come_fails_the_scene(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "DEADLINE_S", 0.2)
    with Client([f"127.0.0.1:{server.port}"]) as client:
        job_id = ended_by_a_stale_worker(client)
        with pytest.raises(ValueError, match="no node knows the result"):
            result_of(client, job_id)


def scene(folder: Path, *nodes: BrokerNode) -> Pipeline:
    """A scene whose tasks nobody works on. Nothing runs before a test asks for it."""
    return Pipeline.of(Cluster(nodes), folder, ["a.py"], print)


@pytest.mark.parametrize("is_done", [False, True])
def test_worker_that_is_too_slow_to_stop_writes_late(server: ServerProcess, tmp_path: Path, *, is_done: bool) -> None:
    """Another worker has the task already when this one shortens its lease, or has even done it."""
    slow = scene(tmp_path)
    task = slow.account.tasks["count-50"]
    with Client([f"127.0.0.1:{server.port}"]) as client:
        client.add("demo:tasks", task.name, replicate=1, retry_s=3, retain_s=60)
        (job,) = client.get("demo:tasks", with_claim=True)
        next_claim = (job.claim or 0) + 1
        client.working(job.id, claim=next_claim)
        if is_done:
            client.ack(job.id, claim=next_claim, result="12")
        slow.table.write(task.name, next_claim, 12)
        assert not slow._stop(client, job, task)
    assert (slow.account.late_writes, slow.account.accepted) == (1, 0)


def test_scene_waits_for_as_long_as_tasks_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "DEADLINE_S", 1.0)
    slow = scene(tmp_path)

    def work() -> None:
        for name in list(slow.account.tasks)[:6]:
            time.sleep(0.3)
            slow.account.ended(name)

    worker = threading.Thread(target=work)
    worker.start()
    slow._wait(lambda: len(slow.account.done) == 6, "six tasks are done")
    worker.join()


def test_scene_without_progress_fails_and_describes_the_tasks_that_nothing_holds_up(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "DEADLINE_S", 0.2)
    address = f"127.0.0.1:{server.port}"
    stalled = scene(tmp_path, cast(BrokerNode, SimpleNamespace(name="node 1", address=address)))
    with Client([address]) as client:
        first = client.add("demo:tasks", LIST, replicate=1, retry_s=3, retain_s=60)
        later = client.add("demo:tasks", "count-0", replicate=1, retry_s=3, retain_s=60, after=[first])
    stalled.account.added(stalled.account.tasks[LIST], first, 1.0)
    stalled.account.added(stalled.account.tasks["count-0"], later, 1.0)
    with pytest.raises(WorkFailedError) as failed:
        stalled._wait(lambda: False, "all tasks are done")
    text = str(failed.value)
    assert text.startswith("0.2 s without progress, and it is not true that all tasks are done.")
    assert "1000 of 1000 tasks are not done; 1 wait for no other task:" in text
    assert f"{first}), last claim delivered None:\n  node 1: queued, claim None" in text
    assert text.endswith("waits for 0 tasks; waiting, claim None, result None")
    assert later not in text


def test_description_of_a_stall_names_the_nodes_that_cannot_be_reached(tmp_path: Path) -> None:
    stalled = scene(tmp_path, cast(BrokerNode, SimpleNamespace(name="node 1", address="127.0.0.1:1")))
    stalled.account.added(stalled.account.tasks[LIST], JobId("D-1"), 1.0)
    assert "node 1: ConnectionFailed: cannot connect to any node" in describe(stalled.cluster, stalled.account)
