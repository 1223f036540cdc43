"""`disque ordered` with a cluster of real processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cli.running import Disque
from disqued.cli.exits import Exit
from support.cluster import RealCluster

FIELDS = [
    "queue",
    "leader",
    "leader_address",
    "replicas",
    "lag",
    "ready",
    "leased",
    "delayed",
    "dead",
    "consumers",
    "furthest_behind",
    "group",
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("cluster"), 3) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def disque(cluster: RealCluster) -> Disque:
    """`disque` at a cluster with the queue `steps`, of all nodes, and `alone`, of one."""
    disque = Disque(cluster.nodes[0].port)
    assert "no catalog" in disque("ordered").stderr.decode()
    assert disque.ok("ordered", "init") == "The catalog of ordered queues is kept by 3 nodes.\n"
    assert disque.ok("ordered", "new", "steps", "--single", "--prefetch", "1") == "Ordered queue 'steps' can be used.\n"
    address = f"127.0.0.1:{cluster.nodes[1].port}"
    disque.ok("ordered", "new", "alone", "--replicas", "1", "--on", address)
    return disque


def rows(disque: Disque, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(disque.ok("ordered", *words, "--json"))
    return found


def test_queues_lists_ordered_queues_beside_the_others(cluster: RealCluster, disque: Disque) -> None:
    cluster.nodes[0].call("ADDJOB", "plain", "body", 0)
    listed = {row["queue"]: row["length"] for row in json.loads(disque.ok("queues", "--json"))}
    assert {"alone", "steps", "plain"} <= listed.keys()
    assert listed["plain"] == 1


def test_queues_are_listed_with_leader_replicas_and_jobs(cluster: RealCluster, disque: Disque) -> None:
    disque.ok("addjob", "steps", "one", "0")
    disque.ok("addjob", "steps", "two", "0", "DELAY", "60")
    alone, steps = rows(disque)
    assert list(steps) == FIELDS
    assert alone["leader_address"] == f"127.0.0.1:{cluster.nodes[1].port}"
    assert len(alone["replicas"]) == 1
    assert steps["leader_address"] in {f"127.0.0.1:{node.port}" for node in cluster.nodes}
    assert (len(steps["replicas"]), steps["ready"], steps["delayed"], steps["dead"]) == (3, 1, 1, 0)
    assert [row["queue"] for row in rows(disque, "st*")] == ["steps"]


def test_a_terminal_shows_a_table(disque: Disque) -> None:
    with disque.in_terminal("ordered") as terminal:
        terminal.wait_for("LEADER")
        terminal.wait_for("steps")


def test_a_job_of_an_ordered_queue_is_shown_from_all_nodes(disque: Disque) -> None:
    disque.ok("ordered", "new", "later")
    job_id = disque.ok("addjob", "later", "body", "0", "DELAY", "60").strip()
    assert json.loads(disque.ok("job", job_id, "--json"))[0]["state"] == "delayed"
    disque.ok("ordered", "drop", "later", "--force")


def test_a_queue_is_removed_when_its_name_is_typed(disque: Disque) -> None:
    disque.ok("ordered", "new", "old")
    with disque.in_terminal("ordered", "drop", "old") as terminal:
        terminal.wait_for("Type its name to confirm")
        terminal.type("older\r")
        terminal.wait_for("nothing was removed")
    assert disque.ok("ordered", "drop", "old") == "Ordered queue 'old' is removed.\n"
    assert rows(disque, "old") == []


def test_what_the_cluster_refuses_is_one_line_and_status_1(disque: Disque) -> None:
    disque.ok("addjob", "alone", "job", "0")
    refused = disque("ordered", "drop", "alone")
    assert (refused.returncode, refused.stderr.count(b"\n")) == (Exit.REFUSED, 1)
    assert b"1 unfinished jobs" in refused.stderr
    assert disque("ordered", "init").returncode == Exit.REFUSED
    assert disque("ordered", "new", "steps").returncode == Exit.REFUSED


def test_a_node_that_does_not_exist_is_an_invalid_argument(disque: Disque) -> None:
    done = disque("ordered", "new", "x", "--on", "127.0.0.1:1")
    assert (done.returncode, b"is no node" in done.stderr) == (Exit.USAGE, True)


def test_queues_without_leader_are_shown_and_the_status_is_1(cluster: RealCluster, disque: Disque) -> None:
    cluster.nodes[1].kill()
    cluster.nodes[2].kill()

    def lost() -> bool:
        done = disque("ordered", "--json")
        found = {row["queue"]: row["leader_address"] for row in json.loads(done.stdout)}
        return done.returncode == Exit.REFUSED and found["steps"] == "none"

    cluster.wait_until(lost)
    assert b"does not answer" in disque("ordered").stderr
