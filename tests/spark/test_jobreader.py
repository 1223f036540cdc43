"""The driver's side of a stream, with real brokers and without Spark: leases, acknowledgements and drains."""

from __future__ import annotations

import dataclasses
import gc
import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from disqued.client import Client, ConnectionFailed, ResponseError
from pyspark_disque.brokers import Member
from pyspark_disque.clock import Clock
from pyspark_disque.drain import Drain
from pyspark_disque.jobreader import Backlog, JobReader, LeasedJobs, _without_collections, shares
from pyspark_disque.offsets import JobGroup, Manifest, decode_offset, encode_offset
from pyspark_disque.options import Options
from support.cluster import RealCluster, RealNode

RETRY_S = 30
QUEUE = "q"


def options(cluster: RealCluster, **given: object) -> Options:
    base = Options(nodes=tuple(node.address for node in cluster.nodes), queue=QUEUE, give_up_after_s=20)
    return dataclasses.replace(base, **given)  # type: ignore[arg-type]  # fields by name


def add(node: RealNode, count: int, queue: str = QUEUE, retry_s: int = RETRY_S, **how: int) -> set[str]:
    with Client([node.address], discover=False) as client:
        bodies = (f"{node.port}-{number}" for number in range(count))
        results = client.add_many(queue, bodies, retry_s=retry_s, **how)  # type: ignore[arg-type]  # options by name
    return {result for result in results if isinstance(result, str)}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RealCluster]:
    """A cluster that the test may break."""
    with RealCluster(tmp_path, 3) as nodes:
        yield nodes


@pytest.fixture
def empty(cluster: RealCluster) -> RealCluster:
    """The shared cluster without jobs."""
    for node in cluster.nodes:
        node.call("DEBUG", "FLUSHALL")
    return cluster


def ids_of(leased: Iterable[LeasedJobs]) -> list[str]:
    return [job_id.decode() for jobs in leased for job_id in jobs.group.ids]


def take_all(drain: Drain, limit: int = 1000, during: Callable[[int], None] = lambda _: None) -> list[str]:
    """Return the IDs of all jobs that the drain leases."""
    taken: list[str] = []
    while jobs := drain.next_jobs(limit):
        taken += ids_of(jobs)
        during(len(taken))
    return taken


def draining(reader: JobReader) -> Drain:
    return Drain(reader, reader.now_ms(), reader.clock, reader.options.give_up_after_s)


# --- shares -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting", "limit", "given"),
    [
        ((10, 20, 30), 100, (10, 20, 30)),
        ((10, 20, 30), 6, (1, 2, 3)),
        ((1, 1000, 1000), 10, (0, 5, 5)),
        ((5, 5, 5), 4, (2, 1, 1)),
    ],
)
def test_batch_is_shared_by_nodes_in_proportion_to_their_backlog(
    waiting: tuple[int, ...], limit: int, given: tuple[int, ...]
) -> None:
    members = [Member(name, name, 1) for name in "abc"]
    shared = shares(dict(zip(members, waiting, strict=True)), limit)
    assert tuple(shared.get(member, 0) for member in members) == given


# --- leases and acknowledgements --------------------------------------------------------------------------------------


def test_jobs_are_leased_from_all_nodes_up_to_the_limit(empty: RealCluster) -> None:
    added = set[str]().union(*(add(node, 100) for node in empty.nodes))
    with closing(JobReader(options(empty), Clock())) as reader:
        first = reader.lease(reader.backlog(), 30)
        rest = reader.lease(reader.backlog(), 1000)
        assert {jobs.group.node for jobs in first} == {node.id for node in empty.nodes}
        assert len(ids_of(first)) == 30
        assert set(ids_of(first + rest)) == added
        assert reader.backlog().waiting == 0


def test_pattern_matches_queues_at_each_node(empty: RealCluster) -> None:
    add(empty.nodes[0], 3, "mail-a")
    add(empty.nodes[1], 4, "mail-b")
    add(empty.nodes[2], 5, "other")
    with closing(JobReader(options(empty, queue=None, queue_pattern="mail-.*"), Clock())) as reader:
        taken = reader.lease(reader.backlog(), 100)
    assert {jobs.group.queue: len(jobs.group.ids) for jobs in taken} == {"mail-a": 3, "mail-b": 4}


