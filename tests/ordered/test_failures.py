"""Ordered queues while nodes die, are cut off, and return."""

from __future__ import annotations

import pytest

from disqued.core.host import disk
from disqued.errors import NoQuorum, QueueExists
from disqued.ordered.jobids import index_of
from disqued.raftlog.tuning import LogTuning
from ordered.story import Story, bodies, ids


@pytest.fixture
def story() -> Story:
    story = Story()
    story.new()
    return story


def test_the_queue_is_served_again_soon_after_its_leader_died(story: Story) -> None:
    story.add(story.nodes[0], "before")
    story.settle()
    story.leader().crash()
    node = next(node for node in story.nodes if node.running)
    began_ms = story.cluster.network.now_ms
    story.cluster.run(milliseconds=1200)
    story.add(node, "after")
    assert story.cluster.network.now_ms - began_ms < 3000
    assert story.take(node, 9) == [b"before", b"after"]


def test_an_answered_add_survives_the_power_loss_of_all_nodes(story: Story) -> None:
    job_ids = [story.add(story.nodes[number % 3], f"{number}") for number in range(20)]
    for node in story.nodes:
        node.lose_power()
    for node in story.nodes:
        node.restart()
    jobs = story.call(story.leader(), "GETJOB", "COUNT", 99, "FROM", "q")
    assert ids(jobs) == job_ids


def test_a_minority_refuses_and_says_how_many_replicas_it_sees(story: Story) -> None:
    a, b, c = story.nodes
    story.cluster.partition([a], [b, c])
    story.cluster.run(seconds=3)
    refused = story.call(a, "ADDJOB", "q", "job", 500)
    assert str(refused) == NoQuorum(b"q", 1, 3).text
    assert isinstance(story.call(b, "ADDJOB", "q", "job", 2000), bytes)


def test_the_minority_follows_when_it_is_back(story: Story) -> None:
    leader = story.leader()
    others = story.followers()
    story.cluster.partition([leader], others)
    story.cluster.run(seconds=3)
    for number in range(5):
        story.add(others[0], f"{number}")
    story.cluster.heal()
    story.settle()
    assert story.take(leader, 9) == [b"%d" % number for number in range(5)]


def test_qlen_exact_is_not_answered_by_a_leader_that_was_replaced(story: Story) -> None:
    """QLEN may be, for a second."""
    former = story.leader()
    others = story.followers()
    story.add(former, "first")
    for other in others:
        story.cluster.cut(former, other)
        story.cluster.cut(other, former)
    story.cluster.run(milliseconds=500)
    assert story.call(former, "QLEN", "q", within_s=0.2) == 1
    exact = story.send(former, "QLEN", "q", "EXACT")
    story.cluster.run(seconds=2)
    story.add(others[0], "second")
    assert exact.waits
    story.cluster.heal()
    assert exact.reply() == 2
    assert [story.call(node, "QLEN", "q", "EXACT") for node in story.nodes] == [2, 2, 2]


def test_two_nodes_may_ask_for_the_same_confirmation(story: Story) -> None:
    """A request was known by its number alone, although each node counts its own."""
    for node in story.followers():
        story.room(node).exchange._number = 7
    asked = [story.send(node, "QLEN", "q", "EXACT") for node in story.followers()]
    assert [one.reply() for one in asked] == [0, 0]


def test_an_add_whose_leader_dies_is_answered_as_unknown_or_done(story: Story) -> None:
    leader = story.leader()
    follower = story.followers()[0]
    story.cluster.run(seconds=1)
    story.add(follower, "warm up")
    adding = [story.send(follower, "ADDJOB", "q", f"{number}", 5000) for number in range(5)]
    leader.crash()
    replies = [waiting.reply() for waiting in adding]
    accepted = [reply for reply in replies if isinstance(reply, bytes)]
    assert all(isinstance(reply, bytes) or str(reply).startswith("NOREPL the leader") for reply in replies)
    found = ids(story.call(follower, "GETJOB", "COUNT", 99, "FROM", "q"))
    assert set(accepted) <= set(found)


