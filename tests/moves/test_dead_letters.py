"""Dead letters: jobs that fail too often, are rejected or expire get a successor in another queue, and only one."""

from __future__ import annotations

import pytest

from disqued.core.jobs.attributes import MOVES, i32_value, of
from disqued.core.jobs.job import Job
from disqued.moves.successor import successor_id
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient, LocalNode
from replication.adding import adding, id_of

MAIL = b"mail"
DEAD = b"mail.dead"


def fail(client: LocalClient, *options: str | int, queue: bytes = MAIL) -> bytes:
    """Take the next job of a queue and give it back."""
    reply = client.call("GETJOB", "FROM", queue)
    assert isinstance(reply, list)
    assert isinstance(reply[0], list)
    job_id = reply[0][1]
    assert isinstance(job_id, bytes)
    assert client.call("NACK", job_id, *options) == 1
    return job_id


def jobs_in(client: LocalClient, queue: bytes) -> list[bytes]:
    """The IDs of the jobs of a queue on a node."""
    reply = client.call("QPEEK", queue, 100)
    assert isinstance(reply, list)
    return [row[1] for row in reply if isinstance(row, list) and isinstance(row[1], bytes)]


def limited(client: LocalClient, *settings: str | int, name: str = "mail") -> None:
    assert client.call("QCONF", name, "SET", *settings) == b"OK"


def test_a_job_becomes_a_dead_letter_after_its_last_attempt(client: LocalClient) -> None:
    limited(client, "limit", 3)
    job_id = client.add("mail", "body", "PRIORITY", 4, "META", "trace=1")
    for _ in range(2):
        assert fail(client, "REASON", "no route") == job_id
        assert jobs_in(client, DEAD) == []
    fail(client, "REASON", "still no route")
    assert client.call("SHOW", job_id) is None
    (dead,) = jobs_in(client, DEAD)
    assert dead == successor_id(job_id, DEAD, 0)
    shown = client.show(dead)
    assert {name: shown[name] for name in ("origin-id", "origin-queue", "reason", "attempts", "moves", "meta")} == {
        "origin-id": job_id,
        "origin-queue": MAIL,
        "reason": b"still no route",
        "attempts": 3,
        "moves": 1,
        "meta": b"trace=1",
    }
    assert (shown["priority"], shown["nacks"], shown["body"], shown["ttl"]) == (4, 0, b"body", 604_800)


def test_deliveries_that_were_never_answered_count_as_attempts(local: LocalNode, client: LocalClient) -> None:
    limited(client, "limit", 2)
    client.add("mail", "body", "RETRY", 5)
    for _ in range(2):
        assert client.call("GETJOB", "NOHANG", "FROM", "mail") is not None
        local.run(seconds=6)
    assert client.call("GETJOB", "NOHANG", "FROM", "mail") is None
    assert len(jobs_in(client, DEAD)) == 1


def test_uncounted_never_makes_a_dead_letter(client: LocalClient) -> None:
    limited(client, "limit", 1)
    job_id = client.add("mail")
    for _ in range(5):
        assert fail(client, "UNCOUNTED") == job_id
    assert jobs_in(client, DEAD) == []


def test_a_rejected_job_is_dead_at_once_also_without_settings(client: LocalClient) -> None:
    job_id = client.add("mail")
    fail(client, "DEAD", "REASON", "not for us")
    (dead,) = jobs_in(client, DEAD)
    assert client.show(dead)["reason"] == b"not for us"
    assert client.call("SHOW", job_id) is None


@pytest.mark.parametrize("setting", [("dead", "graveyard"), ("dead", "drop")])
def test_the_queue_says_where_dead_jobs_go(client: LocalClient, setting: tuple[str, str]) -> None:
    limited(client, "limit", 1, *setting)
    job_id = client.add("mail")
    fail(client)
    assert client.call("SHOW", job_id) is None
    assert len(jobs_in(client, b"graveyard")) == (setting[1] == "graveyard")
    assert jobs_in(client, DEAD) == []


def test_a_dead_letter_has_no_limit_unless_its_queue_has_one_by_name(client: LocalClient) -> None:
    limited(client, "limit", 1, name="*")
    client.add("mail")
    fail(client)
    for _ in range(3):
        fail(client, queue=DEAD)
    assert len(jobs_in(client, DEAD)) == 1
    limited(client, "limit", 5, "dead", "cellar", name="mail.dead")
    fail(client, queue=DEAD)
    fail(client, queue=DEAD)
    assert len(jobs_in(client, b"cellar")) == 1


