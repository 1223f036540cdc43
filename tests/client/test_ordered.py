"""Both clients with the ordered queues of a real node."""

from __future__ import annotations

from typing import Any

import pytest

from disqued.client import JobExists, NoQuorum, QueueExists, ResponseError
from disqued.client.errors import response_error


@pytest.fixture
def ordered(client: Any) -> Any:
    """A client of a node with a catalog and the ordered queue `steps`."""
    assert client.ordered_init([client.hello().node_id]) == "OK"
    assert client.qnew("steps", single=True, prefetch=2) == "OK"
    return client


def test_jobs_are_taken_in_the_order_of_their_adds(ordered: Any) -> None:
    ids = [ordered.add("steps", f"{number}") for number in range(3)]
    jobs = [ordered.get("steps")[0] for _ in range(2)]
    assert [(job.id, job.body) for job in jobs] == [(ids[0], b"0"), (ids[1], b"1")]
    assert ordered.ack(*ids[:2]) == 2
    assert [job.id for job in ordered.get("steps")] == ids[2:]


def test_jobs_of_one_group_follow_each_other(ordered: Any) -> None:
    ordered.qnew("users")
    first, second = ordered.add_many("users", ["a1", "a2"], group="a")
    other = ordered.add("users", "b1", group="b")
    assert [job.id for job in ordered.get("users", count=5)] == [first, other]
    assert ordered.get("users", nohang=True) == []
    ordered.ack(first)
    assert [job.id for job in ordered.get("users")] == [second]


def test_a_key_is_remembered_for_an_ordered_queue(ordered: Any) -> None:
    assert ordered.add("steps", "x", key="k", repeat=True) == ordered.add("steps", "x", key="k")
    assert ordered.qlen("steps") == 1


def test_figures_of_an_ordered_queue_are_those_of_its_leader(ordered: Any) -> None:
    ordered.add("steps", "x")
    ordered.add("steps", "y", delay_s=60)
    job_id = ordered.get("steps")[0].id
    stats = ordered.qstat("steps")
    assert (stats.kind, stats.name, stats.length, stats.leased, stats.delayed) == ("ordered", "steps", 0, 1, 1)
    assert (stats.jobs_in, stats.jobs_out, stats.blocked_clients, stats.import_from) == (2, 1, 0, ())
    details = ordered.show(job_id)
    assert (details.id, details.state, details.body) == (job_id, "active", b"x")


def test_status_lists_the_queues_with_leaders_and_jobs(ordered: Any) -> None:
    ordered.add("steps", "x")
    own = ordered.hello().node_id
    status = ordered.ordered_status()
    assert len(status.catalog) == 32
    assert (status.conflict, status.error, status.members.replicas) == ("", "", (own,))
    (queue,) = status.queues
    assert (queue.queue, queue.leader, queue.replicas, queue.lags) == ("steps", own, (own,), {})
    assert (queue.settled, queue.single, queue.prefetch, queue.pause) == (True, True, 2, "none")
    assert (queue.ready, queue.leased, queue.delayed, queue.dead, queue.consumers) == (1, 0, 0, 0, 0)


def test_a_node_without_catalog_has_an_empty_status(client: Any) -> None:
    status = client.ordered_status()
    assert (status.catalog, status.version, status.queues) == ("", 0, ())
    with pytest.raises(ResponseError, match="CLUSTER ORDERED INIT"):
        client.qnew("steps")


def test_what_exists_already_is_reported(ordered: Any) -> None:
    assert ordered.qnew("steps", single=True, prefetch=2) == "OK"
    with pytest.raises(QueueExists):
        ordered.qnew("steps")
    with pytest.raises(QueueExists):
        ordered.ordered_init([ordered.hello().node_id])
    ordered.add("plain", "x")
    with pytest.raises(QueueExists):
        ordered.qnew("plain")
    assert (ordered.qtype("steps"), ordered.qtype("plain")) == ("ordered", "jobs")


def test_a_queue_with_jobs_is_dropped_with_force_only(ordered: Any) -> None:
    ordered.add("steps", "x")
    with pytest.raises(ResponseError, match="1 unfinished jobs"):
        ordered.qdrop("steps")
    assert ordered.qdrop("steps", force=True) == "OK"
    assert ordered.qtype("steps") == "jobs"


def test_ordered_init_needs_a_sequence_of_nodes(client: Any) -> None:
    with pytest.raises(ValueError, match="sequence"):
        client.ordered_init("node")


def test_prefixes_of_errors_select_their_classes() -> None:
    assert type(response_error("EXISTS queue q exists with other options")) is QueueExists
    assert type(response_error("EXISTS a job with this ID is in another queue; give each its own")) is JobExists
    assert type(response_error("NOQUORUM q: 1 of 3 replicas reachable")) is NoQuorum
