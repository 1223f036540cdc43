"""SHOW: the description of a job follows it through its life."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.asking import ask, pairs

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient, LocalNode

FIELDS = [
    b"id",
    b"queue",
    b"state",
    b"repl",
    b"ttl",
    b"ctime",
    b"delay",
    b"retry",
    b"nacks",
    b"additional-deliveries",
    b"nodes-delivered",
    b"nodes-confirmed",
    b"next-requeue-within",
    b"next-awake-within",
    b"body",
]


def show(client: LocalClient, job: Any) -> dict[bytes, Any]:
    """The description as a dictionary."""
    described = pairs(client, "SHOW", job)
    assert list(described) == FIELDS
    return described


def test_a_waiting_job_is_described_in_full(local: LocalNode, client: LocalClient) -> None:
    job = ask(client, "ADDJOB", "mail", b"\x00body\r\n", 0, "RETRY", 10, "TTL", 100)
    described = show(client, job)
    assert described | {b"next-requeue-within": 0, b"next-awake-within": 0} == {
        b"id": job,
        b"queue": b"mail",
        b"state": b"queued",
        b"repl": 1,
        b"ttl": 100,
        b"ctime": local.now_ms * 1_000_000,
        b"delay": 0,
        b"retry": 10,
        b"nacks": 0,
        b"additional-deliveries": 0,
        b"nodes-delivered": [local.node.state.view.node_id],
        b"nodes-confirmed": [],
        b"next-requeue-within": 0,
        b"next-awake-within": 0,
        b"body": b"\x00body\r\n",
    }
    assert 9_750 <= described[b"next-requeue-within"] <= 10_250
    assert described[b"next-awake-within"] == described[b"next-requeue-within"] - 500


def test_times_run_down_and_counters_go_up(local: LocalNode, client: LocalClient) -> None:
    job = ask(client, "ADDJOB", "mail", "body", 0, "RETRY", 10, "TTL", 100)
    ask(client, "GETJOB", "FROM", "mail")
    assert show(client, job)[b"state"] == b"active"
    local.run(seconds=11)
    assert show(client, job)[b"state"] == b"queued"
    assert show(client, job)[b"additional-deliveries"] == 1
    assert show(client, job)[b"ttl"] == 89
    ask(client, "GETJOB", "FROM", "mail")
    ask(client, "NACK", job)
    assert show(client, job)[b"nacks"] == 1


def test_a_delayed_job_is_active_until_it_is_queued(local: LocalNode, client: LocalClient) -> None:
    job = ask(client, "ADDJOB", "mail", "body", 0, "DELAY", 5)
    described = show(client, job)
    assert (described[b"state"], described[b"delay"], described[b"next-requeue-within"]) == (b"active", 5, 5000)
    local.run(seconds=6)
    assert show(client, job)[b"state"] == b"queued"


def test_a_job_that_is_never_queued_again_has_no_time_for_it(client: LocalClient) -> None:
    job = ask(client, "ADDJOB", "mail", "body", 0, "RETRY", 0, "TTL", 60)
    described = show(client, job)
    assert described[b"next-requeue-within"] is None
    assert described[b"next-awake-within"] == 61_000


def test_an_unknown_job_is_null_in_both_protocols(client: LocalClient) -> None:
    unknown = b"D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
    assert client.raw("SHOW", unknown) == b"$-1\r\n"
    ask(client, "HELLO", 3)
    assert client.raw("SHOW", unknown) == b"_\r\n"


@pytest.mark.parametrize("word", ["bad", "", "X-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"])
def test_an_invalid_job_id_is_refused(client: LocalClient, word: str) -> None:
    assert client.raw("SHOW", word) == b"-BADID Invalid Job ID format.\r\n"
