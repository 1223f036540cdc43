"""Jobs that move to another node: the ones with the highest priority go first, and are queued there by priority."""

from __future__ import annotations

from disqued.bus import kinds
from disqued.testing.cluster import Cluster
from federation.moving import added, received, waiting
from leaving.leaver import leave, until_done
from support.asking import ask

PRIORITIES = (0, 3, -2, 12, 3)
BY_PRIORITY = (12, 3, 3, 0, -2)


def test_node_that_asks_gets_the_job_of_the_highest_priority(pair: Cluster) -> None:
    first, second = pair.members
    by_priority = {priority: added(first, "PRIORITY", priority) for priority in (0, 5, -1)}
    worker = waiting(second)
    pair.run(milliseconds=50)
    assert received(worker) == [by_priority[5]]


def test_jobs_that_arrive_are_queued_by_their_priority(pair: Cluster) -> None:
    first, second = pair.members
    workers = [waiting(second) for _ in range(3)]
    pair.run(milliseconds=1)
    first.admin.call("PAUSE", "mail", "out")
    jobs = [(priority, added(first, "PRIORITY", priority)) for priority in PRIORITIES]
    second.admin.call("PAUSE", "mail", "out")
    pair.run(milliseconds=1)
    first.admin.call("PAUSE", "mail", "none")
    pair.run(seconds=1)
    second.admin.call("PAUSE", "mail", "none")
    pair.run(seconds=1)
    ordered = [job for _, job in sorted(jobs, key=lambda pair: -pair[0])]
    assert [job for worker in workers for job in received(worker)] == ordered[:3]


def test_copy_that_is_queued_after_its_node_died_has_its_priority(cluster: Cluster) -> None:
    first, second, third = cluster.members
    clients = [first.client() for _ in PRIORITIES]
    for client, priority in zip(clients, PRIORITIES, strict=True):
        client.send("ADDJOB", "mail", str(priority), 0, "REPLICATE", 2, "RETRY", 5, "PRIORITY", priority)
        cluster.run(milliseconds=50)
    first.crash()
    cluster.run(seconds=10)
    for member in (second, third):
        taken = ask(member.admin, "GETJOB", "NOHANG", "WITHMETA", "COUNT", 10, "FROM", "mail") or []
        priorities = [job[-1] for job in taken]
        assert priorities == sorted(priorities, reverse=True)
        assert [int(job[2]) for job in taken] == priorities


def test_job_loses_its_priority_at_a_node_that_does_not_know_priorities(pair: Cluster) -> None:
    first, second = pair.members
    for peer in first.node.state.view.peers.values():
        peer.features &= ~kinds.FEATURE_ATTRIBUTES
    job = added(first, "PRIORITY", 5)
    worker = waiting(second)
    pair.run(milliseconds=50)
    assert received(worker) == [job]
    assert second.admin.show(job).get("priority") is None


def test_leaving_node_transfers_jobs_with_their_priorities(pair: Cluster) -> None:
    first, second = pair.members
    for priority in PRIORITIES:
        added(first, "PRIORITY", priority)
    leave(first)
    until_done(pair, first)
    taken = ask(second.admin, "GETJOB", "NOHANG", "WITHMETA", "COUNT", 10, "FROM", "mail")
    assert [job[-1] for job in taken] == list(BY_PRIORITY)


def test_leaving_node_transfers_jobs_with_a_priority_above_0_first(pair: Cluster) -> None:
    first, second = pair.members
    for number in range(3000):
        added(first, queue=f"plain-{number % 7}")
    urgent = [added(first, "PRIORITY", 1 + number % 2) for number in range(100)]
    leave(first)
    pair.until(lambda: second.node.state.lifecycle.table.count >= 400, within_s=5)
    assert second.node.state.lifecycle.table.count < 3000
    assert all(second.node.state.lifecycle.table.get(job) is not None for job in urgent)
    until_done(pair, first)
    assert second.admin.call("QLEN", "mail") == 100
