"""Held jobs are seen: SHOW, JSCAN, QCOUNT, QSTAT, QPURGE, metrics; and they survive what nodes go through."""

from __future__ import annotations

import pytest

from dependencies.helping import add, call, held_at, job_at, queued_at
from dependencies.test_alone import child_of, soon
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode
from support.logging_node import config


@pytest.fixture
def cluster_with_files() -> Cluster:
    """Three nodes that keep their jobs in append-only files."""
    cluster = Cluster(3, config=config)
    cluster.run(seconds=10)
    return cluster


def named(reply: object) -> dict[object, object]:
    assert isinstance(reply, list)
    return dict(zip(reply[::2], reply[1::2], strict=True))


def test_show_names_parents_and_children(local: LocalNode, client: LocalClient) -> None:
    done, waiting = client.add("extract", "body"), client.add("extract", "body")
    child = child_of(client, done, "AFTER", waiting, "ELSE", "drop")
    client.call("ACKJOB", done)
    soon(local)
    shown = client.show(child)
    assert (shown["after"], shown["waits-for"], shown["else"]) == ([done, waiting], [waiting], b"drop")
    assert client.show(waiting)["children"] == [child]
    assert "after" not in client.show(waiting)
    client.call("ACKJOB", waiting)
    soon(local)
    shown = client.show(child)
    assert (shown["after"], shown["waits-for"]) == ([done, waiting], [])


