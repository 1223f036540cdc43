"""Shutdown: a node stops only after all changes are on disk."""

from __future__ import annotations

from random import Random

import pytest

from disqued.core.host import disk
from disqued.testing.local import LocalNode
from support.aofcontent import Content, come_back, job_ids
from support.asking import ask, pairs
from support.logging_node import AOF, config, info, logging_node, told, written
from support.promises import Promises

REFUSED = b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n"
SYNCHRONOUS_TEMP = "temp-rewriteaof-1.aof"


# --- SHUTDOWN ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_changes_in_the_packet_of_the_shutdown_survive_a_power_loss(policy: str) -> None:
    local = logging_node(policy)
    client = local.client()
    gone = client.add("q")
    client.send_bytes(b"ADDJOB q body 0\r\nACKJOB %b\r\nPAUSE q in\r\nSHUTDOWN\r\n" % gone)
    kept, acked, paused = client.replies()
    assert (acked, paused) == (1, b"in")
    assert local.host.ended == "shutdown"
    local.lose_power()
    come_back(local)
    assert job_ids(local) == {kept}
    assert ask(local.client(), "PAUSE", "q", "state") == b"in"


def test_held_replies_are_sent_before_the_node_ends() -> None:
    local = logging_node("always")
    clients = [local.client() for _ in range(3)]
    local.host.disk.hold()
    for client in clients:
        client.send("ADDJOB", "q", "body", 0)
        assert client.silent
    local.client().send("SHUTDOWN")
    assert local.host.ended == "shutdown"
    ids = {client.next_reply() for client in clients}
    local.host.disk.repair()
    local.lose_power()
    come_back(local)
    assert job_ids(local) == ids


@pytest.mark.parametrize("verbs", [[disk.APPEND], [disk.SYNC, disk.REPLACE]])
@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_a_node_whose_disk_fails_does_not_end(policy: str, verbs: list[int]) -> None:
    local = logging_node(policy)
    client, other = local.client(), local.client()
    gone, kept = client.add("q"), client.add("q")
    local.host.disk.fail(*verbs)
    client.send_bytes(b"DELJOB %b\r\nSHUTDOWN\r\n" % gone)
    local.run(seconds=1)
    assert local.host.ended is None
    assert any("can't" in text and "Input/output error" in text for text in told(local, "warning"))
    local.host.disk.repair()
    local.run(seconds=10)
    assert client.received.endswith(b":1\r\n" + REFUSED)
    later = other.add("q")
    assert local.shut_down() is None
    local.lose_power()
    come_back(local)
    assert job_ids(local) == {kept, later}


def test_node_that_cannot_sync_its_file_ends_if_it_can_rewrite_it() -> None:
    local = logging_node("always")
    client = local.client()
    gone, kept = client.add("q"), client.add("q")
    local.host.disk.fail(disk.SYNC)
    client.send_bytes(b"DELJOB %b\r\nSHUTDOWN\r\n" % gone)
    assert local.host.ended == "shutdown"
    assert client.received.endswith(b":1\r\n")
    local.lose_power()
    local.host.disk.repair()
    come_back(local)
    assert job_ids(local) == {kept}


def test_nothing_changes_after_the_shutdown() -> None:
    local = logging_node()
    client, other, waiting = local.client(), local.client(), local.client()
    job_id = client.add("q")
    waiting.send("GETJOB", "TIMEOUT", 500, "FROM", "other")
    client.send("SHUTDOWN")
    other.send("ACKJOB", job_id)
    other.send("ADDJOB", "other", "body", 0)
    local.run(seconds=2)
    assert other.silent
    assert waiting.silent
    come_back(local)
    assert job_ids(local) == {job_id}


def test_shutdown_during_loading_changes_no_file() -> None:
    before = logging_node()
    ids = {before.client().add("q") for _ in range(3000)}
    data = written(before)
    for options in ((), ("REWRITE-AOF",)):
        local = LocalNode(config())
        local.host.disk.put(AOF, data)
        local.restart()
        assert local.node.state.loading
        client = local.client()
        assert client.raw("PING").startswith(b"-LOADING")
        assert local.shut_down(*options) is None
        assert written(local) == data
    come_back(local)
    assert job_ids(local) == ids


def test_an_incomplete_file_refuses_a_shutdown() -> None:
    local = logging_node()
    client = local.client()
    client.call("CONFIG", "SET", "appendonly", "no")
    ids = {client.add("q") for _ in range(3000)}
    client.call("CONFIG", "SET", "appendonly", "yes")
    assert client.raw("SHUTDOWN") == REFUSED
    assert local.host.ended is None
    local.run(seconds=2)
    assert info(client)["aof_state"] == "on"
    assert local.shut_down() is None
    come_back(local)
    assert job_ids(local) == ids


def test_shutdown_with_a_rewrite_completes_an_incomplete_file() -> None:
    local = logging_node()
    client = local.client()
    client.call("CONFIG", "SET", "appendonly", "no")
    ids = {client.add("q") for _ in range(3000)}
    client.call("CONFIG", "SET", "appendonly", "yes")
    assert local.shut_down("REWRITE-AOF") is None
    come_back(local)
    assert job_ids(local) == ids


