"""Controlled restart: the node restores its queues exactly once, as the option or a marker tells it."""

from __future__ import annotations

import errno
import random
from typing import TYPE_CHECKING

import pytest

from disqued.config import Config
from disqued.core.host import disk
from disqued.core.jobs.job import DELIVERED, IN_LINE, QUEUED
from disqued.testing.cluster import Cluster, Member
from disqued.testing.host import FakeHost
from disqued.testing.local import NODE_ID, LocalClient, LocalNode
from persistence.samples import kept, make_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from disqued.core.jobs.job import Job

FILE = "disque.aof"
LOADED = "disque.aof.loaded"


def with_file(*, appendonly: bool, **options: object) -> LocalNode:
    """Return a node with a configuration file."""
    config = Config()
    config.assign("appendonly", appendonly)
    for attribute, value in options.items():
        config.assign(attribute, value)
    node = LocalNode(config)
    node.host.config_text = f"port 7711\nappendonly {'yes' if appendonly else 'no'}\n"
    return node


def with_marker(*, appendonly: bool) -> LocalNode:
    """Return a node that writes a restart marker when it stops."""
    node = with_file(appendonly=appendonly, aof_restart_marker=True)
    assert node.host.config_text is not None
    node.host.config_text += "aof-restart-marker yes\n"
    return node


@pytest.fixture(params=[True, False], ids=["appendonly", "in-memory"])
def told_node(request: pytest.FixtureRequest) -> LocalNode:
    """Return a node that uses the option."""
    return with_file(appendonly=request.param)


@pytest.fixture(
    params=[(with_file, True), (with_file, False), (with_marker, True), (with_marker, False)],
    ids=["appendonly", "in-memory", "appendonly-marker", "in-memory-marker"],
)
def node(request: pytest.FixtureRequest) -> LocalNode:
    make, appendonly = request.param
    made: LocalNode = make(appendonly=appendonly)
    return made


def end(node: LocalNode) -> None:
    """Stop the node as documented: set the option unless it writes a marker, then SHUTDOWN REWRITE-AOF."""
    if not node.config.aof_restart_marker:
        client = node.client()
        assert client.call("CONFIG", "SET", "aof-enqueue-jobs-once", "yes") == b"OK"
        assert client.call("CONFIG", "REWRITE") == b"OK"
    assert node.shut_down("REWRITE-AOF") is None


def restart(node: LocalNode, away_s: float = 1) -> LocalClient:
    """Stop the node in a controlled way, start it again after a time, and return a client of the new process."""
    end(node)
    node.host.now_ms += int(away_s * 1000)
    node.restart()
    return node.client()


def crash(node: LocalNode) -> LocalClient:
    node.restart()
    return node.client()


def getjob(client: LocalClient, queue: str = "mail", count: int = 100) -> list[tuple[object, ...]]:
    """Fetch jobs and return their bodies and counters."""
    client.send("GETJOB", "NOHANG", "WITHCOUNTERS", "COUNT", count, "FROM", queue)
    while client.silent:  # many jobs come in slices
        client.local.run(milliseconds=1)
    jobs = client.next_reply()
    return [(job[2], job[4], job[6]) for job in jobs or []]  # type: ignore[union-attr, index]


def log_of(node: LocalNode) -> str:
    return "\n".join(text for _, text in node.host.log_lines)


# --- exactly once -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retry", [300, 0])
def test_queued_jobs_are_queued_again_without_counting_a_delivery(node: LocalNode, retry: int) -> None:
    for number in range(50):
        node.client().add("mail", f"body {number}", "RETRY", retry)

    client = restart(node)
    assert client.call("QLEN", "mail") == 50
    assert getjob(client) == [(b"body %d" % number, 0, 0) for number in range(50)]
    node.run(seconds=200)
    assert getjob(client) == [], "once"


def test_counters_survive_a_controlled_restart(node: LocalNode) -> None:
    client = node.client()
    job_id = client.add("mail", "body", "RETRY", 5)
    client.take("mail")
    assert client.call("NACK", job_id) == 1
    client.take("mail")
    node.run(seconds=6)

    client = restart(node)
    assert getjob(client) == [(b"body", 1, 1)]


def test_a_job_that_a_worker_has_is_queued_after_its_retry_time(node: LocalNode) -> None:
    client = node.client()
    job_id = client.add("mail", "body", "RETRY", 60)
    assert client.take("mail") == [job_id]

    client = restart(node)
    node.run(seconds=58)
    assert getjob(client) == []
    node.run(seconds=4)
    assert getjob(client) == [(b"body", 0, 1)]