def test_the_answer_to_a_process_that_was_killed_is_not_taken_for_one_to_the_next(story: Story) -> None:
    """Its numbers began at 1 again: an add was answered before it was committed."""
    leader = story.leader()
    node, other = story.followers()
    node.restart()
    story.settle()
    node.host.disk.delay_ms = {disk.SYNC: 500}
    other.host.disk.delay_ms = {disk.SYNC: 10_000}
    story.send(node, "ADDJOB", "q", "of the process that was killed", 0)
    story.cluster.run(milliseconds=300)
    node.crash()
    node.restart()
    story.cluster.until(lambda: story.room(node).has_catalog and not story.room(node).hosting.opens)
    added = story.send(node, "ADDJOB", "q", "of the next one", 0)
    job_id = added.reply()
    assert dict(zip(*[iter(story.call(leader, "SHOW", job_id))] * 2, strict=True))[b"body"] == b"of the next one"


def test_an_add_with_a_key_is_repeated_until_it_is_done_once(story: Story) -> None:
    follower = story.followers()[0]
    story.add(follower, "warm up")
    adding = [story.send(follower, "ADDJOB", "q", f"{number}", 0, "KEY", f"k{number}") for number in range(5)]
    story.leader().crash()
    assert [isinstance(waiting.reply(), bytes) for waiting in adding] == [True] * 5
    taken = bodies(story.call(follower, "GETJOB", "COUNT", 99, "FROM", "q"))
    assert sorted(taken) == [b"0", b"1", b"2", b"3", b"4", b"warm up"]


def test_an_add_with_a_key_that_may_have_been_done_is_not_refused(story: Story) -> None:
    """It was sent to a leader, and then no leader could be reached until its deadline (simulation seed 2)."""
    leader = story.leader()
    follower, other = story.followers()
    story.add(follower, "warm up")
    story.cluster.cut(leader, follower)
    story.cluster.cut(other, follower)
    adding = story.send(follower, "ADDJOB", "q", "job", 5000, "KEY", "k")
    assert str(adding.reply()).startswith("NOREPL")
    assert story.take(leader, 9) == [b"warm up", b"job"]


def test_a_waiting_worker_gets_its_job_from_the_next_leader(story: Story) -> None:
    follower = story.followers()[0]
    worker = story.send(follower, "GETJOB", "FROM", "q")
    story.cluster.run(seconds=1)
    story.leader().crash()
    story.cluster.run(seconds=3)
    job_id = story.add(story.followers()[0], "job")
    assert ids(worker.reply()) == [job_id]


def test_jobs_of_a_node_that_died_come_back_after_their_retry_time(story: Story) -> None:
    worker = story.followers()[0]
    story.add(worker, "job", "RETRY", 3)
    assert story.take(worker) == [b"job"]
    worker.crash()
    jobs = story.call(story.leader(), "GETJOB", "WITHCOUNTERS", "FROM", "q")
    assert jobs[0][2:] == [b"job", b"nacks", 0, b"additional-deliveries", 1]


def test_a_node_that_died_gets_no_more_jobs(story: Story) -> None:
    dead = story.followers()[0]
    story.send(dead, "GETJOB", "FROM", "q")
    story.cluster.run(seconds=1)
    dead.crash()
    story.cluster.run(seconds=3)
    story.add(story.leader(), "job", "RETRY", 1000)
    assert story.take(story.leader()) == [b"job"]


def test_a_node_that_returns_gets_jobs_again(story: Story) -> None:
    node = story.followers()[0]
    story.send(node, "GETJOB", "FROM", "q")
    story.cluster.run(seconds=1)
    node.crash()
    story.cluster.run(seconds=3)
    node.restart()
    worker = story.send(node, "GETJOB", "FROM", "q")
    story.cluster.run(seconds=2)
    story.add(story.leader(), "job")
    assert bodies(worker.reply()) == [b"job"]


def test_indexes_grow_through_three_leaders(story: Story) -> None:
    job_ids: list[bytes] = []
    for _ in range(3):
        job_ids += [story.add(story.leader(), "job") for _ in range(5)]
        gone = story.leader()
        gone.crash()
        story.leader()
        gone.restart()
        story.settle()
    indexes = [index_of(job_id) for job_id in job_ids]
    assert indexes == sorted(indexes)
    assert ids(story.call(story.leader(), "GETJOB", "COUNT", 99, "FROM", "q")) == job_ids


