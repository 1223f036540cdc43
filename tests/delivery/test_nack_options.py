"""NACK with DELAY, REASON and UNCOUNTED: when a job comes back, on which node, and what it counts as."""

from __future__ import annotations

import pytest

from disqued.core.jobs.job import DELAYED, Job
from disqued.delivery.postpone import POSTPONE_RECORD, record_fault
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient, LocalNode
from replication.adding import adding, id_of
from support.logging_node import logging_node

RETRY_S = 5


def taken(client: LocalClient, *options: str | int) -> bytes:
    """Add a job to the queue `mail` and take it."""
    job_id = client.call("ADDJOB", "mail", "body", 0, "RETRY", 300, *options)
    assert isinstance(job_id, bytes)
    client.call("GETJOB", "FROM", "mail")
    return job_id


def fetched(client: LocalClient) -> bool:
    return client.call("GETJOB", "NOHANG", "FROM", "mail") is not None


def counters(client: LocalClient, job_id: bytes) -> tuple[object, object]:
    fields = client.show(job_id)
    return fields["nacks"], fields["additional-deliveries"]


@pytest.mark.parametrize(("option", "value"), [("DELAY", 20), ("PDELAY", 20_000)])
def test_a_job_comes_back_after_its_delay_and_counts_one_nack(
    local: LocalNode, client: LocalClient, option: str, value: int
) -> None:
    job_id = taken(client)
    assert client.call("NACK", job_id, option, value) == 1
    assert counters(client, job_id) == (1, 0)
    local.run(milliseconds=19_950)
    assert not fetched(client)
    local.run(milliseconds=100)
    assert fetched(client)
    assert counters(client, job_id) == (1, 0)


def test_a_delayed_job_is_delayed_until_it_is_queued_and_can_be_run_now(local: LocalNode, client: LocalClient) -> None:
    job_id = taken(client)
    client.call("NACK", job_id, "DELAY", 100)
    assert local.node.state.lifecycle.queues.delayed_jobs == 1
    assert client.call("ENQUEUE", job_id) == 1
    assert local.node.state.lifecycle.queues.delayed_jobs == 0
    assert fetched(client)


def test_uncounted_gives_back_at_once_or_later_without_counting(local: LocalNode, client: LocalClient) -> None:
    job_id = taken(client)
    assert client.call("NACK", job_id, "UNCOUNTED") == 1
    assert fetched(client)
    client.call("NACK", job_id, "UNCOUNTED", "DELAY", 5)
    local.run(seconds=6)
    assert fetched(client)
    assert counters(client, job_id) == (0, 0)


def test_the_last_reason_is_kept_with_the_job(client: LocalClient) -> None:
    job_id = taken(client)
    client.call("NACK", job_id, "REASON", "no route to host")
    assert client.show(job_id)["reason"] == b"no route to host"
    client.call("GETJOB", "FROM", "mail")
    client.call("NACK", job_id, "reason", "timeout", "delay", 5)
    assert client.show(job_id)["reason"] == b"timeout"


def test_a_delay_beyond_the_life_of_the_job_is_refused(client: LocalClient) -> None:
    """The error is DelayTooLong; in a list such a job is left out."""
    job_id = taken(client, "TTL", 60)
    reply = client.call("NACK", job_id, "DELAY", 60)
    assert str(reply).startswith("TTL The job expires in 60 seconds")
    other = taken(client, "TTL", 600)
    assert client.call("NACK", job_id, other, "DELAY", 60) == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("DELAY",), "ERR syntax error"),
        (("DELAY", "x"), "ERR DELAY must be between 0 and 4294967295 seconds"),
        (("PDELAY", "-1"), "ERR PDELAY must be between 0 and 4294967295000 milliseconds"),
        (("REASON", "x" * 1025), "ERR REASON must have at most 1024 bytes, not 1025"),
        (("UNCOUNTED", "now"), "ERR syntax error"),
        (("LATER",), "BADID Invalid Job ID format."),
    ],
)
def test_wrong_options_are_refused_and_the_job_stays_with_its_worker(
    client: LocalClient, options: tuple[str, ...], error: str
) -> None:
    job_id = taken(client)
    assert str(client.call("NACK", job_id, *options)).startswith(error)
    assert client.show(job_id)["state"] == b"active"


def test_a_job_that_is_delivered_at_most_once_is_not_postponed(client: LocalClient) -> None:
    job_id = client.call("ADDJOB", "mail", "body", 0, "RETRY", 0, "REPLICATE", 1)
    assert isinstance(job_id, bytes)
    client.call("GETJOB", "FROM", "mail")
    assert client.call("NACK", job_id, "DELAY", 5) == 0


def test_the_reason_of_a_job_that_is_delivered_at_most_once_does_not_bring_it_back_into_the_file() -> None:
    local = logging_node()
    client = local.client()
    job_id = client.call("ADDJOB", "mail", "body", 0, "RETRY", 0, "REPLICATE", 1)
    assert isinstance(job_id, bytes)
    client.call("GETJOB", "FROM", "mail")
    assert client.call("NACK", job_id, "REASON", "no route to host") == 0
    local.restart()
    local.run(seconds=1)
    assert local.client().call("SHOW", job_id) is None


def test_a_late_working_does_not_cut_the_delay_short(local: LocalNode, client: LocalClient) -> None:
    job_id = taken(client)
    client.call("NACK", job_id, "DELAY", 3600)
    assert client.call("WORKING", job_id) == 300
    local.run(seconds=3590)
    assert not fetched(client)
    local.run(seconds=20)
    assert fetched(client)


