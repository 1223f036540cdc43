"""Ordered queues while a replica cannot read its records on the disk, and after it."""

from __future__ import annotations

import pytest

from disqued.ordered.catalog import CATALOG_GROUP
from disqued.ordered.counters import DELIVERED_REMOTELY
from disqued.ordered.damagemessages import out_of_service, removal
from disqued.raftlog.tuning import LogTuning
from disqued.testing.cluster import Member
from ordered.story import Story, bodies


@pytest.fixture
def story() -> Story:
    story = Story()
    story.new()
    return story


def damage(node: Member, body: bytes) -> None:
    """Damage the body of the only job on the disk of a node. It is not in the cache, so it will be read."""
    for name, data in node.host.disk.files.items():
        if body in data:
            node.host.disk.flip(name, 8 * data.index(body))


@pytest.fixture
def uncached() -> Story:
    """The bodies of jobs must be read from the disk."""
    story = Story(log_tuning=LogTuning(cache_bytes=0))
    story.new()
    story.add(story.nodes[0], "the first job")
    story.settle()
    return story


def test_a_leader_that_cannot_read_its_log_makes_way_for_another_one(uncached: Story) -> None:
    """Its node is still heard, so the others followed it further. What it was asked is answered by the next leader."""
    story = uncached
    former, others = story.leader(), story.followers()
    damage(former, b"the first job")
    for other in others:
        story.cluster.cut(other, former)  # which cannot know now that it still leads
    story.cluster.cut(former, others[0])  # which does not hear at once that nobody leads any more
    story.cluster.network.later(500, story.cluster.heal)
    again = story.send(former, "QNEW", "q", "ORDERED")
    peek = story.send(former, "QPEEK", "q", 1)
    story.cluster.run(milliseconds=300)
    assert list(story.replicas(former)) == [CATALOG_GROUP]
    assert (again.reply(), bodies(peek.reply())) == (b"OK", [b"the first job"])
    assert story.leader() in others
    story.add(former, "next")
    assert story.take(others[0], 9) == [b"the first job", b"next"]


@pytest.mark.parametrize("leads", [True, False])
def test_workers_at_a_node_that_cannot_read_its_log_get_their_jobs_from_the_leader(
    uncached: Story, leads: bool
) -> None:
    """The leader took it for the task of the replica there, and no worker there got a job."""
    story = uncached
    node = story.leader() if leads else story.followers()[0]
    damage(node, b"the first job")
    worker = story.send(node, "GETJOB", "FROM", "q")
    assert bodies(worker.reply()) == [b"the first job"]
    assert list(story.replicas(node)) == [CATALOG_GROUP]
    story.assert_served_at_once(node)


@pytest.mark.parametrize("leads", [True, False])
def test_a_damaged_replica_can_be_moved_away_and_back(leads: bool) -> None:
    """It could not come back: the node kept its records, and that they are damaged."""
    story = Story(4, log_tuning=LogTuning(cache_bytes=0))
    *three, to = story.nodes
    story.new("q", "ON", *[node.id for node in three])
    story.add(to, "the first job")
    story.settle()
    node = story.leader() if leads else story.followers()[0]
    damage(node, b"the first job")
    worker = story.send(node, "GETJOB", "FROM", "q")
    assert bodies(worker.reply()) == [b"the first job"]
    for former, new in ((node, to), (to, node)):
        assert story.call(to, "CLUSTER", "ORDERED", "MOVE", "q", "FROM", former.id, "TO", new.id) == b"OK"
        story.cluster.until(lambda: all(story.room(one).catalog.by_name[b"q"].settled for one in story.nodes))
    node.restart()
    story.settle()
    assert story.replica(node).raft.replica in story.replica(story.leader()).raft.members.voters
    story.assert_served_at_once(node)


def damaged(story: Story, node: Member) -> None:
    """Have a worker on a node find that the first job is damaged there. It gets the job from the leader."""
    damage(node, b"the first job")
    assert bodies(story.call(node, "GETJOB", "FROM", "q")) == [b"the first job"]


