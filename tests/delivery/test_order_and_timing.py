"""When a job is delivered: order of creation, delays, retries with jitter, and expiry."""

from __future__ import annotations

import pytest

from disqued.testing.local import LocalClient, LocalNode

JITTER_MS = 250
LATENESS_MS = 16
"""How late a timer may fire."""


def milliseconds_until_queued(local: LocalNode, client: LocalClient, queue: str, at_most_ms: int) -> int:
    """Let time pass until the queue has a job; returns the milliseconds that passed."""
    for passed_ms in range(at_most_ms):
        if client.call("QLEN", queue) == 1:
            return passed_ms
        local.run(milliseconds=1)
    raise AssertionError(f"nothing was queued for {at_most_ms} ms")


def test_jobs_are_delivered_in_the_order_in_which_they_were_added(client: LocalClient) -> None:
    ids = [client.add("mail", f"letter {number}") for number in range(20)]
    assert client.take("mail", count=100) == ids


def test_jobs_added_by_two_clients_in_one_millisecond_keep_their_order(local: LocalNode) -> None:
    one, two = local.client(), local.client()
    ids = [client.add("mail") for client in (one, two, two, one)]
    assert one.take("mail", count=100) == ids


def test_requeued_job_is_delivered_before_younger_jobs(local: LocalNode, client: LocalClient) -> None:
    old = client.add("mail", "old", "RETRY", 1)
    assert client.take("mail") == [old]
    young = client.add("mail", "young", "RETRY", 100)
    local.run(seconds=2)
    assert client.take("mail", count=2) == [old, young]


def test_a_delayed_job_is_queued_when_its_delay_is_over(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "later", "DELAY", 3)
    assert client.show(job)["state"] == b"active"
    assert client.call("QLEN", "mail") == 0
    passed_ms = milliseconds_until_queued(local, client, "mail", 4000)
    assert 3000 <= passed_ms <= 3000 + LATENESS_MS
    assert client.show(job)["additional-deliveries"] == 0


def test_delayed_job_is_ordered_by_its_creation_time(local: LocalNode, client: LocalClient) -> None:
    delayed = client.add("mail", "first", "DELAY", 1)
    at_once = client.add("mail", "second")
    local.run(seconds=2)
    assert client.take("mail", count=2) == [delayed, at_once]


def test_a_delayed_at_most_once_job_is_delivered_once(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "once", "DELAY", 1, "RETRY", 0, "TTL", 100)
    local.run(seconds=2)
    assert client.take("mail") == [job]
    local.run(seconds=90)
    assert client.take("mail") == []


def test_unacknowledged_job_is_requeued_after_its_retry_time(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "again", "RETRY", 5)
    assert client.take("mail") == [job]
    passed_ms = milliseconds_until_queued(local, client, "mail", 6000)
    assert abs(passed_ms - 5000) <= JITTER_MS + LATENESS_MS
    shown = client.show(job)
    assert (shown["state"], shown["nacks"], shown["additional-deliveries"]) == (b"queued", 0, 1)


def test_the_retry_times_of_many_jobs_are_spread(local: LocalNode, client: LocalClient) -> None:
    for _ in range(200):
        client.add("mail", "again", "RETRY", 5)
    assert len(client.take("mail", count=200)) == 200
    local.run(milliseconds=5000 - JITTER_MS - 1)
    assert client.call("QLEN", "mail") == 0
    local.run(milliseconds=JITTER_MS)
    some = client.call("QLEN", "mail")
    assert isinstance(some, int)
    assert 50 < some < 150
    local.run(milliseconds=JITTER_MS + LATENESS_MS)
    assert client.call("QLEN", "mail") == 200


def test_job_is_requeued_repeatedly_until_it_is_acknowledged(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "again", "RETRY", 2)
    for times in range(5):
        assert client.take("mail") == [job]
        assert client.show(job)["additional-deliveries"] == times
        local.run(milliseconds=2000 + JITTER_MS + LATENESS_MS)
    assert client.take("mail") == [job]
    assert client.call("ACKJOB", job) == 1
    local.run(seconds=60)
    assert client.take("mail") == []