def test_one_node_counts_a_held_job(cluster: Cluster) -> None:
    first, second, third = cluster.members
    parent = add(cluster, second, "extract", "REPLICATE", 2, "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 3, "RETRY", 300)
    for member in cluster.members:
        counted = named(call(cluster, member, "QCOUNT", "load"))
        assert (counted[b"held"], counted[b"queued"], counted[b"delayed"]) == (1, 0, 0)
    assert first.admin.stat("load")["held"] == 1
    assert second.admin.stat("load").get("held", 0) == 0
    assert first.admin.call("JSCAN", "STATE", "held") == [b"0", [child]]
    assert second.admin.call("JSCAN", "STATE", "held") == [b"0", []]
    first.crash()
    cluster.run(seconds=40)
    counted = named(call(cluster, third, "QCOUNT", "load"))
    assert counted[b"held"] == 1
    call(cluster, third, "ACKJOB", parent)
    cluster.run(seconds=3)
    counted = named(call(cluster, third, "QCOUNT", "load"))
    assert counted[b"held"] == 0


def test_a_queue_with_held_jobs_is_not_removed(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body", "TTL", 86400)
    child = child_of(client, parent, "RETRY", 3600)
    local.run(seconds=700)
    assert client.stat("load")["held"] == 1
    client.call("ACKJOB", parent)
    soon(local)
    assert client.stat("load")["held"] == 0
    assert client.take("load") == [child]


@pytest.mark.parametrize("states", [(), ("STATE", "held")])
def test_a_purge_deletes_held_jobs_at_all_holders(cluster: Cluster, states: tuple[str, ...]) -> None:
    first, second, third = cluster.members
    parent = add(cluster, second, "extract", "REPLICATE", 2, "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 3, "RETRY", 300)
    purged = named(call(cluster, third, "QPURGE", "load", *states))
    assert purged[b"deleted"] == 1
    cluster.run(seconds=1)
    assert cluster.copies(child) == []


def test_a_purge_of_other_states_leaves_held_jobs(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    parent = add(cluster, second, "extract", "REPLICATE", 2, "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 3, "RETRY", 300)
    assert named(call(cluster, first, "QPURGE", "load", "STATE", "queued"))[b"deleted"] == 0
    assert held_at(cluster, child) == cluster.members


@pytest.mark.parametrize("command", ["ENQUEUE", "NACK", "DEQUEUE", "WORKING"])
def test_no_command_delivers_a_held_job_early(local: LocalNode, client: LocalClient, command: str) -> None:
    """To have it run without its parents, add it again without AFTER, or acknowledge the parents."""
    parent = client.add("extract", "body")
    child = child_of(client, parent, "RETRY", 5)
    client.call(command, child)
    local.run(seconds=60)
    assert client.take("load") == []
    client.call("ACKJOB", parent)
    soon(local)
    assert client.take("load") == [child]


def test_a_held_job_can_be_acknowledged_and_deleted(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body")
    first, second = child_of(client, parent), child_of(client, parent)
    assert client.call("ACKJOB", first) == 1
    assert client.call("DELJOB", second) == 1
    local.run(seconds=1)
    assert not local.node.state.lifecycle.held.parents
    assert local.node.state.lifecycle.held.counted == 0
    assert not local.node.state.lifecycle.watched


def test_a_held_job_expires_as_any_other(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body", "TTL", 3600)
    child = child_of(client, parent, "TTL", 60)
    local.run(seconds=65)
    assert client.show(child) == {}
    assert not local.node.state.lifecycle.watched


def test_paused_queues_take_a_free_job_later(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body")
    child = child_of(client, parent, "RETRY", 5)
    client.call("PAUSE", "load", "in")
    client.call("ACKJOB", parent)
    soon(local)
    assert client.take("load") == []
    client.call("PAUSE", "load", "none")
    local.run(seconds=6)
    assert client.take("load") == [child]


def test_the_memory_of_held_jobs_is_given_back(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body")
    client.call("FASTACK", child_of(client, parent))
    local.run(seconds=2)
    before = local.node.state.lifecycle.memory.used_bytes
    children = [child_of(client, parent) for _ in range(3)]
    assert local.node.state.lifecycle.memory.used_bytes > before + 3 * 800
    for child in children:
        client.call("FASTACK", child)
    local.run(seconds=2)
    assert local.node.state.lifecycle.memory.used_bytes == before


def test_dropping_all_jobs_forgets_their_parents(local: LocalNode, client: LocalClient) -> None:
    parent = client.add("extract", "body")
    child_of(client, parent)
    client.call("DEBUG", "FLUSHALL")
    local.run(seconds=35)
    lifecycle = local.node.state.lifecycle
    assert (len(lifecycle.held.jobs), len(lifecycle.held.parents), len(lifecycle.watched)) == (0, 0, 0)


# --- the setting copy-to ----------------------------------------------------------------------------------------------


def test_copies_into_other_queues_wait_as_well(local: LocalNode, client: LocalClient) -> None:
    client.call("QCONF", "load", "SET", "copy-to", "audit")
    parent = client.add("extract", "body")
    child_of(client, parent)
    local.run(seconds=60)
    assert client.take("audit") == []
    client.call("ACKJOB", parent)
    soon(local)
    assert len(client.take("audit")) == 1
    assert len(client.take("load")) == 1


# --- the append-only file ---------------------------------------------------------------------------------------------


def test_a_held_job_is_still_held_after_a_restart(cluster_with_files: Cluster) -> None:
    cluster = cluster_with_files
    first, second, _ = cluster.members
    done = add(cluster, second, "extract", "REPLICATE", 1, "RETRY", 300)
    waiting = add(cluster, second, "extract", "REPLICATE", 1, "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", done, "AFTER", waiting, "REPLICATE", 1, "RETRY", 300)
    call(cluster, second, "ACKJOB", done)
    cluster.run(seconds=3)
    first.restart()
    cluster.run(seconds=10)
    assert held_at(cluster, child) == [first]
    after = job_at(first, child).extra
    assert after is not None
    assert first.admin.show(child)["waits-for"] == [waiting]
    call(cluster, second, "ACKJOB", waiting)
    cluster.run(seconds=1)
    assert queued_at(cluster, child) == [first]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_parent_that_ends_while_its_child_is_away_frees_it(cluster_with_files: Cluster, at_once: bool) -> None:
    cluster = cluster_with_files
    first, second, _ = cluster.members
    parent = add(cluster, second, "extract", "REPLICATE", 1, "RETRY", 300, "RETAIN", 3600)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 1, "RETRY", 300)
    cluster.run(seconds=2)
    first.crash()
    call(cluster, second, "ACKJOB", parent)
    cluster.run(seconds=0 if at_once else 100)
    first.restart()
    cluster.run(seconds=40)
    assert queued_at(cluster, child) == [first]
