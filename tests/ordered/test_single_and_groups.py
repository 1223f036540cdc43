"""SINGLE queues, where one consumer at a time gets jobs, and group keys, within which jobs are delivered one by one."""

from __future__ import annotations

import pytest

from disqued.core.host import disk
from disqued.ordered.counters import PROPOSALS
from disqued.testing.cluster import Member
from disqued.testing.local import LocalClient
from ordered.story import Story, Waiting, bodies, ids


class Worker:
    """A client that keeps its connection."""

    def __init__(self, story: Story, node: Member, queue: str = "q") -> None:
        self._story = story
        self._queue = queue
        self.client: LocalClient = node.client()

    def ask(self) -> Waiting:
        """Wait for a job."""
        self.client.send("GETJOB", "FROM", self._queue)
        return Waiting(self._story, self.client)

    def call(self, *words: bytes | str | int) -> object:
        """Send a command, and return the reply."""
        self.client.send(*words)
        return Waiting(self._story, self.client).reply()


def single(nodes: int = 3) -> Story:
    story = Story(nodes)
    story.new("q", "SINGLE", "PREFETCH", 1)
    return story


def test_the_first_consumer_gets_all_jobs_and_the_next_one_when_it_leaves() -> None:
    story = single()
    a, b, _ = story.nodes
    first, second = Worker(story, a), Worker(story, b)
    asked = first.ask()
    story.cluster.run(seconds=1)
    other = second.ask()
    for number in range(4):
        story.add(b, f"{number}")
    for number in range(3):
        job = asked.reply()[0]
        assert job[2] == b"%d" % number
        assert first.call("ACKJOB", job[1]) == 1
        asked = first.ask()
    assert asked.reply()[0][2] == b"3"
    story.cluster.run(seconds=1)
    assert other.waits
    first.client.disconnect()
    assert bodies(other.reply()) == [b"3"]


def test_jobs_of_a_consumer_that_leaves_come_before_later_ones() -> None:
    story = Story()
    story.new("q", "SINGLE", "PREFETCH", 5)
    a, _, c = story.nodes
    first = Worker(story, a)
    for number in range(6):
        story.add(c, f"{number}")
    first.client.send("GETJOB", "COUNT", 3, "FROM", "q")
    taken = Waiting(story, first.client).reply()
    assert bodies(taken) == [b"0", b"1", b"2"]
    assert first.call("ACKJOB", ids(taken)[1]) == 1
    first.client.disconnect()
    second = Worker(story, c)
    second.client.send("GETJOB", "COUNT", 5, "FROM", "q")
    assert bodies(Waiting(story, second.client).reply()) == [b"0", b"2", b"3", b"4", b"5"]


def test_order_holds_when_the_node_of_the_consumer_dies() -> None:
    story = single()
    node = story.followers()[0]
    others = [other for other in story.nodes if other is not node]
    worker = Worker(story, node)
    asked = worker.ask()
    story.cluster.run(seconds=1)
    for number in range(5):
        story.add(others[0], f"{number}")
    assert bodies(asked.reply()) == [b"0"]
    node.crash()
    second = Worker(story, others[1])
    seen: list[bytes] = []
    for _ in range(5):
        job = second.ask().reply(within_s=20)[0]
        seen.append(job[2])
        assert second.call("ACKJOB", job[1]) == 1
    assert seen == [b"0", b"1", b"2", b"3", b"4"]


def test_order_holds_through_the_loss_of_the_leader() -> None:
    story = single()
    leader = story.leader()
    node = story.followers()[0]
    worker = Worker(story, node)
    for number in range(10):
        story.add(node, f"{number}")
    seen: list[bytes] = []
    for number in range(10):
        job = worker.ask().reply(within_s=20)[0]
        seen.append(job[2])
        if number == 4:
            leader.crash()
        assert worker.call("ACKJOB", job[1]) == 1
    assert seen == [b"%d" % number for number in range(10)]


def test_a_job_given_back_comes_before_later_ones_even_after_a_delay() -> None:
    story = single()
    worker = Worker(story, story.nodes[0])
    for number in range(3):
        story.add(story.nodes[1], f"{number}")
    job = worker.ask().reply()[0]
    assert worker.call("NACK", job[1], "DELAY", 2) == 1
    asked = worker.ask()
    story.cluster.run(seconds=1)
    assert asked.waits
    assert bodies(asked.reply()) == [b"0"]


