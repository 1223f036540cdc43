"""Dummy acknowledgements: a node keeps the ACKJOB of a job that it does not have until a holder takes over."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.core.memory.accounting import JOB_BYTES
from disqued.testing.cluster import Cluster, Member
from support.stories import added, as_original, job_messages, tell, without_job

UNKNOWN = b"D-0badcafe-" + b"A" * 24 + b"-05a1"
ONE_COPY = ("REPLICATE", 1, "RETRY", 60, "TTL", 3600)


def figures(member: Member) -> dict[str, int]:
    """The `acks` section of INFO."""
    text = member.admin.call("INFO", "acks")
    assert isinstance(text, bytes)
    pairs = [line.split(":") for line in text.decode().splitlines() if ":" in line]
    return {name: int(value) for name, value in pairs}


def test_holder_takes_over_the_acknowledgement_of_its_job(cluster: Cluster) -> None:
    second = cluster.members[1]
    job = added(cluster, *ONE_COPY)
    assert second.admin.call("ACKJOB", job) == 0
    assert second.admin.show(job)["state"] == b"acked"
    assert second.admin.show(job)["nodes-delivered"] == []
    cluster.run(milliseconds=10)
    assert cluster.copies(job) == []
    assert {int(sent.frame.aux) for sent in cluster.sent("SETACK")} == {0}
    assert figures(second) == {
        "acked_jobs": 0,
        "ack_collections": 1,
        "dummy_acks_made": 1,
        "dummy_acks_collected": 1,
        "dummy_acks_dropped": 0,
        "acks_forwarded": 0,
        "finished_jobs_forgotten_early": 0,
    }


def test_holder_that_took_over_collects_all_replicas() -> None:
    cluster = Cluster(5)
    job = added(cluster, "REPLICATE", 3, "RETRY", 60)
    assert len(cluster.copies(job)) == 3
    assert without_job(cluster, job).admin.call("ACKJOB", job) == 0
    cluster.run(seconds=3)
    assert cluster.copies(job) == []


def test_acknowledgement_of_an_unknown_job_is_dropped_when_all_nodes_answered(cluster: Cluster) -> None:
    first = cluster.members[0]
    assert first.admin.call("ACKJOB", UNKNOWN) == 0
    assert cluster.copies(UNKNOWN) == [first]
    cluster.run(milliseconds=10)
    assert cluster.copies(UNKNOWN) == []
    assert sorted(job_messages(cluster)) == ["GOTACK", "GOTACK", "SETACK", "SETACK"]


def test_acknowledgement_is_kept_until_an_unreachable_node_returns(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = added(cluster, *ONE_COPY)
    cluster.partition([first], [second, third])
    third.admin.call("ACKJOB", job)
    cluster.run(seconds=20)
    assert third.admin.show(job)["state"] == b"acked"
    cluster.heal()
    cluster.run(seconds=60)
    assert cluster.copies(job) == []
    assert first.admin.take("mail") == []


def test_acknowledgement_expires_after_the_minutes_in_the_job_id(cluster: Cluster) -> None:
    first, second, third = cluster.members
    second.crash()
    third.crash()
    short = UNKNOWN[:-4] + b"0003"
    first.admin.call("ACKJOB", short)
    cluster.run(seconds=170)
    assert first.admin.show(short)["state"] == b"acked"
    cluster.run(seconds=15)
    assert first.admin.show(short) == {}


@pytest.mark.parametrize("suffix", [b"05a0", b"0000"])
def test_no_dummy_acknowledgement_is_kept_for_an_at_most_once_job(cluster: Cluster, suffix: bytes) -> None:
    first = cluster.members[0]
    assert first.admin.call("ACKJOB", UNKNOWN[:-4] + suffix) == 0
    assert cluster.copies(UNKNOWN[:-4] + suffix) == []
    assert job_messages(cluster) == []


def test_one_of_two_nodes_keeps_the_acknowledgement_until_the_holder_returns(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = added(cluster, *ONE_COPY)
    cluster.partition([first], [second, third])
    for member in (second, third):
        member.admin.call("ACKJOB", job)
    cluster.run(seconds=5)
    kept = [member for member in (second, third) if member.admin.show(job)]
    assert kept == [max(second, third, key=lambda member: member.id)]
    cluster.heal()
    cluster.run(seconds=60)
    assert cluster.copies(job) == []
    assert first.admin.take("mail") == []


def test_acknowledgement_of_an_original_node_is_left_to_it(cluster: Cluster) -> None:
    first, second, third = cluster.members
    original = as_original(third)
    second.node.state.view.peers[third.id].features = 0
    first.crash()
    second.admin.call("ACKJOB", UNKNOWN)
    cluster.forget_sent()
    tell(second, original.about_job(kinds.SETACK, UNKNOWN, 0))
    assert [int(sent.frame.aux) for sent in cluster.sent("GOTACK", by=second)] == [0]


def test_fastack_of_a_dummy_acknowledgement_sends_deljob_to_all(cluster: Cluster) -> None:
    first = cluster.members[0]
    cluster.lose("SETACK")
    first.admin.call("ACKJOB", UNKNOWN)
    cluster.forget_sent()
    assert first.admin.call("FASTACK", UNKNOWN) == 1
    assert job_messages(cluster) == ["DELJOB", "DELJOB"]


def test_repeated_acknowledgement_sends_setack_again(cluster: Cluster) -> None:
    first = cluster.members[0]
    cluster.lose("SETACK")
    assert [first.admin.call("ACKJOB", UNKNOWN) for _ in range(2)] == [0, 0]
    assert job_messages(cluster) == ["SETACK"] * 4


def test_leaving_node_forwards_acknowledgements_and_keeps_none(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = added(cluster, "REPLICATE", 1, "RETRY", 60, by=2)
    assert first.admin.call("CLUSTER", "LEAVING", "yes") == b"OK"
    cluster.forget_sent()
    assert first.admin.call("ACKJOB", job, UNKNOWN) == 0
    assert cluster.copies(job) == [second]
    cluster.run(milliseconds=10)
    assert cluster.copies(job) == []
    assert cluster.copies(UNKNOWN) == []
    assert figures(first)["acks_forwarded"] == 2
    assert sorted(job_messages(cluster)) == ["GOTACK"] * 4 + ["SETACK"] * 4


def invented(number: int) -> bytes:
    """The ID of a job that no node made, with the longest time to live."""
    return b"D-0badcafe-%024d-ffff" % number


def test_acknowledgements_of_invented_jobs_take_a_bounded_share_of_the_memory() -> None:
    """While a node is down they are kept, up to 45 days: a client could fill the memory with them."""
    cluster = Cluster(3)
    first = cluster.members[0]
    job = added(cluster, *ONE_COPY)
    cluster.members[2].crash()
    first.admin.call("CONFIG", "SET", "maxmemory", "64mb")
    most = int(first.node.state.lifecycle.memory.share_bytes) // JOB_BYTES
    for start in range(0, 2 * most, 1000):
        first.admin.send("ACKJOB", *(invented(number) for number in range(start, start + 1000)))
        cluster.run(milliseconds=200)
    first.admin.replies()
    assert most * 0.9 < figures(first)["acked_jobs"] <= most
    assert figures(first)["dummy_acks_dropped"] >= most * 0.9
    assert first.admin.show(invented(1)) == {}, "the oldest are dropped first"
    assert first.admin.show(invented(2 * most - 1))["state"] == b"acked"
    assert cluster.members[1].admin.call("ACKJOB", job) in {0, 1}
    cluster.run(seconds=2)
    assert cluster.copies(job) == []


@pytest.mark.parametrize("odd", [b"D-0badcafX-" + b"A" * 24 + b"-05a1", b"D-0badcafe-" + b"\n" * 24 + b"-05a1"])
def test_an_id_that_no_node_can_have_made_is_not_kept(cluster: Cluster, odd: bytes) -> None:
    first = cluster.members[0]
    cluster.members[1].crash()
    assert first.admin.call("ACKJOB", odd) == 0
    assert first.admin.show(odd) == {}
    assert cluster.sent("SETACK") == []
