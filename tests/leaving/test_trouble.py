"""A node leaves while something fails: the node itself, the nodes that stay, or the network."""

from __future__ import annotations

import pytest

from disqued.testing.cluster import Cluster, Member
from leaving.leaver import add, add_copied, drain, is_done, jobs_at, leave, reason, until_done, work


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes in one cluster; messages of the first one are delayed."""
    cluster = Cluster(3)
    cluster.network.capturing = False
    first, *others = cluster.members
    for other in others:
        cluster.network.path(first, other).delay_ms = 100
    return cluster


def leave_halfway(cluster: Cluster, jobs: int) -> Member:
    """Run until the leaving first node has transferred some of its jobs."""
    leaver = cluster.members[0]
    leave(leaver)
    cluster.until(lambda: jobs_at(leaver) < jobs * 3 // 4)
    assert jobs_at(leaver) > jobs // 4
    return leaver


def test_only_jobs_without_another_holder_are_lost_when_the_leaving_node_dies(cluster: Cluster) -> None:
    first, *others = cluster.members
    alone = add(first, 4000, "mail", "REPLICATE", 1, "RETRY", 10)
    copied = add_copied(cluster, first, 400, "REPLICATE", 2, "RETRY", 10)
    once = add(first, 400, "once", "REPLICATE", 1, "RETRY", 0)
    leaver = leave_halfway(cluster, 4800)
    left = {job.id for job in leaver.node.state.lifecycle.table.jobs()}
    leaver.crash()
    delivered = work(cluster, others, 60)
    assert set(copied) <= set(delivered)
    assert {job for job in alone if job not in left} <= set(delivered)
    assert all(delivered[job] <= 1 for job in once)


def test_the_remaining_node_takes_all_jobs_when_another_one_dies(cluster: Cluster) -> None:
    first, second, third = cluster.members
    add(first, 4000, "mail", "REPLICATE", 1, "RETRY", 10)
    copied = add_copied(cluster, first, 400, "REPLICATE", 2, "RETRY", 10)
    leaver = leave_halfway(cluster, 4400)
    left = {job.id for job in leaver.node.state.lifecycle.table.jobs()}
    third.crash()
    until_done(cluster, leaver, within_s=60)
    delivered = work(cluster, [second], 60)
    assert left <= set(delivered)
    assert set(copied) <= set(delivered)


def test_no_job_is_lost_when_a_node_that_stays_is_suspended(cluster: Cluster) -> None:
    first, second, third = cluster.members
    jobs = add(first, 4000, "mail", "REPLICATE", 1, "RETRY", 10)
    leaver = leave_halfway(cluster, 4000)
    third.pause()
    until_done(cluster, leaver, within_s=60)
    third.resume()
    delivered = work(cluster, [second, third], 60)
    assert set(delivered) == set(jobs)


def test_a_node_that_is_short_of_memory_gets_no_jobs(cluster: Cluster) -> None:
    first, second, third = cluster.members
    third.admin.call("CONFIG", "SET", "maxmemory", 1)
    jobs = add(first, 2000, "mail", "REPLICATE", 1, "RETRY", 10) + add(first, 200, "once", "REPLICATE", 1, "RETRY", 0)
    leave(first)
    until_done(cluster, first, within_s=10)
    assert jobs_at(third) == 0
    assert drain([second]) == dict.fromkeys(jobs, 1)


def test_the_drain_waits_and_says_why_when_all_nodes_are_short_of_memory(cluster: Cluster) -> None:
    first, *others = cluster.members
    jobs = add(first, 2000, "mail", "REPLICATE", 1, "RETRY", 10)
    for other in others:
        other.admin.call("CONFIG", "SET", "maxmemory", 1)
    leave(first)
    cluster.run(seconds=10)
    assert jobs_at(first) == 2000
    assert "short of memory" in reason(first)
    others[0].admin.call("CONFIG", "SET", "maxmemory", 0)
    until_done(cluster, first, within_s=40)
    assert drain(others) == dict.fromkeys(jobs, 1)


def test_jobs_move_when_their_queue_is_paused_for_input_on_all_nodes(cluster: Cluster) -> None:
    first, *others = cluster.members
    jobs = add(first, 100, "mail", "REPLICATE", 1) + add(first, 100, "once", "REPLICATE", 1, "RETRY", 0)
    for queue in ("mail", "once"):
        first.admin.call("PAUSE", queue, "in", "bcast")
    cluster.run(seconds=1)
    leave(first)
    until_done(cluster, first, within_s=5)
    assert drain(others) == dict.fromkeys(jobs, 1)


def test_two_nodes_can_leave_at_once() -> None:
    cluster = Cluster(4)
    first, second, *others = cluster.members
    jobs = add(first, 1000, "mail", "REPLICATE", 1, "RETRY", 20) + add(
        second, 1000, "mail", "REPLICATE", 1, "RETRY", 20
    )
    jobs += add_copied(cluster, first, 200, "REPLICATE", 3, "RETRY", 20)
    jobs += add(first, 100, "once", "REPLICATE", 1, "RETRY", 0) + add(second, 100, "once", "REPLICATE", 1, "RETRY", 0)
    leave(first)
    leave(second)
    until_done(cluster, first, second, within_s=10)
    delivered = work(cluster, others, 60)
    assert delivered == dict.fromkeys(jobs, 1)


def test_the_drain_waits_and_says_why_when_no_other_node_answers(cluster: Cluster) -> None:
    first, second, third = cluster.members
    cluster.partition([first], [second, third])
    add(first, 10, "mail", "REPLICATE", 1)
    leave(first)
    cluster.until(lambda: first.sees == 0, within_s=60)
    cluster.run(seconds=1)
    assert reason(first) == "no other node that stays answers"
    cluster.heal()
    until_done(cluster, first, within_s=60)


def test_a_slow_link_has_little_unsent_output_and_its_node_is_not_considered_down(cluster: Cluster) -> None:
    first, second, third = cluster.members
    third.crash()
    cluster.network.path(first, second).bytes_per_ms = 100
    jobs = [first.admin.add("mail", b"x" * 10_000, "REPLICATE", 1) for _ in range(500)]
    leave(first)
    most_bytes = 0
    for _ in range(1200):
        cluster.run(milliseconds=50)
        peer = first.node.state.view.peers[second.id]
        assert peer.reachable
        assert peer.link is not None
        assert peer.link.carrier is not None
        most_bytes = max(most_bytes, peer.link.carrier.unsent_bytes())
    assert most_bytes < 300_000
    assert is_done(first)
    assert drain([second]) == dict.fromkeys(jobs, 1)
