"""The commands of clients on ordered queues, at any node."""

from __future__ import annotations

import pytest

from disqued.client import ResponseError
from disqued.ordered.jobids import index_of
from ordered.story import Story, bodies, ids


@pytest.fixture
def story() -> Story:
    story = Story()
    story.new()
    return story


def test_a_queue_is_ordered_on_all_nodes_once_it_is_made(story: Story) -> None:
    story.cluster.run(seconds=1)
    assert [story.call(node, "QTYPE", "q") for node in story.nodes] == [b"ordered"] * 3
    assert [story.call(node, "QTYPE", "other") for node in story.nodes] == [b"jobs"] * 3


def test_jobs_added_at_any_node_are_in_the_order_of_their_adds(story: Story) -> None:
    job_ids = [story.add(node, f"body {number}") for number, node in enumerate(story.nodes * 3)]
    indexes = [index_of(job_id) for job_id in job_ids]
    assert indexes == sorted(indexes)
    assert story.take(story.nodes[1], 20) == [b"body %d" % number for number in range(9)]


def test_a_client_that_waits_gets_the_next_job_at_any_node(story: Story) -> None:
    for node in story.nodes:
        worker = story.send(node, "GETJOB", "FROM", "q")
        story.cluster.run(seconds=1)
        assert worker.waits
        story.add(story.nodes[0], f"for {node.number}")
        assert bodies(worker.reply(within_s=1)) == [b"for %d" % node.number]


def test_getjob_waits_until_its_timeout(story: Story) -> None:
    began_ms = story.cluster.network.now_ms
    assert story.call(story.nodes[2], "GETJOB", "TIMEOUT", 700, "FROM", "q") is None
    assert 700 <= story.cluster.network.now_ms - began_ms < 900


def test_getjob_without_waiting_finds_an_empty_queue(story: Story) -> None:
    assert story.call(story.nodes[2], "GETJOB", "NOHANG", "COUNT", 5, "FROM", "q") is None


def test_getjob_with_count_takes_what_there_is(story: Story) -> None:
    for number in range(5):
        story.add(story.nodes[0], f"{number}")
    assert bodies(story.call(story.nodes[1], "GETJOB", "COUNT", 3, "FROM", "q")) == [b"0", b"1", b"2"]
    assert bodies(story.call(story.nodes[1], "GETJOB", "COUNT", 30, "FROM", "q")) == [b"3", b"4"]


def test_one_getjob_takes_from_queues_of_both_types(story: Story) -> None:
    node = story.nodes[1]
    story.add(node, "ordered job")
    story.add(node, "plain job", queue="plain")
    first = story.call(node, "GETJOB", "COUNT", 1, "FROM", "q", "plain")
    second = story.call(node, "GETJOB", "COUNT", 1, "FROM", "q", "plain")
    assert sorted(bodies(first) + bodies(second)) == [b"ordered job", b"plain job"]


@pytest.mark.parametrize("queue", ["q", "plain"])
def test_a_client_that_waits_in_queues_of_both_types_gets_the_job_of_either(story: Story, queue: str) -> None:
    worker = story.send(story.nodes[2], "GETJOB", "FROM", "plain", "q")
    story.cluster.run(seconds=1)
    story.add(story.nodes[0], "job", queue=queue)
    assert bodies(worker.reply()) == [b"job"]
    story.cluster.run(seconds=1)
    assert worker.waits


def test_a_job_that_comes_when_its_client_has_another_one_is_given_back_uncounted(story: Story) -> None:
    worker = story.send(story.nodes[2], "GETJOB", "FROM", "plain", "q")
    story.cluster.run(seconds=1)
    story.cluster.lose("RAFT", to=story.nodes[2])
    story.nodes[2].admin.send("ADDJOB", "plain", "plain job", 0)
    story.add(story.nodes[0], "ordered job")
    story.cluster.heal()
    assert bodies(worker.reply()) == [b"plain job"]
    jobs = story.call(story.nodes[0], "GETJOB", "WITHCOUNTERS", "FROM", "q")
    assert jobs[0][2:] == [b"ordered job", b"nacks", 0, b"additional-deliveries", 0]


def test_an_acknowledged_job_is_gone_and_a_job_given_back_keeps_its_place(story: Story) -> None:
    for number in range(4):
        story.add(story.nodes[0], f"{number}")
    jobs = story.call(story.nodes[1], "GETJOB", "COUNT", 2, "FROM", "q")
    assert story.call(story.nodes[2], "ACKJOB", ids(jobs)[0]) == 1
    assert story.call(story.nodes[2], "NACK", ids(jobs)[1]) == 1
    again = story.call(story.nodes[0], "GETJOB", "COUNT", 9, "WITHCOUNTERS", "FROM", "q")
    assert [(job[2], job[4]) for job in again] == [(b"1", 1), (b"2", 0), (b"3", 0)]


def test_one_acknowledgement_may_name_jobs_of_both_types(story: Story) -> None:
    node = story.nodes[0]
    job_ids = [story.add(node, "a"), story.add(node, "b", queue="plain")]
    assert story.call(node, "ACKJOB", *job_ids, b"D-00000001-" + b"A" * 24 + b"-05a1") == 2
    assert story.call(node, "QLEN", "q") == 0
    assert story.call(node, "QLEN", "plain") == 0


