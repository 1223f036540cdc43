"""MOVEJOB: jobs get a successor in another queue, and the old ones end."""

from __future__ import annotations

import pytest

from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode
from moves.test_dead_letters import fail, is_over, jobs_in
from replication.adding import adding, id_of

OTHER = b"other"


def test_queued_and_delayed_jobs_are_moved_and_leased_jobs_stay(client: LocalClient) -> None:
    leased = client.add("mail")
    client.call("GETJOB", "FROM", "mail")
    queued = client.add("mail", "one", "PRIORITY", 7)
    delayed = client.add("mail", "two", "DELAY", 100)
    assert client.call("MOVEJOB", leased, queued, delayed, "TO", "other") == 2
    moved = jobs_in(client, OTHER)
    assert [client.show(job)["origin-id"] for job in moved] == [queued, delayed]
    assert client.show(moved[0])["origin-queue"] == b"mail"
    assert client.show(leased)["state"] == b"active"
    assert [client.call("SHOW", job) for job in (queued, delayed)] == [None, None]


def test_one_request_moves_many_jobs(client: LocalClient) -> None:
    ids = [client.add("mail") for _ in range(500)]
    assert client.call("MOVEJOB", *ids, "TO", "other") == 500
    assert (client.call("QLEN", "mail"), client.call("QLEN", "other")) == (0, 500)
    for count, error in ((10_001, "ERR MOVEJOB takes at most 10000 jobs"), (20_001, "ERR wrong number of arguments")):
        assert str(client.call("MOVEJOB", *ids[:1] * count, "TO", "other")).startswith(error)


@pytest.mark.parametrize(("options", "kept"), [((), 0), (("UNCOUNTED",), 2)])
def test_counters_begin_again_unless_they_are_kept(client: LocalClient, options: tuple[str, ...], kept: int) -> None:
    job_id = client.add("mail")
    for _ in range(2):
        fail(client)
    client.call("MOVEJOB", job_id, "TO", "other", *options)
    (moved,) = jobs_in(client, OTHER)
    assert (client.show(moved)["nacks"], client.show(moved)["attempts"]) == (kept, 2)


def test_the_life_of_a_moved_job_is_as_long_as_that_of_the_old_one(local: LocalNode, client: LocalClient) -> None:
    job_id = client.add("mail", "body", "TTL", 600)
    local.run(seconds=300)
    client.call("MOVEJOB", job_id, "TO", "other")
    (moved,) = jobs_in(client, OTHER)
    assert client.show(moved)["ttl"] == 600


def test_a_job_that_is_moved_there_and_back_is_another_one(client: LocalClient) -> None:
    job_id = client.add("mail")
    client.call("MOVEJOB", job_id, "TO", "other")
    (there,) = jobs_in(client, OTHER)
    client.call("MOVEJOB", there, "TO", "mail")
    (back,) = jobs_in(client, b"mail")
    assert len({job_id, there, back}) == 3
    assert (client.show(back)["origin-id"], client.show(back)["moves"]) == (job_id, 2)


def test_an_at_most_once_job_is_moved_while_it_is_queued_and_never_after_its_delivery(client: LocalClient) -> None:
    queued, taken = [client.add("mail", "body", "RETRY", 0, "REPLICATE", 1) for _ in range(2)]
    client.call("GETJOB", "FROM", "mail")
    assert client.call("MOVEJOB", queued, taken, "TO", "other") == 1
    assert len(jobs_in(client, OTHER)) == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("TO", "other"), "ERR wrong number of arguments"),
        (("{job}", "TO", "mail"), "ERR The job is in that queue already"),
        (("{job}", "other", "TO"), "BADID Invalid Job ID format."),
        (("{job}", "TO", "other", "COUNTED"), "ERR syntax error"),
        (("{job}", "{job}", "TO"), "ERR syntax error"),
    ],
)
def test_wrong_requests_are_refused_and_move_nothing(client: LocalClient, words: tuple[str, ...], error: str) -> None:
    job_id = client.add("mail")
    request = [job_id if word == "{job}" else word for word in words]
    assert str(client.call("MOVEJOB", *request)).startswith(error)
    assert jobs_in(client, b"mail") == [job_id]


def test_in_a_cluster_the_reply_follows_the_moves(cluster: Cluster) -> None:
    ids = [id_of(cluster, adding(cluster, "REPLICATE", 3)) for _ in range(20)]
    client = cluster.members[1].client()
    client.send("MOVEJOB", *ids, "TO", "other")
    cluster.until(lambda: not client.silent, within_s=2)
    assert client.next_reply() == 20
    cluster.run(seconds=3)
    assert all(is_over(cluster, job_id) for job_id in ids)
    assert sum(len(jobs_in(member.client(), OTHER)) for member in cluster.members) == 20


def test_a_move_that_takes_long_continues_after_the_reply(cluster: Cluster) -> None:
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 3))
    cluster.lose("GOTJOB", count=40)
    cluster.lose("GOTJOBS", count=40)
    client = cluster.members[0].client()
    client.send("MOVEJOB", job_id, "TO", "other")
    cluster.until(lambda: not client.silent, within_s=7)
    assert client.next_reply() == 0
    cluster.run(seconds=240)
    assert is_over(cluster, job_id)
    assert sum(len(jobs_in(member.client(), OTHER)) for member in cluster.members) == 1


@pytest.mark.parametrize("apart_ms", [0, 1, 2, 3])
def test_two_nodes_that_move_a_job_at_once_make_one_successor_that_one_of_them_queues(
    cluster: Cluster, apart_ms: int
) -> None:
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 3))
    most = 0
    for member in cluster.members[:2]:
        member.client().send("MOVEJOB", job_id, "TO", "other")
        cluster.run(milliseconds=apart_ms)
    for _ in range(1500):
        cluster.run(milliseconds=1)
        most = max(most, sum(len(jobs_in(member.client(), OTHER)) for member in cluster.members))
    assert most == 1
    assert sum(len(jobs_in(member.client(), OTHER)) for member in cluster.members) == 1
    assert is_over(cluster, job_id)
