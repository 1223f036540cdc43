"""ADDJOB AFTER on one node: when a job is delivered that waits for others, and what becomes of it otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dependencies.helping import ABSENT
from disqued.testing.local import LocalClient, LocalNode, Reply


def adding(client: LocalClient, *words: str | bytes | int, timeout_ms: int = 100) -> Reply:
    """The reply to an ADDJOB, at its timeout at the latest."""
    client.send("ADDJOB", "load", "body", timeout_ms, *words)
    for _ in range(timeout_ms + 30):
        client.local.run(milliseconds=1)
        if not client.silent:
            break
    return client.next_reply()


def child_of(client: LocalClient, *words: str | bytes | int) -> bytes:
    job_id = adding(client, "AFTER", *words)
    assert isinstance(job_id, bytes), job_id
    return job_id


def soon(local: LocalNode) -> None:
    """Let the node take note of what has happened."""
    local.run(milliseconds=2)


def test_a_job_is_delivered_when_its_parent_is_acknowledged(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body")
    child = child_of(client, parent)
    assert client.take("load") == []
    client.take("extract")
    local.run(seconds=30)
    assert client.take("load") == []
    client.call("ACKJOB", parent)
    soon(local)
    assert client.take("load") == [child]


@pytest.mark.parametrize("end", ["ACKJOB", "FASTACK"])
def test_a_parent_need_not_be_delivered_to_be_done(local: LocalNode, client: LocalClient, end: str) -> None:
    parent = client.add("extract", "body")
    child = child_of(client, parent)
    client.call(end, parent)
    soon(local)
    assert client.take("load") == [child]


def test_a_client_that_waits_gets_the_job_at_once(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body")
    child = child_of(client, parent)
    worker = local.client()
    worker.send("GETJOB", "FROM", "load")
    client.call("ACKJOB", parent)
    soon(local)
    assert worker.next_reply() == [[b"load", child, b"body"]]


def test_a_job_waits_for_all_of_its_parents(local: LocalNode, client: LocalClient) -> None:
    parents = [client.add("extract", "body") for _ in range(64)]
    words: list[str | bytes | int] = [word for parent in parents[1:] for word in ("AFTER", parent)]
    child = child_of(client, parents[0], *words)
    for parent in parents:
        soon(local)
        assert client.take("load") == []
        client.call("ACKJOB", parent)
    soon(local)
    assert client.take("load") == [child]


def test_a_parent_that_is_done_already_holds_nothing_up(local: LocalNode, client: LocalClient) -> None:
    """Of a parent with RETAIN, or one that somebody watches, a record is left."""
    parent = client.add("extract", "body", "RETAIN", 60)
    client.call("ACKJOB", parent)
    local.run(seconds=10)
    child = child_of(client, parent)
    soon(local)
    assert client.take("load") == [child]


def test_the_delay_counts_from_the_end_of_the_last_parent(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body")
    child = child_of(client, parent, "DELAY", 10)
    local.run(seconds=60)
    client.call("ACKJOB", parent)
    local.run(seconds=9)
    assert client.take("load") == []
    local.run(seconds=1, milliseconds=50)
    assert client.take("load") == [child]


def test_an_at_most_once_job_waits_too(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body")
    child = child_of(client, parent, "RETRY", 0, "REPLICATE", 1)
    local.run(seconds=10)
    assert client.take("load") == []
    client.call("ACKJOB", parent)
    soon(local)
    assert client.take("load") == [child]
    local.run(seconds=600)
    assert client.take("load") == []


def test_a_chain_runs_in_order(local: LocalNode, client: LocalClient) -> None:
    first = client.add("load", "body")
    second = child_of(client, first)
    third = child_of(client, second)
    for job_id in (first, second, third):
        soon(local)
        assert client.take("load") == [job_id]
        client.call("ACKJOB", job_id)


def test_an_unacknowledged_job_is_delivered_again_after_its_retry_time(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body")
    child = child_of(client, parent, "RETRY", 5)
    client.call("ACKJOB", parent)
    soon(local)
    assert client.take("load") == [child]
    local.run(seconds=6)
    assert client.take("load") == [child]


# --- parents that nobody knows ----------------------------------------------------------------------------------------


def test_a_job_with_an_unknown_parent_is_refused_after_the_timeout(local: LocalNode, client: LocalClient) -> None:
    """RQ #743: a job whose parent was gone waited forever. The error is NoParent."""
    assert str(adding(client, "AFTER", ABSENT)) == (
        f"NOPARENT {ABSENT.decode()} is not known to any reachable node; add parents with RETAIN"
    )
    local.run(seconds=1)
    assert local.node.state.lifecycle.table.count == 0
    assert not local.node.state.lifecycle.held.jobs
    assert not local.node.state.lifecycle.watched


def test_without_a_timeout_the_client_waits_five_seconds(local: LocalNode, client: LocalClient) -> None:
    client.send("ADDJOB", "load", "body", 0, "AFTER", ABSENT)
    local.run(seconds=4)
    assert client.silent
    local.run(seconds=1, milliseconds=50)
    assert str(client.next_reply()).startswith("NOPARENT")


def test_a_parent_that_is_added_meanwhile_is_found(local: LocalNode, client: LocalClient) -> None:
    """RQ #739: a race between the two adds lost the child."""
    parent = client.call("NEWID")
    assert isinstance(parent, bytes)
    client.send("ADDJOB", "load", "body", 60_000, "AFTER", parent)
    local.run(seconds=1)
    assert client.silent
    local.client().call("ADDJOB", "extract", "body", 0, "ID", parent)
    local.run(seconds=31)
    child = client.next_reply()
    local.client().call("ACKJOB", parent)
    soon(local)
    assert client.take("load") == [child]


