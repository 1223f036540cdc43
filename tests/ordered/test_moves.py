"""MOVEJOB, REDRIVE and QPURGE of ordered queues, and jobs that come under the wrong type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from disqued.client import ResponseError
from ordered.story import Story, bodies, ids


@pytest.fixture
def story() -> Iterator[Story]:
    story = Story()
    story.new()
    story.cluster.run(seconds=1)
    yield story
    story.settle()


def wait_for(story: Story, queue: str, count: int, *, node: int = 1) -> list[Any]:
    """So many jobs of a queue of jobs, wherever they are."""
    found: list[Any] = []
    while len(found) < count:
        jobs = story.call(story.nodes[node], "GETJOB", "TIMEOUT", 10_000, "COUNT", count, "FROM", queue)
        assert jobs, f"{len(found)} of {count}"
        found += jobs
    return found


def shown(story: Story, job_id: bytes, node: int = 0) -> dict[bytes, Any]:
    """SHOW by name."""
    fields = story.call(story.nodes[node], "SHOW", job_id)
    return dict(zip(fields[::2], fields[1::2], strict=True))


def test_movejob_moves_a_job_to_a_queue_of_jobs(story: Story) -> None:
    job_id = story.add(story.nodes[0], "job", "META", "m")
    assert story.call(story.nodes[1], "MOVEJOB", job_id, "TO", "plain") == 1
    moved_id = ids(wait_for(story, "plain", 1))[0]
    fields = shown(story, moved_id, 1)
    assert (fields[b"origin-id"], fields[b"origin-queue"], fields[b"moves"]) == (job_id, b"q", 1)
    assert fields[b"meta"] == b"m"
    assert b"dead-since" not in fields
    assert story.call(story.nodes[2], "QLEN", "q") == 0


def test_movejob_moves_a_job_into_an_ordered_queue(story: Story) -> None:
    job_id = story.add(story.nodes[0], "job", "META", "m", "PRIORITY", 3, queue="plain")
    assert story.call(story.nodes[0], "MOVEJOB", job_id, "TO", "q") == 1
    moved_id = ids(story.call(story.nodes[2], "QPEEK", "q", 1))[0]
    fields = shown(story, moved_id)
    assert (fields[b"origin-id"], fields[b"origin-queue"], fields[b"moves"]) == (job_id, b"plain", 1)
    assert (fields[b"meta"], fields[b"priority"]) == (b"m", 3)
    assert story.take(story.nodes[1]) == [b"job"]
    assert story.call(story.nodes[0], "QLEN", "plain") == 0


def test_movejob_moves_jobs_between_ordered_queues_in_order(story: Story) -> None:
    story.new("other")
    job_ids = [story.add(story.nodes[0], f"{number}", "GROUP", f"g{number % 2}") for number in range(8)]
    assert story.call(story.nodes[2], "MOVEJOB", *job_ids, "TO", "other") == 8
    peeked = story.call(story.nodes[1], "QPEEK", "other", 99)
    assert bodies(peeked) == [b"%d" % number for number in range(8)]
    assert shown(story, ids(peeked)[3])[b"group"] == b"g1"
    assert story.stat(story.nodes[1])[b"len"] == 0
    story.settle("other")


def test_movejob_keeps_counters_if_asked_to(story: Story) -> None:
    job_id = story.add(story.nodes[0], "job")
    for _ in range(2):
        story.call(story.nodes[1], "GETJOB", "FROM", "q")
        story.call(story.nodes[1], "NACK", job_id)
    assert story.call(story.nodes[1], "MOVEJOB", job_id, "TO", "plain", "UNCOUNTED") == 1
    fields = shown(story, ids(wait_for(story, "plain", 1))[0], 1)
    assert (fields[b"nacks"], fields[b"attempts"]) == (2, 2)


def test_a_job_that_a_consumer_has_is_not_moved_and_one_is_not_moved_to_its_own_queue(story: Story) -> None:
    job_id = story.add(story.nodes[0], "job")
    refused = story.call(story.nodes[1], "MOVEJOB", job_id, "TO", "q")
    assert str(refused) == "ERR The job is in that queue already"
    story.call(story.nodes[1], "GETJOB", "FROM", "q")
    assert story.call(story.nodes[1], "MOVEJOB", job_id, "TO", "plain") == 0
    assert story.call(story.nodes[1], "ACKJOB", job_id) == 1


def test_movejob_takes_jobs_of_one_type(story: Story) -> None:
    job_ids = [story.add(story.nodes[0], "a"), story.add(story.nodes[0], "b", queue="plain")]
    refused = story.call(story.nodes[0], "MOVEJOB", *job_ids, "TO", "other")
    assert isinstance(refused, ResponseError)
    assert "use several requests" in str(refused)


def test_an_at_most_once_job_is_moved_once_in_both_directions(story: Story) -> None:
    job_id = story.add(story.nodes[0], "job", "RETRY", 0)
    assert story.call(story.nodes[1], "MOVEJOB", job_id, "TO", "plain") == 1
    story.cluster.run(seconds=1)
    (moved_id,) = [found for node in story.nodes for found in ids(story.call(node, "QPEEK", "plain", 9))]
    back = [story.call(node, "MOVEJOB", moved_id, "TO", "q") for node in story.nodes]
    assert sum(back) == 1
    story.cluster.run(seconds=1)
    assert story.take(story.nodes[2], 9) == [b"job"]
    story.cluster.run(seconds=5)
    assert [story.call(node, "QLEN", "plain") for node in story.nodes] == [0, 0, 0]


def test_dead_letters_of_jobs_can_be_in_an_ordered_queue(story: Story) -> None:
    assert story.call(story.nodes[0], "QCONF", "plain", "SET", "limit", 1, "dead", "q") == b"OK"
    story.cluster.run(seconds=1)
    story.add(story.nodes[0], "job", queue="plain")
    job_id = ids(wait_for(story, "plain", 1, node=0))[0]
    assert story.call(story.nodes[0], "NACK", job_id) == 1
    story.cluster.run(seconds=1)
    letter_id = ids(story.call(story.nodes[1], "QPEEK", "q", 1))[0]
    fields = shown(story, letter_id)
    assert (fields[b"origin-queue"], fields[b"reason"]) == (b"plain", b"1 failed attempts")
    assert fields[b"dead-since"] > 0
    assert story.stat(story.nodes[0])[b"dead"] == 1


def test_a_move_into_an_ordered_queue_waits_for_its_leader_and_is_made_once(story: Story) -> None:
    story.cluster.run(seconds=2)
    leader = story.leader()
    node = story.followers()[0]
    job_id = story.add(node, "job", queue="plain")
    leader.crash()
    moving = story.send(node, "MOVEJOB", job_id, "TO", "q")
    assert moving.reply(within_s=20) == 1
    story.cluster.run(seconds=20)
    leader.restart()
    story.cluster.run(seconds=5)
    assert story.take(node, 9) == [b"job"]
    assert [story.call(one, "QLEN", "plain") for one in story.nodes] == [0, 0, 0]


def bury(story: Story, count: int) -> list[bytes]:
    """Make so many dead letters, of jobs with the bodies 0, 1, and so on; returns the IDs of the jobs."""
    job_ids = [story.add(story.nodes[0], f"{number}", "GROUP", f"g{number % 2}") for number in range(count)]
    for job_id in job_ids:
        assert story.call(story.nodes[1], "NACK", job_id, "DEAD", "REASON", "bad") == 1
    story.cluster.run(seconds=2)
    return job_ids


def test_dead_letters_in_a_queue_of_jobs_are_redriven_into_the_ordered_queue_with_their_groups(story: Story) -> None:
    job_ids = bury(story, 6)
    assert story.call(story.nodes[2], "QLEN", "q") == 0
    assert story.call(story.nodes[2], "REDRIVE", "q.dead") == b"started"
    story.cluster.run(seconds=3)
    peeked = story.call(story.nodes[1], "QPEEK", "q", 99)
    assert sorted(bodies(peeked)) == [b"%d" % number for number in range(6)]
    fields = shown(story, ids(peeked)[0])
    first = int(bodies(peeked)[0])
    assert (fields[b"origin-id"], fields[b"moves"], fields[b"group"]) == (job_ids[first], 2, b"g%d" % (first % 2))
    assert b"dead-since" not in fields
    assert sum(story.call(node, "QLEN", "q.dead") for node in story.nodes) == 0


def test_dead_letters_in_an_ordered_queue_are_redriven_in_order(story: Story) -> None:
    story.new("q.dead")
    bury(story, 6)
    assert story.call(story.nodes[2], "QLEN", "q.dead") == 6
    assert story.call(story.nodes[2], "REDRIVE", "q.dead", "REASON", "good*") == b"started"
    story.cluster.run(seconds=2)
    assert story.call(story.nodes[2], "QLEN", "q.dead") == 6
    assert story.call(story.nodes[2], "REDRIVE", "q.dead", "COUNT", 2) == b"started"
    story.cluster.run(seconds=2)
    assert story.call(story.nodes[2], "QLEN", "q.dead") == 4
    assert story.call(story.nodes[2], "REDRIVE", "q.dead", "REASON", "b*") == b"started"
    story.cluster.run(seconds=3)
    status = story.call(story.nodes[2], "REDRIVE", "q.dead", "STATUS")
    assert status[:8] == [b"state", b"done", b"moved", 4, b"left", 0, b"failed", 0]
    peeked = story.call(story.nodes[1], "QPEEK", "q", 99)
    assert bodies(peeked) == [b"%d" % number for number in range(6)]
    fields = shown(story, ids(peeked)[5])
    assert (fields[b"moves"], fields[b"group"], fields[b"reason"]) == (2, b"g1", b"bad")
    assert b"dead-since" not in fields
    story.settle("q.dead")


def test_a_redrive_can_be_cancelled_and_keeps_its_rate(story: Story) -> None:
    story.new("q.dead")
    bury(story, 20)
    assert story.call(story.nodes[0], "REDRIVE", "q.dead", "TO", "plain", "RATE", 4) == b"started"
    assert "is running" in str(story.call(story.nodes[0], "REDRIVE", "q.dead"))
    story.cluster.run(seconds=2)
    assert story.call(story.nodes[0], "REDRIVE", "q.dead", "CANCEL") == b"OK"
    moved = 20 - story.call(story.nodes[0], "QLEN", "q.dead")
    assert 5 <= moved <= 9
    story.cluster.run(seconds=2)
    assert story.call(story.nodes[0], "QLEN", "q.dead") == 20 - moved
    assert story.call(story.nodes[0], "REDRIVE", "q.dead", "STATUS")[1] == b"cancelled"


def test_jobs_that_do_not_say_where_they_come_from_are_not_redriven(story: Story) -> None:
    story.add(story.nodes[0], "job")
    assert story.call(story.nodes[1], "REDRIVE", "q") == b"started"
    story.cluster.run(seconds=1)
    assert story.call(story.nodes[1], "REDRIVE", "q", "STATUS")[:8] == [
        b"state",
        b"done",
        b"moved",
        0,
        b"left",
        0,
        b"failed",
        1,
    ]
    assert story.take(story.nodes[2]) == [b"job"]


def test_purge_deletes_waiting_jobs_and_leaves_those_of_consumers(story: Story) -> None:
    for number in range(5):
        story.add(story.nodes[0], f"{number}")
    story.add(story.nodes[0], "later", "DELAY", 60)
    taken = story.call(story.nodes[1], "GETJOB", "FROM", "q")
    assert story.call(story.nodes[2], "QPURGE", "q") == [b"deleted", 5, b"nodes-answered", 3, b"nodes-known", 3]
    assert story.call(story.nodes[1], "QLEN", "q") == 0
    assert story.call(story.nodes[1], "ACKJOB", ids(taken)[0]) == 1


def test_purge_of_many_jobs_is_complete_and_spares_those_of_other_states(story: Story) -> None:
    client = story.nodes[0].client()
    for _ in range(45):
        for number in range(100):
            client.send("ADDJOB", "q", f"{number}", 0)
        story.cluster.run(milliseconds=200)
        assert len(client.replies()) == 100
    assert story.call(story.nodes[1], "QPURGE", "q", "STATE", "delayed", "STATE", "dead")[1] == 0
    assert story.call(story.nodes[1], "QPURGE", "q", "STATE", "queued")[1] == 4500
    assert story.call(story.nodes[1], "QLEN", "q") == 0


def test_qcount_counts_by_phase(story: Story) -> None:
    story.add(story.nodes[0], "kept", "RETAIN", 100)
    job = story.call(story.nodes[1], "GETJOB", "FROM", "q")
    story.call(story.nodes[1], "ACKJOB", ids(job)[0])
    for body in ("a", "b"):
        story.add(story.nodes[0], body)
    story.add(story.nodes[0], "later", "DELAY", 60)
    story.call(story.nodes[1], "GETJOB", "FROM", "q")
    counted = story.call(story.nodes[2], "QCOUNT", "q")
    assert dict(zip(counted[::2], counted[1::2], strict=True)) == {
        b"queued": 1,
        b"leased": 1,
        b"delayed": 1,
        b"dead": 0,
        b"held": 0,
        b"records": 1,
        b"nodes-answered": 3,
        b"nodes-known": 3,
    }


def test_jobs_under_the_name_of_an_ordered_queue_are_moved_into_it() -> None:
    story = Story(4)
    away = story.nodes[3]
    story.cluster.partition([away], story.nodes[:3])
    job_ids = [story.add(away, f"{number}", "REPLICATE", 1, queue="q") for number in range(5)]
    job_ids.append(story.add(away, "later", "REPLICATE", 1, "DELAY", 3, queue="q"))
    story.new()
    story.add(story.nodes[0], "ordered")
    story.cluster.heal()
    story.cluster.run(seconds=2)
    assert story.take(story.nodes[2], 9) == [b"ordered", *[b"%d" % number for number in range(5)]]
    story.cluster.run(seconds=4)
    assert story.take(story.nodes[1], 9) == [b"later"]
    assert story.call(away, "RESULT", job_ids[0])[0] == b"waiting"
    assert [story.cluster.copies(job_id, "queued") for job_id in job_ids] == [[]] * 6
    warnings = [text for _, text in away.host.log_lines if "under the name of an ordered queue" in text]
    assert len(warnings) == 1
    story.settle()
