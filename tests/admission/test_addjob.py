"""ADDJOB: its options and their defaults, the order of its checks, and what it creates."""

from __future__ import annotations

import re

import pytest

from disqued.testing.local import LocalClient, LocalNode

SYNTAX = "ERR syntax error"
ONCE = "ERR With RETRY set to 0 please explicitly set  REPLICATE to 1 (at-most-once delivery)"
LATE = "ERR The specified DELAY is greater than TTL. Job refused since would never be delivered"
FEW = "NOREPL Not enough reachable nodes for the requested replication level"
MAX_S = (1 << 32) - 1


def refusal(client: LocalClient, *options: str | int, timeout: str | int = 0) -> str:
    reply = client.call("ADDJOB", "mail", "body", timeout, *options)
    assert isinstance(reply, Exception), reply
    return str(reply)


def test_the_reply_is_the_id_as_a_status_line(client: LocalClient) -> None:
    assert re.fullmatch(rb"\+D-5ca1ab1e-[\w+/]{24}-05a1\r\n", client.raw("ADDJOB", "mail", "body", 0))


def test_a_plain_job_has_the_defaults(local: LocalNode, client: LocalClient) -> None:
    shown = client.show(client.add("mail", "hello"))
    assert {name: shown[name] for name in ("queue", "body", "state", "repl", "ttl", "delay", "retry", "nacks")} == {
        "queue": b"mail",
        "body": b"hello",
        "state": b"queued",
        "repl": 1,
        "ttl": 86400,
        "delay": 0,
        "retry": 300,
        "nacks": 0,
    }
    assert shown["ctime"] == local.now_ms * 1_000_000


@pytest.mark.parametrize(("ttl_s", "retry_s"), [(1, 1), (9, 1), (20, 2), (2999, 299), (3000, 300), (10**9, 300)])
def test_the_retry_time_is_a_tenth_of_the_time_to_live_within_bounds(
    client: LocalClient, ttl_s: int, retry_s: int
) -> None:
    assert client.show(client.add("mail", "body", "TTL", ttl_s))["retry"] == retry_s


def test_options_come_in_any_order_and_case_and_the_last_one_counts(client: LocalClient) -> None:
    job = client.add("mail", "body", "retry", 7, "ASYNC", "Delay", 3, "TTL", 50, "async", "MAXLEN", 9, "RETRY", 8)
    shown = client.show(job)
    assert (shown["retry"], shown["delay"], shown["ttl"]) == (8, 3, 50)


def test_the_largest_times_that_fit_the_wire_are_kept_exactly(client: LocalClient) -> None:
    job = client.add("mail", "body", "TTL", MAX_S, "RETRY", MAX_S, "DELAY", MAX_S - 1)
    shown = client.show(job)
    assert (shown["ttl"], shown["retry"], shown["delay"]) == (MAX_S, MAX_S, MAX_S - 1)
    assert job.endswith(b"-ffff")


def test_jobs_of_one_millisecond_have_creation_times_in_order(client: LocalClient) -> None:
    ctimes = [client.show(client.add("mail"))["ctime"] for _ in range(3)]
    assert ctimes == [ctimes[0], ctimes[0] + 1, ctimes[0] + 2]  # type: ignore[operator]


