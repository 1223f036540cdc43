"""ADDTO: one body, one job in each of several queues, one array of replies."""

from __future__ import annotations

import pytest

from disqued.client import ResponseError
from disqued.replication.room import replication_of
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, Reply, encode


def added(client: LocalClient) -> list[Reply]:
    reply = client.next_reply()
    assert isinstance(reply, list), reply
    return reply


def addto(cluster: Cluster, *words: str | int) -> LocalClient:
    """Send an ADDTO to the first member from a new client."""
    client = cluster.members[0].client()
    client.send("ADDTO", *words)
    return client


def test_each_queue_gets_a_job_of_its_own(cluster: Cluster) -> None:
    first = cluster.members[0]
    one, other = added(addto(cluster, 2, "mail", "print", "body", 0, "REPLICATE", 1, "RETRY", 7))
    assert one != other
    for job_id, queue in ((one, b"mail"), (other, b"print")):
        assert isinstance(job_id, bytes)
        shown = first.admin.show(job_id)
        assert (shown["queue"], shown["body"], shown["retry"]) == (queue, b"body", 7)
    assert first.admin.take("mail") == [one]
    assert isinstance(one, bytes)
    assert first.admin.call("ACKJOB", one) == 1
    assert first.admin.take("print") == [other]


def test_the_jobs_share_one_body_in_memory(cluster: Cluster) -> None:
    table = cluster.members[0].node.state.lifecycle.table
    job_ids = added(addto(cluster, 2, "mail", "print", "b" * 1000, 0, "REPLICATE", 1))
    one, other = [table.get(job_id) for job_id in job_ids if isinstance(job_id, bytes)]
    assert one is not None
    assert other is not None
    assert one.body is other.body


def test_the_copies_of_all_jobs_are_made_side_by_side(cluster: Cluster) -> None:
    first, *others = cluster.members
    for member in others:
        cluster.cut(member, first)
    client = addto(cluster, 3, "a", "b", "c", "body", 0, "REPLICATE", 3)
    cluster.run(milliseconds=20)
    assert len(replication_of(first.node.state).waits) == 3
    cluster.heal()
    cluster.run(milliseconds=300)
    job_ids = added(client)
    assert [len(cluster.copies(job_id)) for job_id in job_ids if isinstance(job_id, bytes)] == [3, 3, 3]


def test_one_job_that_is_refused_does_not_affect_the_others(cluster: Cluster) -> None:
    first = cluster.members[0]
    first.admin.call("PAUSE", "b", "in")
    one, error, other = added(addto(cluster, 3, "a", "b", "c", "body", 0, "REPLICATE", 1))
    assert isinstance(error, ResponseError)
    assert str(error).startswith("PAUSED")
    assert first.admin.take("a") == [one]
    assert first.admin.take("c") == [other]


def test_a_refused_job_keeps_its_place_while_others_wait_for_copies(cluster: Cluster) -> None:
    first = cluster.members[0]
    first.admin.call("PAUSE", "b", "in")
    client = addto(cluster, 3, "a", "b", "c", "body", 0, "REPLICATE", 3)
    cluster.run(milliseconds=20)
    one, error, other = added(client)
    assert isinstance(one, bytes)
    assert isinstance(error, ResponseError)
    assert isinstance(other, bytes)
    assert [first.admin.show(job_id)["queue"] for job_id in (one, other)] == [b"a", b"c"]


def test_jobs_that_get_no_copies_in_time_are_reported_each(cluster: Cluster) -> None:
    first, second, third = cluster.members
    cluster.cut(second, first)
    cluster.cut(third, first)
    client = addto(cluster, 2, "a", "b", "body", 100, "REPLICATE", 3)
    cluster.run(milliseconds=150)
    errors = added(client)
    assert [str(error)[:14] for error in errors] == ["NOREPL Timeout"] * 2
    assert first.node.state.lifecycle.table.count == 0


def test_a_key_is_remembered_for_each_queue(cluster: Cluster) -> None:
    one, other = added(addto(cluster, 2, "a", "b", "body", 0, "REPLICATE", 1, "KEY", "k"))
    assert added(addto(cluster, 3, "b", "c", "a", "body", 0, "REPLICATE", 1, "KEY", "k"))[::2] == [other, one]


def test_maxlen_counts_in_each_queue(cluster: Cluster) -> None:
    cluster.members[0].admin.add("b", "body", "REPLICATE", 1)
    one, error = added(addto(cluster, 2, "a", "b", "body", 0, "REPLICATE", 1, "MAXLEN", 1))
    assert isinstance(one, bytes)
    assert str(error).startswith("MAXLEN")