def test_a_stale_claim_is_refused_at_every_node(story: Story) -> None:
    story.add(story.nodes[0], "job", "RETRY", 1)
    first = story.call(story.nodes[0], "GETJOB", "WITHCLAIM", "FROM", "q")[0]
    second = story.call(story.nodes[1], "GETJOB", "WITHCLAIM", "FROM", "q")[0]
    assert second[1] == first[1]
    assert second[4] > first[4]
    for node in story.nodes:
        refused = story.call(node, "ACKJOB", first[1], "CLAIM", first[4])
        assert isinstance(refused, ResponseError)
        assert str(refused).startswith("STALE")
    assert story.call(story.nodes[2], "ACKJOB", second[1], "CLAIM", second[4]) == 1


def test_a_worker_that_says_it_works_keeps_its_job(story: Story) -> None:
    story.add(story.nodes[0], "job", "RETRY", 2)
    job = story.call(story.nodes[1], "GETJOB", "FROM", "q")[0]
    for _ in range(5):
        story.cluster.run(seconds=1.5)
        assert story.call(story.nodes[2], "WORKING", job[1]) == 2
    assert story.take(story.nodes[0]) == []
    story.cluster.run(seconds=3)
    assert story.take(story.nodes[0]) == [b"job"]


def test_a_key_makes_an_add_idempotent_at_all_nodes(story: Story) -> None:
    job_id = story.add(story.nodes[0], "job", "KEY", "k")
    assert story.add(story.nodes[1], "job", "KEY", "k") == job_id
    assert story.call(story.nodes[2], "QLEN", "q") == 1


def test_questions_are_answered_at_any_node(story: Story) -> None:
    job_ids = [story.add(story.nodes[0], f"{number}") for number in range(3)]
    for node in story.nodes:
        assert story.call(node, "QLEN", "q") == 3
        assert ids(story.call(node, "QPEEK", "q", 2)) == job_ids[:2]
        assert ids(story.call(node, "QPEEK", "q", -1)) == job_ids[2:]
        shown = story.call(node, "SHOW", job_ids[1])
        assert shown[shown.index(b"body") + 1] == b"1"
        assert story.stat(node)[b"jobs-in"] == 3


def test_a_paused_queue_takes_and_gives_nothing_at_all_nodes(story: Story) -> None:
    story.add(story.nodes[0], "job")
    assert story.call(story.nodes[1], "PAUSE", "q", "all") == b"all"
    assert str(story.call(story.nodes[2], "ADDJOB", "q", "more", 0)).startswith("PAUSED")
    assert story.take(story.nodes[0]) == []
    assert story.call(story.nodes[2], "PAUSE", "q", "state") == b"all"
    assert story.call(story.nodes[2], "PAUSE", "q", "none") == b"none"
    assert story.take(story.nodes[0]) == [b"job"]


def test_deljob_ends_a_job(story: Story) -> None:
    job_id = story.add(story.nodes[0], "job")
    assert story.call(story.nodes[2], "DELJOB", job_id) == 1
    assert story.call(story.nodes[1], "QLEN", "q") == 0


def test_maxlen_refuses_a_job(story: Story) -> None:
    story.add(story.nodes[0], "job", "MAXLEN", 1)
    assert str(story.call(story.nodes[1], "ADDJOB", "q", "more", 0, "MAXLEN", 1)).startswith("MAXLEN")


@pytest.mark.parametrize(
    "options",
    [("ASYNC",), ("SYNC", 2), ("PRIORITY", 3), ("AFTER", "D-" + "0" * 8 + "-" + "A" * 24 + "-0001"), ("REPLICATE", 4)],
)
def test_options_that_ordered_queues_do_not_have_are_refused_with_the_reason(
    story: Story, options: tuple[str | int, ...]
) -> None:
    refused = story.call(story.nodes[0], "ADDJOB", "q", "job", 0, *options)
    assert isinstance(refused, ResponseError)
    assert str(options[0]) in str(refused)
    assert story.call(story.nodes[0], "QLEN", "q") == 0


def test_a_queue_with_jobs_is_dropped_with_force_only(story: Story) -> None:
    story.add(story.nodes[0], "job")
    assert "1 unfinished jobs" in str(story.call(story.nodes[1], "QDROP", "q"))
    assert story.call(story.nodes[1], "QDROP", "q", "FORCE") == b"OK"
    story.cluster.run(seconds=1)
    assert [story.call(node, "QTYPE", "q") for node in story.nodes] == [b"jobs"] * 3
    assert all(list(story.replicas(node)) == [0] for node in story.nodes)


def test_adds_of_one_client_that_does_not_wait_for_replies_keep_their_order(story: Story) -> None:
    client = story.nodes[1].client()
    for number in range(30):
        client.send("ADDJOB", "q", f"{number}", 0)
    story.cluster.run(seconds=1)
    added = client.replies()
    assert len(added) == 30
    assert ids(story.call(story.nodes[0], "GETJOB", "COUNT", 99, "FROM", "q")) == added
