"""The file of a controlled shutdown is written in slices: the node answers meanwhile, and nothing changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from disqued.core.host import disk
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode
from disqued.testing.snapshot import snapshot
from support.aofcontent import Content, come_back, job_ids
from support.asking import ask
from support.logging_node import AOF, finish_all, info, logging_node, written
from support.stories import added

MANY = 3000
SLOW_NS = 1_500_000
"""Two readings of the stopwatch make a slice."""
ENDING = "LEAVING This node is shutting down, please connect to a different one"
REFUSED = "ERR Errors trying to SHUTDOWN. Check logs."


def ending_node() -> tuple[LocalNode, LocalClient, list[bytes]]:
    """A node that has begun a controlled shutdown, the client that requested it, and the IDs of the jobs."""
    local = logging_node()
    client = local.client()
    ids = [client.add("mail", f"{number}", "RETRY", 1) for number in range(MANY)]
    local.run(seconds=0.5)
    local.host.command_ns = SLOW_NS
    client.send("SHUTDOWN", "REWRITE-AOF")
    local.run(milliseconds=1)
    assert local.node.state.ending
    return local, client, ids


def end(local: LocalNode) -> None:
    """Let the node write its file and end."""
    for _ in range(10_000):
        local.run(milliseconds=1)
        if local.host.ended is not None:
            return
    raise AssertionError("the node does not end")


def test_reading_commands_are_answered_while_the_last_file_is_written() -> None:
    local, _, ids = ending_node()
    other = local.client()
    assert other.call("PING") == b"PONG"
    assert other.call("QLEN", "mail") == MANY
    assert other.show(ids[0])["state"] == b"queued"
    assert ask(other, "PAUSE", "mail", "state") == b"none"
    assert info(other)["aof_rewrite_in_progress"] == "1"
    assert isinstance(ask(other, "QSCAN", "0"), list)
    end(local)
    come_back(local)
    assert job_ids(local) == set(ids)


CHANGES: list[Callable[[bytes], tuple[bytes | str | int, ...]]] = [
    lambda _: ("ADDJOB", "mail", "new", 0),
    lambda _: ("GETJOB", "FROM", "mail"),
    lambda job_id: ("ACKJOB", job_id),
    lambda job_id: ("FASTACK", job_id),
    lambda job_id: ("NACK", job_id),
    lambda job_id: ("WORKING", job_id),
    lambda _: ("PAUSE", "mail", "in"),
    lambda _: ("CONFIG", "SET", "appendonly", "no"),
    lambda _: ("CLUSTER", "RESET"),
    lambda _: ("DEBUG", "FLUSHALL"),
    lambda _: ("BGREWRITEAOF",),
    lambda _: ("SHUTDOWN",),
    lambda _: ("SHUTDOWN", "REWRITE-AOF"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_refused_while_the_last_file_is_written(
    change: Callable[[bytes], tuple[bytes | str | int, ...]],
) -> None:
    local, _, ids = ending_node()
    assert str(local.client().call(*change(ids[0]))) == ENDING
    end(local)
    come_back(local)
    assert job_ids(local) == set(ids)


def test_no_timer_changes_a_job_while_the_last_file_is_written() -> None:
    local = logging_node()
    client = local.client()
    taken = client.add("mail", "body", "RETRY", 1)
    expiring = client.add("other", "body", "RETRY", 1, "TTL", 3)
    assert client.take("mail") == [taken]
    local.host.disk.hold(disk.REPLACE)
    client.send("SHUTDOWN", "REWRITE-AOF")
    local.run(seconds=10)
    other = local.client()
    assert other.call("QLEN", "mail") == 0
    assert other.show(expiring)["state"] == b"queued"
    local.finish()
    end(local)
    states = {job_id: found.state for job_id, found in Content(written(local)).jobs.items()}
    assert states == {taken: 1, expiring: 2}


def test_node_continues_if_the_last_file_cannot_be_written() -> None:
    local = logging_node()
    client, other = local.client(), local.client()
    taken = client.add("mail", "body", "RETRY", 1)
    assert client.take("mail") == [taken]
    local.host.disk.hold(disk.REPLACE)
    client.send("SHUTDOWN", "REWRITE-AOF")
    local.run(seconds=5)
    assert str(other.call("ADDJOB", "mail", "new", 0)) == ENDING
    local.host.disk.fail(disk.REPLACE, times=1)
    finish_all(local)
    local.run(milliseconds=100)
    assert str(client.next_reply()) == REFUSED
    assert other.call("QLEN", "mail") == 1, "the retry time of the job was over"
    later = other.add("mail")
    assert list(local.host.disk.files) == [AOF]
    local.host.disk.repair()
    local.run(seconds=2)
    local.lose_power()
    come_back(local)
    assert job_ids(local) == {taken, later}


def test_shutdown_continues_when_its_client_disconnects() -> None:
    local, client, ids = ending_node()
    client.disconnect()
    end(local)
    come_back(local)
    assert job_ids(local) == set(ids)


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("works", range(8))
def test_a_crash_during_the_shutdown_loses_nothing(works: int, *, power: bool) -> None:
    local = logging_node("always")
    client = local.client()
    ids = {client.add("mail") for _ in range(10)}
    local.host.disk.hold()
    client.send("SHUTDOWN", "REWRITE-AOF")
    for _ in range(works):
        local.finish(1)
        local.node.tick(local.now_ms)
        local.flush()
    if power:
        local.lose_power()
    else:
        local.crash()
    local.host.disk.repair()
    come_back(local)
    assert job_ids(local) == ids


def test_long_commands_of_other_clients_do_not_continue() -> None:
    local = logging_node()
    client, other = local.client(), local.client()
    ids = [client.add("mail") for _ in range(MANY)]
    local.host.command_ns = SLOW_NS
    other.send("ACKJOB", *ids)
    local.run(milliseconds=1)
    client.send("SHUTDOWN", "REWRITE-AOF")
    left = client.local.node.state.lifecycle.table.count
    end(local)
    assert other.silent
    come_back(local)
    assert 0 < len(job_ids(local)) == left < MANY


def test_other_nodes_get_pongs_and_no_copies_are_taken_while_the_last_file_is_written(pair: Cluster) -> None:
    first, second = pair.members
    first.host.disk.hold(disk.REPLACE)
    first.client().send("SHUTDOWN", "REWRITE-AOF")
    pair.run(seconds=60)
    assert first.node.state.ending
    view = second.node.state.view
    assert not view.peers[first.id].failing
    client = second.client()
    client.send("ADDJOB", "mail", "body", 300, "REPLICATE", 2)
    pair.run(seconds=1)
    assert str(client.next_reply()).startswith("NOREPL")
    assert first.node.state.lifecycle.table.count == 0


def test_no_message_of_another_node_changes_a_job_while_the_last_file_is_written(pair: Cluster) -> None:
    first, second = pair.members
    ids = [added(pair, "REPLICATE", 2, "RETRY", 5, by=2) for _ in range(20)]
    once = [first.admin.add("once", "body", "RETRY", 0, "REPLICATE", 1) for _ in range(3)]
    second.client().send("GETJOB", "FROM", "elsewhere")
    pair.run(seconds=2)
    first.host.disk.hold(disk.REPLACE)
    first.client().send("SHUTDOWN", "REWRITE-AOF")
    before = snapshot(first)
    assert set(before.jobs) >= {*ids, *once}
    for job_id in second.admin.take("mail", count=10):
        second.admin.call("ACKJOB", job_id)
    second.admin.call("FASTACK", *ids[10:15])
    second.admin.call("NACK", *ids[15:])
    second.admin.call("PAUSE", "mail", "in", "bcast")
    second.client().send("GETJOB", "FROM", "once")
    pair.run(seconds=30)
    assert first.node.state.ending
    assert snapshot(first) == before
    first.finish()
    pair.until(lambda: first.host.ended == "shutdown")
    assert set(Content(written(first)).jobs) == set(before.jobs)