def test_replies_keep_the_order_of_a_pipeline(cluster: Cluster) -> None:
    client = cluster.members[0].client()
    three = ("REPLICATE", 3)
    client.send_bytes(
        encode("ADDJOB", "x", "first", 0, *three)
        + encode("ADDTO", 2, "a", "b", "second", 0, "REPLICATE", 1)
        + encode("ADDTO", 2, "a", "b", "third", 0, *three)
        + encode("ADDJOB", "x", "fourth", 0, "REPLICATE", 1)
        + encode("PING")
    )
    cluster.run(milliseconds=50)
    first, second, third, fourth, pong = client.replies()
    assert isinstance(second, list)
    assert isinstance(third, list)
    assert pong == b"PONG"
    shown = [cluster.members[0].admin.show(job_id)["body"] for job_id in (first, *second, *third, fourth)]  # type: ignore[arg-type]
    assert shown == [b"first", b"second", b"second", b"third", b"third", b"fourth"]


@pytest.mark.parametrize("replicate", [1, 3])
@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("a", "b", "c")])
def test_a_skipped_reply_is_skipped_whole(cluster: Cluster, replicate: int, names: tuple[str, ...]) -> None:
    client = cluster.members[0].client()
    client.send_bytes(
        encode("CLIENT", "REPLY", "SKIP")
        + encode("ADDTO", len(names), *names, "body", 0, "REPLICATE", replicate)
        + encode("PING")
    )
    cluster.run(milliseconds=50)
    assert client.replies() == [b"PONG"]
    assert cluster.members[0].node.state.lifecycle.table.count == len(names)


def test_jobs_that_wait_for_copies_are_dropped_when_their_client_disconnects(cluster: Cluster) -> None:
    first, second, third = cluster.members
    cluster.cut(second, first)
    cluster.cut(third, first)
    client = addto(cluster, 3, "a", "b", "c", "body", 0, "REPLICATE", 3)
    cluster.run(milliseconds=20)
    client.disconnect()
    cluster.run(milliseconds=100)
    assert [member.node.state.lifecycle.table.count for member in cluster.members] == [0, 0, 0]


def test_sync_holds_for_each_job(cluster: Cluster) -> None:
    cluster.lose("GOTJOB", by=cluster.members[2])
    client = addto(cluster, 2, "a", "b", "body", 0, "REPLICATE", 3, "SYNC", 2)
    cluster.run(milliseconds=20)
    assert all(isinstance(job_id, bytes) for job_id in added(client))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((0, "a", "body", 0), "ERR ADDTO takes 1 to 100 queues, their number comes first"),
        ((101, "a", "body", 0), "ERR ADDTO takes 1 to 100 queues, their number comes first"),
        (("a", "b", "body", 0), "ERR ADDTO takes 1 to 100 queues, their number comes first"),
        ((2, "a", "body", 0), "ERR syntax error"),
        ((1, "a", "body", "x"), "ERR timeout is not an integer or out of range"),
        ((1, "a", "body", 0, "BADLY"), "ERR syntax error"),
        ((2, "a", "a", "body", 0), "ERR ADDTO takes each queue once"),
        ((1, "a", "body"), "ERR wrong number of arguments for 'addto' command"),
    ],
)
def test_wrong_requests_are_refused_as_a_whole(cluster: Cluster, words: tuple[str | int, ...], error: str) -> None:
    assert str(addto(cluster, *words).next_reply()) == error
    assert cluster.members[0].node.state.lifecycle.table.count == 0


def test_one_hundred_queues_are_not_too_many(cluster: Cluster) -> None:
    names = [f"q{number}" for number in range(100)]
    client = addto(cluster, 100, *names, "body", 0, "REPLICATE", 3)
    cluster.run(milliseconds=50)
    assert len({*added(client)}) == 100


def test_a_user_needs_access_to_all_queues(cluster: Cluster) -> None:
    first = cluster.members[0]
    assert first.admin.call("ACL", "SETUSER", "maker", "on", ">p", "+@all", "~mail") == b"OK"
    client = first.client()
    client.send("AUTH", "maker", "p")
    client.next_reply()
    client.send("ADDTO", 2, "mail", "print", "body", 0, "REPLICATE", 1)
    assert str(client.next_reply()).startswith("NOPERM")
    client.send("ADDTO", 1, "mail", "body", 0, "REPLICATE", 1)
    assert isinstance(client.next_reply(), list)