def is_voter(story: Story, node: Member, group: int) -> bool:
    """Whether the replica of a node is in service and votes, as it knows and as the leader knows."""
    replicas = [story.replicas(other).get(group) for other in story.nodes if other.running]
    mine = story.replicas(node).get(group)
    if mine is None:
        return False
    knowing = [mine, *[one for one in replicas if one is not None and one.raft.is_leader]]
    return all(one.raft.members.is_voter(mine.raft.replica) for one in knowing)


def delivered_remotely(story: Story) -> int:
    """How many jobs leaders sent to consumers on other nodes."""
    return sum(int(node.node.state.counters.value(DELIVERED_REMOTELY)) for node in story.nodes)


@pytest.mark.parametrize("leads", [True, False])
def test_a_damaged_replica_comes_back_from_nothing(uncached: Story, leads: bool) -> None:
    """It stayed out of service until somebody moved it away."""
    story = uncached
    node = story.leader() if leads else story.followers()[0]
    group = int(story.replica(node).group)
    damaged(story, node)
    story.cluster.until(lambda: is_voter(story, node, group), within_s=5)
    story.settle()
    before = delivered_remotely(story)
    story.assert_served_at_once(node)
    assert delivered_remotely(story) == before
    next(other for other in story.nodes if other is not node and other is not story.leader()).crash()
    story.add(node, "with two of three")  # which needs the replica that was damaged
    node.crash()
    node.restart()
    story.cluster.until(lambda: is_voter(story, node, group))
    assert story.take(node, 9) == [b"with two of three"]


def test_a_replica_that_is_found_damaged_at_the_start_comes_back_from_nothing(uncached: Story) -> None:
    story = uncached
    node = story.followers()[0]
    group = int(story.replica(node).group)
    node.crash()
    damage(node, b"the first job")
    node.restart()
    story.cluster.until(lambda: is_voter(story, node, group))
    story.settle()
    assert story.take(node, 9) == [b"the first job"]


def test_a_damaged_replica_waits_while_its_removal_has_no_majority(uncached: Story) -> None:
    """It may have confirmed what only one other replica has."""
    story = uncached
    node, other = story.followers()
    group = int(story.replica(node).group)
    other.crash()
    damage(node, b"the first job")
    worker = story.send(node, "GETJOB", "FROM", "q")
    story.cluster.run(seconds=5)
    assert group not in story.replicas(node)
    assert worker.waits
    other.restart()
    assert bodies(worker.reply()) == [b"the first job"]
    story.cluster.until(lambda: is_voter(story, node, group), within_s=5)
    story.settle()


@pytest.mark.parametrize("restarted", [True, False])
def test_another_leader_completes_the_return_of_a_damaged_replica(uncached: Story, restarted: bool) -> None:
    """The first one removed the replica, and died before it could add it again."""
    story = uncached
    leader = story.leader()
    node, other = story.followers()
    group = int(story.replica(node).group)
    mine = story.replica(node).raft.replica
    damaged(story, node)
    story.cluster.until(lambda: story.room(node).hosting._damaged._damages[group].removed)
    assert not story.replica(other).raft.members.has(mine)
    leader.crash()
    if restarted:
        node.restart()
    story.cluster.run(seconds=3)  # the other one cannot lead alone
    leader.restart()
    story.cluster.until(lambda: is_voter(story, node, group), within_s=30)
    story.settle()


def test_a_leader_that_returns_does_not_remove_again_what_came_back_meanwhile() -> None:
    story = Story(4, log_tuning=LogTuning(cache_bytes=0))
    *three, to = story.nodes
    story.new("q", "ON", *[node.id for node in three])
    story.add(to, "the first job")
    story.settle()
    leader = story.leader()
    node, other = story.followers()
    group = int(story.replica(node).group)
    changing = story.replica(leader)._changing
    damaged(story, node)
    story.cluster.until(lambda: bool(changing._damaged))
    transfer(story, leader, other)
    story.cluster.until(lambda: is_voter(story, node, group))
    transfer(story, other, leader)
    assert story.call(to, "CLUSTER", "ORDERED", "MOVE", "q", "FROM", other.id, "TO", to.id) == b"OK"
    story.cluster.until(lambda: all(story.room(one).catalog.by_name[b"q"].settled for one in story.nodes))
    assert is_voter(story, node, group)


