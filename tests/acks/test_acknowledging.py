"""ACKJOB, FASTACK and DELJOB: jobs are forgotten, once, wherever they stand."""

from __future__ import annotations

import pytest

from disqued.core.memory import BASE_BYTES, CLIENT_BYTES, QUEUE_BYTES
from disqued.testing.local import NODE_ID, LocalClient, LocalNode

COMMANDS = ("ACKJOB", "FASTACK", "DELJOB")


@pytest.fixture
def local() -> LocalNode:
    return LocalNode()


@pytest.fixture
def client(local: LocalNode) -> LocalClient:
    return local.client()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_reply_is_the_number_of_jobs_that_were_there(client: LocalClient, command: str) -> None:
    ids = [client.add("mail") for _ in range(3)]
    assert client.call(command, ids[0], ids[0]) == 1, "named twice, finished once"
    assert client.call(command, *ids) == 2
    assert client.call("QLEN", "mail") == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_a_finished_job_takes_no_memory(local: LocalNode, client: LocalClient, command: str) -> None:
    once, again, delayed = (
        client.add("mail", b"x" * 1000, *options) for options in (("RETRY", 0), ("RETRY", 9), ("DELAY", 9))
    )
    client.take("mail", count=2)
    assert client.call(command, once, again, delayed) == 3
    lifecycle = local.node.state.lifecycle
    assert lifecycle.memory.used_bytes == BASE_BYTES + CLIENT_BYTES + QUEUE_BYTES + len("mail")
    assert lifecycle.memory.oldest_evictable() is None
    assert lifecycle.agenda.due(local.now_ms + 10**9, 10) == []


def test_a_job_in_the_middle_of_a_queue_can_be_finished(client: LocalClient) -> None:
    ids = [client.add("mail") for _ in range(5)]
    assert client.call("ACKJOB", ids[2]) == 1
    assert client.take("mail", count=9) == [ids[0], ids[1], ids[3], ids[4]]


def test_a_job_that_others_may_have_is_kept_as_acknowledged_until_they_know(
    local: LocalNode, client: LocalClient
) -> None:
    job = client.add("mail", "shared", "RETRY", 1, "TTL", 100)
    kept = local.node.state.lifecycle.table.get(job)
    assert kept is not None
    kept.delivered = (NODE_ID, b"another node")
    assert client.call("ACKJOB", job) == 1
    assert client.call("ACKJOB", job) == 0
    assert client.show(job)["state"] == b"acked"
    assert [client.call(command, job) for command in ("NACK", "ENQUEUE", "DEQUEUE")] == [0, 0, 0]
    local.run(seconds=50)
    assert client.take("mail") == []
    local.run(seconds=52)
    assert client.show(job) == {}


def test_an_id_of_another_nodes_job_is_no_job_of_a_node_that_is_alone(client: LocalClient) -> None:
    foreign = b"D-0badcafe-" + b"A" * 24 + b"-05a1"
    assert client.call("ACKJOB", foreign) == 0
    assert client.show(foreign) == {}
    assert client.call("JSCAN") == [b"0", []]
