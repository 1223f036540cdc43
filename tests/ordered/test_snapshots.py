"""Snapshots: replicas that lack more than their leader still has in its log."""

from __future__ import annotations

from disqued.testing.cluster import Member
from ordered.story import Story, ids


def compact(story: Story, *nodes: Member) -> None:
    """Have nodes replace their logs by snapshots."""
    for node in nodes:
        replica = story.replica(node)
        replica.wants_snapshot()
        node.flush()
        story.cluster.until(lambda: replica.raft.snapshot.index == replica.applied)  # noqa: B023 - called at once


def test_a_replica_takes_up_its_queue_from_its_snapshot() -> None:
    story = Story()
    story.new()
    job_ids = [story.add(story.nodes[0], f"{number}") for number in range(10)]
    taken = story.call(story.nodes[1], "GETJOB", "COUNT", 3, "FROM", "q")
    story.call(story.nodes[1], "ACKJOB", ids(taken)[0])
    story.settle()
    compact(story, *story.nodes)
    for node in story.nodes:
        node.crash()
    for node in story.nodes:
        node.restart()
    assert ids(story.call(story.leader(), "GETJOB", "COUNT", 99, "FROM", "q")) == job_ids[3:]
    assert story.call(story.nodes[2], "ACKJOB", *job_ids) == 9
    story.settle()


def test_a_replica_that_was_down_for_long_gets_a_snapshot_with_the_bodies_it_needs() -> None:
    story = Story()
    story.new()
    behind = story.followers()[0]
    behind.crash()
    leader = story.leader()
    job_ids = [story.add(leader, f"{number} " + "x" * 2000) for number in range(400)]
    done = story.call(leader, "GETJOB", "COUNT", 100, "FROM", "q")
    assert story.call(leader, "ACKJOB", *ids(done)) == 100
    compact(story, *[node for node in story.nodes if node.running])
    behind.restart()
    story.settle(within_s=30)
    assert len(story.cluster.sent("RAFTSNAP", to=behind)) > 2
    for node in story.nodes:
        if node is not behind:
            node.crash()
            node.restart()
    jobs = story.call(behind, "GETJOB", "COUNT", 999, "FROM", "q")
    assert ids(jobs) == job_ids[100:]
    assert {len(job[2]) for job in jobs} <= {2002, 2003, 2004}


def test_a_new_replica_begins_with_a_snapshot_if_the_appends_before_it_were_lost() -> None:
    """It began only by an append, and the leader offered a snapshot again without end (simulation seed 44)."""
    story = Story(4)
    a, b, c, d = story.nodes
    story.new("q", "ON", a.id, b.id, c.id)
    story.cluster.lose("RAFT", to=d)
    assert story.call(a, "CLUSTER", "ORDERED", "MOVE", "q", "FROM", c.id, "TO", d.id) == b"OK"
    story.cluster.run(seconds=1)
    job_ids = [story.add(a, f"{number}") for number in range(5)]
    story.settle()
    compact(story, a, b, c)
    story.cluster.heal()
    story.cluster.until(lambda: 1 in story.replicas(d) and story.replica(d).applied > 0)
    assert ids(story.call(d, "GETJOB", "COUNT", 99, "FROM", "q")) == job_ids


def test_a_transfer_continues_although_parts_are_lost() -> None:
    story = Story()
    story.new()
    behind = story.followers()[0]
    behind.crash()
    leader = story.leader()
    for number in range(50):
        story.add(leader, f"{number} " + "x" * 2000)
    compact(story, *[node for node in story.nodes if node.running])
    story.cluster.lose("RAFTSNAP", count=2)
    behind.restart()
    story.settle(within_s=30)


def test_a_transfer_begins_again_when_the_follower_restarts_meanwhile() -> None:
    story = Story()
    story.new()
    behind = story.followers()[0]
    behind.crash()
    leader = story.leader()
    for number in range(300):
        story.add(leader, f"{number} " + "x" * 4000)
    compact(story, *[node for node in story.nodes if node.running])
    behind.restart()
    story.cluster.until(lambda: len(story.cluster.sent("RAFTSNAP", to=behind)) >= 3)
    behind.crash()
    behind.restart()
    story.settle(within_s=40)