def test_a_job_whose_life_ends_unacknowledged_becomes_a_dead_letter_if_wanted(
    local: LocalNode, client: LocalClient
) -> None:
    limited(client, "dead-expired", "yes")
    job_id = client.add("mail", "body", "TTL", 20)
    client.add("other", "body", "TTL", 20)
    local.run(seconds=22)
    (dead,) = jobs_in(client, DEAD)
    shown = client.show(dead)
    assert (shown["origin-id"], shown["reason"]) == (job_id, b"expired unacknowledged")
    assert jobs_in(client, b"other.dead") == []


def test_a_job_that_is_delivered_at_most_once_is_never_delivered_again_but_by_rejection(client: LocalClient) -> None:
    limited(client, "limit", 1)
    first = client.add("mail", "body", "RETRY", 0, "REPLICATE", 1)
    client.call("GETJOB", "FROM", "mail")
    assert client.call("NACK", first) == 0
    assert jobs_in(client, DEAD) == []
    assert client.call("NACK", first, "DEAD") == 1
    (dead,) = jobs_in(client, DEAD)
    assert client.show(dead)["retry"] == 0


def test_back_off_grows_with_each_attempt_and_is_bounded(local: LocalNode, client: LocalClient) -> None:
    limited(client, "backoff", "1000 8000")
    client.add("mail", "body", "TTL", 3600)
    waits_ms = []
    for _ in range(5):
        fail(client)
        waits_ms.append(0)
        while local.node.state.lifecycle.queued_jobs == 0:
            local.run(milliseconds=10)
            waits_ms[-1] += 10
    for waited_ms, expected_ms in zip(waits_ms, (1000, 2000, 4000, 8000, 8000), strict=True):
        assert expected_ms * 0.89 <= waited_ms <= expected_ms * 1.12


def test_back_off_leaves_a_quarter_of_the_life_of_the_job(local: LocalNode, client: LocalClient) -> None:
    limited(client, "backoff", "3600000 3600000")
    job_id = client.add("mail", "body", "TTL", 100)
    fail(client)
    local.run(seconds=76)
    assert client.show(job_id)["state"] == b"queued"


# --- in a cluster -----------------------------------------------------------------------------------------------------


def a_poison_job(cluster: Cluster, copies: int = 3, retry_s: int = 5) -> bytes:
    """Add a job, with its last attempt leased by the first member."""
    cluster.members[0].admin.call("QCONF", "mail", "SET", "limit", 1)
    cluster.run(seconds=1)
    job_id = id_of(cluster, adding(cluster, "REPLICATE", copies, "RETRY", retry_s))
    cluster.members[0].admin.call("GETJOB", "FROM", "mail")
    return job_id


def dead_ids(cluster: Cluster) -> set[bytes]:
    """The IDs of all dead letters that are known anywhere."""
    return {job.id for member in running(cluster) for job in member.node.state.lifecycle.table.jobs() if is_dead(job)}


def is_dead(job: Job) -> bool:
    return job.queue == DEAD and job.state != 3


def running(cluster: Cluster) -> list[Member]:
    return [member for member in cluster.members if member.running]


def is_over(cluster: Cluster, job_id: bytes) -> bool:
    """Whether every node that has the job knows that it is done."""
    return cluster.copies(job_id) == cluster.copies(job_id, "acked")


def queued_dead(cluster: Cluster) -> int:
    return sum(len(jobs_in(member.client(), DEAD)) for member in running(cluster))


def test_one_dead_letter_replaces_a_job_with_as_many_copies(cluster: Cluster) -> None:
    job_id = a_poison_job(cluster)
    cluster.members[0].admin.call("NACK", job_id)
    cluster.run(seconds=3)
    (dead,) = dead_ids(cluster)
    assert dead == successor_id(job_id, DEAD, 0)
    assert len(cluster.copies(dead)) == 3
    assert queued_dead(cluster) == 1
    assert cluster.copies(job_id) == []


def test_the_last_attempt_fails_on_a_node_that_is_no_home_of_the_dead_letter(cluster: Cluster) -> None:
    for _ in range(8):
        job_id = a_poison_job(cluster, copies=1)
        cluster.members[0].admin.call("NACK", job_id)
    cluster.run(seconds=3)
    holders = {member.id for dead in dead_ids(cluster) for member in cluster.copies(dead)}
    assert len(holders) > 1
    assert (len(dead_ids(cluster)), queued_dead(cluster)) == (8, 8)


STEPS = ("before", "REPLJOB", "GOTJOB", "SETREC")