@pytest.mark.parametrize("end", ["DELJOB", "ACKJOB"])
def test_a_parent_that_ended_without_a_record_is_unknown(local: LocalNode, client: LocalClient, end: str) -> None:
    parent = client.add("extract", "body")
    client.call(end, parent)
    local.run(seconds=1)
    assert str(adding(client, "AFTER", parent)).startswith("NOPARENT")


def test_the_reply_says_why_a_parent_can_no_longer_be_done(client: LocalClient) -> None:
    parent = client.add("extract", "body", "RETAIN", 60)
    client.call("DELJOB", parent)
    assert str(adding(client, "AFTER", parent)) == (
        f"NOPARENT parent {parent.decode()} was deleted, so a job that waits for it would never run"
    )


def test_a_client_that_disconnects_leaves_no_job(local: LocalNode) -> None:
    client = local.client()
    client.send("ADDJOB", "load", "body", 0, "AFTER", ABSENT)
    client.disconnect()
    local.run(seconds=10)
    assert local.node.state.lifecycle.table.count == 0
    assert not local.node.state.lifecycle.watched


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("AFTER", "x"), "BADID"),
        (("ELSE", "run"), "ERR ELSE is of use with AFTER only"),
        (("AFTER", ABSENT, "ELSE", "later"), "ERR ELSE must be dead, run or drop"),
        (("AFTER", ABSENT, "ID", ABSENT), "ERR a job cannot wait for itself"),
        ([word for number in range(65) for word in ("AFTER", b"D-00000000-%024d-05a1" % number)], "ERR AFTER takes at"),
    ],
)
def test_wrong_parents_are_refused(client: LocalClient, words: Sequence[str | bytes], error: str) -> None:
    assert str(client.call("ADDJOB", "load", "body", 0, *words)).startswith(error)


# --- a parent that can no longer be done ------------------------------------------------------------------------------


def test_else_dead_is_the_default(local: LocalNode, client: LocalClient) -> None:
    """RQ #1436, #1093: a job whose parent had failed waited forever."""
    parent = client.add("extract", "body", "TTL", 60)
    child = child_of(client, parent)
    local.run(seconds=70)
    assert client.take("load") == []
    dead = client.call("GETJOB", "NOHANG", "WITHMETA", "FROM", "load.dead")
    assert isinstance(dead, list)
    (row,) = dead
    assert isinstance(row, list)
    shown = client.show(row[1])  # type: ignore[arg-type]
    assert shown["reason"] == b"parent %b expired" % parent
    assert shown["origin-id"] == child


def test_else_run_runs_the_job(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body", "TTL", 60)
    child = child_of(client, parent, "ELSE", "run")
    local.run(seconds=50)
    assert client.take("load") == []
    local.run(seconds=20)
    assert client.take("load") == [child]


def test_else_run_still_waits_for_the_other_parents(local: LocalNode, client: LocalClient) -> None:
    lost, other = client.add("extract", "body", "TTL", 60), client.add("extract", "body")
    child = child_of(client, lost, "AFTER", other, "ELSE", "run")
    local.run(seconds=70)
    assert client.take("load") == []
    client.call("ACKJOB", other)
    soon(local)
    assert client.take("load") == [child]


def test_else_drop_deletes_the_job_and_its_own_children_see_that(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body", "TTL", 60)
    child = child_of(client, parent, "ELSE", "drop")
    child_of(client, child)
    local.run(seconds=75)
    assert client.take("load") == []
    assert client.call("QLEN", "load.dead") == 1
    assert client.call("SHOW", child) is None


@pytest.mark.parametrize("ending", [("DELJOB",), ("NACK", "DEAD", "DELJOB"), ("NACK", "DEAD", "ACKJOB")])
def test_a_deleted_parent_and_a_discarded_dead_letter_end_the_wait(
    local: LocalNode, client: LocalClient, ending: tuple[str, ...]
) -> None:
    parent = client.add("extract", "body")
    child_of(client, parent)
    if ending[0] == "NACK":
        client.take("extract")
        client.call("NACK", parent, "DEAD")
        local.run(seconds=60)
        assert client.call("QLEN", "load.dead") == 0, "a dead letter can be redriven"
        (parent,) = client.take("extract.dead")
    client.call(ending[-1], parent)
    local.run(seconds=35)
    assert client.call("QLEN", "load.dead") == 1


def test_a_redriven_parent_frees_its_children(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body")
    child = child_of(client, parent)
    client.take("extract")
    client.call("NACK", parent, "DEAD")
    local.run(seconds=100)
    client.call("REDRIVE", "extract.dead")
    local.run(seconds=2)
    (again,) = client.take("extract")
    assert client.take("load") == []
    client.call("ACKJOB", again)
    local.run(seconds=31)
    assert client.take("load") == [child]


def test_a_moved_parent_frees_its_children(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body")
    child = child_of(client, parent)
    assert client.call("MOVEJOB", parent, "TO", "other") == 1
    local.run(seconds=60)
    assert client.take("load") == []
    (moved,) = client.take("other")
    client.call("ACKJOB", moved)
    local.run(seconds=31)
    assert client.take("load") == [child]
