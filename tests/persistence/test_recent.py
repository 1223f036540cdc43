"""Keys after a restart: a repeated ADDJOB finds the job of the first one, whose reply was lost."""

from __future__ import annotations

import random

import pytest

from disqued.core.jobs.job import Job
from disqued.persistence.recent import MAX_KEPT, Recent
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode
from persistence.samples import make_job
from support.logging_node import config, logging_node

NOW_MS = 1_800_000_100_000


def back(node: LocalNode, *, away_s: int = 0) -> LocalClient:
    """Kill the node, start it again after a time, and return a client of the new process."""
    node.crash()
    node.host.now_ms += away_s * 1000
    node.restart()
    return node.client()


def remembered(node: LocalNode) -> int:
    return int(node.node.state.lifecycle.keys.count)


def put_on_disk(node: LocalNode) -> None:
    """Rewrite the file."""
    node.client().call("BGREWRITEAOF")
    node.run(seconds=1)


@pytest.fixture
def node() -> LocalNode:
    return logging_node()


@pytest.mark.parametrize("rewritten", [False, True])
@pytest.mark.parametrize("taken", [False, True])
def test_the_same_key_finds_its_job_after_a_restart(node: LocalNode, rewritten: bool, taken: bool) -> None:
    client = node.client()
    job_id, other = client.add("mail", "body", "KEY", "k"), client.add("mail", "body")
    if taken:
        assert client.take("mail", count=2) == [job_id, other]
    if rewritten:
        put_on_disk(node)

    client = back(node)
    assert client.add("mail", "body", "KEY", "k") == job_id
    assert client.add("mail", "body") != other
    assert client.add("post", "body", "KEY", "k") != job_id


def test_a_key_is_known_for_the_default_window_after_a_restart(node: LocalNode) -> None:
    job_id = node.client().add("mail", "body", "KEY", "k", "WINDOW", 600)
    client = back(node)
    node.run(seconds=299)
    assert client.add("mail", "body", "KEY", "k", "WINDOW", 600) == job_id
    node.run(seconds=1, milliseconds=20)
    assert remembered(node) == 0
    assert client.add("mail", "body", "KEY", "k", "WINDOW", 600) != job_id


def test_no_window_becomes_longer_by_a_restart(node: LocalNode) -> None:
    first = node.client().add("mail", "body", "KEY", "k", "WINDOW", 30)
    client = back(node, away_s=29)
    assert client.add("mail", "body", "KEY", "k", "WINDOW", 30) == first
    node.run(seconds=1)
    second = client.add("mail", "body", "KEY", "k", "WINDOW", 30)
    assert second != first
    assert back(node).add("mail", "body", "KEY", "k") == second, "not the older one"


@pytest.mark.parametrize("verb", ["DELJOB", "ACKJOB"])
def test_a_job_that_was_not_loaded_is_added_again(node: LocalNode, verb: str) -> None:
    client = node.client()
    job_id = client.add("mail", "body", "KEY", "k")
    assert client.call(verb, job_id) == 1
    client = back(node)
    assert remembered(node) == 0
    assert client.add("mail", "body", "KEY", "k") != job_id


def test_reloading_the_file_keeps_the_keys(node: LocalNode) -> None:
    client = node.client()
    done, job_id = client.add("mail", "body", "KEY", "done"), client.add("mail", "body", "KEY", "k")
    assert client.call("ACKJOB", done) == 1
    assert client.call("DEBUG", "LOADAOF") == b"OK"
    assert client.add("mail", "body", "KEY", "k") == job_id
    assert client.add("mail", "body", "KEY", "done") != done


def test_only_jobs_of_the_last_minute_are_remembered(node: LocalNode) -> None:
    client = node.client()
    old = client.add("mail", "body", "KEY", "old")
    node.run(seconds=61)
    young = client.add("mail", "body", "KEY", "young")
    client = back(node, away_s=100)
    assert remembered(node) == 1
    assert client.add("mail", "body", "KEY", "young") == young
    assert client.add("mail", "body", "KEY", "old") != old


def test_a_creation_time_in_the_future_counts_as_now(node: LocalNode) -> None:
    client = node.client()
    job_id = client.add("mail", "body", "KEY", "k")
    node.run(seconds=50)
    later = client.add("mail", "body", "KEY", "later")
    client = back(node, away_s=-60)
    assert client.add("mail", "body", "KEY", "k") == job_id
    assert client.add("mail", "body", "KEY", "later") == later


def test_copies_of_other_nodes_jobs_are_not_remembered() -> None:
    cluster = Cluster(2, config=config)
    first, second = cluster.members
    client = first.client()
    client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 2, "KEY", "k")
    cluster.until(lambda: not client.silent)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    assert cluster.copies(job_id) == cluster.members
    for member in cluster.members:
        member.restart()
    cluster.until(lambda: first.serving and second.serving)
    assert [remembered(member) for member in cluster.members] == [1, 0]


def test_nothing_is_remembered_while_memory_is_short(node: LocalNode) -> None:
    client = node.client()
    for number in range(100):
        client.add("mail", b"x" * 10_000, "KEY", f"{number}")
    used_bytes = int(node.node.state.lifecycle.memory.used_bytes)
    client.call("CONFIG", "SET", "maxmemory", used_bytes * 100 // 85)
    back(node)
    assert remembered(node) == 0
    assert node.node.state.lifecycle.table.count == 100


def made(at_ms: int, number: int) -> Job:
    job = make_job(random.Random(number), b"")
    job.ctime = at_ms * 1_000_000 + number
    return job


def test_the_number_of_remembered_jobs_is_bounded(node: LocalNode) -> None:
    recent = Recent()
    state = node.node.state
    jobs = [made(NOW_MS + number // 40_000 * 1000, number) for number in range(MAX_KEPT + 50_000)]
    for job in jobs:
        state.lifecycle.table.add(job)
        recent.note(job, NOW_MS + 60_000)
    assert MAX_KEPT // 2 < recent.count <= MAX_KEPT
    parts = 1
    while recent.part(state, 1000):
        parts += 1
    assert parts >= recent.count // 1000
    assert remembered(node) == recent.count
    assert all(state.lifecycle.keys.get(job.id[11:27]) is not None for job in jobs[-10_000:])


def test_the_number_of_remembered_jobs_of_one_second_is_bounded() -> None:
    recent = Recent()
    for number in range(MAX_KEPT + 10):
        recent.note(made(NOW_MS, number), NOW_MS)
    assert recent.count == MAX_KEPT
