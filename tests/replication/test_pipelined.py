"""ADDJOBs that one client pipelines: their copies are made side by side, and each reply comes in its turn."""

from __future__ import annotations

import pytest

from disqued.core.clients import pipeline
from disqued.replication.room import replication_of
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient, encode
from replication.adding import A_TIMER_MS, FEW, REMOVED, TIMEOUT, jobs

THREE = ("REPLICATE", "3")
MANY = 3000


def add(body: str, *options: str, queue: str = "mail", timeout_ms: int = 0) -> bytes:
    """An ADDJOB as bytes."""
    return encode("ADDJOB", queue, body, timeout_ms, *options)


def pipelined(cluster: Cluster, *requests: bytes) -> LocalClient:
    """Send requests in one piece to the first member, from a new client."""
    client = cluster.members[0].client()
    client.send_bytes(b"".join(requests))
    return client


def bodies(member: Member, replies: list[object]) -> list[bytes]:
    """The bodies of the jobs whose IDs are the replies."""
    assert all(isinstance(reply, bytes) for reply in replies), replies
    return [bytes(member.admin.show(job_id)["body"]) for job_id in replies]  # type: ignore[arg-type]


def waits(cluster: Cluster) -> int:
    return len(replication_of(cluster.members[0].node.state).waits)


def test_copies_of_pipelined_jobs_are_made_side_by_side(cluster: Cluster) -> None:
    first = cluster.members[0]
    for member in cluster.members[1:]:
        cluster.cut(member, first)
    client = pipelined(cluster, *[add(f"{number}", *THREE) for number in range(16)])
    cluster.run(milliseconds=5)
    assert waits(cluster) == 16
    assert jobs(cluster) == [16, 16, 16]
    assert client.silent
    cluster.heal()
    cluster.run(milliseconds=300)
    replies = client.replies()
    assert bodies(first, replies) == [b"%d" % number for number in range(16)]  # type: ignore[arg-type]
    assert first.node.state.blocked_clients == 0


def test_replies_keep_the_order_of_the_requests_when_a_later_job_has_its_copies_first(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second, count=1)
    client = pipelined(cluster, add("late", *THREE))
    client.send_bytes(add("early", *THREE) + add("at once", "REPLICATE", "1"))
    cluster.run(milliseconds=20)
    assert client.silent
    assert waits(cluster) == 1
    assert len(first.admin.take("mail", count=5)) == 2, "jobs are delivered before their client is told"
    cluster.run(milliseconds=300)
    assert bodies(first, client.replies()) == [b"late", b"early", b"at once"]  # type: ignore[arg-type]


def test_jobs_are_delivered_in_the_order_in_which_they_were_added(cluster: Cluster) -> None:
    client = pipelined(cluster, *[add(f"{number}", *THREE) for number in range(50)])
    cluster.run(milliseconds=20)
    assert cluster.members[0].admin.take("mail", count=50) == client.replies()


