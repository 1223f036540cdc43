"""Collection of acknowledged jobs: all holders drop a job when all of them know that it is acknowledged."""

from __future__ import annotations

from itertools import pairwise

import pytest

from disqued.acks.room import JOBS_PER_VISIT
from disqued.bus import kinds
from disqued.testing.cluster import BUS_PORT, Cluster
from support.stories import JOB_MESSAGES, added, job_at, job_messages, listed, tell

REPLICATED = ("REPLICATE", 3, "RETRY", 60, "TTL", 3600)


def test_job_is_collected_with_six_messages_in_a_healthy_cluster(cluster: Cluster) -> None:
    first = cluster.members[0]
    job = added(cluster, *REPLICATED)
    assert first.admin.call("ACKJOB", job) == 1
    assert cluster.copies(job, "acked") == [first]
    cluster.run(milliseconds=10)
    assert cluster.copies(job) == []
    assert job_messages(cluster) == ["SETACK", "SETACK", "GOTACK", "GOTACK", "DELJOB", "DELJOB"]
    assert {int(sent.frame.aux) for sent in cluster.sent("SETACK")} == {3}
    assert {int(sent.frame.aux) for sent in cluster.sent("GOTACK")} == {1}
    assert [member.node.state.lifecycle.acked_jobs for member in cluster.members] == [0, 0, 0]
    cluster.forget_sent()
    cluster.run(seconds=100)
    assert job_messages(cluster) == []


