"""ADDJOB KEY UNTIL done: the key is free when the job ends, and not before."""

from __future__ import annotations

import pytest

from admission.test_keys import remembered, set_memory, used_bytes
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode

OPTIONS = ("KEY", "k", "UNTIL", "done")


def test_the_key_is_kept_while_the_job_is_unfinished_however_long(local: LocalNode, client: LocalClient) -> None:
    job_id = client.add("mail", "body", *OPTIONS)
    local.run(seconds=3600)
    assert client.add("mail", "body", *OPTIONS) == job_id
    assert client.take("mail") == [job_id]
    assert client.add("mail", "body", *OPTIONS) == job_id


@pytest.mark.parametrize("command", ["ACKJOB", "FASTACK", "DELJOB"])
def test_the_key_is_free_when_the_job_ends(client: LocalClient, command: str) -> None:
    client.call("FASTACK", client.add("mail", "body"))
    client.local.run(seconds=2)
    free = used_bytes(client.local)
    job_id = client.add("mail", "body", *OPTIONS)
    assert client.call(command, job_id) == 1
    assert remembered(client.local) == 0
    client.local.run(seconds=2)
    assert used_bytes(client.local) == free
    assert client.add("mail", "body", *OPTIONS) != job_id


def test_the_key_is_free_when_the_job_expires(local: LocalNode, client: LocalClient) -> None:
    first = client.add("mail", "body", "TTL", 60, *OPTIONS)
    local.run(seconds=62)
    assert remembered(local) == 0
    assert client.add("mail", "body", *OPTIONS) != first


def test_the_key_is_free_when_the_job_is_moved(local: LocalNode, client: LocalClient) -> None:
    first = client.add("mail", "body", *OPTIONS)
    assert client.call("MOVEJOB", first, "TO", "other") == 1
    local.run(seconds=1)
    assert client.add("mail", "body", *OPTIONS) != first


def test_the_key_is_free_when_the_job_becomes_a_dead_letter(local: LocalNode, client: LocalClient) -> None:
    client.call("QCONF", "mail", "SET", "limit", 1)
    first = client.add("mail", "body", *OPTIONS)
    client.take("mail")
    client.call("NACK", first)
    local.run(seconds=1)
    assert client.call("QLEN", "mail.dead") == 1
    assert client.add("mail", "body", *OPTIONS) != first


def test_an_add_until_done_counts_as_the_same_as_one_with_a_window(local: LocalNode, client: LocalClient) -> None:
    """From then on the key is kept until the job ends."""
    first = client.add("mail", "body", "KEY", "k", "WINDOW", 10)
    local.run(seconds=5)
    assert client.add("mail", "body", *OPTIONS) == first
    local.run(seconds=600)
    assert client.add("mail", "body", *OPTIONS) == first
    client.call("ACKJOB", first)
    assert client.add("mail", "body", "KEY", "k", "WINDOW", 10) != first


def test_a_finished_job_within_its_window_does_not_count(client: LocalClient) -> None:
    first = client.add("mail", "body", "KEY", "k", "WINDOW", 60)
    client.call("ACKJOB", first)
    assert client.add("mail", "body", "KEY", "k", "WINDOW", 60) == first
    assert client.add("mail", "body", *OPTIONS) != first


def test_until_window_is_the_default(local: LocalNode, client: LocalClient) -> None:
    first = client.add("mail", "body", "KEY", "k", "UNTIL", "window")
    client.call("ACKJOB", first)
    assert client.add("mail", "body", "KEY", "k") == first
    local.run(seconds=301)
    assert client.add("mail", "body", "KEY", "k") != first


def test_a_new_job_under_the_key_outlives_the_end_of_the_former(client: LocalClient) -> None:
    """The end of a job forgets only its own key."""
    first = client.add("mail", "body", "KEY", "k", "WINDOW", 60)
    client.call("ACKJOB", first)
    second = client.add("mail", "body", *OPTIONS)
    client.call("DELJOB", first)
    assert client.add("mail", "body", *OPTIONS) == second


def test_all_keys_are_forgotten_with_all_jobs(client: LocalClient) -> None:
    first = client.add("mail", "body", *OPTIONS)
    client.call("DEBUG", "FLUSHALL")
    second = client.add("mail", "body", *OPTIONS)
    assert second != first
    client.call("ACKJOB", second)
    assert remembered(client.local) == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("UNTIL", "done"), "ERR UNTIL is of use with a KEY only"),
        (("KEY", "k", "UNTIL", "later"), "ERR UNTIL must be window or done"),
        (("KEY", "k", "UNTIL", "done", "WINDOW", 5), "ERR UNTIL done and WINDOW cannot be combined"),
        (("KEY", "k", "UNTIL", "done", "RETRY", 0, "REPLICATE", 1), "ERR UNTIL done needs a RETRY above 0"),
    ],
)
def test_contradictions_are_refused(client: LocalClient, options: tuple[str | int, ...], error: str) -> None:
    assert str(client.call("ADDJOB", "mail", "body", 0, *options)).startswith(error)


def test_a_node_that_keeps_no_jobs_refuses(cluster: Cluster) -> None:
    """It would not notice the end of the job."""
    client = cluster.members[0].admin
    set_memory(client, 80)
    assert str(client.call("ADDJOB", "mail", "body", 0, "REPLICATE", 1, *OPTIONS)).startswith("NOREPL This node leaves")


def test_an_acknowledgement_at_another_node_frees_the_key(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    client = first.client()
    client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 3, *OPTIONS)
    cluster.until(lambda: not client.silent, within_s=1)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    second.admin.call("ACKJOB", job_id)
    cluster.run(seconds=1)
    client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 3, *OPTIONS)
    cluster.until(lambda: not client.silent, within_s=1)
    assert client.next_reply() != job_id
