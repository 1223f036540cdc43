"""SYNC n: the client is answered when n nodes have the job; the other copies are asked for until they are confirmed."""

from __future__ import annotations

import pytest

from disqued.replication.room import replication_of
from disqued.testing.cluster import BUS_PORT, Cluster
from replication.adding import FEW, TIMEOUT, adding, error_of, holders, id_of, jobs
from replication.test_asynchronous import choke, figure
from replication.test_external import leave


def followed(cluster: Cluster) -> int:
    """How many jobs the first member still asks copies for."""
    return len(replication_of(cluster.members[0].node.state).followed.jobs)


def test_the_client_is_answered_when_that_many_nodes_have_the_job(cluster: Cluster) -> None:
    first, second, third = cluster.members
    cluster.lose("GOTJOB", by=third)
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 3, "SYNC", 2))
    assert cluster.copies(job_id, "queued") == [first]
    assert followed(cluster) == 1
    assert second in cluster.copies(job_id)


def test_the_client_waits_while_fewer_nodes_have_the_job(cluster: Cluster) -> None:
    _, second, third = cluster.members
    cluster.lose("GOTJOB", by=second)
    cluster.lose("GOTJOB", by=third)
    client = adding(cluster, "REPLICATE", 3, "SYNC", 2, timeout_ms=300)
    cluster.run(milliseconds=250)
    assert client.silent
    cluster.run(milliseconds=100)
    assert error_of(client) == TIMEOUT
    cluster.run(milliseconds=50)
    assert jobs(cluster) == [0, 0, 0]


def test_sync_1_waits_for_no_other_node_and_still_asks_for_confirmations(cluster: Cluster) -> None:
    first = cluster.members[0]
    job_id = first.admin.add("mail", "body", "REPLICATE", 3, "SYNC", 1)
    assert cluster.copies(job_id, "queued") == [first]
    cluster.run(milliseconds=20)
    assert cluster.copies(job_id) == cluster.members
    assert followed(cluster) == 0
    assert figure(cluster, "sync_copies_missing") == 0


def test_a_job_that_is_added_again_under_its_id_is_followed_once(cluster: Cluster) -> None:
    """The timer of the first job, which had ended, rang for the second one."""
    first, _, third = cluster.members
    third.crash()
    for _ in range(3):
        job_id = id_of(cluster, adding(cluster, "REPLICATE", 3, "SYNC", 2, "ID", "A" * 24, timeout_ms=5000))
        assert followed(cluster) == 1
        first.admin.call("DELJOB", job_id)
        cluster.run(milliseconds=50)
    cluster.run(seconds=3)
    assert followed(cluster) == 0
    assert not [line for _, line in first.host.log_lines if "BUG" in line]


def test_lost_copies_are_sent_again_after_the_reply(cluster: Cluster) -> None:
    first, _, third = cluster.members
    cluster.lose("REPLJOB", to=third)
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 3, "SYNC", 2))
    assert third not in cluster.copies(job_id)
    cluster.heal()
    cluster.run(seconds=1)
    assert cluster.copies(job_id) == cluster.members
    assert followed(cluster) == 0
    assert [holders(member, job_id) for member in cluster.members] == [{member.id for member in cluster.members}] * 3
    assert first.admin.take("mail") == [job_id]


def test_another_node_is_asked_when_the_chosen_one_refuses() -> None:
    cluster = Cluster(4)
    first, *others = cluster.members
    for other in others[:2]:
        assert other.admin.call("PAUSE", "mail", "in") == b"in"
    job_ids = [first.admin.add("mail", "body", "REPLICATE", 2, "SYNC", 1) for _ in range(10)]
    cluster.run(seconds=2)
    assert [len(cluster.copies(job_id)) for job_id in job_ids] == [2] * 10


def test_the_job_stays_when_copies_are_missing_at_the_timeout(cluster: Cluster) -> None:
    first, _, third = cluster.members
    cluster.lose("REPLJOB", to=third)
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 3, "SYNC", 2, timeout_ms=700))
    cluster.run(seconds=1)
    assert followed(cluster) == 0
    assert figure(cluster, "sync_copies_missing") == 1
    assert first.admin.take("mail") == [job_id]


def test_copies_are_asked_for_one_minute_at_most(cluster: Cluster) -> None:
    cluster.lose("REPLJOB", to=cluster.members[2])
    id_of(cluster, adding(cluster, "REPLICATE", 3, "SYNC", 2))
    cluster.run(seconds=59)
    assert followed(cluster) == 1
    cluster.run(seconds=2)
    assert followed(cluster) == 0
    assert figure(cluster, "sync_copies_missing") == 1


