"""A node leaves: jobs of every kind move to the other nodes soon, and each is delivered once."""

from __future__ import annotations

import pytest

from disqued.testing.cluster import Cluster, Member
from leaving.leaver import add, add_copied, drain, is_done, jobs_at, leave, reason, status, stay, until_done, work


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes in one cluster."""
    cluster = Cluster(3)
    cluster.network.capturing = False
    return cluster


def leaver_of(cluster: Cluster) -> tuple[Member, list[Member]]:
    """The node that will leave, and the other nodes."""
    first, *others = cluster.members
    return first, others


def test_jobs_of_every_kind_move_within_seconds_and_are_delivered_once(cluster: Cluster) -> None:
    leaver, others = leaver_of(cluster)
    jobs = add(leaver, 1500, "mail", "REPLICATE", 1, "RETRY", 20)
    jobs += add_copied(cluster, leaver, 300, "REPLICATE", 3, "RETRY", 20)
    jobs += add_copied(cluster, others[0], 300, "REPLICATE", 2, "RETRY", 20)
    jobs += add(leaver, 300, "once", "REPLICATE", 1, "RETRY", 0)
    jobs += add(leaver, 300, "late", "REPLICATE", 1, "DELAY", 10, "RETRY", 20)
    jobs += add(leaver, 300, "late-once", "REPLICATE", 1, "DELAY", 10, "RETRY", 0)
    at_work = leaver.admin.take("mail", "copied", "once", count=300)
    done = leaver.admin.take("copied", count=100)
    leaver.admin.call("ACKJOB", *done)
    leave(leaver)
    until_done(cluster, leaver, within_s=5)
    assert jobs_at(leaver) == 0
    leaver.admin.call("ACKJOB", *at_work)
    delivered = work(cluster, others, 60)
    assert set(delivered) == set(jobs) - set(at_work) - set(done)
    assert set(delivered.values()) == {1}
    assert [jobs_at(member) for member in others] == [0, jobs_at(others[1])]


def test_delayed_jobs_are_queued_when_their_delay_is_over(cluster: Cluster) -> None:
    leaver, others = leaver_of(cluster)
    late = set(
        add(leaver, 50, "late", "REPLICATE", 1, "DELAY", 10)
        + add(leaver, 50, "late-once", "REPLICATE", 1, "DELAY", 10, "RETRY", 0)
    )
    cluster.run(seconds=4)
    leave(leaver)
    cluster.run(milliseconds=5900)
    assert not drain(others)
    cluster.run(milliseconds=1200)
    assert set(drain(others)) == late


def test_a_job_has_as_many_holders_after_the_drain_as_before() -> None:
    cluster = Cluster(4)
    leaver, *others = cluster.members
    jobs = add_copied(cluster, leaver, 60, "REPLICATE", 2)
    jobs += add_copied(cluster, others[0], 60, "REPLICATE", 3)
    before = [len(cluster.copies(job)) for job in jobs]
    leave(leaver)
    until_done(cluster, leaver)
    assert [len(cluster.copies(job)) for job in jobs] == before
    assert all(len(cluster.copies(job, "queued")) == 1 for job in jobs)
    assert status(leaver)["jobs-short-of-copies"] == 0


def test_status_counts_jobs_short_of_copies_when_too_few_nodes_stay(cluster: Cluster) -> None:
    leaver, _ = leaver_of(cluster)
    jobs = add_copied(cluster, leaver, 10, "REPLICATE", 3)
    leave(leaver)
    until_done(cluster, leaver)
    assert [len(cluster.copies(job)) for job in jobs] == [2] * 10
    assert status(leaver)["jobs-short-of-copies"] == 10


# --- workers that are still connected to the leaving node -------------------------------------------------------------


@pytest.fixture
def transferred(cluster: Cluster) -> bytes:
    """A job that a worker of the first node is processing and that was transferred to another node."""
    leaver = cluster.members[0]
    (job,) = add(leaver, 1, "mail", "REPLICATE", 1, "RETRY", 10)
    assert leaver.admin.take("mail") == [job]
    leave(leaver)
    until_done(cluster, leaver)
    return job


def test_an_acknowledgement_reaches_the_new_owner(cluster: Cluster, transferred: bytes) -> None:
    leaver, others = leaver_of(cluster)
    assert len(cluster.copies(transferred)) == 1
    leaver.admin.call("ACKJOB", transferred)
    cluster.run(seconds=1)
    assert cluster.copies(transferred) == []
    assert not work(cluster, others, 30)


def test_a_job_whose_worker_is_silent_is_requeued_after_its_retry_time(cluster: Cluster, transferred: bytes) -> None:
    _, others = leaver_of(cluster)
    cluster.run(seconds=8)
    assert not drain(others)
    cluster.run(seconds=4)
    assert list(drain(others)) == [transferred]


def test_a_nack_is_forwarded_to_the_new_owner(cluster: Cluster, transferred: bytes) -> None:
    leaver, others = leaver_of(cluster)
    assert leaver.admin.call("NACK", transferred) == 1
    cluster.run(milliseconds=10)
    (keeper,) = cluster.copies(transferred, "queued")
    assert keeper.admin.show(transferred)["nacks"] == 1
    assert list(drain(others)) == [transferred]


def test_working_is_forwarded_to_the_new_owner(cluster: Cluster, transferred: bytes) -> None:
    leaver, others = leaver_of(cluster)
    for _ in range(4):
        cluster.run(seconds=6)
        assert leaver.admin.call("WORKING", transferred) == 10
    assert not drain(others)
    cluster.run(seconds=12)
    assert list(drain(others)) == [transferred]


def test_commands_for_unknown_jobs_are_not_forwarded(cluster: Cluster, transferred: bytes) -> None:
    leaver, _ = leaver_of(cluster)
    unknown = transferred[:11] + b"x" * 24 + transferred[35:]
    assert leaver.admin.call("NACK", unknown) == 0
    assert str(leaver.admin.call("WORKING", unknown)).startswith("NOJOB")


# --- acknowledged jobs ------------------------------------------------------------------------------------------------


def test_an_acknowledgement_that_a_holder_does_not_know_is_transferred(cluster: Cluster) -> None:
    leaver, (second, third) = leaver_of(cluster)
    (job,) = add_copied(cluster, leaver, 1, "REPLICATE", 2, "RETRY", 30)
    holder, idle = (second, third) if second.admin.show(job) else (third, second)
    cluster.partition([leaver, idle], [holder])
    leaver.admin.call("ACKJOB", job)
    leave(leaver)
    until_done(cluster, leaver, within_s=30)
    leaver.crash()
    cluster.heal()
    cluster.run(seconds=20)
    assert holder.admin.call("CLUSTER", "FORGET", leaver.id) == b"OK"
    assert idle.admin.call("CLUSTER", "FORGET", leaver.id) == b"OK"
    cluster.run(seconds=20)
    assert cluster.copies(job) == []
    assert not work(cluster, [holder, idle], 60)


# --- status, logs, errors ---------------------------------------------------------------------------------------------


def test_the_progress_of_the_drain_is_shown_and_logged(cluster: Cluster) -> None:
    leaver, others = leaver_of(cluster)
    for other in others:
        cluster.network.path(other, leaver).delay_ms = 1500
    add(leaver, 6000, "mail", "REPLICATE", 1)
    assert status(leaver) == {"leaving": b"no"}
    assert b"Leaving" not in leaver.admin.raw("INFO")
    leave(leaver)
    cluster.run(milliseconds=5300)
    now = status(leaver)
    assert now["leaving"] == b"yes"
    assert now["done"] == b"no"
    left, rate, seconds = now["jobs-left"], now["rate"], now["seconds-left"]
    assert isinstance(left, int)
    assert isinstance(rate, int)
    assert 0 < left < 6000
    assert left + now["jobs-transferred"] == 6000  # type: ignore[operator]
    assert seconds == -(-left // rate)
    assert b"leaving_jobs_left:%d\r\n" % left in leaver.admin.raw("INFO", "leaving")
    until_done(cluster, leaver)
    cluster.run(seconds=1)
    lines = [line for _, line in leaver.host.log_lines if "eaving" in line]
    assert lines[0] == "Leaving the cluster: jobs=6000 nodes=2"
    assert lines[1].startswith("Leaving: jobs_left=")
    assert lines[-1].startswith("Leaving: no jobs are left, this node can be stopped: ")


def test_the_last_node_that_stays_refuses_to_leave(cluster: Cluster) -> None:
    first, (second, third) = leaver_of(cluster)
    leave(first)
    cluster.run(seconds=1)
    third.crash()
    cluster.until(lambda: second.sees == 0, within_s=60)
    refusal = str(second.admin.call("CLUSTER", "LEAVING", "yes"))
    assert refusal.startswith("ERR This node cannot leave: no other node could take its jobs.")
    assert second.admin.call("CLUSTER", "LEAVING") == b"no"
    assert first.admin.call("CLUSTER", "LEAVING", "yes") == b"OK", "it leaves already"
    assert reason(first) == ""


def test_a_single_node_refuses_to_leave() -> None:
    (alone,) = Cluster(1).members
    assert str(alone.admin.call("CLUSTER", "LEAVING", "yes")).startswith("ERR This node cannot leave")


def test_jobs_added_to_a_leaving_node_are_kept_by_other_nodes(cluster: Cluster) -> None:
    leaver, others = leaver_of(cluster)
    leave(leaver)
    cluster.run(seconds=1)
    jobs = add_copied(cluster, leaver, 20, "REPLICATE", 2)
    assert is_done(leaver)
    cluster.run(milliseconds=10)
    assert set(drain(others)) == set(jobs)


# --- cancelling -------------------------------------------------------------------------------------------------------


def test_a_drain_can_be_cancelled_halfway(cluster: Cluster) -> None:
    leaver, others = leaver_of(cluster)
    for other in others:
        cluster.network.path(leaver, other).delay_ms = 300
    jobs = add(leaver, 3000, "mail", "REPLICATE", 1, "RETRY", 20)
    jobs += add(leaver, 100, "once", "REPLICATE", 1, "RETRY", 0)
    jobs += add(leaver, 100, "late", "REPLICATE", 1, "DELAY", 5, "RETRY", 20)
    jobs += add(leaver, 100, "late-once", "REPLICATE", 1, "DELAY", 5, "RETRY", 0)
    leave(leaver)
    cluster.run(milliseconds=1000)
    assert 0 < jobs_at(leaver) < len(jobs)
    stay(leaver)
    assert status(leaver) == {"leaving": b"no"}
    kept = jobs_at(leaver)
    cluster.run(seconds=15)
    assert jobs_at(leaver) == kept
    delivered = work(cluster, cluster.members, 60)
    assert set(delivered) == set(jobs)
    assert set(delivered.values()) == {1}
    assert [jobs_at(member) for member in cluster.members] == [0, 0, 0]


def test_a_node_can_leave_again_after_a_cancelled_drain(cluster: Cluster) -> None:
    leaver, others = leaver_of(cluster)
    jobs = add(leaver, 2000, "mail", "REPLICATE", 1)
    leave(leaver)
    cluster.run(milliseconds=2)
    stay(leaver)
    cluster.run(seconds=1)
    assert jobs_at(leaver) > 0
    leave(leaver)
    until_done(cluster, leaver)
    assert drain(others) == dict.fromkeys(jobs, 1)


def test_jobs_keep_their_attributes_when_the_node_leaves_as_soon_as_it_has_a_link(cluster: Cluster) -> None:
    """Seed 2119: what the other node understands was not known yet, and the copy came without its priority."""
    leaver, others = leaver_of(cluster)
    for other in others:
        for one, two in ((leaver, other), (other, leaver)):
            cluster.network.path(one, two).delay_ms = 100
    job = leaver.admin.add("mail", "body", "REPLICATE", 1, "PRIORITY", 7)
    for other in others:
        cluster.network.reset(leaver, other)
    for peer in leaver.node.state.view.peers.values():
        peer.features = 0
    leave(leaver)
    until_done(cluster, leaver)
    (owner,) = cluster.copies(job)
    assert owner.admin.show(job)["priority"] == 7
