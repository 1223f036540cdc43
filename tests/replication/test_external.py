"""External replication: a node that leaves or is short of memory accepts jobs that other nodes keep and queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from disqued.bus.writer import FrameWriter
from disqued.replication.room import replication_of
from disqued.testing.cluster import BUS_PORT, PORT, Cluster, Member
from replication.adding import A_TIMER_MS, TIMEOUT, adding, error_of, holders, id_of, jobs, waiting_job

FEW = "NOREPL Not enough reachable nodes for the requested replication level"
UNABLE = f"{FEW}, since I'm unable to hold a copy of the message for the following reason: "
LEAVES = "I'm leaving the cluster"
NO_MEMORY = "I'm out of memory"


def leave(member: Member) -> None:
    """Begin to leave the cluster."""
    assert member.admin.call("CLUSTER", "LEAVING", "yes") == b"OK"


def run_short_of_memory(member: Member) -> None:
    """Use more than 75 but less than 95 percent of the memory limit."""
    used_bytes = int(member.node.state.lifecycle.memory.used_bytes)
    assert member.admin.call("CONFIG", "SET", "maxmemory", used_bytes * 100 // 85) == b"OK"
    assert member.node.state.lifecycle.memory.level() == 1


def speak_like_the_original(member: Member) -> None:
    """Announce nothing beyond the original's protocol."""
    member.node.state.bus = FrameWriter(member.id, PORT)


REASONS = pytest.mark.parametrize("cause", [leave, run_short_of_memory])


@REASONS
def test_other_nodes_keep_all_copies_and_one_of_them_queues_the_job(
    cluster: Cluster, cause: Callable[[Member], None]
) -> None:
    first, *others = cluster.members
    cause(first)
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 2))
    cluster.run(milliseconds=5)
    assert cluster.copies(job_id) == others
    assert len(cluster.copies(job_id, "queued")) == 1
    assert [holders(member, job_id) for member in others] == [{member.id for member in others}] * 2
    assert b"external_replications:1" in first.admin.raw("INFO", "replication")
    assert replication_of(first.node.state).waits == {}


@REASONS
def test_replicate_1_needs_only_one_other_node(cluster: Cluster, cause: Callable[[Member], None]) -> None:
    cause(cluster.members[0])
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 1))
    cluster.run(milliseconds=5)
    (keeper,) = cluster.copies(job_id, "queued")
    assert keeper.admin.take("mail") == [job_id]
    assert holders(keeper, job_id) == {keeper.id}


@REASONS
def test_an_at_most_once_job_is_queued_too(cluster: Cluster, cause: Callable[[Member], None]) -> None:
    cause(cluster.members[0])
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 1, "RETRY", 0))
    cluster.run(milliseconds=5)
    (keeper,) = cluster.copies(job_id, "queued")
    assert keeper.admin.take("mail") == [job_id]


def test_a_delay_continues_on_the_node_that_keeps_the_job(cluster: Cluster) -> None:
    leave(cluster.members[0])
    began_ms = cluster.network.now_ms
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 1, "DELAY", 3))
    cluster.run(seconds=2)
    assert cluster.copies(job_id, "queued") == []
    cluster.until(lambda: bool(cluster.copies(job_id, "queued")))
    assert 3000 <= cluster.network.now_ms - began_ms <= 3000 + A_TIMER_MS + 5


@pytest.mark.parametrize(("cause", "reason"), [(leave, LEAVES), (run_short_of_memory, NO_MEMORY)])
def test_the_error_says_why_when_one_node_is_missing(
    cluster: Cluster, cause: Callable[[Member], None], reason: str
) -> None:
    cause(cluster.members[0])
    assert error_of(adding(cluster, "REPLICATE", 3)) == UNABLE + reason
    assert error_of(adding(cluster, "REPLICATE", 4)) == FEW


def test_the_error_names_leaving_when_both_reasons_apply(cluster: Cluster) -> None:
    leave(cluster.members[0])
    run_short_of_memory(cluster.members[0])
    assert error_of(adding(cluster)) == UNABLE + LEAVES


