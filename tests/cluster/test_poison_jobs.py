"""Poison jobs among good ones at three real nodes with append-only files: when healthy, with a kill, with a partition.

Nothing here depends on how fast the machine is: conditions are waited for, and what is asserted is an order of events.
How long good jobs took is published with the results of the tests.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from disqued.client import Job, Reject
from disqued.moves.successor import successor_id
from support.cluster import RealCluster, RealNode
from support.poison import (
    DEAD_QUEUE,
    FAILING,
    LIMIT,
    QUEUE,
    WHY_REJECTED,
    Account,
    Letter,
    PoisonLoad,
    dead_letters_made,
    drain,
    is_poison,
    jobs_of,
    reason_of,
)
from support.wires import WiredCluster, Wires

pytestmark = pytest.mark.slow

Publish = Callable[[str, object], None]

ON_DISK: Final = ("--appendonly", "yes")
NEVER_S: Final = 600
"""A retry time that ends after the test."""
RETRY_S: Final = 4
PATIENT_MS: Final = 10_000
"""A busy machine delays a node, but not for so long that it seems to have failed."""
HELD: Final = "held"
HELD_JOBS: Final = 5


def publish(load: PoisonLoad, letters: Sequence[Letter], record: Publish) -> None:
    """Publish what became of the jobs, and how long good ones took."""
    account = load.account
    good = account.added(poison=False)
    record("good jobs", f"{len(good)}, delivered again {sum(account.jobs.delivered[body] > 1 for body in good)}")
    record("poison jobs", f"{len(account.added(poison=True))}, dead letters {len(letters)}")
    record("refused", dict(account.refused))
    record("from ADDJOB until done", account.latencies())


def check(load: PoisonLoad, letters: Sequence[Letter]) -> None:
    """Assert that each good job was done and each poison job has a dead letter that says what became of it."""
    account = load.account
    poison = account.added(poison=True)
    assert not account.undone(account.added(poison=False)), "no good job is lost"
    assert not account.jobs.unexpected
    found = {letter.body for letter in letters}
    assert not poison - found, "each poison job has a dead letter"
    assert found <= account.jobs.attempted
    assert all(map(is_poison, found)), "no good job has one"
    for letter in letters:
        origin_id = account.ids.get(letter.body, letter.origin_id)
        assert (letter.origin_id, letter.origin_queue) == (origin_id, QUEUE)
        assert letter.id.encode() == successor_id(str(origin_id).encode(), DEAD_QUEUE.encode(), 0)


def waiting(node: RealNode, account: Account) -> list[bytes]:
    """The jobs that wait for the end of their back-off, and whose last worker gave them back to this node.

    Other nodes learn it later. They may also have the job as one that waits when it does no longer.
    """
    found = node.call("JSCAN", 0, "BUSYLOOP", "QUEUE", QUEUE, "STATE", "delayed")[1]
    return [job_id for job_id in found if account.taken_at[job_id.decode()] is node]


def test_good_jobs_pass_poison_jobs_that_wait_and_each_of_those_has_one_dead_letter(
    tmp_path: Path, record_property: Publish
) -> None:
    """The back-off is an hour, so whatever is done meanwhile did not wait for it. The test ends it.

    Workers do not move to other nodes, so it is known to which node each job was given back.
    """
    with RealCluster(tmp_path, 3, *ON_DISK, node_timeout_ms=PATIENT_MS) as cluster:
        cluster.nodes[0].call("QCONF", QUEUE, "SET", "limit", LIMIT, "backoff", "3600000 3600000")
        with PoisonLoad(cluster.nodes, retry_s=NEVER_S, discover=False) as load:
            load.wait_for_more(cluster, 100)
            load.stop_adding()
            account = load.account
            failing = {body for body in account.added(poison=True) if body.startswith(FAILING)}
            ids = {account.ids[body].encode() for body in failing}
            for attempts in range(1, LIMIT):
                cluster.wait_until(lambda: set(jobs_of(cluster, QUEUE)) == ids, "only jobs that fail are left")
                cluster.wait_until(
                    lambda: {job_id for node in cluster.nodes for job_id in waiting(node, account)} == ids, "they wait"
                )
                assert not account.undone(account.added(poison=False)), "all good jobs have passed them"
                assert {account.jobs.delivered[body] for body in failing} == {attempts}
                for node, at_node in [(node, waiting(node, account)) for node in cluster.nodes]:
                    if at_node:
                        assert node.call("ENQUEUE", *at_node) == len(at_node)
            load.settle(cluster)
        letters = drain(cluster)
        publish(load, letters, record_property)
        check(load, letters)
        assert Counter(letter.body for letter in letters) == Counter(account.added(poison=True))
        for letter in letters:
            assert (letter.attempts, letter.reason) == (
                LIMIT if letter.body.startswith(FAILING) else 1,
                reason_of(letter.body),
            )
        assert set(account.jobs.delivered.values()) == {1, LIMIT}, "nothing was repeated"


class _Gate:
    """A handler that holds its jobs until the gate opens, and then rejects them."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self.holds: set[str] = set()

    def handle(self, job: Job) -> None:
        self.holds.add(job.id)
        self._open.wait()
        raise Reject(WHY_REJECTED)

    def open(self) -> None:
        self._open.set()