@pytest.mark.parametrize("mode", ["onCommit", "fast"])
def test_acknowledged_jobs_are_removed_from_all_nodes(empty: RealCluster, mode: str) -> None:
    for node in empty.nodes:
        add(node, 50)
    with closing(JobReader(options(empty, ack_mode=mode), Clock())) as reader:
        reader.acknowledge([jobs.group for jobs in reader.lease(reader.backlog(), 1000)])
    empty.wait_until(lambda: all(node.info("jobs")["registered_jobs"] == "0" for node in empty.nodes), "no job is left")


def test_another_node_accepts_the_acknowledgement_when_the_leasing_node_is_down(own: RealCluster) -> None:
    add(own.nodes[0], 50, replicate=3)
    with closing(JobReader(options(own), Clock())) as reader:
        taken = reader.lease(reader.backlog(), 1000)
        own.nodes[0].kill()
        reader.acknowledge([jobs.group for jobs in taken])
    left = own.nodes[1:]
    own.wait_until(
        lambda: all(node.call("JSCAN", 0, "STATE", "active")[1] == [] for node in left), "all jobs are acknowledged"
    )
    assert len(ids_of(taken)) == 50


def test_backlog_has_the_length_and_age_of_the_queue(empty: RealCluster) -> None:
    add(empty.nodes[0], 2)
    with closing(JobReader(options(empty), Clock())) as reader:
        empty.wait_until(
            lambda: max(oldest.age_ms for oldest in reader.oldest_jobs(reader.backlog())) > 1000, "a second passes"
        )
        backlog = reader.backlog()
        assert backlog.waiting == 2
        assert [oldest.queue for oldest in reader.oldest_jobs(backlog)] == [QUEUE]


@pytest.mark.slow
@pytest.mark.long
def test_hanging_node_delays_only_the_first_request(own: RealCluster) -> None:
    for node in own.nodes[1:]:
        add(node, 10)
    with closing(JobReader(options(own, timeout_s=1), Clock())) as reader:
        reader.members()
        own.nodes[0].stop()
        looks = [reader.backlog() for _ in range(3)]
        own.nodes[0].cont()
    assert [backlog.waiting for backlog in looks] == [20] * 3
    assert {member.address for backlog in looks for member in backlog.unreachable} == {own.nodes[0].address}


def test_backlog_fails_when_no_node_is_up(own: RealCluster) -> None:
    with closing(JobReader(options(own), Clock())) as reader:
        for node in own.nodes:
            node.kill()
        with pytest.raises(ConnectionFailed):
            reader.backlog()


def test_permanent_error_is_raised_and_not_taken_for_an_outage(own: RealCluster) -> None:
    for node in own.nodes:
        node.call("CONFIG", "SET", "requirepass", "secret")
    with closing(JobReader(options(own), Clock())) as reader, pytest.raises(Exception, match="NOAUTH"):
        reader.backlog()


# --- leased jobs ------------------------------------------------------------------------------------------------------


def test_lease_ends_when_the_node_says_so(empty: RealCluster) -> None:
    add(empty.nodes[0], 3, retry_s=100)
    add(empty.nodes[0], 1, "soon", retry_s=40)
    add(empty.nodes[0], 1, "never", retry_s=0, replicate=1)
    clock = Clock(lambda: 1000.0)
    with closing(JobReader(options(empty, queue=None, queues=(QUEUE, "soon", "never")), clock)) as reader:
        ends = {jobs.group.queue: jobs.requeue_at_s - 1000 for jobs in reader.lease(reader.backlog(), 10)}
    assert 85 <= ends[QUEUE] <= 101
    assert 34 <= ends["soon"] <= 41
    assert ends["never"] == math.inf