def test_signals_end_a_node_as_the_command_does() -> None:
    local = logging_node("everysec")
    client = local.client()
    job_id = client.add("q")
    local.host.disk.fail(disk.SYNC, times=1)
    assert not local.node.end(local.now_ms)
    local.run(seconds=1)
    other = client.add("q")
    assert local.node.end(local.now_ms)
    local.lose_power()
    come_back(local)
    assert job_ids(local) == {job_id, other}


@pytest.mark.parametrize("step", range(16))
@pytest.mark.parametrize("options", [(), ("REWRITE-AOF",)])
def test_shutdown_during_a_rewrite_loses_nothing(step: int, options: tuple[str, ...]) -> None:
    local = logging_node("always")
    promises = Promises(local, Random(step))
    for _ in range(50):
        promises.act()
    local.host.disk.hold()
    local.client().send("BGREWRITEAOF")
    for number in range(step):
        promises.act()
        if number % 2:
            local.run(milliseconds=20)
        local.finish(1)
    assert local.shut_down(*options) is None
    local.host.disk.repair()
    assert list(local.host.disk.files) == [AOF]
    local.lose_power()
    come_back(local)
    promises.check()


# --- SHUTDOWN REWRITE-AOF ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("appendonly", [True, False])
def test_the_file_of_a_controlled_shutdown_has_the_exact_state(*, appendonly: bool) -> None:
    local = logging_node()
    client = local.client()
    if not appendonly:
        client.call("CONFIG", "SET", "appendonly", "no")
    queued, delayed = client.add("q", "1", "RETRY", 60), client.add("q", "2", "DELAY", 50)
    once = client.add("once", "3", "RETRY", 0)
    once_delayed = client.add("once", "4", "RETRY", 0, "DELAY", 50)
    taken, once_taken = client.add("taken", "5", "RETRY", 60), client.add("taken", "6", "RETRY", 0)
    assert client.take("taken", count=2) == [taken, once_taken]
    client.call("NACK", taken)
    assert client.take("taken") == [taken]
    done = client.add("q", "7")
    client.call("ACKJOB", done)
    client.call("PAUSE", "q", "out")
    assert local.shut_down("REWRITE-AOF") is None
    content = Content(written(local))
    states = {job_id: found.state for job_id, found in content.jobs.items()}
    assert states == {queued: 2, delayed: 1, once: 2, once_delayed: 2, taken: 1}
    assert content.jobs[taken].job.nacks == 1
    assert content.records == len(states) + 1
    assert content.pauses == {b"q": b"out"}
    assert local.host.disk.synced_bytes(AOF) == len(written(local))
    assert list(local.host.disk.files) == [AOF]


@pytest.mark.parametrize("verb", [disk.OPEN, disk.APPEND, disk.REPLACE])
def test_node_does_not_end_if_its_file_cannot_be_rewritten(verb: int) -> None:
    local = logging_node("everysec")
    client = local.client()
    job_id = client.add("q")
    local.run(seconds=2)
    before = written(local)
    local.host.disk.fail(verb, times=1)
    assert client.raw("SHUTDOWN", "REWRITE-AOF") == REFUSED
    assert written(local) == before
    assert list(local.host.disk.files) == [AOF]
    other = client.add("q")
    assert local.shut_down("REWRITE-AOF") is None
    come_back(local)
    assert job_ids(local) == {job_id, other}


# --- DEBUG ------------------------------------------------------------------------------------------------------------


def test_debug_restart_is_a_shutdown() -> None:
    local = logging_node("no")
    client = local.client()
    client.send_bytes(b"ADDJOB q body 0\r\nDEBUG RESTART\r\n")
    (job_id,) = client.replies()
    assert local.host.ended == "restart after 0 ms, graceful"
    local.lose_power()
    come_back(local)
    assert job_ids(local) == {job_id}


def test_debug_restart_is_refused_while_the_disk_fails() -> None:
    local = logging_node("no")
    client = local.client()
    client.add("q")
    local.host.disk.fail(disk.SYNC, times=1)
    assert client.raw("DEBUG", "RESTART") == b"-ERR failed to restart the server. Check server logs.\r\n"
    assert local.host.ended is None
    local.run(seconds=1)
    assert client.add("q")


def test_debug_loadaof_loads_the_file_again() -> None:
    local = logging_node()
    client = local.client()
    ids = {client.add("q", f"{number}", "RETRY", 60) for number in range(3000)}
    taken = client.take("q")[0]
    client.call("PAUSE", "p", "in")
    assert client.raw("DEBUG", "LOADAOF") == b"+OK\r\n"
    assert job_ids(local) == ids
    assert ask(client, "QLEN", "q") == 0  # a restart brings jobs back through their retry time
    assert ask(client, "PAUSE", "p", "state") == b"in"
    assert pairs(client, "SHOW", taken)[b"state"] == b"active"
    client.call("ACKJOB", taken)
    local.crash()
    come_back(local)
    assert job_ids(local) == ids - {taken}


def test_an_empty_file_is_not_loaded() -> None:
    local = logging_node()
    assert (
        local.client().raw("DEBUG", "LOADAOF") == b"-ERR The append only file can't be loaded: disque.aof is empty\r\n"
    )