def test_keys_are_served_in_parallel_and_each_in_order() -> None:
    story = Story()
    story.new()
    for number in range(3):
        for key in ("a", "b"):
            story.add(story.nodes[0], f"{key}{number}", "GROUP", key)
    first = story.call(story.nodes[0], "GETJOB", "NOHANG", "COUNT", 9, "FROM", "q")
    assert bodies(first) == [b"a0", b"b0"]
    assert story.take(story.nodes[1], 9) == []
    assert story.call(story.nodes[2], "ACKJOB", ids(first)[1]) == 1
    assert story.take(story.nodes[1], 9) == [b"b1"]
    assert story.call(story.nodes[2], "NACK", ids(first)[0]) == 1
    assert story.take(story.nodes[1], 9) == [b"a0"]


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("away_ms", [0, 300, 2500])
def test_the_next_consumer_takes_over_when_the_node_of_the_active_one_starts_again(
    *, leads: bool, away_ms: int
) -> None:
    story = single()
    node = story.leader() if leads else story.followers()[0]
    other = next(one for one in story.nodes if one is not node)
    active = Worker(story, node).ask()
    story.cluster.run(milliseconds=100)
    following = Worker(story, other).ask()
    story.cluster.run(milliseconds=100)
    story.add(other, "job", "RETRY", 1000)
    assert bodies(active.reply()) == [b"job"]
    node.crash()
    story.cluster.run(milliseconds=away_ms)
    node.restart()
    assert bodies(following.reply(within_s=5)) == [b"job"]


def test_the_next_consumer_takes_over_when_a_node_without_replica_dies() -> None:
    story = Story(4)
    story.new("q", "SINGLE", "PREFETCH", 1, "ON", *[node.id for node in story.nodes[:3]])
    node, other = story.nodes[3], story.nodes[0]
    active = Worker(story, node).ask()
    story.cluster.run(milliseconds=100)
    following = Worker(story, other).ask()
    story.cluster.run(milliseconds=100)
    story.add(other, "job", "RETRY", 1000)
    assert bodies(active.reply()) == [b"job"]
    node.crash()
    assert bodies(following.reply(within_s=5)) == [b"job"]


def take_and_acknowledge(worker: Worker) -> bytes:
    job = worker.ask().reply()[0]
    assert worker.call("ACKJOB", job[1]) == 1
    return bytes(job[2])


def test_a_client_finds_its_next_job_at_its_node_after_an_acknowledgement() -> None:
    story = single()
    worker = Worker(story, story.nodes[0])
    for number in range(4):
        story.add(story.nodes[1], f"{number}")
    assert take_and_acknowledge(worker) == b"0"
    story.settle()
    before = story.leader().node.state.counters.value(PROPOSALS)
    asked = worker.ask()
    assert not asked.waits
    assert asked.reply()[0][2] == b"1"
    assert story.leader().node.state.counters.value(PROPOSALS) == before


def test_a_job_that_its_client_does_not_ask_for_goes_back_and_counts_as_no_attempt() -> None:
    story = single()
    a, b, _ = story.nodes
    worker = Worker(story, a)
    for number in range(2):
        story.add(b, f"{number}")
    assert take_and_acknowledge(worker) == b"0"
    story.cluster.run(seconds=1)
    assert story.call(b, "QLEN", "q") == 1
    worker.client.disconnect()
    (job,) = story.call(b, "GETJOB", "WITHCOUNTERS", "FROM", "q")
    assert job[2:] == [b"1", b"nacks", 0, b"additional-deliveries", 0]


def test_a_job_that_waits_for_a_client_that_leaves_goes_to_the_next_one_as_new() -> None:
    story = single()
    a, b, _ = story.nodes
    worker = Worker(story, a)
    for number in range(2):
        story.add(b, f"{number}")
    next_one = story.send(b, "GETJOB", "WITHCOUNTERS", "FROM", "q")
    assert take_and_acknowledge(worker) == b"0"
    story.settle()
    worker.client.disconnect()
    assert next_one.reply()[0][2:] == [b"1", b"nacks", 0, b"additional-deliveries", 0]


def test_a_consumer_that_leaves_while_the_disk_of_the_leader_is_full_leaves_later() -> None:
    """It stayed the active one, and its jobs became dead letters without any client."""
    story = single()
    leader = story.leader()
    other = story.followers()[0]
    gone, next_one = Worker(story, leader), Worker(story, other)
    gone.ask()
    story.cluster.run(seconds=1)
    waiting = next_one.ask()
    story.cluster.run(seconds=1)
    leader.host.disk.fail(disk.APPEND)
    story.send(other, "ADDJOB", "q", "job", 500)
    story.cluster.until(lambda: story.room(leader).exchange.write_refusal != "")
    gone.client.disconnect()
    story.cluster.run(seconds=2)
    leader.host.disk.repair()
    assert bodies(waiting.reply(within_s=10)) == [b"job"]