def test_an_acknowledgement_after_the_restart_ends_the_job(node: LocalNode) -> None:
    client = node.client()
    job_id = client.add("mail", "body", "RETRY", 5)
    assert client.take("mail") == [job_id]

    client = restart(node)
    assert client.call("ACKJOB", job_id) == 1
    node.run(seconds=20)
    assert getjob(client) == []


def test_a_delivered_at_most_once_job_is_not_delivered_again(node: LocalNode) -> None:
    client = node.client()
    client.add("mail", "delivered", "RETRY", 0)
    client.add("mail", "waits", "RETRY", 0)
    assert getjob(client, count=1) == [(b"delivered", 0, 0)]

    client = restart(node)
    assert getjob(client) == [(b"waits", 0, 0)]
    assert restart(node).call("QLEN", "mail") == 0


@pytest.mark.parametrize("retry", [100, 0])
@pytest.mark.parametrize(("away_s", "left_s"), [(10, 30), (35, 5), (70, 0)])
def test_delay_continues_across_a_controlled_restart(node: LocalNode, retry: int, away_s: int, left_s: int) -> None:
    node.client().add("mail", "body", "DELAY", 60, "RETRY", retry, "TTL", 5000)
    node.run(seconds=20)

    client = restart(node, away_s)
    if left_s:
        node.run(seconds=left_s - 1)
        assert getjob(client) == []
    node.run(seconds=2)
    assert getjob(client) == [(b"body", 0, 0)]
    node.run(seconds=80)
    assert getjob(client) == []


@pytest.mark.parametrize("word", ["in", "out", "all"])
def test_a_paused_queue_is_paused_and_has_its_jobs(node: LocalNode, word: str) -> None:
    client = node.client()
    client.add("mail", "body")
    client.call("PAUSE", "mail", word)

    client = restart(node)
    assert client.call("PAUSE", "mail", "state") == word.encode()
    assert client.call("QLEN", "mail") == 1
    client.call("PAUSE", "mail", "none")
    assert getjob(client) == [(b"body", 0, 0)]


def test_queues_keep_their_order(node: LocalNode) -> None:
    client = node.client()
    bodies = [f"body {number}".encode() for number in range(2500)]
    for body in bodies:
        client.add("mail", body)
    client = restart(node)
    assert str(client.call("PING")).startswith("LOADING"), "more than one slice"
    node.run(seconds=1)
    assert [body for body, _, _ in getjob(client, count=3000)] == bodies
    queue = node.node.state.lifecycle.queues.get(b"mail")
    assert queue is not None
    assert queue.jobs_in == 2500


def test_jobs_are_queued_in_order_without_a_search_tree(node: LocalNode) -> None:
    """Jobs are queued oldest first, whatever their order in the file, so that each is inserted at the end."""
    for number in range(300):
        node.client().add("mail", f"body {number}")
    restart(node)
    queue = node.node.state.lifecycle.queues.get(b"mail")
    assert queue is not None
    assert {job.place for job in queue.order.peek(300)} == {IN_LINE}


# --- once -------------------------------------------------------------------------------------------------------------


def test_the_option_is_switched_off_in_memory_and_in_the_file(told_node: LocalNode) -> None:
    told_node.client().add("mail")
    client = restart(told_node)
    assert client.call("CONFIG", "GET", "aof-enqueue-jobs-once") == [b"aof-enqueue-jobs-once", b"no"]
    assert told_node.host.config_text is not None
    assert "aof-enqueue-jobs-once yes" not in told_node.host.config_text
    assert "switched off in the configuration file" in log_of(told_node)


def test_the_configuration_file_is_written_before_a_client_is_served(told_node: LocalNode) -> None:
    for number in range(1500):
        told_node.client().add("mail", f"body {number}")
    end(told_node)
    told_node.restart()
    client = told_node.client()
    while "aof-enqueue-jobs-once yes" in (told_node.host.config_text or ""):
        assert str(client.call("QLEN", "mail")).startswith("LOADING")
        told_node.run(milliseconds=1)
    assert client.call("QLEN", "mail") == 1500


def test_a_crash_while_loading_loses_nothing_and_repeats_nothing(node: LocalNode) -> None:
    for number in range(1500):
        node.client().add("mail", f"body {number}", "RETRY", 0)
    end(node)
    for _ in range(5):
        node.restart()
        assert str(node.client().call("PING")).startswith("LOADING")
    node.run(seconds=1)
    assert len(getjob(node.client(), count=5000)) == 1500


def test_a_node_in_memory_does_not_load_the_file_twice() -> None:
    node = with_file(appendonly=False)
    node.client().add("mail", "body", "RETRY", 0)
    client = restart(node)
    assert set(node.host.disk.files) == {LOADED}
    assert "disque.aof was loaded and is called disque.aof.loaded now" in log_of(node)
    assert client.call("QLEN", "mail") == 1

    assert client.call("CONFIG", "SET", "aof-enqueue-jobs-once", "yes") == b"OK"
    assert client.call("CONFIG", "REWRITE") == b"OK"
    assert crash(node).call("QLEN", "mail") == 0


