"""Delivery by the nearest replica: which node sends which job, also while leaders and consumers die."""

from __future__ import annotations

import pytest

from disqued.core.host import disk
from disqued.testing.cluster import Member
from ordered.story import Story, Waiting, bodies


class Scene:
    """A queue whose leader is B, with the followers A and C."""

    def __init__(self) -> None:
        self.story = Story()
        self.story.new()
        self.b = self.story.leader()
        self.a, self.c = self.story.followers()
        self.story.settle()
        self.story.cluster.forget_sent()

    def get(self, node: Member) -> Waiting:
        """Have a consumer wait at a node."""
        waiting = self.story.send(node, "GETJOB", "WITHCLAIM", "FROM", "q")
        self.story.cluster.run(milliseconds=50)
        return waiting

    def add(self, node: Member, body: str) -> None:
        """Add a job that stays with its consumer."""
        self.story.add(node, body, "RETRY", 600)
        self.story.cluster.run(milliseconds=50)

    def service_queue(self, node: Member) -> list[Member]:
        """The nodes of the consumers in the order in which they get jobs, as a replica knows it."""
        consumers = self.story.replica(node).applier.machine.consumers()  # type: ignore[attr-defined]
        by_id = {member.id: member for member in self.story.nodes}
        return [by_id[consumer.agent] for consumer in consumers]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_replica_of_the_consumers_node_sends_each_job_while_the_leader_dies_between_two(scene: Scene) -> None:
    story, a, b, c = scene.story, scene.a, scene.b, scene.c
    scene.add(b, "m1")
    first = scene.get(a)
    assert bodies(first.reply(within_s=1)) == [b"m1"]
    second = scene.get(a)
    scene.add(b, "m2")
    assert bodies(second.reply(within_s=1)) == [b"m2"]
    third = scene.get(c)
    assert scene.service_queue(b) == [c, a]
    again = scene.get(a)
    b.crash()
    story.leader()
    story.cluster.run(milliseconds=500)
    assert scene.service_queue(a) == scene.service_queue(c) == [c, a]
    scene.add(a, "m3")
    assert bodies(third.reply(within_s=1)) == [b"m3"]
    assert again.waits
    assert story.cluster.sent("DELIVER") == []
    story.settle()
    assert story.replica(a).applier.machine.delivered == 3  # type: ignore[attr-defined]


def test_jobs_of_a_consumer_that_dies_are_sent_by_the_node_of_the_next_one_in_order(scene: Scene) -> None:
    """In a SINGLE queue, the jobs of a consumer return when its node is gone."""
    story = scene.story
    story.new("one", "SINGLE", "PREFETCH", 2)
    lead = story.leader("one")
    gone, other = story.followers("one")
    story.cluster.forget_sent()
    for body in ("m1", "m2", "m3"):
        story.add(lead, body, "RETRY", 600, queue="one")
    client = gone.client()
    client.send("GETJOB", "COUNT", 2, "FROM", "one")
    story.cluster.until(lambda: not client.silent)
    assert bodies(client.next_reply()) == [b"m1", b"m2"]
    consumer = other.client()
    consumer.send("GETJOB", "FROM", "one")
    gone.crash()
    story.cluster.until(lambda: not consumer.silent)
    assert bodies(consumer.next_reply()) == [b"m1"]
    consumer.send("GETJOB", "FROM", "one")
    story.cluster.until(lambda: not consumer.silent)
    assert bodies(consumer.next_reply()) == [b"m2"]
    assert story.cluster.sent("DELIVER") == []


def test_the_leader_sends_jobs_only_to_nodes_without_a_replica() -> None:
    story = Story(4)
    story.new("q", "ON", *[node.id for node in story.nodes[:3]])
    outside = story.nodes[3]
    story.cluster.forget_sent()
    for node in story.nodes:
        story.add(story.nodes[0], f"for {node.number}")
        assert story.take(node) == [b"for %d" % node.number]
    sent = story.cluster.sent("DELIVER")
    assert sent
    assert {frame.receiver for frame in sent} == {outside}
    assert {frame.sender for frame in sent} == {story.leader()}


def test_a_node_that_starts_again_hands_out_nothing_that_it_handed_out_before(scene: Scene) -> None:
    """It applies its log again, with the assignments to the consumer of its former process."""
    story, a = scene.story, scene.a
    for number in range(5):
        story.add(a, f"{number}", "RETRY", 600)
    assert len(story.take(a, 5)) == 5
    a.crash()
    a.restart()
    waiting = story.send(a, "GETJOB", "FROM", "q")
    story.cluster.run(seconds=5)
    assert waiting.waits
    story.add(a, "new")
    assert bodies(waiting.reply(within_s=1)) == [b"new"]


def test_a_node_that_reads_its_log_refuses_commands_because_it_does_not_know_which_queues_are_ordered() -> None:
    story = Story()
    story.new()
    story.cluster.run(seconds=1)
    node = story.nodes[1]
    node.crash()
    node.host.disk.delay_ms = {disk.READ: 300}
    node.restart()
    assert str(story.call(node, "ADDJOB", "q", "job", 5000)).startswith("LOADING")
    assert str(story.call(node, "GETJOB", "NOHANG", "FROM", "q")).startswith("LOADING")
    story.cluster.until(lambda: not story.room(node).hosting.opens)
    story.add(node, "job")
    assert story.take(story.nodes[0]) == [b"job"]
