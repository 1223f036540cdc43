"""Tasks with real nodes, with both clients: their results, their ends, and the jobs that they wait for."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from client.conftest import Connect
from disqued.client import Client, JobFailed, JobId, NoParent
from disqued.client.tasks import BaseTask, submit
from support.cluster import RealCluster

UNKNOWN = "D-5ca1ab1e-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
WAIT_S = 30.0


def work(client: Any, *queues: str, result: str | None = None) -> bytes:
    """Do the next job of the queues, and return its body."""
    [job] = client.get(list(queues), timeout_ms=20_000)
    client.ack(job.id, result=result)
    return bytes(job.body)


def test_result_is_what_the_worker_gave(client: Any) -> None:
    task = client.submit("resize", "cat.png")
    assert isinstance(task.id, JobId)
    assert task.outcome() == "waiting"
    assert work(client, "resize", result="cat-small.png") == b"cat.png"
    assert (task.result(timeout_s=WAIT_S), task.result(), task.outcome()) == (b"cat-small.png",) * 2 + ("done",)


def test_result_of_a_job_without_one_is_empty(client: Any) -> None:
    task = client.submit("resize", "cat.png")
    work(client, "resize")
    assert task.result() == b""


def test_job_begins_after_the_tasks_and_jobs_it_waits_for(client: Any) -> None:
    extract = client.submit("extract", "e")
    orders = client.submit("transform", "orders", after=[extract])
    prices = client.add("transform", "prices", after=[extract.id], retain_s=60)
    load = client.submit("load", "l", after=[orders, prices])
    assert client.show(load.id).after == (orders.id, prices)
    queues = ("load", "transform", "extract")
    done = [work(client, *queues, result="r") for _ in range(4)]
    assert (done[0], sorted(done[1:3]), done[3]) == (b"e", [b"orders", b"prices"], b"l")
    assert load.result(timeout_s=WAIT_S) == b"r"


@pytest.mark.parametrize("outcome", ["dead", "deleted"])
def test_job_that_is_not_done_raises_how_it_ended(client: Any, outcome: str) -> None:
    task = client.submit("resize", "cat.png")
    if outcome == "dead":
        [job] = client.get("resize")
        client.nack(job.id, reason="no such image", dead=True)
    else:
        client.delete(task.id)
    with pytest.raises(JobFailed) as failed:
        task.result(timeout_s=WAIT_S)
    assert (failed.value.outcome, failed.value.job_id) == (outcome, task.id)
    assert str(failed.value) == f"job {task.id} is not done: {outcome}"
    assert task.outcome() == outcome
    copy = pickle.loads(pickle.dumps(failed.value))
    assert (copy.outcome, copy.job_id) == (outcome, task.id)


@pytest.mark.parametrize("timeout_s", [0.02, 0, 0.0001])
def test_time_that_is_over_raises(client: Any, timeout_s: float) -> None:
    task = client.submit("resize", "cat.png")
    with pytest.raises(TimeoutError, match=re.escape(f"{task.id} has not ended after {timeout_s} s")):
        task.result(timeout_s=timeout_s)
    assert task.outcome() == "waiting"


def test_unknown_parent_is_refused_with_its_name(client: Any) -> None:
    with pytest.raises(NoParent, match=re.escape(UNKNOWN)):
        client.submit("load", "", after=[UNKNOWN], timeout_ms=200)


@pytest.mark.parametrize("after", [UNKNOWN, BaseTask(None, JobId(UNKNOWN))])  # type: ignore[arg-type]
def test_single_parent_that_is_not_in_a_list_is_refused(after: Any) -> None:
    with pytest.raises(ValueError, match="must be a sequence of tasks or job IDs"):
        submit("load", "", after=after)


def test_other_options_are_those_of_add(client: Any) -> None:
    task = client.submit("resize", "cat.png", priority=7, ttl_s=600, retry_s=60, meta="trace-1", retain_s=30)
    shown = client.show(task.id)
    assert (shown.priority, shown.retry_s, shown.meta) == (7, 60, b"trace-1")
    assert 500 < shown.ttl_s <= 600


def test_result_comes_from_the_node_that_the_worker_used(connect: Connect, tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2) as cluster:
        one, two = cluster.nodes
        client = connect([one.address], discover=False)
        with Client([two.address], discover=False) as worker:
            task = client.submit("resize", "cat.png", replicate=1)
            load = client.submit("load", "", after=[task], replicate=1)
            work(worker, "resize", result="small")
            assert task.result(timeout_s=WAIT_S) == b"small"
            work(worker, "load", result="all")
            assert load.result(timeout_s=WAIT_S) == b"all"