def test_job_acknowledged_at_a_replica_leaves_the_queue_of_its_node(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = added(cluster, *REPLICATED)
    assert second.admin.call("ACKJOB", job) == 1
    cluster.run(milliseconds=10)
    assert cluster.copies(job) == []
    assert first.admin.call("QLEN", "mail") == 0


def test_job_acknowledged_at_all_holders_at_once_is_collected(cluster: Cluster) -> None:
    job = added(cluster, *REPLICATED)
    assert [member.admin.call("ACKJOB", job) for member in cluster.members] == [1, 1, 1]
    cluster.run(milliseconds=10)
    assert cluster.copies(job) == []


def test_job_without_other_holders_is_dropped_without_messages(cluster: Cluster) -> None:
    job = added(cluster, "REPLICATE", 1)
    assert cluster.members[0].admin.call("ACKJOB", job) == 1
    assert cluster.copies(job) == []
    assert job_messages(cluster) == []


def test_job_is_kept_as_acked_until_an_unreachable_holder_returns(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = added(cluster, *REPLICATED)
    cluster.partition([first, second], [third])
    first.admin.call("ACKJOB", job)
    cluster.run(seconds=20)
    assert cluster.copies(job, "acked") == [first, second]
    assert third.admin.show(job)["state"] == b"active"
    cluster.heal()
    cluster.run(seconds=60)
    assert cluster.copies(job) == []


def test_no_job_is_skipped_when_members_change_repeatedly(cluster: Cluster) -> None:
    """More jobs wait for the third node than the broker visits between two changes of the members."""
    first, _, third = cluster.members
    jobs = [added(cluster, "REPLICATE", 3, "RETRY", 3000, "TTL", 3600) for _ in range(3 * JOBS_PER_VISIT)]
    cluster.lose("SETACK", to=third)
    assert first.admin.call("ACKJOB", *jobs) == len(jobs)
    cluster.run(seconds=20)
    cluster.forget_sent()
    for _ in range(5):
        first.node.state.events.peer_up(cluster.members[1].node.state.view.peers[first.id])
        cluster.run(milliseconds=100)
    asked = [job_id for sent in cluster.sent("SETACKS", by=first, to=third) for job_id in listed(sent.frame)]
    assert set(asked) == set(jobs)


def test_acknowledged_job_is_not_delivered_while_it_is_kept(cluster: Cluster) -> None:
    first, _, third = cluster.members
    job = added(cluster, "REPLICATE", 3, "RETRY", 1, "TTL", 100)
    third.crash()
    assert first.admin.call("ACKJOB", job) == 1
    assert first.admin.call("ACKJOB", job) == 0
    assert [first.admin.call(command, job) for command in ("NACK", "ENQUEUE", "DEQUEUE")] == [0, 0, 0]
    assert str(first.admin.call("WORKING", job)) == "ACKED The job was already acknowledged, stop working on it."
    cluster.run(seconds=50)
    assert first.admin.show(job)["state"] == b"acked"
    assert first.admin.take("mail") == []
    cluster.run(seconds=53)
    assert cluster.copies(job) == []


def test_holder_that_lost_its_jobs_confirms_after_its_restart(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = added(cluster, *REPLICATED)
    third.crash()
    first.admin.call("ACKJOB", job)
    cluster.run(seconds=3)
    assert cluster.copies(job, "acked") == [first, second]
    third.restart()
    cluster.run(seconds=30)
    assert cluster.copies(job) == []


def test_setack_is_repeated_at_increasing_intervals(cluster: Cluster) -> None:
    first, second, third = cluster.members
    first.admin.call("CONFIG", "SET", "repair", "no")  # it compares nodes and would find the difference
    job = added(cluster, "REPLICATE", 3, "RETRY", 3000, "TTL", 3600)
    first.admin.call("CONFIG", "SET", "repair", "no")  # comparisons of two nodes send SETACK, too
    cluster.lose("SETACK", to=third)
    cluster.lose("SETACK", by=second)
    first.admin.call("ACKJOB", job)
    cluster.run(seconds=1000)
    asked = [sent.at_ms for sent in cluster.sent("SETACK", by=first, to=third)]
    gaps = [later - earlier for earlier, later in pairwise(asked)]
    assert len(gaps) > 9
    for gap, expected in zip(gaps, [1, 2, 4, 8, 16, 32, 64, 128, 180, 180], strict=False):
        assert abs(gap - expected * 1000) <= 250 + 32
    assert job_messages(cluster, by=second, to=first).count("GOTACK") == 1, "a node that confirmed is not asked again"


def test_holder_with_a_congested_link_is_asked_when_the_link_has_room_again(cluster: Cluster) -> None:
    """By then the intervals have grown to half a minute, and more jobs wait than the broker visits at once."""
    first, second, third = cluster.members
    jobs = [added(cluster, "REPLICATE", 3, "RETRY", 3000, "TTL", 3600) for _ in range(JOBS_PER_VISIT + 1)]
    link = first.node.state.view.peers[third.id].link
    assert link is not None
    link.congested = True
    cluster.lose("SETACK", by=second)
    assert first.admin.call("ACKJOB", *jobs) == len(jobs)
    cluster.run(seconds=20)
    assert job_messages(cluster, by=first, to=third) == []
    cluster.lose("SETACK", to=third)
    link.congested = False
    cluster.run(seconds=5)
    asked = [job_id for sent in cluster.sent("SETACKS", by=first, to=third) for job_id in listed(sent.frame)]
    assert sorted(asked) == sorted(jobs), "each once"
    cluster.network.filters.pop()
    link.congested = True
    cluster.run(seconds=30)
    link.congested = False
    cluster.run(seconds=5)
    assert first.node.state.lifecycle.table.count == 0


def test_holder_whose_answers_were_lost_is_asked_again_when_it_connects() -> None:
    """The second node drops the job at once and says so, but only the first can open connections for a minute."""
    cluster = Cluster(2)
    first, second = cluster.members
    job = added(cluster, "REPLICATE", 2, "RETRY", 3000, "TTL", 3600)
    cluster.network.unlisten(first, BUS_PORT)
    cluster.network.reset(first, second)
    cluster.run(seconds=1)
    first.admin.call("ACKJOB", job)
    cluster.run(seconds=40)
    assert cluster.copies(job) == [first]
    cluster.network.listen(first, BUS_PORT)
    cluster.until(lambda: first.id in [peer.id for peer in second.node.state.view.peers.values() if peer.connected])
    cluster.run(seconds=1)
    assert cluster.copies(job) == []


@pytest.mark.parametrize("disturbance", ["another ACKJOB", "a member that returns"])
def test_intervals_do_not_grow_by_anything_but_attempts(cluster: Cluster, disturbance: str) -> None:
    first, second, third = cluster.members
    job = added(cluster, *REPLICATED)
    cluster.lose("SETACK", by=second)
    cluster.lose("SETACK", to=third)
    first.admin.call("ACKJOB", job)
    for _ in range(10):
        if disturbance == "another ACKJOB":
            first.admin.call("ACKJOB", job)
        else:
            cluster.network.reset(first, second)
        cluster.run(milliseconds=400)
    cluster.network.filters.pop()
    cluster.run(seconds=4)
    assert cluster.copies(job) == [], "asked again after 1, 3 and 7 seconds"


@pytest.mark.parametrize("kind", ["SETACK", "GOTACK", "DELJOB"])
def test_job_is_collected_within_seconds_after_a_lost_message(cluster: Cluster, kind: str) -> None:
    job = added(cluster, *REPLICATED)
    cluster.lose(kind)
    cluster.members[0].admin.call("ACKJOB", job)
    cluster.run(milliseconds=20)
    assert cluster.copies(job) != []
    cluster.network.filters.clear()
    cluster.run(seconds=5)
    assert cluster.copies(job) == []


def test_holders_that_missed_deljob_collect_the_job_themselves(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = added(cluster, *REPLICATED)
    cluster.lose("DELJOB")
    first.admin.call("ACKJOB", job)
    cluster.run(milliseconds=100)
    assert cluster.copies(job) == [second, third]
    cluster.run(seconds=3)
    assert cluster.copies(job) == []


def test_setack_of_a_holder_counts_as_its_confirmation(cluster: Cluster) -> None:
    job = added(cluster, *REPLICATED)
    cluster.lose("GOTACK")
    cluster.members[0].admin.call("ACKJOB", job)
    cluster.run(milliseconds=500)
    assert len(cluster.copies(job, "acked")) == 3
    cluster.run(seconds=2)
    assert cluster.copies(job) == []


def test_node_that_no_longer_has_the_job_confirms(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = added(cluster, *REPLICATED)
    second.admin.call("DELJOB", job)
    third.admin.call("ACKJOB", job)
    cluster.run(milliseconds=10)
    assert cluster.copies(job) == []
    assert [int(sent.frame.aux) for sent in cluster.sent("GOTACK", by=second)] == [0]
    assert [int(sent.frame.aux) for sent in cluster.sent("GOTACK", by=first)] == [1]


def test_node_that_knows_more_holders_takes_over_the_collection(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = added(cluster, *REPLICATED)
    kept = job_at(second, job)
    kept.delivered = (first.id, second.id)
    second.admin.call("ACKJOB", job)
    cluster.run(milliseconds=10)
    assert job_messages(cluster, by=first, to=second) == ["DELJOB"], (
        "the first does not confirm: the second would drop the job without the third"
    )
    assert [int(sent.frame.aux) for sent in cluster.sent("SETACK", by=first)] == [3]
    assert job_messages(cluster, by=third, to=first) == ["GOTACK"]
    assert cluster.copies(job) == []


def test_number_of_confirmations_alone_does_not_complete_a_collection(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = added(cluster, *REPLICATED)
    kept = job_at(first, job)
    kept.delivered = (first.id, second.id)
    cluster.lose("SETACK", to=second)
    first.admin.call("ACKJOB", job)
    tell(first, third.node.state.bus.about_job(kinds.GOTACK, job, 1))
    assert first.admin.show(job)["state"] == b"acked", (
        "two confirmations for two holders, but the second has not confirmed"
    )
    assert first.admin.show(job)["nodes-delivered"] == [first.id, second.id, third.id]


def test_sole_holder_that_learns_of_another_one_waits_for_it(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = added(cluster, "REPLICATE", 1, "RETRY", 60)
    tell(first, second.node.state.bus.about_job(kinds.SETACK, job, 2))
    assert first.admin.show(job)["state"] == b"acked"
    assert sorted(first.admin.show(job)["nodes-delivered"]) == sorted([first.id, second.id])  # type: ignore[arg-type, type-var]
    assert job_messages(cluster) == ["GOTACK"]
    cluster.run(seconds=3)
    assert cluster.copies(job) == []


def test_a_job_whose_client_still_waits_for_copies_is_added_before_it_is_acknowledged(cluster: Cluster) -> None:
    first = cluster.members[0]
    cluster.lose("GOTJOB")
    client = first.client()
    client.send("ADDJOB", "mail", "body", 0, *REPLICATED)
    cluster.run(milliseconds=20)
    (job,) = [job.id for job in first.node.state.lifecycle.table.jobs()]
    assert client.silent
    assert first.admin.call("ACKJOB", job) == 1
    assert client.next_reply() == job
    cluster.run(milliseconds=20)
    assert cluster.copies(job) == []
    assert first.admin.call("QLEN", "mail") == 0


def test_addjob_is_answered_when_a_copy_is_acknowledged_elsewhere(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB")
    client = first.client()
    client.send("ADDJOB", "mail", "body", 0, *REPLICATED)
    cluster.run(milliseconds=20)
    (job,) = [job.id for job in second.node.state.lifecycle.table.jobs()]
    assert second.admin.call("ACKJOB", job) == 1
    cluster.run(milliseconds=20)
    assert client.next_reply() == job
    assert cluster.copies(job) == []


def test_repeated_messages_change_nothing(cluster: Cluster) -> None:
    """All messages about a collected job arrive again at every node, while another job is in different states."""
    first, second, _ = cluster.members
    old = added(cluster, *REPLICATED)
    cluster.forget_sent()
    first.admin.call("ACKJOB", old)
    cluster.run(seconds=2)
    repeated = [
        sent.frame.data[sent.frame.start : sent.frame.end]
        for sent in cluster.sent()
        if sent.frame.kind in JOB_MESSAGES and sent.kind != "GOTJOB"
    ]
    other = added(cluster, *REPLICATED)
    for moment in ("queued", "delivered", "acknowledged"):
        if moment == "delivered":
            assert first.admin.take("mail") == [other]
        elif moment == "acknowledged":
            second.admin.call("ACKJOB", other)
        for member in cluster.members:
            for frame in repeated:
                tell(member, frame)
        cluster.run(milliseconds=50)
        assert cluster.copies(old) == []
        assert len(cluster.copies(other)) == (0 if moment == "acknowledged" else 3)


def test_unexpected_job_messages_are_ignored(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = added(cluster, *REPLICATED)
    tell(first, second.node.state.bus.about_job(kinds.GOTACK, job, 1))
    assert first.admin.show(job)["state"] == b"queued"
    for kind in JOB_MESSAGES:
        tell(first, second.node.state.bus.about_job(kind, b"x" * 40, 1))
    assert cluster.copies(job) == cluster.members


@pytest.mark.parametrize("state", ["queued", "active", "acked", "delayed"])
def test_deljob_from_another_node_deletes_a_job_in_any_state(cluster: Cluster, state: str) -> None:
    first, second, third = cluster.members
    job = added(cluster, *REPLICATED, *(("DELAY", 30) if state == "delayed" else ()))
    if state == "active":
        first.admin.take("mail")
    elif state == "acked":
        cluster.lose("SETACK")
        first.admin.call("ACKJOB", job)
    tell(first, second.node.state.bus.about_job(kinds.DELJOB, job))
    assert cluster.copies(job) == [second, third]
    assert first.admin.call("QLEN", "mail") == 0
    assert first.node.state.lifecycle.acked_jobs == 0


def test_fastack_deletes_the_job_on_all_holders_at_once(cluster: Cluster) -> None:
    second = cluster.members[1]
    job = added(cluster, *REPLICATED)
    assert second.admin.call("FASTACK", job) == 1
    cluster.run(milliseconds=5)
    assert cluster.copies(job) == []
    assert job_messages(cluster) == ["DELJOB", "DELJOB"]


def test_fastack_of_an_unknown_job_sends_deljob_to_all(cluster: Cluster) -> None:
    second = cluster.members[1]
    job = added(cluster, "REPLICATE", 1)
    assert second.admin.call("FASTACK", job) == 0
    cluster.run(milliseconds=5)
    assert cluster.copies(job) == []
    assert job_messages(cluster) == ["DELJOB", "DELJOB"]


def test_deljob_deletes_on_one_node_only(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = added(cluster, *REPLICATED)
    assert first.admin.call("DELJOB", job) == 1
    cluster.run(milliseconds=5)
    assert cluster.copies(job) == [second, third]
    assert job_messages(cluster) == []