@pytest.mark.parametrize("rest", [b"1 2", b"1 2 3 4", b"1  1", b"1 2 x", b"-1 2 1", b"9" * 5000 + b" 1 1"])
def test_a_record_of_anything_else_is_refused_before_it_is_loaded(rest: bytes) -> None:
    good = b"D-5ca1ab1e-s2cR6zkGp8hgPXHUCeelTYe9-05a1"
    assert record_fault([POSTPONE_RECORD, good + b" 1800000000000 1 1"]) == ""
    assert record_fault([POSTPONE_RECORD, good + b" " + rest])


def test_the_delay_survives_a_restart_and_a_rewrite() -> None:
    local = logging_node()
    client = local.client()
    job_id = taken(client)
    client.call("NACK", job_id, "DELAY", 3600)
    for _ in range(2):
        local.run(seconds=2)
        local.restart()
        client = local.client()
        while local.node.state.loading:
            local.run(milliseconds=1)
        assert counters(client, job_id) == (1, 0)
        assert local.node.state.lifecycle.queues.delayed_jobs == 1
        client.call("BGREWRITEAOF")
        local.run(seconds=5)
    local.run(seconds=1000)
    assert not fetched(client)
    local.run(seconds=2700)
    assert fetched(client)


# --- in a cluster -----------------------------------------------------------------------------------------------------


def postponed(cluster: Cluster, delay_s: int) -> bytes:
    """Add a job with three copies to the first member, take it there and give it back for later."""
    client = adding(cluster, "REPLICATE", 3, "RETRY", RETRY_S)
    job_id = id_of(cluster, client)
    client.call("GETJOB", "FROM", "mail")
    assert client.call("NACK", job_id, "DELAY", delay_s) == 1
    cluster.run(milliseconds=50)
    return job_id


def job_at(member: Member, job_id: bytes) -> Job:
    job = member.node.state.lifecycle.table.get(job_id)
    assert job is not None
    return job


def queued_at(cluster: Cluster, job_id: bytes, within_s: float) -> int:
    """When the job is queued at one member, in milliseconds from now."""
    began_ms = cluster.members[0].now_ms
    cluster.until(lambda: bool(cluster.copies(job_id, "queued")), within_s=within_s)
    return cluster.members[0].now_ms - began_ms


def test_no_holder_queues_the_job_before_its_time(cluster: Cluster) -> None:
    job_id = postponed(cluster, 60)
    assert [int(job_at(member, job_id).nacks) for member in cluster.members] == [1, 1, 1]
    assert [bool(job_at(member, job_id).flags & DELAYED) for member in cluster.members] == [True, False, False]
    assert 59_900 <= queued_at(cluster, job_id, 61) <= 60_500
    cluster.run(seconds=1)
    assert len(cluster.copies(job_id, "queued")) == 1
    assert {int(job_at(member, job_id).additional_deliveries) for member in cluster.members} == {0}


def test_a_holder_that_missed_the_message_asks_and_waits(cluster: Cluster) -> None:
    cluster.lose("POSTPONE", count=2)
    job_id = postponed(cluster, 60)
    assert queued_at(cluster, job_id, 61) >= 59_500


def test_the_other_holders_queue_the_job_in_time_when_the_node_dies(cluster: Cluster) -> None:
    job_id = postponed(cluster, 60)
    cluster.members[0].crash()
    cluster.run(seconds=58)
    assert not [member for member in cluster.members[1:] if job_at(member, job_id).state == 2]
    cluster.run(seconds=4)
    holders = cluster.members[1:]
    assert sum(job_at(member, job_id).state == 2 for member in holders) == 1
    assert {int(job_at(member, job_id).additional_deliveries) for member in holders} == {0}


def test_a_leaving_node_hands_the_rest_of_the_delay_over(cluster: Cluster) -> None:
    job_id = postponed(cluster, 60)
    leaver = cluster.members[0]
    leaver.admin.call("CLUSTER", "LEAVING", "yes")
    cluster.run(seconds=5)
    assert leaver.node.state.lifecycle.table.get(job_id) is None
    assert 53_000 <= queued_at(cluster, job_id, 58) <= 56_500


def test_a_nack_with_a_delay_is_forwarded_by_a_node_that_gave_the_job_away(cluster: Cluster) -> None:
    client = adding(cluster, "REPLICATE", 3, "RETRY", 300)
    job_id = id_of(cluster, client)
    client.call("GETJOB", "FROM", "mail")
    cluster.members[0].admin.call("CLUSTER", "LEAVING", "yes")
    cluster.run(seconds=5)
    assert client.call("NACK", job_id, "DELAY", 20) == 1
    assert 19_000 <= queued_at(cluster, job_id, 22) <= 21_000


def test_attributes_reach_the_copies_and_the_node_that_imports_the_job(cluster: Cluster) -> None:
    client = adding(cluster, "REPLICATE", 2, "RETRY", 300, "PRIORITY", 5, "META", "trace=1")
    job_id = id_of(cluster, client)
    holders = cluster.copies(job_id)
    assert len(holders) == 2
    (third,) = [member for member in cluster.members if member not in holders]
    worker = third.client()
    worker.send("GETJOB", "FROM", "mail")
    cluster.until(lambda: not worker.silent, within_s=5)
    for member in cluster.members:
        shown = member.admin.show(job_id)
        assert (shown["priority"], shown["meta"]) == (5, b"trace=1")