def transfer(story: Story, leader: Member, to: Member) -> None:
    """Let another node lead the queue."""
    replica = story.replica(leader)
    replica.raft.transfer(story.replica(to).raft.replica, story.cluster.network.now_ms)
    replica.look()
    leader.flush()
    story.cluster.until(lambda: story.replica(to).raft.is_confirmed)


def test_the_damaged_replica_of_a_queue_with_two_comes_back() -> None:
    story = Story(log_tuning=LogTuning(cache_bytes=0))
    story.new("q", "REPLICAS", 2)
    story.add(story.nodes[0], "the first job")
    story.settle()
    node = story.followers()[0]
    group = int(story.replica(node).group)
    damaged(story, node)
    story.cluster.until(lambda: is_voter(story, node, group), within_s=5)
    story.settle()


@pytest.mark.parametrize("leads", [True, False])
def test_a_damaged_replica_of_the_catalog_comes_back(story: Story, leads: bool) -> None:
    leader = next(node for node in story.nodes if story.room(node).hosting.leads_group_0)
    node = leader if leads else next(node for node in story.nodes if node is not leader)
    story.room(node).hosting.group_damaged(CATALOG_GROUP, "damaged by the test")
    story.cluster.until(lambda: is_voter(story, node, CATALOG_GROUP))
    next(other for other in story.nodes if other is not node).crash()
    assert story.call(node, "QNEW", "other", "ORDERED", "REPLICAS", 1) == b"OK"


def test_a_damaged_replica_of_the_catalog_does_not_begin_when_it_is_told_to_begin_with_the_others(story: Story) -> None:
    """A founder that starts again without a leader repeats that (simulation seed 108 of the mix "rot")."""
    node = story.nodes[1]
    for other in story.nodes:
        story.cluster.cut(node, other)
    hosting = story.room(node).hosting
    hosting.group_damaged(CATALOG_GROUP, "damaged by the test")
    hosting.found(hosting.founders)
    assert CATALOG_GROUP not in story.replicas(node)
    story.cluster.heal()
    story.cluster.until(lambda: is_voter(story, node, CATALOG_GROUP))


def test_a_damaged_copy_of_the_catalog_is_written_again() -> None:
    """It stayed damaged, and whenever the node started again it had to wait until others told it the catalog."""
    story = Story(4)
    story.new()
    node = next(node for node in story.nodes if CATALOG_GROUP not in story.replicas(node))
    story.cluster.run(seconds=3)
    node.crash()
    damage(node, story.room(node).catalog.encode())
    node.restart()
    story.cluster.run(seconds=3)
    for other in story.nodes:
        if other is not node:
            other.crash()
    node.restart()
    story.cluster.run(seconds=1)
    assert b"q" in story.room(node).catalog.by_name


def test_an_answer_about_an_earlier_damage_does_not_let_a_replica_begin(uncached: Story) -> None:
    """The replica has voted since."""
    story = uncached
    leader = story.leader()
    node = story.followers()[0]
    replica = story.replica(node)
    group, mine, term = int(replica.group), replica.raft.replica, int(replica.raft.term)
    told = out_of_service(mine, story.replica(leader).raft.replica, term + 1, number=7)
    for other in story.nodes:
        story.cluster.cut(node, other)  # so that no other answer comes
    hosting = story.room(node).hosting
    hosting.group_damaged(group, "damaged by the test")
    hosting.take_messages(group, [removal(told, term)])
    story.add(leader, "next")  # is sent to the replica, too
    story.cluster.run(milliseconds=500)
    assert group not in story.replicas(node)
    story.cluster.heal()
    story.cluster.until(lambda: is_voter(story, node, group), within_s=5)
