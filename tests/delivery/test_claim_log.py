"""The directive `claim-log`: claims grow over a crash, whatever the clock says after it."""

from __future__ import annotations

import pytest

from disqued.core.jobs.claims import NODE_BITS
from disqued.delivery.claim import CLAIM_RECORD, record_fault
from disqued.testing.local import LocalClient, LocalNode
from support.logging_node import logging_node, written

JOB = b"D-5ca1ab1e-s2cR6zkGp8hgPXHUCeelTYe9-05a1"


def claim(client: LocalClient) -> int:
    """Take the only job with a claim."""
    jobs = client.call("GETJOB", "NOHANG", "WITHCLAIM", "FROM", "mail")
    assert isinstance(jobs, list)
    found = jobs[0][4]  # type: ignore[index]
    assert isinstance(found, int)
    return found


def restarted(local: LocalNode) -> LocalClient:
    local.run(seconds=2)
    local.restart()
    while local.node.state.loading:
        local.run(milliseconds=1)
    return local.client()


def test_a_claim_is_greater_than_all_before_a_crash_although_the_clock_went_back() -> None:
    local = logging_node(claim_log=True)
    client = local.client()
    client.add("mail", "body", "RETRY", 5)
    local.host.now_ms += 3_600_000
    before = claim(client)
    local.run(seconds=2)
    local.host.now_ms -= 3_600_000
    client = restarted(local)
    local.run(seconds=6)
    assert claim(client) > before


def test_a_claim_that_was_ahead_of_the_clock_is_known_after_a_crash_without_the_directive() -> None:
    """The node knew a claim of a node whose clock is ten minutes ahead: its own clock alone says less (T4)."""
    local = logging_node()
    client = local.client()
    job_id = client.add("mail", "body", "RETRY", 5)
    elsewhere = claim(client) + (600_000 << NODE_BITS)
    client.call("WORKING", job_id, "CLAIM", elsewhere)
    client.call("NACK", job_id)
    before = claim(client)
    assert before > elsewhere
    client = restarted(local)
    local.run(seconds=6)
    assert claim(client) > before


def test_a_stale_worker_is_refused_after_a_restart_and_after_a_rewrite() -> None:
    local = logging_node(claim_log=True)
    client = local.client()
    job_id = client.add("mail", "body", "RETRY", 300)
    early = claim(client)
    client.call("NACK", job_id)
    late = claim(client)
    assert written(local).count(b"$5\r\nCLAIM\r\n") == 2
    client = restarted(local)
    assert client.show(job_id)["claim"] == late
    client.call("BGREWRITEAOF")
    local.run(seconds=5)
    assert b"$5\r\nCLAIM\r\n" not in written(local)
    client = restarted(local)
    assert str(client.call("ACKJOB", job_id, "CLAIM", early)).startswith("STALE")
    assert client.call("ACKJOB", job_id, "CLAIM", late) == 1


def test_without_the_directive_nothing_is_logged() -> None:
    local = logging_node()
    client = local.client()
    client.add("mail", "body", "RETRY", 300)
    before = written(local)
    claim(client)
    local.run(seconds=2)
    assert written(local) == before


def test_the_claim_of_a_job_that_is_delivered_at_most_once_is_not_logged() -> None:
    local = logging_node(claim_log=True)
    client = local.client()
    client.add("mail", "body", "RETRY", 0, "REPLICATE", 1)
    claim(client)
    local.run(seconds=2)
    assert b"CLAIM" not in written(local)


def test_the_directive_can_be_set_while_the_node_runs() -> None:
    local = logging_node()
    client = local.client()
    assert client.call("CONFIG", "SET", "claim-log", "yes") == b"OK"
    client.add("mail", "body", "RETRY", 300)
    claim(client)
    local.run(seconds=2)
    assert b"CLAIM" in written(local)


@pytest.mark.parametrize(
    "rest", [b"", b" ", b" 0", b" -1", b" x", b" 1 1", b"  1", b" " + b"9" * 19, b" " + b"1" * 5000]
)
def test_a_record_of_anything_else_is_refused_before_it_is_loaded(rest: bytes) -> None:
    assert record_fault([CLAIM_RECORD, JOB + b" 117964800000000007"]) == ""
    assert record_fault([CLAIM_RECORD, JOB + rest])
