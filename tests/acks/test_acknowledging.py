"""ACKJOB, FASTACK and DELJOB: jobs are forgotten, once, wherever they stand."""

from __future__ import annotations

import pytest

from disqued.core.memory.accounting import BASE_BYTES, CLIENT_BYTES, queue_bytes
from disqued.testing.local import LocalClient, LocalNode

COMMANDS = ("ACKJOB", "FASTACK", "DELJOB")


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
    assert lifecycle.memory.used_bytes == BASE_BYTES + CLIENT_BYTES + queue_bytes(b"mail")
    assert lifecycle.memory.oldest_evictable() is None
    assert lifecycle.timers.due(local.now_ms + 10**9, 10) == []


def test_a_job_in_the_middle_of_a_queue_can_be_finished(client: LocalClient) -> None:
    ids = [client.add("mail") for _ in range(5)]
    assert client.call("ACKJOB", ids[2]) == 1
    assert client.take("mail", count=9) == [ids[0], ids[1], ids[3], ids[4]]


def test_an_id_of_another_nodes_job_is_no_job_of_a_node_that_is_alone(client: LocalClient) -> None:
    foreign = b"D-0badcafe-" + b"A" * 24 + b"-05a1"
    assert client.call("ACKJOB", foreign) == 0
    assert client.show(foreign) == {}
    assert client.call("JSCAN") == [b"0", []]