def test_the_cluster_is_checked_before_the_queue(cluster: Cluster) -> None:
    leave(cluster.members[0])
    cluster.members[0].admin.call("PAUSE", "mail", "in")
    assert error_of(adding(cluster, "REPLICATE", 3)) == UNABLE + LEAVES
    assert error_of(adding(cluster, "REPLICATE", 2)).startswith("PAUSED ")


def test_no_copy_is_left_after_a_timeout(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    leave(first)
    cluster.lose("GOTJOB", by=second)
    client = adding(cluster, "REPLICATE", 2, timeout_ms=200)
    cluster.run(milliseconds=250)
    assert error_of(client) == TIMEOUT
    assert jobs(cluster) == [0, 0, 0]


def test_the_node_is_not_a_holder_while_its_client_waits(cluster: Cluster) -> None:
    first, second, third = cluster.members
    leave(first)
    cluster.lose("GOTJOB", to=first)
    adding(cluster, "REPLICATE", 1)
    cluster.run(milliseconds=100)
    job_id = waiting_job(first)
    assert [holders(member, job_id) for member in cluster.members] == [{second.id, third.id}] * 3


def test_asynchronous_adds_get_their_reply_when_one_node_has_the_job(cluster: Cluster) -> None:
    """The node has no copy that the client could rely on."""
    first, second, third = cluster.members
    leave(first)
    cluster.lose("GOTJOB", by=second)
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 2, "ASYNC"))
    cluster.run(milliseconds=5)
    assert cluster.copies(job_id) == [second, third]
    assert cluster.copies(job_id, "queued") == [third]


@pytest.mark.parametrize("options", [("ASYNC",), ()])
def test_a_job_is_refused_when_there_is_no_link(options: tuple[str, ...]) -> None:
    cluster = Cluster(2)
    first, second = cluster.members
    leave(first)
    cluster.network.unlisten(second, BUS_PORT)
    cluster.network.reset(first, second)
    assert error_of(adding(cluster, "REPLICATE", 1, *options)) == FEW
    assert jobs(cluster) == [0, 0]


def test_at_most_once_jobs_are_sent_to_nodes_that_will_deliver_them() -> None:
    cluster = Cluster(3, meet=False)
    first, second, third = cluster.members
    speak_like_the_original(second)
    cluster.meet()
    leave(first)
    for _ in range(20):
        job_id = id_of(cluster, adding(cluster, "REPLICATE", 1, "RETRY", 0))
        cluster.run(milliseconds=5)
        assert cluster.copies(job_id) == [third]


def test_at_most_once_jobs_are_refused_when_only_originals_could_take_them() -> None:
    cluster = Cluster(2, meet=False)
    first, second = cluster.members
    speak_like_the_original(second)
    cluster.meet()
    leave(first)
    assert error_of(adding(cluster, "REPLICATE", 1, "RETRY", 0)) == FEW
    id_of(cluster, adding(cluster, "REPLICATE", 1))


def test_a_job_that_is_done_before_it_is_placed_is_deleted_on_all_nodes(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    leave(first)
    cluster.lose("GOTJOB", by=second)
    client = adding(cluster, "REPLICATE", 2)
    cluster.run(milliseconds=10)
    job = first.node.state.lifecycle.table.get(waiting_job(first))
    assert job is not None
    assert not first.node.state.events.complete(job)
    first.flush()
    assert client.next_reply() == job.id
    cluster.run(milliseconds=5)
    assert jobs(cluster) == [0, 0, 0]


def test_no_node_is_told_to_queue_the_job_without_a_link_to_it(cluster: Cluster) -> None:
    """The last confirmation may come on the other node's link while ours is broken."""
    first, second, third = cluster.members
    leave(first)
    cluster.cut(second, first)
    cluster.cut(third, first)
    client = adding(cluster, "REPLICATE", 2)
    cluster.run(milliseconds=20)
    for other in (second, third):
        cluster.network.unlisten(other, BUS_PORT)
        first.node.link_closed(first.node.state.view.peers[other.id].link, first.now_ms)  # type: ignore[arg-type]
    cluster.heal()
    cluster.run(milliseconds=100)
    assert client.silent
    for other in (second, third):
        cluster.network.listen(other, BUS_PORT)
    job_id = id_of(cluster, client)
    cluster.run(milliseconds=5)
    assert len(cluster.copies(job_id, "queued")) == 1
