"""NACK, ENQUEUE, DEQUEUE and WORKING: how workers and administrators control the next delivery of a job."""

from __future__ import annotations

import pytest

from disqued.core.jobs.jobid import JobIds
from disqued.testing.host import FakeHost
from disqued.testing.local import NODE_ID, LocalClient, LocalNode

UNKNOWN = JobIds(NODE_ID, FakeHost(seed=99).random_bytes).make(86400, at_least_once=True)
LIST_COMMANDS = ("NACK", "ENQUEUE", "DEQUEUE", "ACKJOB", "FASTACK", "DELJOB")


def counters(client: LocalClient, job: bytes) -> tuple[object, object]:
    shown = client.show(job)
    return shown["nacks"], shown["additional-deliveries"]


@pytest.mark.parametrize("command", LIST_COMMANDS)
def test_command_without_known_ids_changes_nothing(client: LocalClient, command: str) -> None:
    assert client.call(command) == 0
    assert client.call(command, UNKNOWN, UNKNOWN) == 0


@pytest.mark.parametrize("command", LIST_COMMANDS)
def test_command_with_one_invalid_id_changes_no_job(client: LocalClient, command: str) -> None:
    queued, active = client.add("mail"), client.add("mail", "later", "DELAY", 10)
    reply = client.call(command, queued, active, b"D-nonsense")
    assert str(reply) == "BADID Invalid Job ID format."
    assert (client.show(queued)["state"], client.show(active)["state"]) == (b"queued", b"active")


def test_nack_gives_the_job_to_the_next_worker_and_counts_the_failure(client: LocalClient) -> None:
    job = client.add("mail")
    client.take("mail")
    assert client.call("NACK", job) == 1
    assert counters(client, job) == (1, 0)
    assert client.take("mail") == [job]


def test_enqueue_counts_an_additional_delivery(client: LocalClient) -> None:
    job = client.add("mail")
    client.take("mail")
    assert client.call("ENQUEUE", job) == 1
    assert counters(client, job) == (0, 1)


def test_a_retry_counts_as_an_additional_delivery(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "again", "RETRY", 1)
    client.take("mail")
    local.run(seconds=2)
    assert counters(client, job) == (0, 1)


def test_only_active_jobs_are_queued_and_counted(client: LocalClient) -> None:
    active, queued = client.add("mail"), client.add("mail")
    client.take("mail")
    assert client.call("NACK", active, queued, UNKNOWN, active) == 1
    assert counters(client, queued) == (0, 0)


def test_delayed_job_queued_early_counts_no_additional_delivery(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "later", "DELAY", 10, "RETRY", 60)
    assert client.call("ENQUEUE", job) == 1
    assert counters(client, job) == (0, 0)
    assert client.take("mail") == [job]
    local.run(seconds=20)
    assert client.take("mail") == [], "the delay is over and forgotten"
    local.run(seconds=45)
    assert client.take("mail") == [job], "the retry time counts from the early queueing"


def test_a_delayed_at_most_once_job_that_was_queued_early_is_not_queued_again(
    local: LocalNode, client: LocalClient
) -> None:
    job = client.add("mail", "once", "DELAY", 2, "RETRY", 0)
    assert client.call("ENQUEUE", job) == 1
    assert client.take("mail") == [job]
    local.run(seconds=5)
    assert client.take("mail") == []


@pytest.mark.parametrize("command", ["NACK", "ENQUEUE"])
def test_job_of_a_queue_paused_in_input_can_be_queued_by_command(client: LocalClient, command: str) -> None:
    job = client.add("mail")
    client.take("mail")
    client.call("PAUSE", "mail", "in")
    assert client.call(command, job) == 1


def test_dequeued_job_is_requeued_after_its_retry_time(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "again", "RETRY", 5)
    before = client.show(job)["next-requeue-within"]
    assert client.call("DEQUEUE", job) == 1
    shown = client.show(job)
    assert (shown["state"], shown["next-requeue-within"]) == (b"active", before)
    assert client.call("DEQUEUE", job) == 0
    assert client.take("mail") == []
    assert client.stat("mail")["jobs-out"] == 0
    local.run(seconds=6)
    assert client.take("mail") == [job]


def test_dequeued_at_most_once_job_is_never_delivered(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "once", "RETRY", 0)
    assert client.call("DEQUEUE", job) == 1
    assert client.call("ENQUEUE", job) == 0
    local.run(seconds=10)
    assert client.take("mail") == []
    assert client.show(job)["state"] == b"active"


def test_working_postpones_the_next_delivery(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "long work", "RETRY", 5)
    client.take("mail")
    for _ in range(4):
        local.run(seconds=4)
        assert client.call("WORKING", job) == 5
        assert client.take("mail") == []
    local.run(milliseconds=4749)
    assert client.take("mail") == []
    local.run(milliseconds=518)
    assert client.take("mail") == [job]
    assert counters(client, job) == (0, 1)


def test_working_on_a_queued_job_takes_it_out_of_the_queue(client: LocalClient) -> None:
    job = client.add("mail", "mine", "RETRY", 5)
    assert client.call("WORKING", job) == 5
    assert client.show(job)["state"] == b"active"
    assert client.take("mail") == []


def test_working_is_refused_when_more_than_half_of_the_ttl_has_elapsed(local: LocalNode, client: LocalClient) -> None:
    local.run(milliseconds=1000 - local.now_ms % 1000)
    job = client.add("mail", "old", "TTL", 10, "RETRY", 60)
    client.take("mail")
    local.run(milliseconds=5000)
    assert client.call("WORKING", job) == 60
    local.run(milliseconds=1)
    assert str(client.call("WORKING", job)).startswith("TOOLATE Half of job TTL already elapsed")


def test_working_on_an_unknown_job_is_refused(client: LocalClient) -> None:
    assert str(client.call("WORKING", UNKNOWN)) == "NOJOB Job not known in the context of this node."
    assert str(client.call("WORKING", "nonsense")) == "BADID Invalid Job ID format."


def test_working_does_not_requeue_an_at_most_once_job(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "once", "RETRY", 0)
    client.take("mail")
    assert client.call("WORKING", job) == 0
    local.run(seconds=10)
    assert client.take("mail") == []


@pytest.mark.parametrize("command", ["ACKJOB", "FASTACK", "DELJOB"])
@pytest.mark.parametrize("delivered", [True, False])
def test_finished_job_is_deleted_and_not_requeued(
    local: LocalNode, client: LocalClient, command: str, delivered: bool
) -> None:
    job = client.add("mail", "done", "RETRY", 1)
    if delivered:
        client.take("mail")
    assert client.call(command, job) == 1
    assert client.show(job) == {}
    assert client.call(command, job) == 0
    local.run(seconds=5)
    assert client.take("mail") == []