def test_queue_names_and_bodies_are_any_bytes(client: LocalClient) -> None:
    name = b"\0 \r\n\xff"
    job = client.call("ADDJOB", name, b"", 0)
    assert client.call("GETJOB", "NOHANG", "FROM", name) == [[name, job, b""]]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["ASYNC", "now"], SYNTAX),
        (["TTL"], SYNTAX),
        (["RETRY", 5, "MAXLEN"], SYNTAX),
        (["PRIORITIES", 5], SYNTAX),
        (["PRIORITY", "high"], "ERR PRIORITY must be between -2147483648 and 2147483647"),
        (["PRIORITY", 1 << 31], "ERR PRIORITY must be between -2147483648 and 2147483647"),
        (["META", "x" * 4097], "ERR META must have at most 4096 bytes, not 4097"),
        (["REPLICATE", 0], "ERR REPLICATE must be between 1 and 65535"),
        (["REPLICATE", 65536], "ERR REPLICATE must be between 1 and 65535"),
        (["REPLICATE", "x"], "ERR REPLICATE must be between 1 and 65535"),
        (["TTL", 0], "ERR TTL must be a number > 0"),
        (["TTL", "x"], "ERR TTL must be a number > 0"),
        (["TTL", MAX_S + 1], f"ERR TTL must be at most {MAX_S} seconds"),
        (["RETRY", -1], "ERR RETRY time must be a non negative number"),
        (["RETRY", MAX_S + 1], f"ERR RETRY must be at most {MAX_S} seconds"),
        (["DELAY", -1], "ERR DELAY time must be a non negative number"),
        (["DELAY", "1.5"], "ERR DELAY time must be a non negative number"),
        (["MAXLEN", 0], "ERR MAXLEN must be a positive number"),
        (["MAXLEN", "x"], "ERR MAXLEN must be a positive number"),
        (["REPLICATE", 2, "RETRY", 0], ONCE),
        (["DELAY", 10, "TTL", 10], LATE),
        (["DELAY", 11, "TTL", 10], LATE),
        (["REPLICATE", 2], FEW),
        (["REPLICATE", 2, "ASYNC"], FEW),
    ],
)
def test_invalid_options_are_refused_and_create_nothing(
    client: LocalClient, options: list[str | int], text: str
) -> None:
    assert refusal(client, *options) == text
    assert client.call("JSCAN") == [b"0", []]


@pytest.mark.parametrize(
    ("timeout", "text"), [("x", "ERR timeout is not an integer or out of range"), (-1, "ERR timeout is negative")]
)
def test_the_timeout_is_checked(client: LocalClient, timeout: str | int, text: str) -> None:
    assert refusal(client, timeout=timeout) == text


def test_the_first_of_several_errors_in_the_order_of_checks_is_reported(client: LocalClient) -> None:
    client.add("mail")
    client.call("PAUSE", "mail", "in")
    faults: list[tuple[str, list[str | int], str | int]] = [
        ("ERR TTL must be a number > 0", ["TTL", 0], 0),
        ("ERR timeout is negative", [], -1),
        (ONCE, ["REPLICATE", 2, "RETRY", 0], 0),
        (LATE, ["DELAY", 5, "TTL", 5], 0),
        (FEW, ["REPLICATE", 2], 0),
        ("MAXLEN Queue is already longer than the specified MAXLEN count", ["MAXLEN", 1], 0),
        ("PAUSED Queue paused in input, try later", [], 0),
    ]
    for at, (text, _, _) in enumerate(faults):
        later = faults[at:]
        # The faults behind come first in the request, so that only the order of checks can tell.
        options = [word for _, words, _ in reversed(later) for word in words]
        options += ["RETRY", 0] if text == ONCE else []
        timeout = next((value for _, _, value in later if value), 0)
        if text == LATE:
            options += ["REPLICATE", 1]
        assert refusal(client, *options, timeout=timeout) == text


def test_maxlen_counts_what_waits_in_the_queue(client: LocalClient) -> None:
    first, second = client.add("mail", "1", "MAXLEN", 2), client.add("mail", "2", "MAXLEN", 2)
    assert refusal(client, "MAXLEN", 2) == "MAXLEN Queue is already longer than the specified MAXLEN count"
    client.add("mail", "3", "MAXLEN", 3)
    client.take("mail", count=2)
    assert client.call("ACKJOB", first, second) == 2
    client.add("mail", "4", "MAXLEN", 2)


def test_maxlen_is_checked_when_the_job_is_added_not_when_its_delay_ends(local: LocalNode, client: LocalClient) -> None:
    for _ in range(3):
        client.add("mail", "later", "DELAY", 1, "MAXLEN", 1)
    local.run(seconds=2)
    assert client.call("QLEN", "mail") == 3
