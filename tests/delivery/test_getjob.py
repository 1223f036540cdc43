"""GETJOB without waiting: options, several queues, counters, and the reply when all queues are empty."""

from __future__ import annotations

import pytest

from disqued.client import ResponseError
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode


def test_reply_has_the_queue_the_id_and_the_body_of_each_job(client: LocalClient) -> None:
    job = client.add("mail", "hello")
    assert client.call("GETJOB", "FROM", "mail") == [[b"mail", job, b"hello"]]


def test_reply_is_an_array_of_arrays_of_bulk_strings(client: LocalClient) -> None:
    job = client.add("mail", "hello")
    assert client.raw("GETJOB", "FROM", "mail") == (b"*1\r\n*3\r\n$4\r\nmail\r\n$40\r\n" + job + b"\r\n$5\r\nhello\r\n")


@pytest.mark.parametrize("body", [b"", b"\0\r\n\xff", b"x" * 16383, b"x" * 16384, b"x" * 100_000])
def test_a_body_comes_back_as_it_was_sent(client: LocalClient, body: bytes) -> None:
    job = client.add("mail", body)
    assert client.call("GETJOB", "FROM", "mail") == [[b"mail", job, body]]


def test_withcounters_adds_nacks_and_additional_deliveries(client: LocalClient) -> None:
    job = client.add("mail", "hello")
    for command in ("NACK", "NACK", "ENQUEUE"):
        assert client.take("mail") == [job]
        assert client.call(command, job) == 1
    assert client.call("GETJOB", "WITHCOUNTERS", "FROM", "mail") == [
        [b"mail", job, b"hello", b"nacks", 2, b"additional-deliveries", 1]
    ]


def requeue_in_ms(client: LocalClient) -> int:
    """Take a job, and return the time until it is delivered again."""
    reply = client.call("GETJOB", "WITHREQUEUE", "FROM", "mail")
    assert isinstance(reply, list)
    [job] = reply
    assert isinstance(job, list)
    assert job[-2] == b"requeue-in-ms"
    assert isinstance(job[-1], int)
    return job[-1]


def test_withrequeue_adds_the_time_until_the_job_is_delivered_again(local: LocalNode, client: LocalClient) -> None:
    client.add("mail", "hello", "RETRY", 100)
    local.run(seconds=2)
    assert 97_500 <= requeue_in_ms(client) <= 98_500, "requeue times are spread over a second"


def test_requeue_time_is_the_whole_retry_time_when_the_job_waited_long(local: LocalNode, client: LocalClient) -> None:
    client.add("mail", "hello", "RETRY", 100)
    local.run(seconds=50)
    left_ms = requeue_in_ms(client)
    assert 99_500 <= left_ms <= 100_500


def test_requeue_time_is_minus_one_for_at_most_once_jobs(client: LocalClient) -> None:
    job = client.add("mail", "hello", "RETRY", 0)
    assert client.call("GETJOB", "WITHREQUEUE", "FROM", "mail") == [[b"mail", job, b"hello", b"requeue-in-ms", -1]]


def test_requeue_time_follows_the_counters(client: LocalClient) -> None:
    job = client.add("mail", "hello", "RETRY", 100)
    reply = client.raw("GETJOB", "WITHREQUEUE", "WITHCOUNTERS", "FROM", "mail")
    assert reply.startswith(b"*1\r\n*9\r\n$4\r\nmail\r\n$40\r\n" + job)
    assert b"$5\r\nnacks\r\n:0\r\n$21\r\nadditional-deliveries\r\n:0\r\n$13\r\nrequeue-in-ms\r\n:" in reply


def test_job_is_delivered_again_after_the_announced_time(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "hello", "RETRY", 100)
    left_ms = requeue_in_ms(client)
    local.run(milliseconds=left_ms - 1)
    assert client.call("QLEN", "mail") == 0
    local.run(seconds=1)
    assert client.take("mail") == [job]


def test_several_queues_are_served_in_turn_one_job_each(client: LocalClient) -> None:
    a = [client.add("a") for _ in range(3)]
    b = [client.add("b") for _ in range(1)]
    c = [client.add("c") for _ in range(3)]
    assert client.take("a", "b", "c", count=6) == [a[0], b[0], c[0], a[1], c[1], a[2]]
    assert client.take("a", "b", "c", count=6) == [c[2]]


def test_the_first_queue_that_has_a_job_is_served(client: LocalClient) -> None:
    second, third = client.add("second"), client.add("third")
    assert client.take("first", "second", "third") == [second]
    assert client.take("third", "second") == [third]


def test_queue_named_twice_is_served_twice(client: LocalClient) -> None:
    ids = [client.add("mail") for _ in range(3)]
    assert client.take("mail", "mail", count=2) == ids[:2]


def test_nohang_replies_with_a_null_array_when_all_queues_are_empty(client: LocalClient) -> None:
    assert client.raw("GETJOB", "NOHANG", "FROM", "mail", "other") == b"*-1\r\n"


def test_options_may_come_in_any_order_and_case(client: LocalClient) -> None:
    client.add("mail")
    reply = client.call("getjob", "timeout", 5, "Count", 2, "withcounters", "NoHang", "from", "mail")
    assert isinstance(reply, list)
    assert len(reply) == 1


def test_all_words_after_from_are_queue_names(client: LocalClient) -> None:
    job = client.add("NOHANG")
    assert client.take("FROM", "NOHANG") == [job]


def test_a_delivered_job_is_active_and_counted_as_out(client: LocalClient) -> None:
    job = client.add("mail")
    client.take("mail")
    assert client.show(job)["state"] == b"active"
    assert (client.stat("mail")["jobs-in"], client.stat("mail")["jobs-out"]) == (1, 1)


SYNTAX = "ERR syntax error"
COUNT = "ERR COUNT must be a number greater than zero"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["FROM"], SYNTAX),
        (["mail"], SYNTAX),
        (["NOHANG"], SYNTAX),
        (["NOHANG", "FROM"], SYNTAX),
        (["COUNT", 1], SYNTAX),
        (["COUNT"], SYNTAX),
        (["BLOCK", "FROM", "mail"], SYNTAX),
        (["COUNT", 0, "FROM", "mail"], COUNT),
        (["COUNT", -1, "FROM", "mail"], COUNT),
        (["COUNT", "many", "FROM", "mail"], COUNT),
        (["TIMEOUT", "x", "FROM", "mail"], "ERR timeout is not an integer or out of range"),
        (["TIMEOUT", -1, "FROM", "mail"], "ERR timeout is negative"),
    ],
)
def test_invalid_arguments_are_refused_and_take_no_job(client: LocalClient, words: list[str | int], text: str) -> None:
    job = client.add("mail")
    reply = client.call("GETJOB", *words)
    assert isinstance(reply, ResponseError)
    assert str(reply) == text
    assert client.show(job)["state"] == b"queued"


def test_leaving_node_delivers_its_jobs_but_lets_no_client_wait() -> None:
    client = Cluster(2).members[0].client()
    job = client.add("mail", "body", "REPLICATE", 1)
    assert client.call("CLUSTER", "LEAVING", "yes") == b"OK"
    assert client.take("mail") == [job]
    assert str(client.call("GETJOB", "FROM", "mail")).startswith("LEAVING This node is leaving the cluster")