def test_node_that_does_not_tell_leases_is_asked_without_them(
    empty: RealCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes of the original answer `ERR syntax error` to an option that they do not know."""
    added = add(empty.nodes[0], 200)
    asked: list[tuple[object, ...]] = []

    def execute_ahead(client: Client, commands: Iterable[tuple[object, ...]]) -> Iterator[object]:
        for words in commands:
            asked.append(words)
            if "WITHREQUEUE" in words:
                yield ResponseError("ERR syntax error")
            else:
                yield from original.__get__(client, Client)([words])

    original: Any = vars(Client)["execute_ahead"]
    monkeypatch.setattr(Client, "execute_ahead", execute_ahead)
    with closing(JobReader(options(empty), Clock(lambda: 1000.0))) as reader:
        leased = reader.lease(reader.backlog(), 1000)
    assert set(ids_of(leased)) == added
    assert {jobs.requeue_at_s for jobs in leased} == {1000.0}, "the lease may end at any time"
    assert sum("WITHREQUEUE" in words for words in asked) == 1, "each node is asked for leases once"


def test_jobs_that_arrive_after_an_empty_reply_are_leased(empty: RealCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second GETJOB is already sent when the first one gets no job."""
    added: set[str] = set()

    def execute_ahead(client: Client, commands: Iterator[tuple[object, ...]]) -> Iterator[object]:
        sent = [next(commands), next(commands)]
        yield None
        added.update(add(empty.nodes[0], 5))
        yield from original.__get__(client, Client)(sent[1:])
        assert list(commands) == [], "no further job is asked for"

    original: Any = vars(Client)["execute_ahead"]
    monkeypatch.setattr(Client, "execute_ahead", execute_ahead)
    with closing(JobReader(options(empty), Clock())) as reader:
        member = next(member for member in reader.members() if member.address == empty.nodes[0].address)
        leased = list(reader.lease_at(member, [QUEUE], 1000))
    assert set(ids_of(leased)) == added
    assert len(added) == 5


def test_leased_jobs_are_in_the_order_of_their_offset(empty: RealCluster) -> None:
    """A replay reads the rows from the offset, and must have them in the same order."""
    for node in empty.nodes:
        for ttl_s in (3600, 86400):
            for queue in ("b", "a"):
                add(node, 20, queue, ttl_s=ttl_s)
    with closing(JobReader(options(empty, queue=None, queues=("b", "a")), Clock())) as reader:
        leased = reader.lease(reader.backlog(), 1000)
    manifest = Manifest(1, tuple(jobs.group for jobs in leased))
    assert len(set(manifest.ids)) == 240
    assert decode_offset(encode_offset(manifest)) == manifest
    assert all(len(jobs.bodies) == len(jobs.group.ids) for jobs in leased)


def test_reference_cycles_are_searched_again_after_a_reply_that_fails() -> None:
    with suppress(ConnectionFailed), _without_collections():
        assert not gc.isenabled()
        raise ConnectionFailed("away")
    assert gc.isenabled()


def test_jobs_that_were_delivered_before_are_left_out_with_their_bodies() -> None:
    leased = LeasedJobs(JobGroup("n", QUEUE, (b"a", b"b", b"c")), [b"1", b"2", b"3"], 0.0)
    assert leased.without({b"b"}) == LeasedJobs(JobGroup("n", QUEUE, (b"a", b"c")), [b"1", b"3"], 0.0)
    assert leased.without({b"d"}) is leased


# --- drains -----------------------------------------------------------------------------------------------------------


def test_drain_ends_while_producers_add_more_jobs(empty: RealCluster) -> None:
    added = set[str]().union(*(add(node, 300) for node in empty.nodes))
    over = threading.Event()

    def produce() -> None:
        with Client([empty.nodes[0].address], discover=False) as client:
            while not over.wait(0.01):
                client.add(QUEUE, "late", retry_s=RETRY_S)

    with closing(JobReader(options(empty), Clock())) as reader:
        drain = draining(reader)
        thread = threading.Thread(target=produce)
        thread.start()
        try:
            taken = take_all(drain, 100)
        finally:
            over.set()
            thread.join()
        assert reader.backlog().waiting > 0, "jobs added later stay queued"
    assert added <= set(taken)


def test_drain_gets_jobs_that_move_while_a_node_leaves(own: RealCluster) -> None:
    added = set[str]().union(*(add(node, 1000) for node in own.nodes))
    leaving = own.nodes[0]

    def leave(taken: int) -> None:
        if taken == 500:
            leaving.call("CLUSTER", "LEAVING", "yes")

    with closing(JobReader(options(own), Clock())) as reader:
        taken = take_all(draining(reader), 500, leave)
        assert leaving.call("QLEN", QUEUE) == 0
    assert set(taken) == added


@pytest.mark.slow
@pytest.mark.long
def test_drain_waits_for_a_hanging_node(own: RealCluster) -> None:
    added = set[str]().union(*(add(node, 300) for node in own.nodes))
    hanging = own.nodes[2]
    with closing(JobReader(options(own, timeout_s=1), Clock())) as reader:
        drain = draining(reader)
        hanging.stop()
        resume = threading.Timer(6, hanging.cont)
        resume.start()
        taken = take_all(drain)
        resume.join()
    assert set(taken) == added


@pytest.mark.slow
def test_drain_waits_until_a_killed_node_is_back(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3, "--appendonly", "yes", "--appendfsync", "always") as own:
        added = set[str]().union(*(add(node, 300, retry_s=8, replicate=1) for node in own.nodes))
        killed = own.nodes[2]
        with closing(JobReader(options(own), Clock())) as reader:
            drain = draining(reader)
            killed.kill()
            back = threading.Timer(4, killed.start)
            back.start()
            taken = take_all(drain)
            back.join()
    assert set(taken) == added


@pytest.mark.slow
def test_drain_gets_the_jobs_of_a_lost_reply_after_their_requeue(own: RealCluster) -> None:
    """The node hangs between QLEN and GETJOB, and sends the jobs to a closed connection when it resumes."""
    added = add(own.nodes[0], 300, retry_s=5, replicate=1)
    with closing(JobReader(options(own, timeout_s=1), Clock())) as reader:
        drain = draining(reader)
        backlog = reader.backlog()
        own.nodes[0].stop()
        assert reader.lease(backlog, 300) == []
        own.nodes[0].cont()
        taken = take_all(drain)
    assert set(taken) == added


@pytest.mark.slow
@pytest.mark.long
def test_drain_gives_up_on_a_dead_node_and_logs_it(own: RealCluster, caplog: pytest.LogCaptureFixture) -> None:
    for node in own.nodes:
        add(node, 100, replicate=1)
    with closing(JobReader(options(own, give_up_after_s=1), Clock())) as reader:
        drain = draining(reader)
        own.nodes[2].kill()
        with caplog.at_level(logging.WARNING, "pyspark_disque"):
            taken = take_all(drain)
    assert len(taken) == 200
    assert f"cannot reach {own.nodes[2].address}" in caplog.text


def test_drain_gives_up_on_a_paused_queue_and_logs_it(empty: RealCluster, caplog: pytest.LogCaptureFixture) -> None:
    add(empty.nodes[0], 10)
    empty.nodes[0].call("PAUSE", QUEUE, "out")
    with closing(JobReader(options(empty, give_up_after_s=1), Clock())) as reader:
        taken = take_all(draining(reader))
    empty.nodes[0].call("PAUSE", QUEUE, "none")
    assert taken == []
    assert "paused" in caplog.text


def test_drain_continues_after_one_empty_backlog(empty: RealCluster) -> None:
    """A job that is in no queue for a moment, as while it moves between nodes, is still leased."""
    [job_id] = add(empty.nodes[0], 1)
    with closing(JobReader(options(empty), Clock())) as reader:
        drain = draining(reader)
        empty.nodes[0].call("DEQUEUE", job_id)
        threading.Timer(0.5, lambda: add_back(empty.nodes[0], job_id)).start()
        taken = take_all(drain)
    assert taken == [job_id]


def test_drain_of_a_single_node_ends_at_its_first_empty_check(tmp_path: Path) -> None:
    naps: list[float] = []
    with RealCluster(tmp_path, 1) as own, closing(JobReader(options(own), Clock(sleep=naps.append))) as reader:
        added = add(own.nodes[0], 10, replicate=1)
        assert set(take_all(draining(reader))) == added
    assert naps == []


def add_back(node: RealNode, job_id: str) -> None:
    with closing(node.connect()) as connection:
        connection.call("ENQUEUE", job_id)


def test_nothing_is_leased_from_an_empty_backlog(empty: RealCluster) -> None:
    with closing(JobReader(options(empty), Clock())) as reader:
        assert reader.lease(Backlog({}, ()), 10) == []
        assert draining(reader).next_jobs(10) == []