def test_a_later_crash_loads_the_changes_logged_since() -> None:
    node = with_file(appendonly=True)
    client = node.client()
    done = client.add("mail", "done", "RETRY", 5)
    left = client.add("mail", "left", "RETRY", 5)
    once = client.add("mail", "once", "RETRY", 0)
    client = restart(node)
    assert client.call("ACKJOB", done) == 1

    client = crash(node)
    assert client.show(done) == {}
    assert client.show(left)["state"] == b"active"
    assert client.show(once)["state"] == b"active"
    node.run(seconds=6)
    assert getjob(client) == [(b"left", 0, 1)], "the other one may have been delivered since"


def test_file_stops_listing_at_most_once_jobs_as_queued() -> None:
    """Otherwise a node that loses power with the option on could queue a job again that it had just delivered."""
    node = with_file(appendonly=True)
    node.client().add("mail", "body", "RETRY", 0)
    restart(node)
    node.run(seconds=2)

    client = node.client()
    assert client.call("CONFIG", "SET", "aof-enqueue-jobs-once", "yes") == b"OK"
    assert client.call("CONFIG", "REWRITE") == b"OK"
    assert crash(node).call("QLEN", "mail") == 0


def test_a_second_controlled_restart_works_like_the_first(node: LocalNode) -> None:
    client = node.client()
    client.add("mail", "first", "RETRY", 0)
    client = restart(node)
    client.add("mail", "second", "RETRY", 0)
    client = restart(node)
    client = restart(node)
    assert getjob(client) == [(b"first", 0, 0), (b"second", 0, 0)]
    assert getjob(restart(node)) == []


# --- without this or that ---------------------------------------------------------------------------------------------


def with_jobs_to_queue(*records: bytes, **options: object) -> LocalNode:
    """Return a node without a configuration file, with `aof-enqueue-jobs-once yes` on its command line."""
    host = FakeHost()
    if records:
        host.disk.put(FILE, b"".join(records))
    config = Config()
    for attribute, value in {"aof_enqueue_jobs_once": True, **options}.items():
        config.assign(attribute, value)
    return LocalNode(config, host)


def a_job(**fields: object) -> Job:
    job = make_job(random.Random(1))
    job.queue, job.state, job.flags, job.retry_s, job.delay_s = b"mail", QUEUED, 3, 300, 0
    job.nacks, job.additional_deliveries, job.delivered = 0, 0, (NODE_ID,)
    for name, value in fields.items():
        setattr(job, name, value)
    return job


@pytest.mark.parametrize("appendonly", [True, False])
def test_without_a_configuration_file_the_log_says_what_to_do(appendonly: bool) -> None:
    node = with_jobs_to_queue(kept(a_job()), appendonly=appendonly)
    client = node.client()
    assert client.call("QLEN", "mail") == 1
    assert client.call("CONFIG", "GET", "aof-enqueue-jobs-once") == [b"aof-enqueue-jobs-once", b"no"]
    assert "There is no configuration file to switch it off in: start the server without it" in log_of(node)


def test_configuration_file_that_cannot_be_written_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_host: FakeHost, _text: str) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    node = with_file(appendonly=True)
    node.client().add("mail")
    end(node)
    monkeypatch.setattr(FakeHost, "write_config", refuse)
    node.restart()
    assert node.client().call("QLEN", "mail") == 1
    assert "can't be written: Read-only file system. Set it to no there by hand" in log_of(node)


@pytest.mark.parametrize("appendonly", [True, False])
def test_without_a_file_a_node_starts_empty(appendonly: bool) -> None:
    node = with_jobs_to_queue(appendonly=appendonly)
    node.run(milliseconds=10)
    assert node.host.ended is None
    client = node.client()
    assert client.call("PING") == b"PONG"
    assert client.call("CONFIG", "GET", "aof-enqueue-jobs-once") == [b"aof-enqueue-jobs-once", b"no"]
    assert LOADED not in node.host.disk.files


def test_an_empty_file_counts_as_loaded() -> None:
    node = with_jobs_to_queue(b"")
    assert node.client().call("CONFIG", "GET", "aof-enqueue-jobs-once") == [b"aof-enqueue-jobs-once", b"no"]


def test_file_that_cannot_be_renamed_is_logged() -> None:
    host = FakeHost()
    host.disk.put(FILE, kept(a_job()))
    host.disk.fail(disk.REPLACE)
    config = Config()
    config.assign("aof_enqueue_jobs_once", True)
    node = LocalNode(config, host)
    assert node.client().call("QLEN", "mail") == 1
    assert "can't be renamed to disque.aof.loaded" in log_of(node)