@pytest.mark.parametrize("step", STEPS)
def test_exactly_one_dead_letter_when_the_mover_dies_at_any_step(cluster: Cluster, step: str) -> None:
    job_id = a_poison_job(cluster)
    mover = cluster.members[0]
    if step != "before":
        mover.client().send("NACK", job_id)
        cluster.until(lambda: bool(cluster.sent(step)), within_s=1)
    mover.crash()
    cluster.run(seconds=30)
    assert len(dead_ids(cluster)) == 1
    assert queued_dead(cluster) == 1
    assert is_over(cluster, job_id)
    mover.restart()
    cluster.run(seconds=30)
    assert (len(dead_ids(cluster)), queued_dead(cluster)) == (1, 1)


def test_no_dead_letter_comes_back_that_was_finished_before_the_move_was_repeated(cluster: Cluster) -> None:
    job_id = a_poison_job(cluster)
    mover, second, _ = cluster.members
    cluster.lose("SETREC", by=mover)
    mover.admin.call("NACK", job_id)
    cluster.run(milliseconds=20)
    worker = second.client()
    worker.send("GETJOB", "FROM", DEAD)
    cluster.until(lambda: not worker.silent, within_s=5)
    reply = worker.next_reply()
    assert isinstance(reply, list)
    assert isinstance(reply[0], list)
    dead = reply[0][1]
    assert isinstance(dead, bytes)
    worker.call("ACKJOB", dead)
    mover.crash()
    cluster.run(seconds=30)
    assert dead_ids(cluster) == set()
    assert is_over(cluster, job_id)


def test_a_job_that_expires_becomes_one_dead_letter_also_without_its_first_holder(cluster: Cluster) -> None:
    cluster.members[0].admin.call("QCONF", "mail", "SET", "dead-expired", "yes")
    cluster.run(seconds=1)
    kept = id_of(cluster, adding(cluster, "REPLICATE", 3, "TTL", 20))
    cluster.run(seconds=15)
    cluster.members[0].crash(silent=True)
    cluster.run(seconds=25)
    (dead,) = dead_ids(cluster)
    assert dead == successor_id(kept, DEAD, 0)


def test_the_copies_wait_for_nodes_while_too_few_can_be_reached(cluster: Cluster) -> None:
    job_id = a_poison_job(cluster)
    mover = cluster.members[0]
    cluster.lose("GOTJOB", count=14)
    cluster.lose("GOTJOBS", count=14)
    mover.client().send("NACK", job_id)
    cluster.run(seconds=2)
    assert mover.node.state.lifecycle.table.get(job_id) is not None
    cluster.run(seconds=60)
    assert cluster.copies(job_id) == []
    assert (len(dead_ids(cluster)), queued_dead(cluster)) == (1, 1)


# --- what must not count, and what must not stop a move ---------------------------------------------------------------


@pytest.mark.parametrize("given_back", [False, True], ids=["new", "given back"])
def test_running_a_delayed_job_now_at_any_holder_is_no_attempt(cluster: Cluster, given_back: bool) -> None:
    one, two, _ = cluster.members
    one.admin.call("QCONF", "mail", "SET", "limit", 2 if given_back else 1)
    cluster.run(seconds=1)
    job_id = id_of(cluster, adding(cluster, "REPLICATE", 3, "DELAY", 0 if given_back else 60))
    if given_back:
        one.admin.call("GETJOB", "FROM", "mail")
        one.admin.call("NACK", job_id, "DELAY", 60)
    cluster.run(seconds=1)
    assert two.admin.call("ENQUEUE", job_id) == 1
    cluster.run(seconds=1)
    assert dead_ids(cluster) == set()
    assert cluster.copies(job_id, "queued") == [two]
    assert two.client().show(job_id)["additional-deliveries"] == 0


def test_attempts_count_once_in_a_queue_that_is_its_own_queue_of_dead_letters(client: LocalClient) -> None:
    limited(client, "limit", 1, "dead", "mail")
    job_id = client.add("mail")
    fail(client)
    assert client.show(job_id)["nacks"] == 1
    client.call("GETJOB", "FROM", "mail")
    assert client.call("NACK", job_id, "DEAD") == 0
    assert client.show(job_id)["nacks"] == 1


@pytest.mark.parametrize("moves", [-1, (1 << 31) - 1])
def test_a_number_of_moves_that_is_no_number_stops_no_move(local: LocalNode, client: LocalClient, moves: int) -> None:
    limited(client, "limit", 1)
    job_id = client.add("mail")
    lifecycle = local.node.state.lifecycle
    job = lifecycle.table.get(job_id)
    assert job is not None
    lifecycle.set_attributes(job, of({MOVES: i32_value(moves)}))
    fail(client)
    assert len(jobs_in(client, DEAD)) == 1
