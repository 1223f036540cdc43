"""QLEN, QPEEK and QSTAT: looking at a queue leaves it as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.asking import ask, pairs

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient, LocalNode


def test_the_length_is_the_number_of_waiting_jobs(client: LocalClient) -> None:
    for body in range(3):
        ask(client, "ADDJOB", "mail", body, 0)
    ask(client, "ADDJOB", "mail", "later", 0, "DELAY", 5)
    assert ask(client, "QLEN", "mail") == 3
    ask(client, "GETJOB", "FROM", "mail")
    assert ask(client, "QLEN", "mail") == 2


def test_only_ordered_queues_are_counted_exactly(client: LocalClient) -> None:
    refusal = b"-ERR EXACT is for ordered queues; the jobs of this queue are counted on each node alone\r\n"
    assert client.raw("QLEN", "mail", "EXACT") == refusal
    assert client.raw("QLEN", "mail", "QUICKLY") == b"-ERR syntax error\r\n"


def test_asking_does_not_make_a_queue(client: LocalClient) -> None:
    assert client.raw("QLEN", "nobody") == b":0\r\n"
    assert client.raw("QPEEK", "nobody", 1) == b"*0\r\n"
    assert client.raw("QSTAT", "nobody") == b"*-1\r\n"
    assert ask(client, "QSCAN") == [b"0", []]


@pytest.mark.parametrize(
    ("count", "bodies"),
    [
        (2, [b"0", b"1"]),
        (-2, [b"4", b"3"]),
        (0, []),
        (99, [b"0", b"1", b"2", b"3", b"4"]),
        (-(1 << 63), [b"4", b"3", b"2", b"1", b"0"]),
    ],
)
def test_peeking_shows_the_oldest_or_the_youngest(client: LocalClient, count: int, bodies: list[bytes]) -> None:
    jobs = [ask(client, "ADDJOB", "mail", body, 0) for body in range(5)]
    peeked = ask(client, "QPEEK", "mail", count)
    assert [body for _, _, body in peeked] == bodies
    assert all(queue == b"mail" and job in jobs for queue, job, _ in peeked)
    assert ask(client, "QLEN", "mail") == 5


def test_peeking_works_on_a_paused_queue(client: LocalClient) -> None:
    ask(client, "ADDJOB", "mail", "body", 0)
    ask(client, "PAUSE", "mail", "all")
    peeked = ask(client, "QPEEK", "mail", 1)
    assert peeked[0][2] == b"body"


def test_peeking_needs_a_number(client: LocalClient) -> None:
    assert client.raw("QPEEK", "mail", "x") == b"-ERR value is not an integer or out of range\r\n"


def test_statistics_follow_what_happens_to_the_queue(local: LocalNode, client: LocalClient) -> None:
    ask(client, "ADDJOB", "mail", "one", 0)
    ask(client, "ADDJOB", "mail", "two", 0)
    local.run(seconds=7)
    ask(client, "GETJOB", "FROM", "mail")
    local.run(seconds=2)
    ask(client, "PAUSE", "mail", "in")
    assert pairs(client, "QSTAT", "mail") == {
        b"name": b"mail",
        b"len": 1,
        b"age": 9,
        b"idle": 2,
        b"blocked": 0,
        b"import-from": [],
        b"import-rate": 0,
        b"jobs-in": 2,
        b"jobs-out": 1,
        b"pause": b"in",
        b"leased": 1,
        b"delayed": 0,
        b"dead": 0,
        b"oldest-ms": 9000,
        b"settings": [],
        b"held": 0,
        b"limited": b"no",
    }


def test_statistics_show_delayed_and_dead_jobs_and_the_names_of_settings(client: LocalClient) -> None:
    for _ in range(2):
        client.add("mail", "body", "DELAY", 60)
    job = client.add("mail")
    client.call("QCONF", "m*", "SET", "ttl", 60)
    client.call("QCONF", "mail", "SET", "retry", 60)
    stat = client.stat("mail")
    assert (stat["delayed"], stat["dead"], stat["settings"]) == (2, 0, [b"mail", b"m*"])
    client.take("mail")
    client.call("NACK", job, "DEAD")
    assert client.stat("mail")["oldest-ms"] == 0
    assert client.stat("mail.dead")["dead"] == 1
    (dead,) = client.take("mail.dead")
    assert client.stat("mail.dead")["dead"] == 0
    client.call("ENQUEUE", dead)
    assert client.stat("mail.dead")["dead"] == 1
    client.call("DELJOB", dead)
    assert client.stat("mail.dead")["dead"] == 0


def test_leased_jobs_are_counted_until_the_worker_no_longer_has_them(local: LocalNode, client: LocalClient) -> None:
    jobs = [client.add("mail", "x", "RETRY", 60) for _ in range(6)]
    client.add("mail", "x", "RETRY", 0)
    client.take("mail", count=7)
    assert client.stat("mail")["leased"] == 6
    left = 6
    for words in (
        ("ACKJOB", jobs[0]),
        ("NACK", jobs[1]),
        ("NACK", jobs[2], "DELAY", 9),
        ("DELJOB", jobs[3]),
        ("MOVEJOB", jobs[1], "TO", "other"),
        ("ENQUEUE", jobs[4]),
        ("ACKJOB", jobs[4]),
    ):
        left -= words[0] in {"NACK", "DELJOB", "ENQUEUE"} or words == ("ACKJOB", jobs[0])
        client.call(*words)
        assert client.stat("mail")["leased"] == left, words
    local.run(seconds=9.5)
    assert client.take("mail") == [jobs[2]]
    assert client.stat("mail")["leased"] == 2
    local.run(seconds=52)
    assert (client.stat("mail")["leased"], client.stat("mail")["len"]) == (1, 1)
    client.call("DEBUG", "FLUSHALL")
    client.add("mail")
    assert client.stat("mail")["leased"] == 0


def test_queue_is_not_forgotten_while_workers_have_its_jobs(local: LocalNode, client: LocalClient) -> None:
    client.add("mail", "x", "RETRY", 3600)
    (job,) = client.take("mail")
    local.run(seconds=3000)
    assert client.stat("mail")["leased"] == 1
    client.call("ACKJOB", job)
    assert client.stat("mail")["leased"] == 0
    local.run(seconds=3000)
    assert client.call("QSTAT", "mail") is None


def test_a_queue_that_has_only_delayed_jobs_is_seen_and_is_forgotten_after_them(
    local: LocalNode, client: LocalClient
) -> None:
    job = client.add("mail", "later", "DELAY", 7200, "RETRY", 60)
    local.run(seconds=3600)
    assert client.call("QSCAN") == [b"0", [b"mail"]]
    assert (client.stat("mail")["len"], client.stat("mail")["delayed"]) == (0, 1)
    client.call("DELJOB", job)
    assert client.stat("mail")["delayed"] == 0
    local.run(seconds=3600)
    assert client.call("QSTAT", "mail") is None


def test_blocked_clients_are_counted_once_per_queue(local: LocalNode, client: LocalClient) -> None:
    local.client().send("GETJOB", "FROM", "a", "b", "a")
    local.client().send("GETJOB", "FROM", "a")
    assert pairs(client, "QSTAT", "a")[b"blocked"] == 2
    assert pairs(client, "QSTAT", "b")[b"blocked"] == 1