def test_nothing_is_asked_for_after_the_job_is_done(cluster: Cluster) -> None:
    first, _, third = cluster.members
    cluster.lose("REPLJOB", to=third)
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 3, "SYNC", 2))
    assert first.admin.take("mail") == [job_id]
    assert first.admin.call("ACKJOB", job_id) == 1
    cluster.heal()
    cluster.run(seconds=1)
    assert jobs(cluster) == [0, 0, 0]
    assert followed(cluster) == 0
    assert figure(cluster, "sync_copies_missing") == 0


def test_nodes_that_are_down_do_not_refuse_an_add_that_does_not_wait_for_them(cluster: Cluster) -> None:
    first, second, third = cluster.members
    third.crash()
    cluster.until(lambda: len(first.node.state.view.reachable) == 1, within_s=60)
    assert error_of(adding(cluster, "REPLICATE", 3, "ASYNC")) == FEW
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 3, "SYNC", 2))
    assert cluster.copies(job_id) == [first, second]
    second.crash()
    cluster.until(lambda: len(first.node.state.view.reachable) == 0, within_s=60)
    cluster.run(seconds=60)
    assert error_of(adding(cluster, "REPLICATE", 3, "SYNC", 2)) == FEW


def test_a_node_that_comes_back_gets_its_copy_at_once(cluster: Cluster) -> None:
    first, _, third = cluster.members
    cluster.network.unlisten(third, BUS_PORT)
    cluster.network.reset(first, third)
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 3, "SYNC", 2))
    assert third not in cluster.copies(job_id)
    cluster.network.listen(third, BUS_PORT)
    cluster.until(lambda: third in cluster.copies(job_id), within_s=5)
    cluster.until(lambda: followed(cluster) == 0, within_s=1)


def test_a_leaving_node_waits_for_that_many_other_nodes(cluster: Cluster) -> None:
    first, second, third = cluster.members
    leave(first)
    cluster.lose("GOTJOB", by=second)
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 2, "SYNC", 1))
    cluster.run(milliseconds=5)
    assert cluster.copies(job_id, "queued") == [third]
    client = adding(cluster, "REPLICATE", 2, "SYNC", 2, timeout_ms=200)
    cluster.run(milliseconds=250)
    assert error_of(client) == TIMEOUT


def test_a_slow_link_does_not_slow_down_clients_that_do_not_wait_for_it(cluster: Cluster) -> None:
    choke(cluster, 3)
    before = replication_of(cluster.members[0].node.state).state.view.peers[cluster.members[2].id].link
    assert before is not None
    job_ids = [id_of(cluster, adding(cluster, "REPLICATE", 3, "SYNC", 2)) for _ in range(20)]
    assert followed(cluster) == 20
    assert cluster.sent("REPLJOB", to=cluster.members[2]) == []
    cluster.network.path(cluster.members[0], cluster.members[2]).bytes_per_ms = 100_000
    cluster.run(seconds=60)
    assert [len(cluster.copies(job_id)) for job_id in job_ids] == [3] * 20


def test_sync_replicate_is_the_default(cluster: Cluster) -> None:
    cluster.lose("GOTJOB", by=cluster.members[2])
    client = adding(cluster, "REPLICATE", 3, "SYNC", 3)
    cluster.run(milliseconds=200)
    assert client.silent
    assert followed(cluster) == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("SYNC", 0), "ERR SYNC must be at least 1"),
        (("SYNC", "x"), "ERR SYNC must be at least 1"),
        (("SYNC", 4), "ERR SYNC must be at most REPLICATE, which is 3"),
        (("REPLICATE", 2, "SYNC", 3), "ERR SYNC must be at most REPLICATE, which is 2"),
        (("SYNC", 1, "ASYNC"), "ERR SYNC and ASYNC cannot be combined"),
        (("ASYNC", "SYNC", 1), "ERR SYNC and ASYNC cannot be combined"),
    ],
)
def test_wrong_levels_are_refused(cluster: Cluster, options: tuple[str | int, ...], error: str) -> None:
    assert error_of(adding(cluster, *options)) == error


def test_everything_dropped_is_followed_no_longer(cluster: Cluster) -> None:
    cluster.lose("REPLJOB", to=cluster.members[2])
    id_of(cluster, adding(cluster, "REPLICATE", 3, "SYNC", 2))
    assert cluster.members[0].admin.call("DEBUG", "FLUSHALL") == b"OK"
    assert followed(cluster) == 0


def test_the_oldest_is_given_up_when_there_are_too_many(cluster: Cluster) -> None:
    replication_of(cluster.members[0].node.state).followed.most = 2
    cluster.lose("REPLJOB", to=cluster.members[2])
    for _ in range(3):
        id_of(cluster, adding(cluster, "REPLICATE", 3, "SYNC", 2))
    assert followed(cluster) == 2
    assert figure(cluster, "sync_copies_missing") == 1
