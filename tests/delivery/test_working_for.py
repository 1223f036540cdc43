"""WORKING with FOR, NOTE and CLAIM: for how long a worker has its job, and what the other holders learn."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.extension import NOBODY, extension
from disqued.core.jobs.attributes import MAX_NOTE_BYTES
from disqued.core.jobs.claims import claim_of
from disqued.core.jobs.job import QUEUED
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient, LocalNode
from membership.stories import ScriptedNode
from support.stories import added, job_at

RETRY_S = 5
CLAIM = 1_800_000_000_000 << 16 | 7


def taken(client: LocalClient, *options: str | int) -> bytes:
    job_id = client.add("mail", "body", "RETRY", RETRY_S, *options)
    client.take("mail")
    return job_id


@pytest.mark.parametrize("lease_s", [1, 3, 60])
def test_the_job_comes_back_when_the_lease_is_over_and_counts_a_delivery(
    local: LocalNode, client: LocalClient, lease_s: int
) -> None:
    job_id = taken(client)
    assert client.call("WORKING", job_id, "FOR", lease_s) == lease_s
    local.run(seconds=lease_s - 0.05)
    assert client.call("QLEN", "mail") == 0
    local.run(milliseconds=100)
    assert client.call("QLEN", "mail") == 1
    assert client.show(job_id)["additional-deliveries"] == 1


def test_the_last_working_counts(local: LocalNode, client: LocalClient) -> None:
    job_id = taken(client)
    client.call("WORKING", job_id, "FOR", 3600)
    assert client.call("WORKING", job_id) == RETRY_S
    local.run(seconds=6)
    assert client.call("QLEN", "mail") == 1
    assert client.call("WORKING", job_id, "FOR", 10) == 10
    assert client.call("QLEN", "mail") == 0
    assert client.stat("mail")["leased"] == 1


def test_a_lease_does_not_cut_a_delay_short(local: LocalNode, client: LocalClient) -> None:
    job_id = taken(client)
    client.call("NACK", job_id, "DELAY", 60)
    assert client.call("WORKING", job_id, "FOR", 2) == RETRY_S
    local.run(seconds=50)
    assert client.call("QLEN", "mail") == 0


def test_a_job_that_never_comes_back_has_no_lease(client: LocalClient) -> None:
    job_id = client.add("mail", "body", "RETRY", 0, "REPLICATE", 1)
    client.take("mail")
    assert client.call("WORKING", job_id, "FOR", 10) == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("FOR", "0"), "ERR FOR must be a number of seconds, 1 or more"),
        (("FOR", "x"), "ERR FOR must be a number of seconds, 1 or more"),
        (("FOR", "31"), "ERR FOR must be at most 30 seconds, half of the time to live of the job"),
        (("FOR", "9" * 12), "ERR FOR must be a number of seconds"),
        (("NOTE", ""), "ERR NOTE must have 1 to 1024 bytes, not 0"),
        (("NOTE", "x" * 1025), "ERR NOTE must have 1 to 1024 bytes, not 1025"),
        (("UNTIL", "5"), "ERR syntax error"),
    ],
)
def test_wrong_options_are_refused_and_change_nothing(
    client: LocalClient, options: tuple[str, ...], error: str
) -> None:
    job_id = taken(client, "TTL", 60)
    before = client.show(job_id)
    assert str(client.call("WORKING", job_id, *options)).startswith(error)
    assert client.show(job_id) == before


def test_half_of_the_life_is_the_longest_lease(client: LocalClient) -> None:
    assert client.call("WORKING", taken(client, "TTL", 60), "FOR", 30) == 30


def test_show_has_the_last_line_of_progress(client: LocalClient) -> None:
    job_id = taken(client)
    for line in ("10 of 50", "20 of 50"):
        client.call("WORKING", job_id, "NOTE", line, "FOR", 60)
    assert client.show(job_id)["note"] == b"20 of 50"


# --- in a cluster -----------------------------------------------------------------------------------------------------


def leased(cluster: Cluster, *options: str | int) -> bytes:
    """Add a job with three copies, take it at the first member, and send WORKING."""
    job_id = added(cluster, "REPLICATE", 3, "RETRY", RETRY_S, "TTL", 3600)
    first = cluster.members[0]
    first.admin.take("mail")
    assert isinstance(first.admin.call("WORKING", job_id, *options), int)
    cluster.run(milliseconds=50)
    return job_id


def queued(cluster: Cluster, job_id: bytes) -> list[Member]:
    return [member for member in cluster.members if member.running and job_at(member, job_id).state == QUEUED]


@pytest.mark.parametrize("lease_s", [2, 60])
def test_no_holder_queues_the_job_before_the_lease_is_over(cluster: Cluster, lease_s: int) -> None:
    job_id = leased(cluster, "FOR", lease_s)
    cluster.run(seconds=lease_s - 0.6)
    assert queued(cluster, job_id) == []
    cluster.run(seconds=1.2)
    assert len(queued(cluster, job_id)) == 1
    assert {int(job_at(member, job_id).additional_deliveries) for member in cluster.members} == {1}


def test_a_holder_that_missed_the_message_asks_and_waits(cluster: Cluster) -> None:
    cluster.lose("POSTPONE", count=2)
    job_id = leased(cluster, "FOR", 60)
    cluster.run(seconds=59)
    assert queued(cluster, job_id) == []


def test_the_other_holders_queue_the_job_after_the_lease_when_the_node_dies(cluster: Cluster) -> None:
    job_id = leased(cluster, "FOR", 60)
    cluster.members[0].crash()
    cluster.run(seconds=58)
    assert queued(cluster, job_id) == []
    cluster.run(seconds=4)
    (member,) = queued(cluster, job_id)
    assert job_at(member, job_id).additional_deliveries == 1


def test_a_worker_can_ask_any_holder_for_a_lease(cluster: Cluster) -> None:
    job_id = added(cluster, "REPLICATE", 3, "RETRY", RETRY_S, "TTL", 3600)
    cluster.members[0].admin.take("mail")
    assert cluster.members[1].admin.call("WORKING", job_id, "FOR", 60) == 60
    cluster.run(seconds=58)
    assert queued(cluster, job_id) == []
    cluster.run(seconds=4)
    assert len(queued(cluster, job_id)) == 1


def test_a_claim_and_a_note_reach_the_other_holders(cluster: Cluster) -> None:
    job_id = leased(cluster, "CLAIM", CLAIM, "NOTE", "10 of 50")
    for member in cluster.members:
        shown = member.admin.show(job_id)
        assert (shown["claim"], shown["note"]) == (CLAIM, b"10 of 50")
        assert str(member.admin.call("ACKJOB", job_id, "CLAIM", CLAIM - 1)).startswith("STALE")


def test_a_plain_working_sends_no_claim(cluster: Cluster) -> None:
    leased(cluster)
    assert not cluster.sent("CLAIMED")


@pytest.mark.parametrize("rest", [b"", b"\0" * 7, b"\xff" * 8, b"\0" * 8 + b"x" * (MAX_NOTE_BYTES + 1)])
def test_a_malformed_message_changes_nothing(rest: bytes) -> None:
    local = LocalNode()
    scripted = ScriptedNode(local, b"10.0.0.9", extension=extension(kinds.FEATURE_CLAIMS, 17711, NOBODY, b"only-run"))
    scripted.join()
    job_id = local.client().add("mail", "body", "RETRY", RETRY_S, "REPLICATE", 1)
    for payload in (job_id[:39], job_id + rest, b"\0" * 40 + rest):
        scripted.deliver(scripted.link, scripted.writer.other(kinds.CLAIMED, payload))
    job = local.node.state.lifecycle.table.get(job_id)
    assert job is not None
    assert claim_of(job) == 0
    assert job.extra is None
