"""ACKJOB, FASTACK and DELJOB on one node: jobs are deleted in any state and counted once."""

from __future__ import annotations

import pytest

from disqued.core.memory.accounting import BASE_BYTES, CLIENT_BYTES, queue_bytes
from disqued.testing.local import LocalClient, LocalNode

COMMANDS = ("ACKJOB", "FASTACK", "DELJOB")


@pytest.mark.parametrize("command", COMMANDS)
def test_reply_is_the_number_of_jobs_found(client: LocalClient, command: str) -> None:
    ids = [client.add("mail") for _ in range(3)]
    assert client.call(command, ids[0], ids[0]) == 1, "a job that is named twice is counted once"
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


def test_lone_node_keeps_no_acknowledgement_of_an_unknown_job(client: LocalClient) -> None:
    foreign = b"D-0badcafe-" + b"A" * 24 + b"-05a1"
    assert client.call("ACKJOB", foreign) == 0
    assert client.show(foreign) == {}
    assert client.call("JSCAN") == [b"0", []]