def kill_mover(cluster: RealCluster, mover: RealNode, gate: _Gate) -> None:
    """Kill a node while its moves wait for the copies of dead letters, as the nodes that get these hang; start it."""
    letters = [successor_id(job_id.encode(), f"{HELD}.dead".encode(), 0) for job_id in gate.holds]
    others = [node for node in cluster.nodes if node is not mover]
    for node in others:
        node.stop()
    try:
        gate.open()
        cluster.wait_until(lambda: all(_waits_for_copies(mover, letter) for letter in letters), "it moves them")
        mover.kill()
    finally:
        for node in others:
            node.cont()
    mover.restart()


def _waits_for_copies(node: RealNode, letter: bytes) -> bool:
    shown = node.show(letter)
    return shown is not None and shown[b"state"] == b"wait-repl"


def end_dead_letters_of_held(cluster: RealCluster, held: set[str]) -> None:
    """Acknowledge the dead letters of the jobs that were held, which are there once each."""
    dead_queue = f"{HELD}.dead"
    found = jobs_of(cluster, dead_queue, "dead")
    assert found == Counter(successor_id(job_id.encode(), dead_queue.encode(), 0) for job_id in held)
    for letter in found:
        (holder,) = cluster.holders(letter, "queued")
        assert holder.call("ACKJOB", letter) == 1


def test_each_poison_job_has_one_dead_letter_although_a_mover_is_killed(
    tmp_path: Path, record_property: Publish
) -> None:
    gate = _Gate()
    with RealCluster(tmp_path, 3, *ON_DISK, node_timeout_ms=PATIENT_MS) as cluster:
        mover, *others = cluster.nodes
        mover.call("QCONF", "*", "SET", "limit", LIMIT, "backoff", "100 1000")
        with PoisonLoad(cluster.nodes, retry_s=RETRY_S) as load:
            held = {
                mover.call("ADDJOB", HELD, number, 0, "REPLICATE", 2, "RETRY", RETRY_S).decode()
                for number in range(HELD_JOBS)
            }
            load.consume(mover, HELD, gate.handle, HELD_JOBS)
            cluster.wait_until(lambda: gate.holds == held, "the mover has delivered the jobs that are held")
            cluster.wait_until(lambda: all(map(dead_letters_made, cluster.nodes)), "each node makes dead letters")
            kill_mover(cluster, mover, gate)
            load.consume(mover, QUEUE, load.account.handle)  # the worker that it had has moved to another node
            for node in others:
                load.consume(node, HELD, gate.handle)
            load.wait_for_more(cluster, 30)
            cluster.wait_until(lambda: dead_letters_made(mover), "it makes dead letters again")
            load.stop_adding()
            load.settle(cluster)
            load.settle(cluster, HELD)
        end_dead_letters_of_held(cluster, held)
        letters = drain(cluster)
        publish(load, letters, record_property)
        check(load, letters)
        found = Counter(letter.body for letter in letters)
        assert max(found.values()) == 1, "no poison job has two"
        for letter in letters:
            assert letter.attempts >= (LIMIT if letter.body.startswith(FAILING) else 1)
            assert letter.reason in {reason_of(letter.body), f"{letter.attempts} failed attempts"}


def test_no_job_is_lost_when_both_sides_of_a_partition_move_poison_jobs(
    tmp_path: Path, record_property: Publish
) -> None:
    with Wires() as wires, WiredCluster(tmp_path, wires, 3, *ON_DISK) as cluster:
        one, two, three = cluster.nodes
        ids = [node.id for node in cluster.nodes]
        one.call("QCONF", QUEUE, "SET", "limit", LIMIT, "backoff", "100 1000")
        with PoisonLoad(cluster.nodes, retry_s=RETRY_S, discover=False) as load:
            cluster.wait_until(lambda: all(map(dead_letters_made, cluster.nodes)), "each node makes dead letters")
            wires.halve([one], [two, three])
            cluster.wait_until(
                lambda: all("fail" in node.view()[ids[0]] for node in (two, three)), "the majority misses one"
            )
            cluster.wait_until(lambda: all("fail?" in one.view()[other] for other in ids[1:]), "one misses the others")
            before = [dead_letters_made(node) for node in cluster.nodes]
            load.wait_for_more(cluster, 30)
            cluster.wait_until(
                lambda: all(dead_letters_made(node) > made for node, made in zip(cluster.nodes, before, strict=True)),
                "both sides make dead letters",
            )
            wires.repair()
            cluster.wait_whole()
            load.wait_for_more(cluster, 30)
            load.stop_adding()
            load.settle(cluster)
        letters = drain(cluster)
        publish(load, letters, record_property)
        check(load, letters)
