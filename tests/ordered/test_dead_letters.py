"""Dead letters of ordered queues, in queues of jobs and in ordered queues."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from disqued.testing.cluster import Member
from ordered.story import Story, bodies, ids


@pytest.fixture
def story() -> Iterator[Story]:
    story = Story()
    story.new()
    yield story
    story.settle()


def configure(story: Story, *words: bytes | str | int, name: str = "q") -> None:
    """QCONF SET, and wait until the machines know."""
    assert story.call(story.nodes[0], "QCONF", name, "SET", *words) == b"OK"
    story.cluster.run(milliseconds=500)


def fail(story: Story, node: Member, *, times: int = 1, queue: str = "q") -> bytes:
    """Fetch the next job, and give it back, so many times; returns its ID."""
    for _ in range(times):
        job_id = ids(story.call(node, "GETJOB", "FROM", queue))[0]
        assert story.call(node, "NACK", job_id, "REASON", "no luck") == 1
    return job_id


def dead(story: Story, node: Member, queue: str = "q.dead", *, count: int = 1) -> Any:
    """So many jobs of a queue of dead letters, wherever they are."""
    found: list[Any] = []
    while len(found) < count:
        jobs = story.call(node, "GETJOB", "TIMEOUT", 10_000, "COUNT", count, "WITHCOUNTERS", "FROM", queue)
        assert jobs, f"{len(found)} of {count}"
        found += jobs
    return found


def length(story: Story, queue: str = "q.dead") -> int:
    """How many jobs wait in a queue of jobs, on all nodes."""
    return sum(story.call(node, "QLEN", queue) for node in story.nodes if node.running)


def shown(story: Story, node: Member, job_id: bytes) -> dict[bytes, Any]:
    """SHOW by name."""
    fields = story.call(node, "SHOW", job_id)
    return dict(zip(fields[::2], fields[1::2], strict=True))


def test_a_job_that_failed_too_often_is_a_dead_letter_that_looks_like_any_other(story: Story) -> None:
    configure(story, "limit", 2, "dead-ttl", 5000)
    story.add(story.nodes[0], "job", "META", "about it", "RETRY", 60)
    job_id = fail(story, story.nodes[1], times=2)
    letter = dead(story, story.nodes[2])[0]
    fields = shown(story, story.nodes[2], letter[1])
    assert letter[2:] == [b"job", b"nacks", 0, b"additional-deliveries", 0]
    assert fields[b"queue"] == b"q.dead"
    assert fields[b"origin-id"] == job_id
    assert fields[b"origin-queue"] == b"q"
    assert fields[b"reason"] == b"no luck"
    assert (fields[b"moves"], fields[b"attempts"], fields[b"retry"]) == (1, 2, 60)
    assert fields[b"meta"] == b"about it"
    assert fields[b"dead-since"] > 0
    assert 4900 < fields[b"ttl"] <= 5000
    assert story.stat(story.nodes[0])[b"len"] == 0
    assert story.call(story.nodes[0], "ACKJOB", letter[1]) == 1


def test_dead_letters_have_as_many_copies_as_the_queue_has_replicas(story: Story) -> None:
    configure(story, "limit", 1)
    story.add(story.nodes[0], "job")
    fail(story, story.nodes[0])
    story.cluster.run(seconds=2)
    (letter,) = dead(story, story.nodes[0])
    assert len(story.cluster.copies(letter[1])) == 3


def test_a_rejected_job_is_dead_at_once(story: Story) -> None:
    story.add(story.nodes[0], "job")
    job_id = ids(story.call(story.nodes[1], "GETJOB", "FROM", "q"))[0]
    assert story.call(story.nodes[2], "NACK", job_id, "REASON", "poison", "DEAD") == 1
    letter = dead(story, story.nodes[0])[0]
    assert shown(story, story.nodes[0], letter[1])[b"reason"] == b"poison"


def test_a_job_whose_life_ends_is_a_dead_letter_if_its_queue_wants_that(story: Story) -> None:
    configure(story, "dead-expired", "yes")
    story.add(story.nodes[0], "job", "TTL", 3)
    story.cluster.run(seconds=5)
    letter = dead(story, story.nodes[1])[0]
    assert shown(story, story.nodes[1], letter[1])[b"reason"] == b"expired unacknowledged"


def test_dead_drop_keeps_no_dead_letter(story: Story) -> None:
    configure(story, "limit", 1, "dead", "drop")
    story.add(story.nodes[0], "job")
    fail(story, story.nodes[0])
    story.cluster.run(seconds=2)
    assert story.stat(story.nodes[0])[b"len"] == 0
    assert story.call(story.nodes[1], "QLEN", "q.dead") == 0


def test_dead_letters_go_to_the_ordered_queue_that_dead_names_in_order(story: Story) -> None:
    story.new("graves")
    configure(story, "limit", 1, "dead", "graves")
    for number in range(9):
        story.add(story.nodes[0], f"{number}", "GROUP", "g")
    for number in range(9):
        fail(story, story.nodes[number % 3])
    story.cluster.run(seconds=2)
    assert story.take(story.nodes[1], 99, queue="graves") == [b"0"]
    letter = story.call(story.nodes[1], "QPEEK", "graves", 99)
    assert bodies(letter) == [b"%d" % number for number in range(1, 9)]
    fields = shown(story, story.nodes[0], letter[0][1])
    assert (fields[b"origin-queue"], fields[b"reason"], fields[b"group"]) == (b"q", b"no luck", b"g")
    story.settle("graves")


def test_a_new_leader_makes_the_dead_letters_that_the_old_one_did_not(story: Story) -> None:
    configure(story, "limit", 1)
    configure(story, "pause", "in", name="q.dead")
    for number in range(5):
        story.add(story.nodes[0], f"{number}")
    for _ in range(5):
        fail(story, story.nodes[1])
    story.cluster.run(seconds=1)
    leader = story.leader()
    leader.crash()
    other = next(node for node in story.nodes if node.running)
    assert story.leader() is not leader
    assert story.call(other, "QCONF", "q.dead", "SET", "pause", "none") == b"OK"
    story.cluster.run(seconds=12)
    assert sorted(bodies(dead(story, other, count=5))) == [b"%d" % number for number in range(5)]
    story.cluster.run(seconds=1)
    assert story.stat(other)[b"moving"] == 0
    leader.restart()


@pytest.mark.parametrize("ordered", [False, True])
def test_a_leader_that_dies_after_the_dead_letter_was_added_makes_no_second_one(story: Story, ordered: bool) -> None:
    configure(story, "limit", 1)
    if ordered:
        story.new("q.dead")
    story.add(story.nodes[0], "job", "RETRY", 3)
    job_id = ids(story.call(story.nodes[0], "GETJOB", "FROM", "q"))[0]
    leader = story.leader()
    others = story.followers()
    story.call(others[0], "NACK", job_id)
    story.cluster.until(lambda: length(story) > 0, within_s=5)
    leader.crash()
    story.leader()
    story.cluster.run(seconds=12)
    leader.restart()
    story.cluster.run(seconds=5)
    assert length(story) == (3 if ordered else 1)


@pytest.mark.slow
def test_a_move_that_is_not_complete_for_an_hour_is_logged_and_enqueue_takes_the_job_back(story: Story) -> None:
    configure(story, "pause", "in", name="q.dead")
    story.add(story.nodes[0], "job")
    job_id = ids(story.call(story.nodes[1], "GETJOB", "FROM", "q"))[0]
    assert story.call(story.nodes[2], "NACK", job_id, "DEAD") == 1
    for _ in range(64):
        story.cluster.run(seconds=60)
    warnings = [text for node in story.nodes for _, text in node.host.log_lines if "for an hour" in text]
    assert len(warnings) == 1
    assert story.call(story.nodes[1], "ENQUEUE", job_id) == 1
    assert story.take(story.nodes[2]) == [b"job"]
    assert story.stat(story.nodes[0])[b"moving"] == 0


@pytest.mark.slow
def test_a_move_to_an_ordered_queue_without_a_leader_stays_parked_when_its_key_may_be_forgotten(story: Story) -> None:
    story.new("graves", "REPLICAS", 1, "ON", story.followers()[0].id)
    configure(story, "dead", "graves")
    story.add(story.leader(), "job")
    job_id = ids(story.call(story.leader(), "GETJOB", "FROM", "q"))[0]
    gone = story.leader("graves")
    gone.crash()
    node = story.leader()
    assert story.call(node, "NACK", job_id, "DEAD") == 1
    for _ in range(64):
        story.cluster.run(seconds=60)
    gone.restart()
    story.cluster.run(seconds=30)
    assert story.call(node, "QLEN", "graves") == 0
    assert story.stat(node)[b"moving"] == 1
    assert story.call(node, "DELJOB", job_id) == 1


def test_a_queue_that_is_dropped_leaves_no_moves_behind(story: Story) -> None:
    story.new("other")
    configure(story, "pause", "in", name="other.dead")
    job_id = story.add(story.nodes[0], "job", queue="other")
    assert story.call(story.nodes[1], "NACK", job_id, "DEAD") == 1
    story.cluster.run(seconds=1)
    assert story.call(story.nodes[1], "QDROP", "other", "FORCE") == b"OK"
    story.cluster.run(seconds=2)
    assert all(story.room(node).leading.under_way == 0 for node in story.nodes)


@pytest.mark.parametrize("seed", range(4))
def test_each_job_has_one_dead_letter_although_leaders_die_at_any_moment(story: Story, seed: int) -> None:
    chance = random.Random(seed)
    if seed % 2:
        story.new("q.dead")
    job_ids = [story.add(story.nodes[number % 3], f"{number}", "RETRY", 5) for number in range(30)]
    for number, job_id in enumerate(job_ids):
        story.send(chance.choice([node for node in story.nodes if node.running]), "NACK", job_id, "DEAD")
        if number % 7 == 3:
            leader = story.leader()
            leader.crash()
            story.cluster.run(milliseconds=chance.randrange(50, 3000))
            leader.restart()
        story.cluster.run(milliseconds=chance.randrange(5, 200))
    story.cluster.run(seconds=20)
    for job_id in job_ids:  # answers may have been lost with a leader
        story.call(story.nodes[0], "NACK", job_id, "DEAD")
    story.cluster.run(seconds=30)
    found: Counter[bytes] = Counter()
    for _ in range(60):
        jobs = story.call(story.nodes[chance.randrange(3)], "GETJOB", "NOHANG", "COUNT", 50, "FROM", "q.dead")
        for letter in jobs or []:
            found[letter[2]] += 1
            story.call(story.nodes[0], "ACKJOB", letter[1])
        story.cluster.run(seconds=1)
    assert found == {b"%d" % number: 1 for number in range(30)}
    assert story.stat(story.nodes[0])[b"moving"] == 0