def test_a_node_that_lost_its_disk_does_not_vote(story: Story) -> None:
    story.add(story.nodes[0], "job")
    story.settle()
    lost, other = story.followers()
    leader = story.leader()
    lost.crash()
    other.crash()
    lost.restart(keep_disk=False)
    story.cluster.run(seconds=20)
    assert 1 not in story.replicas(lost)
    assert not story.replica(leader).raft.is_leader
    other.restart()
    assert story.take(story.leader()) == [b"job"]


def test_errors_have_their_codes() -> None:
    assert QueueExists("x").code == "EXISTS"
    assert NoQuorum(b"q", 1, 3).code == "NOQUORUM"


@pytest.mark.parametrize("replicas", [3, 2])
def test_a_worker_on_a_node_that_was_cut_off_gets_jobs_again(replicas: int) -> None:
    story = Story(3)
    story.new("q", "ON", *[node.id for node in story.nodes[: max(replicas - 1, 1) if replicas == 2 else 3]])
    node = story.nodes[2]
    if node is story.leader():
        story.replica(node).raft.transfer(story.replica(story.nodes[0]).raft.replica, node.node.state.now_ms)
        story.cluster.run(seconds=2)
    worker = story.send(node, "GETJOB", "FROM", "q")
    story.cluster.run(seconds=1)
    story.cluster.partition(story.nodes[:2], [node])
    story.cluster.run(seconds=4)
    story.cluster.heal()
    story.cluster.run(seconds=4)
    story.add(story.nodes[0], "job")
    assert bodies(worker.reply(within_s=3)) == [b"job"]


def test_a_delivery_that_is_lost_is_repeated() -> None:
    story = Story(3)
    story.new("q", "ON", story.nodes[0].id, story.nodes[1].id)
    node = story.nodes[2]
    workers = [story.send(node, "GETJOB", "FROM", "q") for _ in range(3)]
    story.cluster.run(seconds=1)
    story.cluster.lose("DELIVER", count=1)
    for number in range(3):
        story.add(story.nodes[0], f"{number}")
        story.cluster.run(milliseconds=200)
    assert [bodies(worker.reply(within_s=5)) for worker in workers] == [[b"0"], [b"1"], [b"2"]]


def test_the_last_delivery_that_is_lost_is_repeated() -> None:
    story = Story(3)
    story.new("q", "ON", story.nodes[0].id)
    node = story.nodes[2]
    worker = story.send(node, "GETJOB", "FROM", "q")
    story.cluster.run(seconds=1)
    story.cluster.lose("DELIVER", count=1)
    story.add(story.nodes[0], "job")
    assert bodies(worker.reply(within_s=5)) == [b"job"]


def test_a_node_that_returns_while_its_end_is_being_noted_gets_jobs_again() -> None:
    """The leader looked too early whether it was back, and the consumer joined repeatedly without success."""
    story = Story()
    story.new()
    leader = story.leader()
    node = story.followers()[0]
    worker = story.send(node, "GETJOB", "FROM", "q")
    story.cluster.run(seconds=1)
    story.cluster.cut(node, leader)
    story.cluster.until(lambda: story.room(leader).exchange.is_silent(node.id))
    for other in story.followers():
        story.cluster.cut(leader, other)  # so that the entry which says so is not committed
    story.cluster.run(milliseconds=150)
    story.cluster.heal()
    story.cluster.run(seconds=4)
    before = story.replica(story.leader()).raft.last
    story.cluster.run(seconds=2)
    assert story.replica(story.leader()).raft.last - before < 5
    story.add(leader, "job")
    assert bodies(worker.reply(within_s=3)) == [b"job"]


def test_a_consumer_of_a_single_queue_that_leaves_while_it_joins_leaves_nothing_behind() -> None:
    story = Story()
    story.new("one", "SINGLE", "PREFETCH", 1)
    story.cluster.run(seconds=1)
    node = story.followers("one")[0]
    client = node.client()
    client.send("GETJOB", "FROM", "one")
    story.cluster.run(milliseconds=1)
    client.disconnect()
    story.add(node, "job", queue="one")
    assert bodies(story.send(story.leader("one"), "GETJOB", "FROM", "one").reply(within_s=3)) == [b"job"]


def test_a_node_that_reads_its_log_gets_no_new_replica() -> None:
    """It announces no identity of a log yet, and a replica without one would never begin."""
    story = Story()
    story.new()
    story.cluster.run(seconds=1)
    node = story.nodes[2]
    node.crash()
    node.host.disk.delay_ms = {disk.READ: 2000}
    node.restart()
    story.cluster.run(milliseconds=1200)
    assert story.room(node).hosting.opens
    refused = story.call(story.nodes[0], "QNEW", "more", "ORDERED", "REPLICAS", 3)
    assert str(refused).startswith("ERR REPLICAS is 3, and only 2 nodes")


