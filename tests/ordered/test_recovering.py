"""A queue that has lost the majority of its replicas is recovered from one of them, and old replicas change nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from disqued.client import ResponseError
from disqued.ordered.counters import RECOVERED
from disqued.ordered.exchange import node_of
from disqued.raft.message import APPEND, Message
from disqued.testing.cluster import Member
from ordered.story import Story, ids


class Loss:
    """Five nodes; the queue is on a, b and c, the catalog on c, d and e."""

    def __init__(self, *options: str) -> None:
        story = Story(5, founders=0)
        self.story = story
        self.a, self.b, self.c, self.d, self.e = story.nodes
        founders = [node.id for node in (self.c, self.d, self.e)]
        assert story.call(self.a, "CLUSTER", "ORDERED", "INIT", *founders) == b"OK"
        story.cluster.until(lambda: all(story.room(node).has_catalog for node in story.nodes))
        story.cluster.run(milliseconds=500)
        assert story.call(self.c, "QNEW", "q", "ORDERED", *options, "ON", self.a.id, self.b.id, self.c.id) == b"OK"
        story.cluster.run(seconds=1)

    def recover(self, node: Member, *options: str) -> Any:
        return self.story.call(node, "CLUSTER", "ORDERED", "RECOVER", "q", "KEEP", node.id, *options)

    def replicas(self, node: Member) -> list[bytes]:
        return [node_of(one) for one in self.story.room(node).catalog.by_name[b"q"].replicas]

    def has_three(self, *, without: tuple[Member, ...] = ()) -> bool:
        known = self.story.room(self.c).catalog.by_name[b"q"]
        found = [node_of(one) for one in known.replicas]
        return len(found) == 3 and known.settled and not any(node.id in found for node in without)


def numbers(jobs: Any) -> list[int]:
    return [int(job[2]) for job in jobs]


def test_the_kept_replica_serves_its_jobs_and_gets_others_beside_it() -> None:
    loss = Loss()
    story = loss.story
    job_ids = [story.add(loss.d, f"{number}") for number in range(20)]
    story.cluster.run(seconds=1)
    loss.a.crash()
    loss.b.crash()
    story.cluster.run(seconds=5)
    assert loss.recover(loss.c, "FORCE") == b"OK"
    jobs = story.call(loss.d, "GETJOB", "COUNT", 5, "FROM", "q", within_s=30)
    assert ids(jobs) == job_ids[:5]
    assert story.call(loss.e, "ACKJOB", *job_ids[:5]) == 5
    job_ids.append(story.add(loss.c, "20"))
    story.cluster.until(partial(loss.has_three, without=(loss.a, loss.b)), within_s=60)
    loss.c.crash()
    assert ids(story.call(loss.e, "GETJOB", "COUNT", 99, "FROM", "q", within_s=30)) == job_ids[5:]
    assert loss.c.node.state.counters.value(RECOVERED) == 1
    warnings = [text for level, text in loss.c.host.log_lines if level == "warning" and "was recovered" in text]
    assert len(warnings) == 1
    assert "queue=q group=1 " in warnings[0]


@pytest.mark.parametrize("count", [1, 2])
def test_old_replicas_that_return_with_their_disks_change_nothing(count: int) -> None:
    loss = Loss()
    story = loss.story
    story.add(loss.d, "0")
    lost = [loss.a, loss.b]
    story.cluster.run(seconds=1)
    for node in lost:
        node.crash()
    story.cluster.run(seconds=5)
    assert loss.recover(loss.c, "FORCE") == b"OK"
    taken = story.call(loss.d, "GETJOB", "FROM", "q", within_s=30)
    assert story.call(loss.d, "ACKJOB", *ids(taken)) == 1
    added = [story.add(loss.e, f"{number}") for number in range(1, 11)]
    for node in lost[:count]:
        node.restart()
    story.cluster.run(seconds=15)
    jobs = story.call(loss.a, "GETJOB", "COUNT", 99, "FROM", "q", within_s=30)
    assert ids(jobs) == added
    story.cluster.until(loss.has_three, within_s=60)
    story.cluster.run(seconds=5)
    story.settle()
    assert any("was given up" in text for _, text in loss.a.host.log_lines)


def test_old_replicas_that_elect_a_leader_apart_are_given_up_when_they_return() -> None:
    loss = Loss()
    story = loss.story
    story.add(loss.d, "both")
    story.cluster.run(seconds=1)
    apart, rest = [loss.a, loss.b], [loss.c, loss.d, loss.e]
    story.cluster.partition(apart, rest)
    story.cluster.run(seconds=5)
    story.add(loss.a, "lost")
    assert loss.recover(loss.c, "FORCE") == b"OK"
    kept = story.add(loss.d, "kept")
    story.cluster.heal()
    story.cluster.run(seconds=15)
    jobs = story.call(loss.a, "GETJOB", "COUNT", 99, "FROM", "q", within_s=30)
    assert [job[2] for job in jobs] == [b"both", b"kept"]
    assert ids(jobs)[1] == kept
    story.cluster.until(loss.has_three, within_s=60)
    story.cluster.run(seconds=5)
    story.settle()


def test_messages_of_nodes_that_do_not_know_of_the_recovery_are_dropped() -> None:
    loss = Loss()
    story = loss.story
    story.cluster.run(seconds=1)
    old = story.room(loss.a).hosting.identity
    loss.a.crash()
    loss.b.crash()
    story.cluster.run(seconds=5)
    assert loss.recover(loss.c, "FORCE") == b"OK"
    story.cluster.until(lambda: story.leader() is loss.c)
    replica = story.replica(loss.c)
    term = int(replica.raft.term)
    message = Message(APPEND, old, story.room(loss.c).hosting.identity, term + 100)
    loss.c.on_input(partial(story.room(loss.c).hosting.take_messages, replica.group, [message]))
    story.cluster.run(milliseconds=200)
    assert (replica.raft.is_leader, int(replica.raft.term)) == (True, term)


def test_recovery_continues_after_a_crash_of_the_kept_node() -> None:
    loss = Loss()
    story = loss.story
    job_ids = [story.add(loss.d, f"{number}") for number in range(20)]
    story.cluster.run(seconds=1)
    loss.a.crash()
    loss.b.crash()
    story.cluster.run(seconds=5)
    recovering = story.send(loss.c, "CLUSTER", "ORDERED", "RECOVER", "q", "KEEP", loss.c.id, "FORCE")
    story.cluster.until(lambda: story.room(loss.d).catalog.by_name[b"q"].epoch > 0)
    loss.c.crash()
    del recovering
    loss.c.restart()
    loss.c.crash()
    loss.c.restart()
    assert ids(story.call(loss.d, "GETJOB", "COUNT", 99, "FROM", "q", within_s=30)) == job_ids


def test_jobs_that_a_lost_leader_acknowledged_are_in_the_log_of_the_kept_replica() -> None:
    loss = Loss()
    story = loss.story
    leader = story.leader()
    others = [node for node in (loss.a, loss.b, loss.c) if node is not leader]
    if leader is loss.c:
        assert story.call(loss.c, "CLUSTER", "ORDERED", "LEAD", "q", loss.a.id) == b"OK"
        story.cluster.until(lambda: story.leader() is loss.a, within_s=60)
        leader, others = loss.a, [loss.b, loss.c]
    added = [story.add(leader, f"{number}") for number in range(10)]
    for node in [leader, *others]:
        if node is not loss.c:
            node.crash()
    story.cluster.run(seconds=5)
    assert loss.recover(loss.c, "FORCE") == b"OK"
    assert ids(story.call(loss.e, "GETJOB", "COUNT", 99, "FROM", "q", within_s=30)) == added


def test_a_queue_with_one_active_consumer_is_recovered_with_its_order() -> None:
    loss = Loss("SINGLE", "PREFETCH", "1")
    story = loss.story
    for number in range(5):
        story.add(loss.d, f"{number}")
    consumer = loss.a.client()
    consumer.send("GETJOB", "FROM", "q")
    story.cluster.run(seconds=1)
    loss.a.crash()
    loss.b.crash()
    story.cluster.run(seconds=5)
    assert loss.recover(loss.c, "FORCE") == b"OK"
    worker = loss.d.client()
    found: list[int] = []
    for _ in range(5):
        worker.send("GETJOB", "TIMEOUT", 20_000, "FROM", "q")
        story.cluster.until(lambda: not worker.silent, within_s=90)
        jobs = worker.next_reply()
        found += numbers(jobs)
        worker.send("ACKJOB", *ids(jobs))
        story.cluster.until(lambda: not worker.silent)
        worker.next_reply()
    assert found == [0, 1, 2, 3, 4]


def test_recovering_is_refused_without_need_or_force() -> None:
    loss = Loss()
    story = loss.story
    refused = loss.recover(loss.c, "FORCE")
    assert str(refused) == "ERR 3 of 3 replicas can be reached, which is a majority"
    loss.a.crash()
    story.cluster.run(seconds=5)
    assert "2 of 3 replicas" in str(loss.recover(loss.c, "FORCE"))
    loss.b.crash()
    story.cluster.run(seconds=5)
    assert "add FORCE" in str(loss.recover(loss.c))
    assert "run this command on the node" in str(
        story.call(loss.d, "CLUSTER", "ORDERED", "RECOVER", "q", "KEEP", loss.c.id, "FORCE")
    )
    assert "no replica of this queue" in str(loss.recover(loss.d, "FORCE"))
    unknown = story.call(loss.c, "CLUSTER", "ORDERED", "RECOVER", "other", "KEEP", loss.c.id, "FORCE")
    assert isinstance(unknown, ResponseError)
    loss.d.crash()
    loss.e.crash()
    story.cluster.run(seconds=5)
    assert "catalog of ordered queues has no majority" in str(loss.recover(loss.c, "FORCE"))


def test_balance_says_what_is_planned() -> None:
    story = Story(4)
    a, b, c, d = story.nodes
    assert story.call(a, "CLUSTER", "ORDERED", "BALANCE") == [b"under-way", 0, b"replicas", 0, b"leaders", 0]
    for number in range(4):
        story.new(f"q{number}", "ON", a.id, b.id, c.id)
    plan = story.call(d, "CLUSTER", "ORDERED", "BALANCE")
    by_name = dict(zip(plan[::2], plan[1::2], strict=True))
    assert by_name[b"replicas"] + by_name[b"under-way"] >= 2

    def is_even() -> bool:
        reply = story.call(d, "CLUSTER", "ORDERED", "BALANCE")
        return bool(reply[1::2] == [0, 0, 0])

    story.cluster.until(is_even, within_s=120)
    assert sum(1 for group in story.replicas(d) if group) >= 2


# --- the catalog ------------------------------------------------------------------------------------------------------


def all_know_one_catalog(story: Story) -> bool:
    """Whether all running nodes know the same catalog, and one of them leads group 0 with three members."""
    rooms = [story.room(node) for node in story.nodes if node.running]
    known = {(room.catalog.identity, int(room.catalog.version)) for room in rooms}
    leaders = [room for room in rooms if room.hosting.leads_group_0]
    return len(known) == len(leaders) == 1 and len(leaders[0].hosting.founders.voters) == min(3, len(rooms))


def test_a_cluster_that_has_lost_two_of_three_nodes_is_recovered_whole() -> None:
    story = Story(3)
    a, b, c = story.nodes
    story.new()
    job_ids = [story.add(a, f"{number}") for number in range(10)]
    story.cluster.run(seconds=1)
    a.crash()
    b.crash()
    story.cluster.run(seconds=5)
    assert "recover it first" in str(story.call(c, "CLUSTER", "ORDERED", "RECOVER", "q", "KEEP", c.id, "FORCE"))
    assert "add FORCE" in str(story.call(c, "CLUSTER", "ORDERED", "RECOVER", "CATALOG"))
    assert story.call(c, "CLUSTER", "ORDERED", "RECOVER", "CATALOG", "FORCE") == b"OK"
    story.cluster.until(lambda: story.room(c).hosting.leads_group_0)
    assert story.call(c, "CLUSTER", "ORDERED", "RECOVER", "q", "KEEP", c.id, "FORCE") == b"OK"
    jobs = story.call(c, "GETJOB", "COUNT", 4, "FROM", "q", within_s=30)
    assert ids(jobs) == job_ids[:4]
    assert story.call(c, "ACKJOB", *job_ids[:4]) == 4
    story.add(c, "10")
    for node in (a, b):
        node.restart()
    story.cluster.until(partial(all_know_one_catalog, story), within_s=120)
    assert [story.room(node).conflict for node in story.nodes] == [b""] * 3
    story.cluster.until(lambda: all(1 in story.replicas(node) for node in story.nodes), within_s=60)
    story.cluster.run(seconds=5)
    story.settle()
    c.crash()
    assert numbers(story.call(a, "GETJOB", "COUNT", 99, "FROM", "q", within_s=30)) == [*range(4, 11)]
    assert story.call(a, "QNEW", "new", "ORDERED", within_s=30) == b"OK"
    assert story.room(a).catalog.by_name[b"new"].group > 1 << 16


def test_members_of_the_catalog_that_were_apart_take_the_recovered_one() -> None:
    story = Story(5)
    a, b, c, d, e = story.nodes
    story.new("q", "ON", c.id, d.id, e.id)
    story.cluster.run(seconds=1)
    story.cluster.partition([a, b], [c, d, e])
    story.cluster.run(seconds=5)
    assert story.call(a, "QNEW", "lost", "ORDERED", "REPLICAS", 1, "ON", a.id) == b"OK"
    assert story.call(c, "CLUSTER", "ORDERED", "RECOVER", "CATALOG", "FORCE") == b"OK"
    story.cluster.until(lambda: all(story.room(node).catalog.ancestors for node in (c, d, e)))
    story.cluster.run(milliseconds=500)
    assert story.call(c, "QNEW", "kept", "ORDERED", "REPLICAS", 1, "ON", d.id, within_s=30) == b"OK"
    story.add(e, "job", queue="kept")
    story.cluster.heal()
    story.cluster.until(partial(all_know_one_catalog, story), within_s=120)
    for node in story.nodes:
        assert sorted(story.room(node).catalog.by_name) == [b"kept", b"q"]
        assert story.room(node).conflict == b""
    assert story.take(a, queue="kept") == [b"job"]
    assert set(story.replicas(a)) <= {0}


def test_a_recovered_catalog_is_there_after_a_restart_of_all_nodes() -> None:
    story = Story(3)
    a, b, c = story.nodes
    story.new()
    job_id = story.add(a, "job")
    story.cluster.run(seconds=1)
    a.crash()
    b.crash()
    story.cluster.run(seconds=5)
    assert story.call(c, "CLUSTER", "ORDERED", "RECOVER", "CATALOG", "FORCE") == b"OK"
    story.cluster.until(lambda: bool(story.room(c).catalog.ancestors))
    identity = story.room(c).catalog.identity
    c.crash()
    for node in (c, a, b):
        node.restart()
    story.cluster.until(partial(all_know_one_catalog, story), within_s=120)
    assert {story.room(node).catalog.identity for node in story.nodes} == {identity}
    assert ids(story.call(b, "GETJOB", "FROM", "q", within_s=30)) == [job_id]


def test_recovering_the_catalog_is_refused_without_need_or_at_other_nodes() -> None:
    story = Story(4)
    a, b, c, d = story.nodes
    assert "3 of 3 members" in str(story.call(a, "CLUSTER", "ORDERED", "RECOVER", "CATALOG", "FORCE"))
    a.crash()
    b.crash()
    story.cluster.run(seconds=5)
    assert "does not keep the catalog" in str(story.call(d, "CLUSTER", "ORDERED", "RECOVER", "CATALOG", "FORCE"))
    assert story.call(c, "CLUSTER", "ORDERED", "RECOVER", "CATALOG", "FORCE") == b"OK"