def test_a_job_that_times_out_does_not_affect_the_next_one(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.cut(second, first)
    client = pipelined(cluster, add("lost", *THREE, timeout_ms=100), add("kept", "REPLICATE", "1"))
    cluster.run(milliseconds=100 + A_TIMER_MS)
    error, job_id = client.replies()
    assert str(error) == TIMEOUT
    assert bodies(first, [job_id]) == [b"kept"]
    cluster.heal()
    cluster.run(milliseconds=20)
    assert jobs(cluster) == [1, 0, 0]


def test_refused_requests_get_their_errors_in_their_turn(cluster: Cluster) -> None:
    first = cluster.members[0]
    client = pipelined(
        cluster,
        add("one", *THREE),
        add("two", "REPLICATE", "4"),
        add("three", "NONSENSE"),
        encode("ADDJOB", "mail"),
        add("four", *THREE),
    )
    cluster.run(milliseconds=20)
    one, few, syntax, arity, four = client.replies()
    assert bodies(first, [one, four]) == [b"one", b"four"]
    assert str(few) == FEW
    assert "syntax" in str(syntax)
    assert "wrong number of arguments" in str(arity)


def test_another_command_runs_when_all_earlier_adds_have_their_replies(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    client = pipelined(
        cluster, add("one", *THREE), add("two", *THREE), encode("QLEN", "mail"), add("three", *THREE), encode("PING")
    )
    cluster.run(milliseconds=200)
    assert client.silent
    assert waits(cluster) == 2
    cluster.heal()
    cluster.run(milliseconds=200)
    one, two, length, three, pong = client.replies()
    assert bodies(first, [one, two, three]) == [b"one", b"two", b"three"]
    assert (length, pong) == (2, b"PONG")


def test_input_that_arrives_later_continues_the_pipeline(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    client = pipelined(cluster, add("one", *THREE), add("two", *THREE)[:20])
    cluster.run(milliseconds=20)
    assert waits(cluster) == 1
    client.send_bytes(add("two", *THREE)[20:] + encode("QLEN", "mail")[:5])
    client.send_bytes(encode("QLEN", "mail")[5:] + add("three", *THREE))
    assert waits(cluster) == 2
    cluster.heal()
    cluster.run(milliseconds=300)
    one, two, length, three = client.replies()
    assert bodies(first, [one, two, three]) == [b"one", b"two", b"three"]
    assert length == 2


@pytest.mark.parametrize("earlier", [0, 1, 2])
def test_maxlen_counts_the_jobs_that_the_client_added_before(cluster: Cluster, earlier: int) -> None:
    first = cluster.members[0]
    for _ in range(earlier):
        first.admin.add("mail", "body", "REPLICATE", "1")
    client = pipelined(cluster, *[add(f"{number}", *THREE, "maxlen", "3") for number in range(5)])
    cluster.run(milliseconds=20)
    replies = [reply if isinstance(reply, bytes) else str(reply) for reply in client.replies()]
    assert [type(reply) for reply in replies] == [bytes] * (3 - earlier) + [str] * (2 + earlier)
    assert first.admin.call("QLEN", "mail") == 3


def test_a_key_is_known_to_the_next_request(cluster: Cluster) -> None:
    keyed = add("body", *THREE, "KEY", "order-7")
    client = pipelined(cluster, keyed, keyed, add("other", *THREE, "KEY", "order-8"), keyed)
    cluster.run(milliseconds=20)
    first_id, same, other, again = client.replies()
    assert first_id == same == again != other
    assert jobs(cluster) == [2, 2, 2]


def test_a_pause_holds_for_the_requests_after_it(cluster: Cluster) -> None:
    client = pipelined(cluster, add("one", *THREE), encode("PAUSE", "mail", "in"), add("two", *THREE))
    cluster.run(milliseconds=20)
    job_id, paused, refused = client.replies()
    assert isinstance(job_id, bytes)
    assert paused == b"in"
    assert str(refused).startswith("PAUSED")


def test_no_job_is_left_when_the_client_disconnects(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    client = pipelined(cluster, *[add(f"{number}", *THREE) for number in range(10)], encode("PING"))
    cluster.run(milliseconds=20)
    assert jobs(cluster) == [10, 10, 10]
    client.disconnect()
    cluster.run(milliseconds=10)
    assert jobs(cluster) == [0, 0, 0]
    assert waits(cluster) == 0
    assert first.node.state.blocked_clients == 0
    cluster.run(seconds=1)


def test_jobs_of_a_pipeline_stay_when_their_client_disconnects_after_they_have_their_copies(cluster: Cluster) -> None:
    """The replies to the later ones wait for the first, whose job is taken back."""
    second = cluster.members[1]
    cluster.lose("GOTJOB", by=second, count=1)
    client = pipelined(cluster, add("0", *THREE))
    client.send_bytes(add("1", *THREE) + add("2", *THREE))
    cluster.run(milliseconds=20)
    client.disconnect()
    cluster.run(milliseconds=10)
    assert jobs(cluster) == [2, 2, 2]


def test_every_waiting_request_gets_a_reply_when_all_jobs_are_flushed(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    client = pipelined(cluster, *[add(f"{number}", *THREE) for number in range(3)], encode("PING"))
    cluster.run(milliseconds=20)
    first.admin.call("DEBUG", "FLUSHALL")
    assert [str(reply) for reply in client.replies()[:3]] == [REMOVED] * 3
    assert first.node.state.blocked_clients == 0


def test_requests_beyond_the_bound_wait(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    client = pipelined(cluster, *[add(f"{number}", *THREE) for number in range(MANY)])
    cluster.run(milliseconds=20)
    assert waits(cluster) == pipeline.MOST_REQUESTS
    cluster.heal()
    cluster.run(milliseconds=500)
    assert bodies(first, client.replies()) == [b"%d" % number for number in range(MANY)]  # type: ignore[arg-type]


def test_big_bodies_wait_beyond_a_bound_of_bytes(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    body = "x" * (pipeline.MOST_BYTES // 4)
    client = pipelined(cluster, *[add(body, *THREE) for _ in range(9)])
    cluster.run(milliseconds=20)
    assert waits(cluster) == 4
    cluster.heal()
    cluster.run(milliseconds=500)
    assert len(client.replies()) == 9
    assert first.admin.call("QLEN", "mail") == 9


def test_a_broken_request_gets_its_error_after_the_replies_before_it(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    client = pipelined(cluster, add("one", *THREE), add("two", *THREE), b"*1\r\n+nonsense\r\n", add("three", *THREE))
    cluster.run(milliseconds=20)
    assert client.silent
    assert not client.closed
    cluster.heal()
    cluster.run(milliseconds=200)
    one, two, error = client.replies()
    assert bodies(first, [one, two]) == [b"one", b"two"]
    assert "Protocol error" in str(error)
    assert client.closed


def test_a_client_without_replies_pipelines_too(cluster: Cluster) -> None:
    second = cluster.members[1]
    cluster.lose("GOTJOB", by=second)
    client = pipelined(
        cluster,
        encode("CLIENT", "REPLY", "OFF"),
        *[add(f"{number}", *THREE) for number in range(5)],
        encode("CLIENT", "REPLY", "ON"),
        encode("QLEN", "mail"),
    )
    cluster.run(milliseconds=20)
    assert waits(cluster) == 5
    cluster.heal()
    cluster.run(milliseconds=200)
    assert client.replies() == [b"OK", 5]


def test_a_skipped_reply_is_the_only_one_that_is_missing(cluster: Cluster) -> None:
    first = cluster.members[0]
    client = pipelined(
        cluster,
        encode("CLIENT", "REPLY", "SKIP"),
        add("silent", *THREE),
        add("one", *THREE),
        encode("CLIENT", "REPLY", "SKIP"),
        add("silent", *THREE),
        add("two", *THREE),
    )
    cluster.run(milliseconds=20)
    assert bodies(first, client.replies()) == [b"one", b"two"]  # type: ignore[arg-type]


def test_a_client_with_a_pipeline_is_shown_as_one_blocked_client(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second)
    pipelined(cluster, *[add(f"{number}", *THREE) for number in range(10)])
    cluster.run(milliseconds=20)
    assert b"blocked_clients:1\r" in first.admin.raw("INFO", "clients")


def test_an_asynchronous_add_that_a_slow_link_holds_back_holds_back_the_next_ones(cluster: Cluster) -> None:
    first = cluster.members[0]
    for peer in first.node.state.view.peers.values():
        assert peer.link is not None
        peer.link.congested = True
    requests = [add(f"{number}", *THREE, "ASYNC") for number in range(3)]
    pipelined(cluster, *requests)
    assert waits(cluster) == 1