def test_a_node_that_reads_its_log_for_long_stays_a_member_of_group_0() -> None:
    story = Story()
    story.new()
    story.cluster.run(seconds=1)
    before = story.room(story.leader()).hosting.founders.voters
    node = next(node for node in story.nodes if not story.room(node).hosting.leads_group_0)
    node.crash()
    node.host.disk.delay_ms = {disk.READ: 8000}
    node.restart()
    story.cluster.run(seconds=60)
    assert {story.room(other).hosting.founders.voters for other in story.nodes} == {before}
    assert {story.room(other).catalog.members for other in story.nodes} <= {(), before}


def test_a_consumer_on_a_leader_whose_disk_takes_no_writes_waits_until_it_does() -> None:
    """The consumer asked again at once when it was refused, within one turn that never ended."""
    story = Story()
    node = story.nodes[0]
    story.new("q", "ON", node.id)
    story.settle()
    node.host.disk.fail(disk.APPEND)
    story.call(node, "ADDJOB", "q", "unanswered", 500)
    assert story.room(node).hosting.why_stopped
    consumer = story.send(node, "GETJOB", "FROM", "q")
    story.cluster.run(seconds=3)
    assert consumer.waits
    node.host.disk.repair()
    assert bodies(consumer.reply()) == [b"unanswered"]


def test_a_node_whose_log_failed_has_no_replica_until_it_starts_again(story: Story) -> None:
    """It began its replicas again when the catalog changed, without what they had confirmed (simulation seed 66)."""
    failed = story.followers()[0]
    others = [node for node in story.nodes if node is not failed]
    failed.host.disk.fail(disk.SYNC, times=1)
    story.add(others[0], "first")
    story.cluster.run(seconds=1)
    assert "ordered queues" in story.room(failed).exchange.write_refusal
    assert story.call(others[0], "QNEW", "other", "ORDERED", "REPLICAS", 1) == b"OK"
    story.cluster.until(lambda: b"other" in story.room(failed).catalog.by_name)
    assert story.replicas(failed) == {}
    story.add(failed, "second")
    failed.restart()
    story.settle()
    assert story.take(failed, 9) == [b"first", b"second"]


@pytest.mark.parametrize("leads", [True, False])
def test_workers_at_a_node_whose_log_failed_get_their_jobs_from_the_leader(story: Story, leads: bool) -> None:
    """The node asked itself if it had led, and the leader took it for the task of the replica there."""
    story.settle()
    node = story.leader() if leads else story.followers()[0]
    other = next(other for other in story.nodes if other is not node)
    node.host.disk.fail(disk.SYNC, times=1)
    story.send(other, "ADDJOB", "q", "the first job", 500, "KEY", "first")
    story.cluster.run(seconds=4)
    assert story.replicas(node) == {}
    story.add(other, "the first job", "KEY", "first")
    assert story.take(node, 9) == [b"the first job"]
    story.assert_served_at_once(node)


def test_a_job_whose_replica_moves_away_before_it_was_read_comes_from_the_leader() -> None:
    """Nobody read its body any more, and it held back all later jobs of that node."""
    story = Story(4, log_tuning=LogTuning(cache_bytes=4000))
    *three, to = story.nodes
    story.new("q", "ON", *[node.id for node in three])
    story.new("other", "ON", *[node.id for node in three])
    body = "first".ljust(3000)
    story.add(story.nodes[0], body)
    story.settle()
    node = story.followers()[0]
    for _ in range(3):  # take its place in the cache
        story.add(story.nodes[0], "other".ljust(3000), queue="other")
    story.settle("other")
    node.host.disk.delay_ms = {disk.READ: 60_000}
    worker = story.send(node, "GETJOB", "FROM", "q")
    story.cluster.run(milliseconds=200)
    assert worker.waits
    assert story.stat(node)[b"leased"] == 1
    assert story.call(node, "CLUSTER", "ORDERED", "MOVE", "q", "FROM", node.id, "TO", to.id) == b"OK"
    assert bodies(worker.reply()) == [body.encode()]
    story.assert_served_at_once(node)
