"""WAITJOB and RESULT: clients learn how jobs ended, at any node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from disqued.fates.waiting import SETTLE_MS
from fates.asking import add, elsewhere, result

if TYPE_CHECKING:
    from disqued.testing.cluster import Cluster, Member
    from disqued.testing.local import LocalClient, LocalNode

UNKNOWN_JOB = b"D-0011aabb-aaaaaaaaaaaaaaaaaaaaaaaa-05a1"


def waiting(cluster: Cluster, member: Member, *words: bytes | str | int) -> LocalClient:
    """A client that waits."""
    client = member.client()
    client.send("WAITJOB", *words)
    cluster.run(milliseconds=200)
    return client


# --- one node -----------------------------------------------------------------------------------------------------


def test_a_client_waits_until_a_job_is_done(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q")
    waiter = local.client()
    waiter.send("WAITJOB", job, "TIMEOUT", 0)
    local.run(seconds=3600)
    assert waiter.silent
    client.call("ACKJOB", job)
    local.run(milliseconds=20)
    assert waiter.next_reply() == [[job, b"done"]]
    assert not local.node.state.lifecycle.watched


def test_a_job_that_was_done_before_is_known_by_its_record(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q", "body", "RETAIN", 60)
    client.call("ACKJOB", job)
    client.send("WAITJOB", job, "WITHRESULT", "TIMEOUT", 1000)
    local.run(milliseconds=20)
    assert client.next_reply() == [[job, b"done", None]]


def test_the_wait_ends_with_its_time(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q")
    client.send("WAITJOB", job, UNKNOWN_JOB, "TIMEOUT", 2000)
    local.run(milliseconds=1900)
    assert client.silent
    local.run(milliseconds=200)
    assert client.next_reply() is None
    assert not local.node.state.lifecycle.watched


def test_all_jobs_or_any_of_them(local: LocalNode, client: LocalClient) -> None:
    first, second = client.add("q"), client.add("q")
    both, either = local.client(), local.client()
    both.send("WAITJOB", first, second, "TIMEOUT", 0)
    either.send("WAITJOB", first, second, "ANY", "TIMEOUT", 0)
    local.run(milliseconds=100)
    client.call("ACKJOB", second)
    local.run(milliseconds=100)
    assert either.next_reply() == [[second, b"done"]]
    assert both.silent
    client.call("DELJOB", first)
    local.run(seconds=2)
    assert both.next_reply() == [[first, b"deleted"], [second, b"done"]]


def test_the_wait_continues_behind_a_move(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q")
    waiter = local.client()
    waiter.send("WAITJOB", job, "TIMEOUT", 0)
    local.run(milliseconds=100)
    client.call("MOVEJOB", job, "TO", "r")
    local.run(seconds=60)
    assert waiter.silent
    client.call("ACKJOB", *client.take("r"))
    local.run(milliseconds=100)
    assert waiter.next_reply() == [[job, b"done"]]


def test_the_wait_ends_with_a_dead_letter_and_a_later_one_waits_again(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q")
    waiter = local.client()
    waiter.send("WAITJOB", job, "TIMEOUT", 0)
    client.call("NACK", job, "DEAD")
    local.run(milliseconds=100)
    assert waiter.next_reply() == [[job, b"dead"]]
    client.call("REDRIVE", "q.dead")
    local.run(seconds=1)
    waiter.send("WAITJOB", job, "TIMEOUT", 0)
    local.run(seconds=5)
    assert waiter.silent
    client.call("ACKJOB", *client.take("q"))
    local.run(milliseconds=100)
    assert waiter.next_reply() == [[job, b"done"]]


def test_the_wait_ends_when_a_job_expires(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q", "body", "TTL", 2)
    client.send("WAITJOB", job, "TIMEOUT", 60_000)
    local.run(seconds=5)
    assert client.next_reply() == [[job, b"expired"]]


def test_a_client_that_disconnects_watches_nothing_any_more(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q")
    waiter = local.client()
    waiter.send("WAITJOB", job, "TIMEOUT", 0)
    local.run(milliseconds=100)
    assert local.node.state.lifecycle.watched
    waiter.disconnect()
    local.run(milliseconds=100)
    assert not local.node.state.lifecycle.watched
    assert local.node.state.blocked_clients == 0


def test_requests_behind_a_wait_run_when_it_is_over(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q")
    waiter = local.client()
    waiter.send("WAITJOB", job, "TIMEOUT", 100)
    waiter.send("PING")
    local.run(milliseconds=50)
    assert waiter.silent
    local.run(milliseconds=100)
    assert [waiter.next_reply(), waiter.next_reply()] == [None, b"PONG"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["x", "TIMEOUT", 1], "BADID"),
        ([UNKNOWN_JOB, "ANY", "ANY"], "ERR syntax"),
        ([UNKNOWN_JOB, "TIMEOUT", -1], "ERR timeout is negative"),
        ([UNKNOWN_JOB, "TIMEOUT", "x"], "ERR timeout is not"),
        ([UNKNOWN_JOB, "NOW", "TIMEOUT", 1], "ERR syntax"),
        ([*[UNKNOWN_JOB] * 1001, "TIMEOUT", 1], "ERR WAITJOB takes at most 1000 jobs"),
    ],
    ids=["no ID", "no timeout", "negative", "no number", "unknown", "many"],
)
def test_a_request_that_is_wrong_is_refused(client: LocalClient, words: list[bytes | str | int], error: str) -> None:
    assert str(client.call("WAITJOB", *words)).startswith(error)
    assert str(client.call("RESULT", "x")).startswith("BADID")
    assert str(client.call("RESULT", UNKNOWN_JOB, "x")).startswith("BADID")
    assert str(client.call("RESULT", *[UNKNOWN_JOB] * 1001)).startswith("ERR RESULT takes at most 1000 jobs")


# --- several nodes ------------------------------------------------------------------------------------------------


def test_a_client_waits_at_a_node_without_the_job(cluster: Cluster) -> None:
    one = cluster.members[0]
    job = add(cluster, one)
    waiter = waiting(cluster, elsewhere(cluster, job), job, "TIMEOUT", 0)
    cluster.run(seconds=100)
    assert waiter.silent
    one.admin.call("ACKJOB", job)
    cluster.run(milliseconds=200)
    assert waiter.next_reply() == [[job, b"done"]]


def test_a_client_waits_for_a_job_that_does_not_exist_yet(cluster: Cluster) -> None:
    one, two, _ = cluster.members
    job = b"D-00000000-" + b"a" * 24 + b"-05a1"
    waiter = waiting(cluster, two, job, "TIMEOUT", 0)
    assert add(cluster, one, "ID", job) == job
    one.admin.call("ACKJOB", job)
    cluster.run(seconds=35)
    assert waiter.next_reply() == [[job, b"done"]]


def test_a_job_that_is_deleted_on_one_node_lives_on_another(cluster: Cluster) -> None:
    one = cluster.members[0]
    job = add(cluster, one)
    waiter = waiting(cluster, elsewhere(cluster, job), job, "TIMEOUT", 0)
    first, second = cluster.copies(job)
    first.admin.call("DELJOB", job)
    cluster.run(seconds=2)
    assert waiter.silent
    second.admin.call("DELJOB", job)
    cluster.run(seconds=2)
    assert waiter.next_reply() == [[job, b"deleted"]]


def test_a_wait_is_served_after_a_partition(cluster: Cluster) -> None:
    one = cluster.members[0]
    job = add(cluster, one, "RETAIN", 600)
    other = elsewhere(cluster, job)
    waiter = waiting(cluster, other, job, "TIMEOUT", 0)
    cluster.partition([other], [member for member in cluster.members if member is not other])
    one.admin.call("ACKJOB", job)
    cluster.run(seconds=60)
    assert waiter.silent
    cluster.heal()
    cluster.run(seconds=40)
    assert waiter.next_reply() == [[job, b"done"]]


def test_result_is_null_for_a_job_that_no_node_knows(cluster: Cluster) -> None:
    began_ms = cluster.members[0].now_ms
    assert result(cluster, cluster.members[0], UNKNOWN_JOB) is None
    assert cluster.members[0].now_ms - began_ms < SETTLE_MS


def test_result_says_how_a_job_ended_at_every_node(cluster: Cluster) -> None:
    job = add(cluster, cluster.members[0], "RETAIN", 60)
    for member in cluster.members:
        assert result(cluster, member, job) == [b"waiting", 0, 0, None]
    cluster.members[0].admin.call("ACKJOB", job)
    ended_ms = cluster.members[0].now_ms
    cluster.run(seconds=5)
    for member in cluster.members:
        reply = result(cluster, member, job)
        assert isinstance(reply, list)
        assert (reply[0], reply[2:]) == (b"done", [0, None])
        assert abs(int(str(reply[1])) - ended_ms) < 100


def test_result_of_several_jobs_has_a_row_for_each_in_the_order_of_the_request(cluster: Cluster) -> None:
    one, *_ = cluster.members
    done, waits = add(cluster, one, "RETAIN", 60), add(cluster, one)
    one.admin.call("ACKJOB", done, "RESULT", "42")
    ended_ms = one.now_ms
    cluster.run(seconds=5)
    asked_ms = one.now_ms
    client = elsewhere(cluster, done).client()
    client.send("RESULT", waits, UNKNOWN_JOB, done, waits)
    cluster.until(lambda: not client.silent, within_s=5)
    reply = client.next_reply()
    assert isinstance(reply, list)
    assert reply[:2] == [[waits, b"waiting", 0, 0, None], None]
    [_, _, row] = reply
    assert isinstance(row, list)
    assert abs(int(str(row.pop(2))) - ended_ms) < 100
    assert row == [done, b"done", 0, b"42"]
    assert one.now_ms - asked_ms < SETTLE_MS


def test_a_job_that_is_named_twice_is_one_row(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q")
    client.send("RESULT", job, job)
    local.run(milliseconds=20)
    assert client.next_reply() == [[job, b"waiting", 0, 0, None]]
    assert not local.node.state.lifecycle.watched


def test_result_waits_a_second_for_a_node_that_hangs(cluster: Cluster) -> None:
    one, two, three = cluster.members
    job = add(cluster, one, "RETAIN", 60, copies=1)
    one.admin.call("ACKJOB", job)
    cluster.cut(three, two)
    began_ms = cluster.members[0].now_ms
    reply = result(cluster, two, job)
    assert isinstance(reply, list)
    assert reply[0] == b"done"
    assert SETTLE_MS <= cluster.members[0].now_ms - began_ms < SETTLE_MS + 100
