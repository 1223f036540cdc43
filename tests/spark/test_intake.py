"""The driver's part of a stream with real brokers and without Spark: taking, acknowledging, draining to the end."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from disqued.client import Client, ConnectionFailed
from pyspark_disque.brokers import Member
from pyspark_disque.clock import Clock
from pyspark_disque.drain import Drain
from pyspark_disque.intake import Intake, Look, Taken, shares
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
    """A cluster to break."""
    with RealCluster(tmp_path, 3) as nodes:
        yield nodes


@pytest.fixture
def empty(cluster: RealCluster) -> RealCluster:
    """The shared cluster without jobs."""
    for node in cluster.nodes:
        node.call("DEBUG", "FLUSHALL")
    return cluster


def take_all(drain: Drain, limit: int = 1000, during: Callable[[int], None] = lambda _: None) -> list[Taken]:
    taken: list[Taken] = []
    while jobs := drain.take(limit):
        taken += jobs
        during(len(taken))
    return taken


def draining(intake: Intake) -> Drain:
    return Drain(intake, intake.now_ms(), intake.clock, intake.options.give_up_after_s)


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
def test_a_batch_takes_of_each_node_in_proportion(waiting: tuple[int, ...], limit: int, given: tuple[int, ...]) -> None:
    members = [Member(name, name, 1) for name in "abc"]
    shared = shares(dict(zip(members, waiting, strict=True)), limit)
    assert tuple(shared.get(member, 0) for member in members) == given


# --- taking and acknowledging -----------------------------------------------------------------------------------------


def test_jobs_are_taken_from_all_nodes_up_to_the_limit(empty: RealCluster) -> None:
    added = set[str]().union(*(add(node, 100) for node in empty.nodes))
    with closing(Intake(options(empty), Clock())) as intake:
        first = intake.take(intake.look(), 30)
        rest = intake.take(intake.look(), 1000)
        assert {job.lease.node for job in first} == {node.id for node in empty.nodes}
        assert len(first) == 30
        assert {job.lease.id for job in first + rest} == added
        assert intake.look().waiting == 0


def test_a_pattern_finds_queues_at_each_node(empty: RealCluster) -> None:
    add(empty.nodes[0], 3, "mail-a")
    add(empty.nodes[1], 4, "mail-b")
    add(empty.nodes[2], 5, "other")
    with closing(Intake(options(empty, queue=None, queue_pattern="mail-.*"), Clock())) as intake:
        taken = intake.take(intake.look(), 100)
    assert sorted(job.lease.queue for job in taken) == ["mail-a"] * 3 + ["mail-b"] * 4


@pytest.mark.parametrize("mode", ["onCommit", "fast"])
def test_acknowledged_jobs_are_forgotten_everywhere(empty: RealCluster, mode: str) -> None:
    for node in empty.nodes:
        add(node, 50)
    with closing(Intake(options(empty, ack_mode=mode), Clock())) as intake:
        intake.acknowledge([job.lease for job in intake.take(intake.look(), 1000)])
    empty.wait_until(lambda: all(node.info("jobs")["registered_jobs"] == "0" for node in empty.nodes), "no job is left")


def test_another_node_takes_the_acknowledgement_when_that_of_the_lease_is_away(own: RealCluster) -> None:
    add(own.nodes[0], 50, replicate=3)
    with closing(Intake(options(own), Clock())) as intake:
        taken = intake.take(intake.look(), 1000)
        own.nodes[0].kill()
        intake.acknowledge([job.lease for job in taken])
    left = own.nodes[1:]
    own.wait_until(lambda: all(node.call("JSCAN", 0, "STATE", "active")[1] == [] for node in left), "all are acked")
    assert len(taken) == 50


def test_what_waits_is_told_with_its_age(empty: RealCluster) -> None:
    add(empty.nodes[0], 2)
    with closing(Intake(options(empty), Clock())) as intake:
        empty.wait_until(lambda: max(head.age_ms for head in intake.heads(intake.look())) > 1000, "a second passes")
        look = intake.look()
        assert look.waiting == 2
        assert [head.queue for head in intake.heads(look)] == [QUEUE]


def test_a_node_that_hangs_costs_seconds_and_not_every_batch(own: RealCluster) -> None:
    for node in own.nodes[1:]:
        add(node, 10)
    with closing(Intake(options(own, timeout_s=1), Clock())) as intake:
        intake.members()
        own.nodes[0].stop()
        looks = [intake.look() for _ in range(3)]
        own.nodes[0].cont()
    assert [look.waiting for look in looks] == [20] * 3
    assert {member.address for look in looks for member in look.away} == {own.nodes[0].address}


def test_without_any_node_it_fails(own: RealCluster) -> None:
    with closing(Intake(options(own), Clock())) as intake:
        for node in own.nodes:
            node.kill()
        with pytest.raises(ConnectionFailed):
            intake.look()


def test_a_refusal_is_not_taken_for_a_node_that_is_away(own: RealCluster) -> None:
    for node in own.nodes:
        node.call("CONFIG", "SET", "requirepass", "secret")
    with closing(Intake(options(own), Clock())) as intake, pytest.raises(Exception, match="NOAUTH"):
        intake.look()


# --- until all is taken -----------------------------------------------------------------------------------------------


def test_a_drain_ends_although_producers_go_on(empty: RealCluster) -> None:
    added = set[str]().union(*(add(node, 300) for node in empty.nodes))
    over = threading.Event()

    def produce() -> None:
        with Client([empty.nodes[0].address], discover=False) as client:
            while not over.wait(0.01):
                client.add(QUEUE, "late", retry_s=RETRY_S)

    with closing(Intake(options(empty), Clock())) as intake:
        drain = draining(intake)
        thread = threading.Thread(target=produce)
        thread.start()
        try:
            taken = take_all(drain, 100)
        finally:
            over.set()
            thread.join()
        assert intake.look().waiting > 0, "what was added later waits for the next run"
    assert added <= {job.lease.id for job in taken}


def test_a_drain_has_what_moves_while_a_node_leaves(own: RealCluster) -> None:
    added = set[str]().union(*(add(node, 1000) for node in own.nodes))
    leaving = own.nodes[0]

    def leave(taken: int) -> None:
        if taken == 500:
            leaving.call("CLUSTER", "LEAVING", "yes")

    with closing(Intake(options(own), Clock())) as intake:
        taken = take_all(draining(intake), 500, leave)
        assert leaving.call("QLEN", QUEUE) == 0
    assert {job.lease.id for job in taken} == added


@pytest.mark.slow
def test_a_drain_waits_for_a_node_that_hangs(own: RealCluster) -> None:
    added = set[str]().union(*(add(node, 300) for node in own.nodes))
    hanging = own.nodes[2]
    with closing(Intake(options(own, timeout_s=1), Clock())) as intake:
        drain = draining(intake)
        hanging.stop()
        resume = threading.Timer(6, hanging.cont)
        resume.start()
        taken = take_all(drain)
        resume.join()
    assert {job.lease.id for job in taken} == added


def test_a_drain_waits_for_a_node_that_was_killed_until_it_is_back(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3, "--appendonly", "yes", "--appendfsync", "always") as own:
        added = set[str]().union(*(add(node, 300, retry_s=8, replicate=1) for node in own.nodes))
        killed = own.nodes[2]
        with closing(Intake(options(own), Clock())) as intake:
            drain = draining(intake)
            killed.kill()
            back = threading.Timer(4, killed.start)
            back.start()
            taken = take_all(drain)
            back.join()
    assert {job.lease.id for job in taken} == added


def test_a_drain_has_the_jobs_of_a_lost_answer_when_they_come_back(own: RealCluster) -> None:
    """A node that hangs between the look and the GETJOB hands jobs to nobody when it goes on."""
    added = add(own.nodes[0], 300, retry_s=5, replicate=1)
    with closing(Intake(options(own, timeout_s=1), Clock())) as intake:
        drain = draining(intake)
        look = intake.look()
        own.nodes[0].stop()
        assert intake.take(look, 300) == []
        own.nodes[0].cont()
        taken = take_all(drain)
    assert {job.lease.id for job in taken} == added


def test_a_drain_gives_a_node_up_in_the_end_and_says_so(own: RealCluster, caplog: pytest.LogCaptureFixture) -> None:
    for node in own.nodes:
        add(node, 100, replicate=1)
    with closing(Intake(options(own, give_up_after_s=1), Clock())) as intake:
        drain = draining(intake)
        own.nodes[2].kill()
        with caplog.at_level(logging.WARNING, "pyspark_disque"):
            taken = take_all(drain)
    assert len(taken) == 200
    assert f"{own.nodes[2].address} can not be reached" in caplog.text


def test_a_drain_ends_at_a_paused_queue_and_says_so(empty: RealCluster, caplog: pytest.LogCaptureFixture) -> None:
    add(empty.nodes[0], 10)
    empty.nodes[0].call("PAUSE", QUEUE, "out")
    with closing(Intake(options(empty, give_up_after_s=1), Clock())) as intake:
        taken = take_all(draining(intake))
    empty.nodes[0].call("PAUSE", QUEUE, "none")
    assert taken == []
    assert "paused" in caplog.text


def test_one_empty_look_is_not_the_end(empty: RealCluster) -> None:
    """A job that is in no queue for a moment, as while it moves, is taken all the same."""
    [job_id] = add(empty.nodes[0], 1)
    with closing(Intake(options(empty), Clock())) as intake:
        drain = draining(intake)
        empty.nodes[0].call("DEQUEUE", job_id)
        threading.Timer(0.5, lambda: add_back(empty.nodes[0], job_id)).start()
        taken = take_all(drain)
    assert [job.lease.id for job in taken] == [job_id]


def add_back(node: RealNode, job_id: str) -> None:
    with closing(node.connect()) as connection:
        connection.call("ENQUEUE", job_id)


def test_nothing_is_taken_of_an_empty_look(empty: RealCluster) -> None:
    with closing(Intake(options(empty), Clock())) as intake:
        assert intake.take(Look({}, ()), 10) == []
        assert draining(intake).take(10) == []
