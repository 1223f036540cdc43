"""WAITJOB and RESULT for jobs of ordered queues, at any node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from disqued.client import ResponseError
from ordered.story import Story


@pytest.fixture
def story() -> Iterator[Story]:
    story = Story(4)
    story.new()
    story.cluster.run(seconds=1)  # until the node without a replica knows the queue
    yield story
    story.settle()


def test_the_result_of_a_job_is_known_at_every_node(story: Story) -> None:
    job_id = story.add(story.nodes[0], "job", "RETAIN", 60)
    job = story.call(story.nodes[3], "GETJOB", "WITHCLAIM", "FROM", "q")[0]
    assert story.call(story.nodes[1], "ACKJOB", job_id, "CLAIM", job[4], "RESULT", "42") == 1
    for node in story.nodes:
        outcome, ended_ms, claim, result = story.call(node, "RESULT", job_id)
        assert (outcome, claim, result) == (b"done", job[4], b"42")
        assert 0 < ended_ms <= story.cluster.network.now_ms


def test_nobody_knows_the_end_of_a_job_without_retain_or_a_waiter(story: Story) -> None:
    job_id = story.add(story.nodes[0], "job")
    assert story.call(story.nodes[0], "RESULT", job_id)[0] == b"waiting"
    story.cluster.run(seconds=60)
    story.call(story.nodes[3], "GETJOB", "FROM", "q")
    refused = story.call(story.nodes[1], "ACKJOB", job_id, "RESULT", "42")
    assert isinstance(refused, ResponseError)
    assert story.call(story.nodes[1], "ACKJOB", job_id) == 1
    assert story.call(story.nodes[2], "RESULT", job_id) is None


@pytest.mark.parametrize("waits_at", [0, 1, 2, 3])
def test_waitjob_ends_with_the_acknowledgement_and_gets_the_result_without_retain(story: Story, waits_at: int) -> None:
    job_id = story.add(story.nodes[0], "job")
    waiter = story.send(story.nodes[waits_at], "WAITJOB", job_id, "WITHRESULT", "TIMEOUT", 60_000)
    story.cluster.run(seconds=3)
    assert waiter.waits
    story.call(story.nodes[3], "GETJOB", "FROM", "q")
    assert story.call(story.nodes[3], "ACKJOB", job_id, "RESULT", "42") == 1
    assert waiter.reply(within_s=2) == [[job_id, b"done", b"42"]]


def test_one_waitjob_may_name_jobs_of_both_types(story: Story) -> None:
    node = story.nodes[3]
    ordered_id = story.add(node, "a")
    plain_id = story.add(node, "b", queue="plain")
    waiter = story.send(node, "WAITJOB", ordered_id, plain_id, "TIMEOUT", 60_000)
    assert story.call(story.nodes[0], "ACKJOB", ordered_id) == 1
    story.cluster.run(seconds=2)
    assert waiter.waits
    assert story.call(story.nodes[0], "ACKJOB", plain_id) == 1
    assert waiter.reply(within_s=5) == [[ordered_id, b"done"], [plain_id, b"done"]]


@pytest.mark.parametrize(("words", "outcome"), [(("DELJOB",), b"deleted"), ((), b"expired")])
def test_waitjob_tells_that_a_job_was_deleted_or_expired(story: Story, words: tuple[str], outcome: bytes) -> None:
    job_id = story.add(story.nodes[0], "job", "TTL", 5)
    waiter = story.send(story.nodes[3], "WAITJOB", job_id, "TIMEOUT", 60_000)
    story.cluster.run(seconds=1)
    if words:
        story.call(story.nodes[1], *words, job_id)
    assert waiter.reply(within_s=10) == [[job_id, outcome]]


def test_waitjob_ends_after_its_timeout(story: Story) -> None:
    job_id = story.add(story.nodes[0], "job")
    assert story.call(story.nodes[1], "WAITJOB", job_id, "TIMEOUT", 500) is None


@pytest.mark.parametrize("ordered", [False, True])
def test_waitjob_for_the_first_id_knows_of_the_dead_letter(story: Story, ordered: bool) -> None:
    if ordered:
        story.new("q.dead")
    job_id = story.add(story.nodes[0], "job")
    waiter = story.send(story.nodes[3], "WAITJOB", job_id, "TIMEOUT", 60_000)
    story.call(story.nodes[1], "GETJOB", "FROM", "q")
    assert story.call(story.nodes[2], "NACK", job_id, "DEAD") == 1
    assert waiter.reply(within_s=5) == [[job_id, b"dead"]]


def test_a_waiter_learns_the_end_although_the_leader_dies(story: Story) -> None:
    job_id = story.add(story.nodes[3], "job")
    leader = story.leader()
    waiter = story.send(story.nodes[3], "WAITJOB", job_id, "TIMEOUT", 120_000)
    story.cluster.run(seconds=1)
    leader.crash()
    assert story.call(story.nodes[3], "ACKJOB", job_id) == 1
    assert waiter.reply(within_s=40) == [[job_id, b"done"]]
    leader.restart()


def test_a_job_may_depend_on_one_of_an_ordered_queue(story: Story) -> None:
    parent_id = story.add(story.nodes[0], "parent")
    assert isinstance(story.add(story.nodes[3], "child", "AFTER", parent_id, queue="plain"), bytes)
    worker = story.send(story.nodes[1], "GETJOB", "FROM", "plain")
    story.cluster.run(seconds=2)
    assert worker.waits
    assert story.call(story.nodes[2], "ACKJOB", parent_id) == 1
    assert worker.reply(within_s=10)[0][2] == b"child"
