"""Copies that were lost are made again: which jobs, by which node, at which node, and when."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.core.cluster.rendezvous import ranked
from disqued.core.jobs.attributes import META
from disqued.testing.cluster import Cluster, Member
from repair.losing import add, copies, five, is_whole, lists_of, rebuilt, short, status
from support.fixtures import settled
from support.stories import job_at, tell


def until_whole(cluster: Cluster, within_s: float = 30) -> None:
    """Run until no copy is missing."""
    cluster.run(seconds=1)
    cluster.until(lambda: is_whole(cluster), within_s=within_s)


def others(cluster: Cluster, member: Member) -> list[Member]:
    return [other for other in cluster.members if other is not member]


def test_copies_of_a_node_that_restarts_without_a_file_are_made_again() -> None:
    cluster = five()
    jobs = add(cluster, cluster.members[0], 200, "REPLICATE", 3)
    cluster.members[1].restart()
    until_whole(cluster)
    assert copies(cluster, jobs) == {3}
    assert rebuilt(cluster).keys() == {"restarted"}
    assert all(len(cluster.copies(job_id, "queued")) == 1 for job_id in jobs)


def test_five_nodes_without_files_that_restart_one_after_the_other_lose_nothing() -> None:
    cluster = five()
    jobs: list[bytes] = []
    taken: set[bytes] = set()
    for turn, member in enumerate([*cluster.members, *cluster.members]):
        away = others(cluster, member)
        jobs += add(cluster, away[turn % 4], 50, "REPLICATE", 2 + turn % 2, "RETRY", 30)
        for worker in away:
            ids = worker.admin.take("mail", count=8)
            worker.admin.call("ACKJOB", *ids) if ids else None
            taken.update(ids)
        member.restart()
        jobs += add(cluster, away[(turn + 1) % 4], 20, "REPLICATE", 3, "RETRY", 30)
        until_whole(cluster)
    for _ in range(70):
        for worker in cluster.members:
            ids = worker.admin.take("mail", count=100)
            worker.admin.call("ACKJOB", *ids) if ids else None
            taken.update(ids)
        cluster.run(seconds=1)
    assert taken >= set(jobs)


def test_copies_of_a_node_that_fails_are_made_again_after_repair_after() -> None:
    cluster = five()
    jobs = add(cluster, cluster.members[0], 40, "REPLICATE", 2)
    cluster.members[1].crash()
    cluster.run(seconds=25)
    assert copies(cluster, jobs) == {1, 2}
    assert short(cluster) == 0
    cluster.run(seconds=25)
    assert copies(cluster, jobs) == {2}
    assert rebuilt(cluster).keys() == {"failed"}


def test_copies_of_a_node_that_is_forgotten_are_made_again_at_once() -> None:
    cluster = five()
    jobs = add(cluster, cluster.members[0], 40, "REPLICATE", 2)
    gone = cluster.members[1]
    gone.crash()
    for member in others(cluster, gone):
        member.admin.call("CLUSTER", "FORGET", gone.id)
    cluster.run(seconds=5)
    assert copies(cluster, jobs) == {2}
    assert rebuilt(cluster).keys() == {"forgotten"}


def test_a_node_that_returns_with_its_jobs_in_time_gets_nothing() -> None:
    cluster = five()
    jobs = add(cluster, cluster.members[0], 40, "REPLICATE", 3)
    away = cluster.members[1]
    cluster.partition([away], others(cluster, away))
    cluster.run(seconds=20)
    cluster.heal()
    cluster.run(seconds=40)
    assert copies(cluster, jobs) == {3}
    assert rebuilt(cluster) == {}


def test_lists_are_united_when_a_node_returns_whose_copies_were_made_again() -> None:
    cluster = five()
    jobs = add(cluster, cluster.members[0], 20, "REPLICATE", 3, "RETRY", 20)
    away = cluster.members[1]
    cluster.partition([away], others(cluster, away))
    cluster.run(seconds=60)
    held = [job_id for job_id in jobs if away.node.state.lifecycle.table.get(job_id) is not None]
    assert held
    cluster.heal()
    cluster.run(seconds=10)
    assert copies(cluster, held) == {4}
    taken: list[bytes] = []
    for _ in range(60):
        for member in cluster.members:
            ids = member.admin.take("mail", count=100)
            member.admin.call("ACKJOB", *ids) if ids else None
            taken += ids
        cluster.run(seconds=1)
    assert set(taken) == set(jobs)
    assert copies(cluster, jobs) == {0}


def test_at_most_once_jobs_and_jobs_that_end_soon_get_no_further_copy() -> None:
    cluster = five()
    first, second = cluster.members[:2]
    once = add(cluster, first, 20, "REPLICATE", 3, "RETRY", 0)
    ending = add(cluster, first, 20, "REPLICATE", 3, "RETRY", 1, "TTL", 10)
    before = len([job_id for job_id in once + ending if second in cluster.copies(job_id)])
    assert before
    second.restart()
    cluster.run(seconds=5)
    assert rebuilt(cluster) == {}
    assert short(cluster) == 0


def test_the_holder_with_the_highest_score_makes_the_copy() -> None:
    cluster = five()
    first = cluster.members[0]
    jobs = add(cluster, first, 40, "REPLICATE", 3)
    lost = cluster.members[1]
    held = {job_id: lists_of(first, job_id) for job_id in jobs if lost in cluster.copies(job_id)}
    cluster.forget_sent()
    lost.restart()
    until_whole(cluster)
    for job_id, listed in held.items():
        able = [node_id for node_id in listed if node_id != lost.id]
        senders = [
            member.id
            for member in cluster.members
            if any(job_id in bytes(sent.frame.data) for sent in cluster.sent("REPLJOB", by=member))
        ]
        assert senders == ranked(job_id, able)[:1]


def test_the_next_holder_makes_the_copy_after_ten_seconds() -> None:
    cluster = five()
    first = cluster.members[0]
    jobs = add(cluster, first, 40, "REPLICATE", 3)
    lost, lazy = cluster.members[1:3]
    lazy.admin.call("CONFIG", "SET", "repair", "no")
    held = [job_id for job_id in jobs if lost in cluster.copies(job_id) and lazy in cluster.copies(job_id)]
    for_lazy = [
        job_id
        for job_id in held
        if ranked(job_id, [node_id for node_id in lists_of(first, job_id) if node_id != lost.id])[0] == lazy.id
    ]
    assert for_lazy
    lost.restart()
    cluster.run(seconds=9)
    assert copies(cluster, for_lazy) == {2}
    cluster.run(seconds=5)
    assert copies(cluster, jobs) == {3}


def test_nothing_is_made_again_with_repair_no_until_it_is_yes() -> None:
    cluster = five()
    for member in cluster.members:
        member.admin.call("CONFIG", "SET", "repair", "no")
    jobs = add(cluster, cluster.members[0], 40, "REPLICATE", 3)
    lost = cluster.members[1]
    held = [job_id for job_id in jobs if lost in cluster.copies(job_id)]
    lost.restart()
    cluster.run(seconds=30)
    assert copies(cluster, held) == {2}
    assert short(cluster) > 0
    assert status(cluster.members[0])["done"] == b"yes"
    assert status(cluster.members[0])["enabled"] == b"no"
    for member in others(cluster, lost):
        member.admin.call("CONFIG", "SET", "repair", "yes")
    until_whole(cluster)
    assert copies(cluster, jobs) == {3}


def test_a_copy_goes_to_another_zone() -> None:
    cluster = settled(5)
    for member, zone in zip(cluster.members, ("a", "a", "b", "b", "c"), strict=True):
        member.admin.call("CONFIG", "SET", "cluster-zone", zone)
    cluster.run(seconds=2)
    jobs = add(cluster, cluster.members[0], 40, "REPLICATE", 3)
    lost = cluster.members[4]
    lost.crash()
    for member in others(cluster, lost):
        member.admin.call("CLUSTER", "FORGET", lost.id)
    cluster.run(seconds=5)
    for job_id in jobs:
        zones = sorted(member.config.cluster_zone for member in cluster.copies(job_id))
        assert zones in (["a", "a", "b"], ["a", "b", "b"])


def test_a_copy_goes_to_the_node_with_more_free_memory() -> None:
    cluster = settled(4)
    full, empty = cluster.members[2:]
    for member in cluster.members:
        member.admin.call("CONFIG", "SET", "maxmemory", "100mb")
    for _ in range(40):
        full.admin.add("fill", b"x" * 1_000_000, "REPLICATE", 1)
    cluster.run(seconds=2)
    first, lost = cluster.members[:2]
    jobs = [job_id for job_id in add(cluster, first, 60, "REPLICATE", 2) if lost in cluster.copies(job_id)]
    lost.crash()
    for member in others(cluster, lost):
        member.admin.call("CLUSTER", "FORGET", lost.id)
    cluster.run(seconds=5)
    assert jobs
    assert all(set(cluster.copies(job_id)) == {first, empty} for job_id in jobs)


def test_copies_are_made_while_the_queue_is_paused() -> None:
    cluster = settled(3)
    jobs = add(cluster, cluster.members[0], 10, "REPLICATE", 3)
    for member in cluster.members:
        member.admin.call("PAUSE", "mail", "all")
    cluster.members[1].restart()
    cluster.run(seconds=1)
    cluster.members[1].admin.call("PAUSE", "mail", "all")
    until_whole(cluster)
    assert copies(cluster, jobs) == {3}


def test_attributes_travel_with_the_copy() -> None:
    cluster = settled(3)
    (job_id,) = add(cluster, cluster.members[0], 1, "REPLICATE", 3, "PRIORITY", 7, "META", "colour")
    lost = cluster.members[1]
    lost.restart()
    until_whole(cluster)
    extra = job_at(lost, job_id).extra
    assert extra is not None
    assert (extra.priority, extra.get(META)) == (7, b"colour")


def test_delayed_jobs_get_their_copies_and_are_delivered_once_when_due() -> None:
    cluster = settled(3)
    first, lost, third = cluster.members
    jobs = add(cluster, first, 10, "REPLICATE", 3, "DELAY", 60, "RETRY", 300)
    lost.restart()
    until_whole(cluster)
    assert copies(cluster, jobs) == {3}
    cluster.run(seconds=50)
    assert not lost.admin.take("mail", count=10)
    cluster.run(seconds=15)
    taken = [job_id for member in (first, lost, third) for job_id in member.admin.take("mail", count=10)]
    assert sorted(taken) == sorted(jobs)


def test_jobs_that_no_node_can_take_are_counted_and_not_waited_for() -> None:
    cluster = settled(3)
    jobs = add(cluster, cluster.members[0], 10, "REPLICATE", 3)
    lost = cluster.members[1]
    lost.crash()
    cluster.run(seconds=60)
    found = status(cluster.members[0])
    assert (found["jobs-under-replicated"], found["jobs-without-node"], found["done"]) == (10, 10, b"yes")
    lost.restart()
    until_whole(cluster)
    assert copies(cluster, jobs) == {3}
    assert short(cluster) == 0


def test_a_node_is_not_done_before_a_restarted_node_said_which_jobs_it_has() -> None:
    cluster = settled(3)
    first, lost, _ = cluster.members
    add(cluster, first, 10, "REPLICATE", 3)
    cluster.lose("DATAID", by=lost)
    lost.restart()
    cluster.until(cluster.is_whole)
    cluster.run(seconds=5)
    assert status(first)["done"] == b"no"
    assert status(first)["waits-for"] == f"node {lost.id.decode()} has not said yet which jobs it has".encode()


def test_a_copy_that_a_node_got_after_its_restart_is_not_made_again() -> None:
    cluster = settled(3)
    first, lost, third = cluster.members
    old = add(cluster, first, 5, "REPLICATE", 3)
    cluster.lose("DATAID", by=lost)
    lost.restart()
    cluster.until(cluster.is_whole)
    new = add(cluster, first, 5, "REPLICATE", 3)
    cluster.forget_sent()
    cluster.heal()
    until_whole(cluster)
    assert copies(cluster, old + new) == {3}
    frames = [bytes(sent.frame.data) for sent in cluster.sent("REPLJOB")]
    assert not any(job_id in frame for job_id in new for frame in frames)
    for member in cluster.members:
        assert all(set(lists_of(member, job_id)) == {first.id, lost.id, third.id} for job_id in old + new)


def test_a_node_that_is_seen_to_have_a_job_after_its_restart_stays_its_holder() -> None:
    cluster = settled(3)
    first, lost, third = cluster.members
    (job_id,) = add(cluster, first, 1, "REPLICATE", 3)
    for member in cluster.members:
        member.admin.call("CONFIG", "SET", "repair", "no")
    cluster.lose("DATAID", by=lost)
    lost.restart()
    cluster.until(lambda: not first.node.state.view.peers[lost.id].data_known)
    tell(first, lost.node.state.bus.about_job(kinds.WILLQUEUE, job_id))
    cluster.heal()
    cluster.run(seconds=10)
    assert lost.id in lists_of(first, job_id)
    assert lost.id not in lists_of(third, job_id)
    assert not first.node.state.lifecycle.table.settling


def test_a_job_whose_copies_are_confirmed_before_a_restart_asks_again() -> None:
    cluster = settled(3)
    first, lost, third = cluster.members
    cluster.lose("REPLJOB", to=third)
    client = first.client()
    client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 3)
    cluster.run(milliseconds=200)
    lost.restart()
    cluster.until(cluster.is_whole)
    cluster.heal()
    cluster.until(lambda: not client.silent)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    assert set(cluster.copies(job_id)) == {first, lost, third}


def test_a_silent_target_is_asked_again_and_another_one_as_well() -> None:
    cluster = five()
    first, lost, deaf = cluster.members[:3]
    jobs = [job_id for job_id in add(cluster, first, 40, "REPLICATE", 2) if lost in cluster.copies(job_id)]
    cluster.lose("REPLJOB", to=deaf)
    lost.crash()
    for member in others(cluster, lost):
        member.admin.call("CLUSTER", "FORGET", lost.id)
    cluster.run(seconds=20)
    assert all(len(cluster.copies(job_id)) >= 2 for job_id in jobs)


def test_rate_bounds_how_many_jobs_are_repaired_per_second() -> None:
    cluster = settled(3)
    first, lost, third = cluster.members
    for member in cluster.members:
        member.admin.call("CONFIG", "SET", "repair-rate", "10")
    jobs = add(cluster, first, 200, "REPLICATE", 3)
    lost.restart()
    lost.admin.call("CONFIG", "SET", "repair-rate", "10")
    cluster.until(cluster.is_whole)
    cluster.run(seconds=4)
    table = lost.node.state.lifecycle.table
    assert 20 <= sum(table.get(job_id) is not None for job_id in jobs) <= 100
    cluster.run(seconds=20)
    assert copies(cluster, jobs) == {3}
    assert short(cluster) == 0
    del third


def test_now_begins_a_survey_and_other_words_are_refused() -> None:
    cluster = settled(3)
    first = cluster.members[0]
    assert first.admin.call("CLUSTER", "REPAIR", "NOW") == b"OK"
    assert status(first)["waits-for"] in (b"", b"this node looks for lost copies")
    cluster.run(seconds=1)
    assert status(first)["done"] == b"yes"
    assert "Wrong argument for CLUSTER REPAIR" in str(first.admin.call("CLUSTER", "REPAIR", "never"))


@pytest.mark.parametrize("replicate", [2, 3])
def test_a_job_that_is_finished_during_the_repair_leaves_no_copy(replicate: int) -> None:
    cluster = five()
    first, lost = cluster.members[:2]
    jobs = add(cluster, first, 60, "REPLICATE", replicate, "RETRY", 5)
    ids = first.admin.take("mail", count=60)
    assert sorted(ids) == sorted(jobs)
    lost.restart()
    for job_id in ids:
        cluster.run(milliseconds=25)
        first.admin.call("ACKJOB", job_id)
    cluster.run(seconds=40)
    assert copies(cluster, jobs) == {0}
    assert not any(member.admin.take("mail", count=10) for member in cluster.members)


def test_holders_that_exchange_their_lists_do_not_list_a_node_again_that_came_back_without_the_job() -> None:
    """Each holder removes it from its list a little later than the others, while all requeue their jobs."""
    cluster = five()
    jobs = add(cluster, cluster.members[0], 80, "REPLICATE", 3, "RETRY", 1)
    cluster.run(seconds=3)
    for member in cluster.members[1:4]:
        member.restart()
        cluster.run(milliseconds=300)
        cluster.until(lambda: is_whole(cluster))
        assert copies(cluster, jobs) <= {3, 4}
        for job_id in jobs:
            having = cluster.copies(job_id)
            assert {frozenset(lists_of(holder, job_id)) for holder in having} == {frozenset(one.id for one in having)}