def test_a_job_that_waits_in_its_queue_is_not_queued_twice(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "patient", "RETRY", 1)
    local.run(seconds=30)
    assert client.stat("mail")["jobs-in"] == 1
    assert client.show(job)["additional-deliveries"] == 0
    assert client.take("mail", count=5) == [job]


@pytest.mark.parametrize("waited_s", [0, 1, 8])
def test_retry_time_counts_from_the_delivery_of_a_job_that_waited(
    local: LocalNode, client: LocalClient, waited_s: int
) -> None:
    job = client.add("mail", "again", "RETRY", 10)
    local.run(seconds=waited_s)
    assert client.take("mail") == [job]
    passed_ms = milliseconds_until_queued(local, client, "mail", 11_000)
    spent_ms = waited_s * 1000 if waited_s <= 10 / 8 else 0
    assert abs(passed_ms - (10_000 - spent_ms)) <= JITTER_MS + LATENESS_MS


def test_at_most_once_job_is_never_requeued(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "once", "RETRY", 0, "TTL", 50)
    assert client.take("mail") == [job]
    assert [client.call(command, job) for command in ("NACK", "ENQUEUE")] == [0, 0]
    local.run(seconds=49)
    assert client.take("mail") == []
    assert client.show(job)["next-requeue-within"] is None
    local.run(seconds=3)
    assert client.show(job) == {}


@pytest.mark.parametrize("fraction_ms", [0, 1, 500, 999])
@pytest.mark.parametrize("options", [("RETRY", 100), ("RETRY", 0), ("RETRY", 100, "DELAY", 2)])
def test_job_expires_within_a_second_after_its_ttl(
    local: LocalNode, client: LocalClient, fraction_ms: int, options: tuple[str | int, ...]
) -> None:
    local.run(milliseconds=fraction_ms or 1000)
    job = client.add("mail", "mortal", "TTL", 5, *options)
    client.take("mail")
    local.run(milliseconds=4999)
    assert client.show(job)["id"] == job
    local.run(milliseconds=1001 + LATENESS_MS)
    assert client.show(job) == {}
    assert client.call("QLEN", "mail") == 0


def test_job_due_for_a_requeue_in_its_last_second_expires(local: LocalNode, client: LocalClient) -> None:
    local.run(milliseconds=1000 - local.now_ms % 1000)
    job = client.add("mail", "mortal", "TTL", 5, "RETRY", 2)
    assert client.take("mail") == [job]
    for _ in range(2):
        local.run(milliseconds=2250)
        assert client.take("mail") == [job]
    local.run(milliseconds=1500 + LATENESS_MS)
    assert client.show(job) == {}


def test_expired_jobs_are_counted(local: LocalNode, client: LocalClient) -> None:
    for _ in range(3):
        client.add("mail", "mortal", "TTL", 1)
    kept = client.add("mail", "lasting", "TTL", 100)
    local.run(seconds=3)
    info = client.call("INFO", "all")
    assert isinstance(info, bytes)
    assert b"expired_jobs:3\r\n" in info
    assert client.take("mail", count=5) == [kept]


@pytest.mark.parametrize("second_begun_ms", range(0, 1000, 125))
def test_job_expires_on_time_when_a_retry_is_due_before(
    local: LocalNode, client: LocalClient, second_begun_ms: int
) -> None:
    local.run(milliseconds=1000 + second_begun_ms - local.now_ms % 1000)
    job = client.add("mail", "mortal", "TTL", 2, "RETRY", 1)
    assert client.take("mail") == [job]
    local.run(milliseconds=1999)
    assert client.show(job) != {}
    local.run(milliseconds=1001 + LATENESS_MS)
    assert client.show(job) == {}


def test_job_expires_when_its_ttl_ends_before_its_first_retry(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "short", "TTL", 2, "RETRY", 100)
    assert client.take("mail") == [job]
    local.run(milliseconds=3000 + LATENESS_MS)
    assert client.show(job) == {}


def test_the_time_to_live_is_shown_in_seconds_and_never_below_zero(local: LocalNode, client: LocalClient) -> None:
    local.run(milliseconds=999 - local.now_ms % 1000)
    job = client.add("mail", "mortal", "TTL", 2, "RETRY", 100)
    assert client.show(job)["ttl"] == 2
    local.run(milliseconds=2001)
    assert client.show(job)["ttl"] == 0
