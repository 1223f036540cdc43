"""Jobs with a higher priority are delivered first, also when they come back; and what a job has beside its body."""

from __future__ import annotations

import pytest

from disqued.core.jobs.attributes import MAX_META_BYTES
from disqued.testing.local import LocalClient, LocalNode
from support.asking import ask


def peeked(client: LocalClient, queue: str, count: int) -> list[bytes]:
    """The IDs in the reply of QPEEK."""
    return [job[1] for job in ask(client, "QPEEK", queue, count)]


def test_jobs_with_a_higher_priority_are_delivered_first(client: LocalClient) -> None:
    low = client.add("mail", "low", "PRIORITY", -1)
    plain = client.add("mail", "plain")
    high = client.add("mail", "high", "PRIORITY", 7)
    highest = client.add("mail", "highest", "PRIORITY", (1 << 31) - 1)
    second = client.add("mail", "high too", "PRIORITY", 7)
    assert client.take("mail", count=10) == [highest, high, second, plain, low]


def test_priority_0_is_the_default(client: LocalClient) -> None:
    first = client.add("mail", "zero", "PRIORITY", 0)
    second = client.add("mail", "none")
    assert client.take("mail", count=2) == [first, second]
    assert "priority" not in client.show(first)


def test_job_waits_as_long_as_jobs_with_a_higher_priority_come(local: LocalNode, client: LocalClient) -> None:
    low = client.add("mail", "low", "PRIORITY", -1, "TTL", 60)
    for _ in range(60):
        urgent = client.add("mail", "urgent")
        assert client.take("mail") == [urgent]
        local.run(seconds=1)
    local.run(seconds=2)
    assert client.show(low) == {}


def test_several_queues_are_served_in_turn_whatever_their_priorities(client: LocalClient) -> None:
    plain = client.add("a")
    urgent = [client.add("b", "b", "PRIORITY", priority) for priority in (1, 2)]
    assert client.take("a", "b", count=3) == [plain, urgent[1], urgent[0]]


@pytest.mark.parametrize("command", ["NACK", "ENQUEUE"])
def test_job_that_comes_back_keeps_its_priority(client: LocalClient, command: str) -> None:
    job = client.add("mail", "failing", "PRIORITY", 5)
    client.add("mail", "other")
    assert client.take("mail") == [job]
    client.call(command, job)
    assert client.take("mail") == [job]


def test_job_keeps_its_priority_when_its_retry_time_is_over(local: LocalNode, client: LocalClient) -> None:
    low = client.add("mail", "low", "PRIORITY", -5, "RETRY", 1)
    assert client.take("mail") == [low]
    plain = client.add("mail", "plain")
    local.run(seconds=2)
    assert client.take("mail", count=2) == [plain, low]


def test_delayed_job_is_queued_with_its_priority(local: LocalNode, client: LocalClient) -> None:
    plain = client.add("mail", "plain")
    urgent = client.add("mail", "urgent", "PRIORITY", 1, "DELAY", 1)
    local.run(seconds=2)
    assert client.take("mail", count=2) == [urgent, plain]


def test_client_that_waits_gets_the_job_of_the_highest_priority(local: LocalNode, client: LocalClient) -> None:
    worker = local.client()
    worker.send("GETJOB", "FROM", "mail")
    client.call("PAUSE", "mail", "out")
    client.add("mail", "plain")
    urgent = client.add("mail", "urgent", "PRIORITY", 3)
    client.call("PAUSE", "mail", "none")
    assert worker.next_reply() == [[b"mail", urgent, b"urgent"]]


def test_jobs_are_peeked_in_the_order_of_delivery(client: LocalClient) -> None:
    added = {priority: client.add("mail", "body", "PRIORITY", priority) for priority in (0, 4, -2, 9)}
    assert peeked(client, "mail", 3) == [added[9], added[4], added[0]]
    assert peeked(client, "mail", -3) == [added[-2], added[0], added[4]]
    assert client.take("mail", count=4) == peeked_before(added)


def peeked_before(added: dict[int, bytes]) -> list[bytes]:
    return [added[priority] for priority in (9, 4, 0, -2)]


def test_long_peek_continues_behind_the_last_job(client: LocalClient) -> None:
    jobs = [(number % 5 - 2, client.add("mail", "body", "PRIORITY", number % 5 - 2)) for number in range(700)]
    ordered = [job for _, job in sorted(jobs, key=lambda pair: -pair[0])]
    assert peeked(client, "mail", 700) == ordered
    assert peeked(client, "mail", -700) == ordered[::-1]


def test_qstat_counts_jobs_by_priority(client: LocalClient) -> None:
    for priority in (-9, 0, 0, 1, 9, 10, 77):
        client.add("mail", "body", "PRIORITY", priority)
    assert client.stat("mail")["priorities"] == [b"below-0", 1, b"0", 2, b"1-to-9", 2, b"from-10", 2]
    client.take("mail", count=3)
    assert client.stat("mail")["priorities"] == [b"below-0", 1, b"0", 2, b"1-to-9", 1, b"from-10", 0]


def test_withmeta_adds_what_the_producer_gave(client: LocalClient) -> None:
    job = client.add("mail", "hello", "META", b"\0trace", "PRIORITY", -3)
    plain = client.add("mail", "hello")
    assert client.call("GETJOB", "WITHMETA", "COUNT", 2, "FROM", "mail") == [
        [b"mail", plain, b"hello", b"meta", b"", b"priority", 0],
        [b"mail", job, b"hello", b"meta", b"\0trace", b"priority", -3],
    ]


def test_metadata_follows_the_counters_and_the_requeue_time(client: LocalClient) -> None:
    job = client.add("mail", "hello", "META", "m", "RETRY", 0)
    [(_, job_id, _, *fields)] = ask(client, "GETJOB", "WITHMETA", "WITHREQUEUE", "WITHCOUNTERS", "FROM", "mail")
    assert job_id == job
    assert fields[::2] == [b"nacks", b"additional-deliveries", b"requeue-in-ms", b"meta", b"priority"]
    assert fields[1::2] == [0, 0, -1, b"m", 0]


def test_waiting_client_gets_the_metadata(local: LocalNode, client: LocalClient) -> None:
    worker = local.client()
    worker.send("GETJOB", "WITHMETA", "FROM", "mail")
    job = client.add("mail", "hello", "META", "m")
    assert worker.next_reply() == [[b"mail", job, b"hello", b"meta", b"m", b"priority", 0]]


def test_show_has_metadata_and_priority(client: LocalClient) -> None:
    job = client.add("mail", "hello", "META", "m" * MAX_META_BYTES, "PRIORITY", 8)
    shown = client.show(job)
    assert (shown["meta"], shown["priority"]) == (b"m" * MAX_META_BYTES, 8)


@pytest.mark.parametrize("priority", ["x", 1 << 31, -(1 << 31) - 1])
def test_priority_must_be_a_number_of_32_bits(client: LocalClient, priority: str | int) -> None:
    reply = client.raw("ADDJOB", "mail", "body", 0, "PRIORITY", priority)
    assert reply == b"-ERR PRIORITY must be between -2147483648 and 2147483647\r\n"


def test_metadata_has_at_most_4_kib(client: LocalClient) -> None:
    reply = client.raw("ADDJOB", "mail", "body", 0, "META", "m" * (MAX_META_BYTES + 1))
    assert reply == b"-ERR META must have at most 4096 bytes, not 4097\r\n"
