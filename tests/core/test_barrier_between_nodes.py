"""The durability barrier between nodes: messages that depend on a change wait until it is safe."""

from __future__ import annotations

from typing import Literal

import pytest

from disqued.core.host import disk
from disqued.testing.cluster import Cluster, Member
from support.logging_node import config, forgets, hang, keeps, written


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes with append-only files; the disk of the second one hangs on writes."""
    cluster = Cluster(3, config=config)
    cluster.members[1].host.disk.hold(disk.APPEND)
    cluster.forget_sent()
    return cluster


def confirmed(cluster: Cluster, kind: Literal["GOTJOB", "GOTACK"]) -> list[Member]:
    """The members that sent such a message."""
    return [member for member in cluster.members if cluster.sent(kind, by=member)]


def placed(cluster: Cluster, creator: Member, *options: str | int) -> bytes:
    """Add a job with copies on all three nodes, whose disks work. Returns its ID."""
    client = creator.client()
    client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 3, *options)
    cluster.until(lambda: not client.silent)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    return job_id


def refuses_writes(cluster: Cluster, member: Member) -> None:
    """Let the disk of a node hang until the node refuses changes."""
    member.host.disk.hold(disk.APPEND)
    member.client().send("PAUSE", "other", "in")
    cluster.until(lambda: member.node.state.write_refusal != "")


def test_a_replicated_job_is_confirmed_when_it_is_written_here_too(cluster: Cluster) -> None:
    first, second, third = cluster.members
    client = second.client()
    client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 3)
    cluster.run(milliseconds=50)
    assert confirmed(cluster, "GOTJOB") == [first, third]
    assert client.silent
    second.finish()
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    assert all(keeps(written(member), job_id) for member in cluster.members)


def test_a_copy_is_confirmed_when_it_is_written(cluster: Cluster) -> None:
    first, second, third = cluster.members
    client = first.client()
    client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 3)
    cluster.run(milliseconds=500)
    assert confirmed(cluster, "GOTJOB") == [third]
    assert client.silent
    second.finish()
    cluster.run(milliseconds=100)
    assert confirmed(cluster, "GOTJOB") == [second, third]
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    assert all(keeps(written(member), job_id) for member in cluster.members)


def test_a_copy_is_confirmed_while_later_changes_wait(cluster: Cluster) -> None:
    first, second, third = cluster.members
    first.client().send("ADDJOB", "mail", "body", 0, "REPLICATE", 3)
    cluster.run(milliseconds=20)
    second.client().send("ADDJOB", "mail", "body", 0, "REPLICATE", 1)
    second.host.disk.finish(1)
    second.deliver_disk_work()
    assert not second.barrier_empty
    assert confirmed(cluster, "GOTJOB") == [second, third]


def test_a_copy_that_is_sent_again_is_not_confirmed_before_it_is_written(cluster: Cluster) -> None:
    client = cluster.members[0].client()
    client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 3)
    cluster.run(seconds=1)  # sent repeatedly
    assert len(cluster.sent("REPLJOB", to=cluster.members[1])) > 2
    assert confirmed(cluster, "GOTJOB") == [cluster.members[2]]


def test_an_acknowledgement_is_confirmed_when_it_is_written(cluster: Cluster) -> None:
    first, second, third = cluster.members
    second.host.disk.repair()
    job_id = placed(cluster, first)
    second.host.disk.hold(disk.APPEND)
    assert first.client().call("ACKJOB", job_id) == 1
    cluster.run(seconds=1)
    assert confirmed(cluster, "GOTACK") == [third]
    second.finish()
    cluster.run(seconds=1)
    assert confirmed(cluster, "GOTACK") == [second, third]
    assert forgets(written(second), job_id)


@pytest.mark.parametrize("acknowledged_at", [0, 1])
def test_no_holder_forgets_an_acknowledgement_that_another_one_has_not_written(
    cluster: Cluster, acknowledged_at: int
) -> None:
    second = cluster.members[1]
    second.host.disk.repair()
    job_id = placed(cluster, cluster.members[0])
    second.host.disk.hold(disk.APPEND)
    cluster.members[acknowledged_at].client().send("ACKJOB", job_id)
    cluster.run(seconds=60)
    assert not cluster.sent("DELJOB")
    second.finish()
    cluster.run(seconds=1)
    assert forgets(written(second), job_id)
    assert all(member.node.state.lifecycle.table.count == 0 for member in cluster.members)


def test_an_acknowledgement_reaches_the_other_holders_while_the_disk_cannot_be_written(cluster: Cluster) -> None:
    first, second, third = cluster.members
    second.host.disk.repair()
    job_id = placed(cluster, first, "RETRY", 5)
    refuses_writes(cluster, second)
    second.client().send("ACKJOB", job_id)
    cluster.run(seconds=60)
    assert cluster.copies(job_id, "acked") == [first, third], "the second one answers when its disk works"
    assert not cluster.sent("DELJOB")
    second.host.disk.repair()
    second.finish()
    cluster.run(seconds=5)
    assert cluster.copies(job_id) == []


def test_acknowledgements_do_not_multiply_while_no_disk_can_be_written(cluster: Cluster) -> None:
    """Seed 83597: the nodes answered each other's SETACK with SETACKs without an end."""
    cluster.network.most_events = cluster.network.events + 10_000
    second = cluster.members[1]
    second.host.disk.repair()
    job_id = placed(cluster, second, "RETRY", 5)
    for member in cluster.members:
        refuses_writes(cluster, member)
    second.client().send("ACKJOB", job_id)
    cluster.run(milliseconds=20)
    assert len(cluster.sent("SETACK")) == 6, "each of the three asks the two others once"


def test_a_node_whose_disk_hangs_is_not_marked_as_failed(cluster: Cluster) -> None:
    hang(cluster.members[1].client())
    cluster.run(seconds=60)
    assert cluster.is_whole()
    assert b"fail" not in b"".join(
        bytes(line) for line in [cluster.members[0].admin.call("CLUSTER", "NODES")] if isinstance(line, bytes)
    )


def test_an_at_most_once_job_is_sent_to_another_node_when_its_end_is_logged(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    second.host.disk.repair()
    once = second.admin.add("once", "body", "REPLICATE", 1, "RETRY", 0)
    often = second.admin.add("often", "body", "REPLICATE", 1)
    second.host.disk.hold(disk.APPEND)
    workers = [first.client(), first.client()]
    workers[0].send("GETJOB", "FROM", "once")
    workers[1].send("GETJOB", "FROM", "often")
    cluster.run(seconds=1)
    assert workers[0].silent
    assert once not in written(first)
    assert workers[1].next_reply() == [[b"often", often, b"body"]]
    second.finish()
    cluster.run(seconds=1)
    assert forgets(written(second), once)
    assert workers[0].next_reply() == [[b"once", once, b"body"]]


def test_held_confirmations_for_a_disconnected_node_are_dropped(cluster: Cluster) -> None:
    first, second, third = cluster.members
    first.client().send("ADDJOB", "mail", "body", 0, "REPLICATE", 3)
    cluster.run(milliseconds=50)
    first.crash()
    cluster.run(milliseconds=50)
    second.finish()
    cluster.run(milliseconds=50)
    assert confirmed(cluster, "GOTJOB") == [third]
    assert second.barrier_empty
