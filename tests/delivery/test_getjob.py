"""GETJOB without waiting: options, several queues, counters, and the reply when all queues are empty."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from disqued.client import ResponseError
from disqued.core.memory.accounting import BASE_BYTES, CLIENT_BYTES, WAIT_BYTES, queue_bytes
from disqued.delivery.getjob import MOST_QUEUES
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


def test_a_queue_is_not_made_only_to_see_that_it_has_no_job(local: LocalNode, client: LocalClient) -> None:
    assert client.take("missing", "none") == []
    assert len(local.node.state.lifecycle.queues) == 0


def test_the_number_of_queues_of_a_request_is_bounded(local: LocalNode, client: LocalClient) -> None:
    names = [f"queue {number}" for number in range(MOST_QUEUES + 1)]
    assert client.raw("GETJOB", "FROM", *names) == (
        f"-ERR GETJOB takes at most {MOST_QUEUES} queues, {MOST_QUEUES + 1} were given\r\n".encode()
    )
    assert len(local.node.state.lifecycle.queues) == 0
    client.send("GETJOB", "TIMEOUT", 100, "FROM", *names[1:], *names[1:])
    assert len(local.node.state.lifecycle.queues) == MOST_QUEUES


def test_no_queues_are_made_for_waiting_clients_when_memory_is_used_up(local: LocalNode, client: LocalClient) -> None:
    """Clients that wait for more and more queues must not fill the memory past its limit."""
    client.call("CONFIG", "SET", "maxmemory", "3mb")
    refused = b""
    for number in range(40):
        waiting = local.client()
        names = [f"{number} {queue}" for queue in range(MOST_QUEUES)]
        waiting.send("GETJOB", "FROM", *names)
        refused = waiting.received
    assert refused.startswith(b"-OOM command not allowed when used memory > 'maxmemory'.")
    memory = local.node.state.lifecycle.memory
    assert memory.used_bytes < memory.maximum_bytes * 2
    worker = local.client()
    assert worker.raw("PAUSE", "new", "in").startswith(b"-OOM ")
    assert worker.call("PAUSE", "0 0", "in") == b"in"
    worker.send("GETJOB", "FROM", "0 0")
    assert worker.silent, "a client may wait for a queue that exists"


def test_waits_are_counted_and_no_longer_when_they_end(local: LocalNode, client: LocalClient) -> None:
    memory = local.node.state.lifecycle.memory
    client.send("GETJOB", "TIMEOUT", 100, "FROM", "a", "b", "a")
    queues = queue_bytes(b"a") + queue_bytes(b"b")
    assert memory.used_bytes == BASE_BYTES + CLIENT_BYTES + queues + 2 * WAIT_BYTES
    local.run(milliseconds=200)
    assert memory.used_bytes == BASE_BYTES + CLIENT_BYTES + queues


def test_a_paused_queue_goes_when_it_is_resumed_and_idle(local: LocalNode, client: LocalClient) -> None:
    client.call("PAUSE", "mail", "in")
    local.run(seconds=400)
    assert len(local.node.state.lifecycle.queues) == 1
    client.call("PAUSE", "mail", "none")
    local.run(seconds=400)
    assert len(local.node.state.lifecycle.queues) == 0


def test_a_queue_that_is_empty_is_visited_once(client: LocalClient) -> None:
    """A request with COUNT and many names must not visit them all for each job."""
    ids = [client.add("mail", str(number)) for number in range(300)]
    for number in range(MOST_QUEUES - 2):
        client.call("PAUSE", f"queue {number}", "in")
    client.add("held")
    client.call("PAUSE", "held", "out")
    names = [*(f"queue {number}" for number in range(MOST_QUEUES - 2)), "held", "mail"]
    visits = 0

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal visits
        visits += event == "call" and frame.f_code.co_name == "take"

    sys.setprofile(count)
    try:
        taken = client.take(*names, count=512)
    finally:
        sys.setprofile(None)
    assert taken == ids
    assert visits <= MOST_QUEUES + len(ids) + 10
