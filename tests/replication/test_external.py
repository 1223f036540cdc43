"""External replication: a node that leaves or is short of memory accepts jobs and has others keep and queue them."""

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
    """Use more than three quarters of what may be used, but less than 95 percent."""
    used_bytes = int(member.node.state.lifecycle.memory.used_bytes)
    assert member.admin.call("CONFIG", "SET", "maxmemory", used_bytes * 100 // 85) == b"OK"
    assert member.node.state.lifecycle.memory.level() == 1


def speak_like_the_original(member: Member) -> None:
    """Announce nothing beyond the original's protocol."""
    member.node.state.bus = FrameWriter(member.id, PORT)


REASONS = pytest.mark.parametrize("cause", [leave, run_short_of_memory])


@REASONS
def test_all_copies_are_elsewhere_and_one_of_them_is_queued(cluster: Cluster, cause: Callable[[Member], None]) -> None:
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
def test_a_single_copy_is_enough_if_that_is_what_was_asked_for(
    cluster: Cluster, cause: Callable[[Member], None]
) -> None:
    cause(cluster.members[0])
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 1))
    cluster.run(milliseconds=5)
    (keeper,) = cluster.copies(job_id, "queued")
    assert keeper.admin.take("mail") == [job_id]
    assert holders(keeper, job_id) == {keeper.id}


@REASONS
def test_a_job_for_at_most_one_delivery_is_queued_too(cluster: Cluster, cause: Callable[[Member], None]) -> None:
    cause(cluster.members[0])
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 1, "RETRY", 0))
    cluster.run(milliseconds=5)
    (keeper,) = cluster.copies(job_id, "queued")
    assert keeper.admin.take("mail") == [job_id]


def test_a_delay_goes_on_where_the_job_is_kept(cluster: Cluster) -> None:
    leave(cluster.members[0])
    began_ms = cluster.network.now_ms
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 1, "DELAY", 3))
    cluster.run(seconds=2)
    assert cluster.copies(job_id, "queued") == []
    cluster.until(lambda: bool(cluster.copies(job_id, "queued")))
    assert 3000 <= cluster.network.now_ms - began_ms <= 3000 + A_TIMER_MS + 5


@pytest.mark.parametrize(("cause", "reason"), [(leave, LEAVES), (run_short_of_memory, NO_MEMORY)])
def test_the_refusal_says_why_when_one_node_is_missing(
    cluster: Cluster, cause: Callable[[Member], None], reason: str
) -> None:
    cause(cluster.members[0])
    assert error_of(adding(cluster, "REPLICATE", 3)) == UNABLE + reason
    assert error_of(adding(cluster, "REPLICATE", 4)) == FEW


def test_leaving_is_the_reason_given_when_both_apply(cluster: Cluster) -> None:
    leave(cluster.members[0])
    run_short_of_memory(cluster.members[0])
    assert error_of(adding(cluster)) == UNABLE + LEAVES


def test_checks_of_the_queue_come_after_those_of_the_cluster(cluster: Cluster) -> None:
    leave(cluster.members[0])
    cluster.members[0].admin.call("PAUSE", "mail", "in")
    assert error_of(adding(cluster, "REPLICATE", 3)) == UNABLE + LEAVES
    assert error_of(adding(cluster, "REPLICATE", 2)).startswith("PAUSED ")


def test_a_timeout_leaves_no_copy_behind(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    leave(first)
    cluster.lose("GOTJOB", by=second)
    client = adding(cluster, "REPLICATE", 2, timeout_ms=200)
    cluster.run(milliseconds=250)
    assert error_of(client) == TIMEOUT
    assert jobs(cluster) == [0, 0, 0]


def test_the_node_itself_is_not_among_the_holders_while_it_waits(cluster: Cluster) -> None:
    first, second, third = cluster.members
    leave(first)
    cluster.lose("GOTJOB", to=first)
    adding(cluster, "REPLICATE", 1)
    cluster.run(milliseconds=100)
    job_id = waiting_job(first)
    assert [holders(member, job_id) for member in cluster.members] == [{second.id, third.id}] * 3


def test_asynchronous_adds_are_answered_when_one_node_has_the_job(cluster: Cluster) -> None:
    """There is no copy here that the client could rely on."""
    first, second, third = cluster.members
    leave(first)
    cluster.lose("GOTJOB", by=second)
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 2, "ASYNC"))
    cluster.run(milliseconds=5)
    assert cluster.copies(job_id) == [second, third]
    assert cluster.copies(job_id, "queued") == [third]


@pytest.mark.parametrize("options", [("ASYNC",), ()])
def test_without_any_link_the_job_is_refused(options: tuple[str, ...]) -> None:
    cluster = Cluster(2)
    first, second = cluster.members
    leave(first)
    cluster.network.unlisten(second, BUS_PORT)
    cluster.network.reset(first, second)
    assert error_of(adding(cluster, "REPLICATE", 1, *options)) == FEW
    assert jobs(cluster) == [0, 0]


def test_jobs_for_at_most_one_delivery_go_to_nodes_that_will_deliver_them() -> None:
    cluster = Cluster(3, meet=False)
    first, second, third = cluster.members
    speak_like_the_original(second)
    cluster.meet()
    leave(first)
    for _ in range(20):
        job_id = id_of(cluster, adding(cluster, "REPLICATE", 1, "RETRY", 0))
        cluster.run(milliseconds=5)
        assert cluster.copies(job_id) == [third]


def test_they_are_refused_when_only_originals_could_take_them() -> None:
    cluster = Cluster(2, meet=False)
    first, second = cluster.members
    speak_like_the_original(second)
    cluster.meet()
    leave(first)
    assert error_of(adding(cluster, "REPLICATE", 1, "RETRY", 0)) == FEW
    id_of(cluster, adding(cluster, "REPLICATE", 1))


def test_a_job_done_before_it_was_placed_is_deleted_everywhere(cluster: Cluster) -> None:
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


def test_nobody_is_told_to_queue_the_job_while_there_is_no_link_to_them(cluster: Cluster) -> None:
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