def test_a_torn_end_is_dropped_without_changing_a_file_that_is_loaded_once() -> None:
    node = with_jobs_to_queue(kept(a_job()), b"*2\r\n$7\r\nLOAD")
    assert node.client().call("QLEN", "mail") == 1
    assert bytes(node.host.disk.files[LOADED]) == kept(a_job()) + b"*2\r\n$7\r\nLOAD"


def test_a_file_of_the_original_has_its_at_most_once_jobs_queued() -> None:
    waits, delivered = a_job(retry_s=0, flags=1), a_job(retry_s=0, flags=1 | DELIVERED)
    delivered.id = delivered.id[:-6] + b"x" + delivered.id[-5:]
    client = with_jobs_to_queue(kept(waits, with_sum=False), kept(delivered, with_sum=False)).client()
    assert client.call("QLEN", "mail") == 1
    assert client.show(waits.id)["state"] == b"queued"
    assert client.show(delivered.id)["state"] == b"active"


def test_a_crash_with_the_option_on_repeats_no_at_most_once_job() -> None:
    """The option was set for a controlled restart, but the node was killed: its file contains no queued states."""
    node = with_file(appendonly=True)
    client = node.client()
    client.add("mail", "once", "RETRY", 0)
    client.add("mail", "again", "RETRY", 300)
    assert client.call("CONFIG", "SET", "aof-enqueue-jobs-once", "yes") == b"OK"
    assert client.call("CONFIG", "REWRITE") == b"OK"
    assert getjob(crash(node)) == [(b"again", 0, 0)]


# --- in a cluster -----------------------------------------------------------------------------------------------------


def cluster_of(count: int) -> Cluster:
    cluster = Cluster(count)
    for member in cluster.members:
        member.host.config_text = "port 7711\n"
    return cluster


def leave_for(cluster: Cluster, member: Member, away_s: float, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Restart one member in a controlled way; call `meanwhile` while it is stopped."""
    end(member)
    cluster.run(seconds=away_s)
    meanwhile()
    member.restart()
    cluster.until(cluster.is_whole)


def added(cluster: Cluster, member: Member, *options: str | int) -> bytes:
    member.admin.send("ADDJOB", "mail", "body", 0, *options)
    cluster.run(milliseconds=100)
    job_id = member.admin.next_reply()
    assert isinstance(job_id, bytes)
    return job_id


def test_a_job_with_copies_is_queued_after_the_other_holders_were_asked() -> None:
    cluster = cluster_of(3)
    one, *_ = cluster.members
    job_id = added(cluster, one, "REPLICATE", 3, "RETRY", 100)
    leave_for(cluster, one, 2)
    cluster.run(seconds=3)
    assert cluster.copies(job_id, "queued") == [one]
    assert getjob(one.admin) == [(b"body", 0, 0)]


def test_a_job_that_another_node_queued_meanwhile_is_in_one_queue() -> None:
    cluster = cluster_of(2)
    one, two = cluster.members
    job_id = added(cluster, one, "REPLICATE", 2, "RETRY", 5)
    leave_for(cluster, one, 7)
    cluster.run(seconds=4)
    assert cluster.copies(job_id, "queued") == [two]


def test_a_job_finished_during_the_restart_is_not_delivered() -> None:
    cluster = cluster_of(2)
    one, two = cluster.members
    job_id = added(cluster, one, "REPLICATE", 2, "RETRY", 60)

    def work() -> None:
        assert two.admin.call("ACKJOB", job_id) == 1

    leave_for(cluster, one, 2, work)
    one.admin.send("GETJOB", "TIMEOUT", 20_000, "FROM", "mail")
    cluster.run(seconds=21)
    assert one.admin.next_reply() is None
    assert cluster.copies(job_id) == []


def test_a_job_that_a_worker_of_another_node_has_is_not_queued() -> None:
    cluster = cluster_of(2)
    one, two = cluster.members
    job_id = added(cluster, one, "REPLICATE", 2, "RETRY", 10)

    def work() -> None:
        assert two.admin.take("mail") == [job_id]

    leave_for(cluster, one, 12, work)
    cluster.run(seconds=5)
    assert getjob(one.admin) == []
    assert cluster.copies(job_id, "queued") == []


def test_a_paused_queue_has_its_jobs_with_copies_too() -> None:
    cluster = cluster_of(2)
    one, _ = cluster.members
    job_id = added(cluster, one, "REPLICATE", 2, "RETRY", 60)
    one.admin.call("PAUSE", "mail", "in")
    leave_for(cluster, one, 2)
    assert cluster.copies(job_id, "queued") == [one]
