"""PAUSE on one node: what it stops, what it allows, and how its options combine."""

from __future__ import annotations

import pytest

from disqued.testing.local import LocalClient, LocalNode


@pytest.mark.parametrize(
    ("options", "state"),
    [
        (["in"], b"in"),
        (["out"], b"out"),
        (["all"], b"all"),
        (["none"], b"none"),
        (["in", "out"], b"all"),
        (["in", "none", "out"], b"out"),
        (["ALL", "none"], b"none"),
        (["state"], b"none"),
        (["bcast"], b"none"),
        (["in", "bcast", "state"], b"in"),
    ],
)
def test_options_apply_from_left_to_right_and_the_reply_is_the_result(
    client: LocalClient, options: list[str], state: bytes
) -> None:
    assert client.raw("PAUSE", "mail", *options) == b"+" + state + b"\r\n"
    assert client.call("PAUSE", "mail", "state") == state
    assert client.stat("mail").get("pause") == (None if state == b"none" else state), (
        "a queue without a pause is not created"
    )


def test_a_new_pause_replaces_the_old_one(client: LocalClient) -> None:
    assert [client.call("PAUSE", "mail", option) for option in ("in", "out", "state")] == [b"in", b"out", b"out"]


def test_an_unknown_option_changes_nothing(client: LocalClient) -> None:
    client.call("PAUSE", "mail", "in")
    assert str(client.call("PAUSE", "mail", "none", "sideways")) == "ERR syntax error"
    assert client.call("PAUSE", "mail", "state") == b"in"


def test_queue_paused_in_input_refuses_new_jobs_and_delivers_its_jobs(client: LocalClient) -> None:
    job = client.add("mail")
    client.call("PAUSE", "mail", "in")
    refused = client.call("ADDJOB", "mail", "body", 0)
    assert str(refused) == "PAUSED Queue paused in input, try later"
    assert client.take("mail") == [job]
    client.call("PAUSE", "mail", "none")
    client.add("mail")


def test_queue_paused_in_output_accepts_jobs_and_delivers_none(client: LocalClient) -> None:
    client.call("PAUSE", "mail", "out")
    job = client.add("mail")
    assert client.take("mail") == []
    assert client.call("QPEEK", "mail", 1) == [[b"mail", job, b"body"]]
    client.call("PAUSE", "mail", "none")
    assert client.take("mail") == [job]


def test_retries_wait_while_the_input_is_paused(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "again", "RETRY", 2)
    client.take("mail")
    client.call("PAUSE", "mail", "in")
    local.run(seconds=7)
    assert client.call("QLEN", "mail") == 0
    assert client.show(job)["additional-deliveries"] == 0
    client.call("PAUSE", "mail", "none")
    local.run(seconds=3)
    assert client.take("mail") == [job]


def test_delayed_at_most_once_job_is_queued_despite_the_pause(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "once", "RETRY", 0, "DELAY", 1)
    client.call("PAUSE", "mail", "in")
    local.run(seconds=2)
    assert client.take("mail") == [job]


def test_a_delayed_job_with_retries_waits_for_the_end_of_the_pause(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "later", "RETRY", 3, "DELAY", 1)
    client.call("PAUSE", "mail", "in")
    local.run(seconds=2)
    client.call("PAUSE", "mail", "none")
    assert client.take("mail") == []
    local.run(seconds=4)
    assert client.take("mail") == [job]


def test_other_queues_are_served_while_one_is_paused(client: LocalClient) -> None:
    client.add("paused")
    client.call("PAUSE", "paused", "all")
    job = client.add("open")
    assert client.take("paused", "open", count=5) == [job]


def test_idle_queue_is_kept_while_it_is_paused(local: LocalNode, client: LocalClient) -> None:
    client.call("PAUSE", "mail", "all")
    local.run(seconds=400)
    assert client.stat("mail")["pause"] == b"all"
    client.call("PAUSE", "mail", "none")
    local.run(seconds=1)
    assert client.stat("mail") == {}
