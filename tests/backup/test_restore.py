"""A cluster of real nodes is backed up under load, and restored to clusters of other sizes: each job is there once."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any, Final, Self

import pytest

from backup.conftest import MakeCluster, backup, create, restore, start, wait_whole
from disqued.client import DisqueError
from support.durable import DurableNode
from support.nodeclient import NodeClient

KEPT: Final = (b"queue", b"state", b"repl", b"ctime", b"delay", b"retry", b"nacks", b"additional-deliveries", b"body")
"""Fields of SHOW that a restore does not change."""
JOBS: Final = 9_000
"""Jobs before the load begins; those of the load and the special ones come on top."""
LOADED: Final = "loaded"
"""The queue that clients use during the backup; all other jobs are at rest."""


class Ids:
    """The jobs in the queues that rest, by the replies that clients received."""

    def __init__(self, nodes: list[DurableNode]) -> None:
        one, two, three = nodes
        self.queued = {job_id for number in range(1, 4) for job_id in add(nodes[number - 1], JOBS // 3, number)}
        gone = [job_id for node in nodes for job_id in add(node, 300, 2, queue="done")]
        for at, node in enumerate((two, three, one)):
            assert node.call("ACKJOB", *gone[at::3]) <= 300
        self.acknowledged = set(gone)
        self.taken = add(two, 100, 2, queue="taken")
        while two.call("QLEN", "taken") or three.call("QLEN", "taken"):
            two.call("GETJOB", "NOHANG", "COUNT", 100, "FROM", "taken")
        self.delayed = add(three, 100, 2, "DELAY", 3600, queue="later")
        self.nacked = add(one, 10, 1, queue="nacked")
        for _ in range(2):
            taken = one.call("GETJOB", "COUNT", 10, "FROM", "nacked")
            one.call("NACK", *[job[1] for job in taken])
        self.at_most_once = add(one, 50, 1, "RETRY", 0, queue="once")
        self.delivered_once = [job[1] for job in one.call("GETJOB", "COUNT", 10, "FROM", "once")]
        self.expired = add(one, 20, 2, "TTL", 1, "RETRY", 1, queue="expired")
        one.until(lambda: holders_of(nodes).keys().isdisjoint(self.expired), "jobs have expired")

    @property
    def kept(self) -> set[bytes]:
        """The jobs that a restored cluster must have."""
        return self.queued.union(self.taken, self.delayed, self.nacked)


def add(node: DurableNode, count: int, copies: int, *options: str | int, queue: str = "rest") -> list[bytes]:
    """Add jobs; RETRY is so long that none is delivered again during the test."""
    words = [["ADDJOB", queue, f"{queue} {n}", 5000, "REPLICATE", copies, *options] for n in range(count)]
    if "RETRY" not in options:
        words = [[*request, "RETRY", 600] for request in words]
    replies = node.pipeline(words)
    assert all(isinstance(reply, bytes) for reply in replies), replies[:3]
    return replies


class Load:
    """Clients that add, fetch and acknowledge jobs until they are stopped, and what they were told."""

    def __init__(self, nodes: list[DurableNode]) -> None:
        self.added: set[bytes] = set()
        self.fetched: set[bytes] = set()
        """Jobs whose acknowledgement was sent, or is about to be."""
        self.acknowledged: set[bytes] = set()
        self._stop = threading.Event()
        self.begun = threading.Semaphore(0)
        self._threads = [
            threading.Thread(target=self._run, args=(node, copies)) for copies, node in enumerate(nodes, 1)
        ]
        self._failed: list[Exception] = []

    def _run(self, node: DurableNode, copies: int) -> None:
        try:
            with contextlib.closing(NodeClient(node.port)) as client:
                rounds = 0
                while not self._stop.is_set():
                    self.added |= set(client.pipeline([["ADDJOB", LOADED, "x", 5000, "REPLICATE", copies]] * 20))
                    jobs = client.call("GETJOB", "TIMEOUT", 1, "COUNT", 10, "FROM", LOADED) or []
                    ids = [job[1] for job in jobs]
                    self.fetched |= set(ids)
                    if ids:
                        client.call("ACKJOB", *ids)
                    self.acknowledged |= set(ids)
                    rounds += 1
                    if rounds == 5:
                        self.begun.release()
        except (OSError, EOFError, DisqueError) as error:
            self._failed.append(error)
            self.begun.release()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        for _ in self._threads:
            self.begun.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self._failed


def holders_of(nodes: list[DurableNode], state: str | None = None) -> Counter[bytes]:
    """How many nodes have each job, or have it in a state."""
    return Counter(job_id for node in nodes for job_id in scanned(node, state))


def scanned(node: DurableNode, state: str | None = None) -> list[bytes]:
    words = ["STATE", state] if state else []
    cursor, ids = node.call("JSCAN", 0, "COUNT", 1_000_000, *words)
    assert cursor == b"0"
    return [job_id for job_id in ids if isinstance(job_id, bytes)]


def drained(nodes: list[DurableNode], queue: str, count: int) -> Counter[bytes]:
    """Fetch and acknowledge jobs from all nodes until `count` different ones were delivered, and no more come."""
    delivered: Counter[bytes] = Counter()

    def fetch() -> bool:
        for node in nodes:
            jobs: list[Any] = node.call("GETJOB", "NOHANG", "COUNT", 1000, "FROM", queue) or []
            delivered.update(job[1] for job in jobs)
            if jobs:
                node.call("ACKJOB", *[job[1] for job in jobs])
        return len(delivered) >= count

    nodes[0].until(fetch, f"{count} jobs of {queue} are delivered")
    return delivered


@pytest.mark.slow
def test_backup_under_load_is_restored_to_other_sizes_with_each_job_once(nodes_of: MakeCluster, tmp_path: Path) -> None:
    old = start(nodes_of("old", 3))
    ids = Ids(old)
    with Load(old) as load:
        added_before, acknowledged_before = set(load.added), set(load.acknowledged)
        create(old[0], tmp_path / "backups")
        fetched_at_end = set(load.fetched)
    for node in old:
        node.kill()
    for size in (1, 2, 5):
        new = restore(tmp_path / "backups", nodes_of(f"new-{size}", size), "--identity", str(size))
        copies = holders_of(new)
        assert copies.keys() >= ids.kept, "jobs are lost"
        assert copies.keys().isdisjoint({*ids.acknowledged, *ids.at_most_once, *ids.expired}), "finished jobs return"
        assert {copies[job_id] for job_id in (*ids.taken, *ids.delayed)} == {min(2, size)}
        loaded = copies.keys() - ids.kept
        assert loaded >= added_before - fetched_at_end, "jobs of the load are lost"
        assert loaded <= load.added - acknowledged_before, "jobs return that were acknowledged before the backup"
        assert drained(new, "rest", len(ids.queued)) == Counter(dict.fromkeys(ids.queued, 1))
        assert drained(new, "nacked", len(ids.nacked)) == Counter(dict.fromkeys(ids.nacked, 1))
        assert drained(new, LOADED, 0).keys() <= loaded
        assert holders_of(new, "queued").keys().isdisjoint({*ids.taken, *ids.delayed})
        for node in new:
            node.kill()


def test_fields_of_jobs_are_restored(nodes_of: MakeCluster, tmp_path: Path) -> None:
    old = start(nodes_of("old", 1))
    [delayed] = add(old[0], 1, 1, "DELAY", 3600, "TTL", 7200, queue="later")
    [nacked] = add(old[0], 1, 1, "TTL", 3600, queue="again")
    for _ in range(3):
        old[0].call("GETJOB", "FROM", "again")
        old[0].call("NACK", nacked)
    old[0].call("PAUSE", "stopped", "in")
    before = {job_id: old[0].show(job_id) for job_id in (delayed, nacked)}
    create(old[0], tmp_path / "backups")
    [new] = restore(tmp_path / "backups", nodes_of("new", 1))
    for job_id, shown in before.items():
        now = new.show(job_id)
        assert now is not None
        assert shown is not None
        fields = (
            b"queue",
            b"state",
            b"repl",
            b"ctime",
            b"delay",
            b"retry",
            b"nacks",
            b"additional-deliveries",
            b"body",
        )
        assert [now[field] for field in fields] == [shown[field] for field in fields]
        assert 0 <= shown[b"ttl"] - now[b"ttl"] < 60
        assert now[b"nodes-delivered"] == [new.call("CLUSTER", "NODES")[:40]]
    assert new.call("PAUSE", "stopped", "state") == b"in"


def test_attributes_and_delays_of_failed_jobs_are_restored(nodes_of: MakeCluster, tmp_path: Path) -> None:
    old = start(nodes_of("old", 2))
    [urgent] = add(old[0], 1, 2, "PRIORITY", 7, "META", "trace", queue="urgent")
    [failed] = add(old[0], 1, 2, queue="failed")
    old[0].call("GETJOB", "FROM", "failed")
    assert old[0].call("NACK", failed, "DELAY", 3600, "REASON", "no such user") == 1
    create(old[1], tmp_path / "backups")
    new = restore(tmp_path / "backups", nodes_of("new", 2))
    for node in new:
        job = node.show(urgent)
        assert job is not None
        assert (job[b"priority"], job[b"meta"]) == (7, b"trace")
        job = node.show(failed)
        assert job is not None
        assert (job[b"state"], job[b"nacks"], job[b"reason"]) == (b"active", 1, b"no such user")
        assert 3_000_000 < job[b"next-requeue-within"] <= 3_602_000


def test_settings_and_purges_of_queues_are_restored(nodes_of: MakeCluster, tmp_path: Path) -> None:
    old = start(nodes_of("old", 2))
    old[0].call("QCONF", "mail", "SET", "limit", 5, "retry", 60)
    old[1].call("QCONF", "m*", "SET", "maxlen", 9)
    old[0].call("QCONF", "mail", "UNSET", "retry")
    assert old[1].call("QPURGE", "stale")[:4] == [b"deleted", 0, b"nodes-answered", 2]
    shown = old[0].call("QCONF", "*", "SHOW")
    create(old[1], tmp_path / "backups")
    new = restore(tmp_path / "backups", nodes_of("new", 3))
    for node in new:
        assert node.call("QCONF", "*", "SHOW") == shown
        assert b'entry 2 "stale" "queued"' in (node.directory / "queues.conf").read_bytes()
    new[0].call("QCONF", "mail", "SET", "limit", 6)
    new[2].until(lambda: b"6" in new[2].call("QCONF", "mail", "GET"), "the nodes share settings as before")


def test_backup_without_settings_is_restored(nodes_of: MakeCluster, tmp_path: Path) -> None:
    """Those of earlier releases have none."""
    old = start(nodes_of("old", 1))
    ids = add(old[0], 3, 1)
    old[0].call("QCONF", "rest", "SET", "limit", 5)
    create(old[0], tmp_path / "backups", "--name", "first")
    folder = tmp_path / "backups" / "first"
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["settings"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "queues.conf").unlink()
    backup("verify", tmp_path / "backups", "first")
    [new] = restore(tmp_path / "backups", nodes_of("new", 1))
    assert set(holders_of([new])) == {*ids}
    assert new.call("QCONF", "*", "SHOW") == []


def test_at_most_once_jobs_are_queued_on_request(nodes_of: MakeCluster, tmp_path: Path) -> None:
    old = start(nodes_of("old", 2))
    waiting = add(old[0], 10, 1, "RETRY", 0, queue="once")
    delayed = add(old[0], 1, 1, "RETRY", 0, "DELAY", 3600, queue="once")
    [delivered] = [job[1] for job in old[0].call("GETJOB", "COUNT", 1, "FROM", "once")]
    create(old[0], tmp_path / "backups")
    new = restore(tmp_path / "backups", nodes_of("new", 3), "--at-most-once", "queue")
    assert drained(new, "once", 9) == Counter(dict.fromkeys({*waiting} - {delivered}, 1))
    assert set(holders_of(new)) == {*delayed}


def test_restored_nodes_restart_like_all_others(nodes_of: MakeCluster, tmp_path: Path) -> None:
    old = start(nodes_of("old", 1))
    ids = add(old[0], 100, 1)
    create(old[0], tmp_path / "backups")
    new = restore(tmp_path / "backups", nodes_of("new", 2))
    assert drained(new, "rest", 100).keys() == {*ids}
    more = add(new[0], 10, 2)
    for node in new:
        node.kill()
    for node in new:
        node.begin()
    wait_whole(new)
    assert set(holders_of(new)) == {*more}


def test_restored_nodes_find_each_other_by_host_names(nodes_of: MakeCluster, tmp_path: Path) -> None:
    """As on Kubernetes, where the addresses of pods are unknown before they start."""
    old = start(nodes_of("old", 2))
    ids = add(old[0], 20, 2)
    create(old[0], tmp_path / "backups")
    new = nodes_of("new", 3)
    hosts = ",".join(f"localhost:{node.port}@{node.port + 10000}" for node in new)
    for number, node in enumerate(new):
        words = ("--nodes", hosts, "--node", number, "--into", node.directory)
        backup("restore", tmp_path / "backups", "latest", *words)
    for node in new:
        node.begin()
    wait_whole(new)
    assert drained(new, "rest", 20) == Counter(dict.fromkeys(ids, 1))
