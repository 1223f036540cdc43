"""Commands that take long run in slices: other clients are served in between, and the answers stay the same."""

from __future__ import annotations

import pytest

from disqued.client import ResponseError
from disqued.testing.local import LocalClient, LocalNode, encode
from support.logging_node import logging_node

MANY = 3000
SLOW_NS = 1_500_000
"""Two readings of the stopwatch make a slice."""


def slow(local: LocalNode) -> None:
    """Make every step of a command take so long that a slice has only a few."""
    local.host.command_ns = SLOW_NS


def fill(client: LocalClient, count: int = MANY, queue: str = "mail") -> list[bytes]:
    """Add jobs; returns their IDs."""
    return [client.add(queue, f"job {number}") for number in range(count)]


def waits(client: LocalClient) -> bool:
    """Whether the command of a client has more slices."""
    return client.session.blocked is not None


def finish(local: LocalNode, client: LocalClient) -> object:
    """The next reply of a client; its command must need more than one slice."""
    assert waits(client), "the command ran at once"
    while waits(client):
        assert local.node.state.long_commands, "the command does not end"
        local.run(milliseconds=1)
    return client.next_reply()


def whole_reply(local: LocalNode, client: LocalClient, *words: str) -> bytes:
    """The bytes of a reply."""
    client.replies()
    before = len(client.received)
    client.send(*words)
    local.run(seconds=2)
    return client.received[before:]


def qlen(client: LocalClient, queue: str = "mail") -> int:
    length = client.call("QLEN", queue)
    assert isinstance(length, int)
    return length


@pytest.mark.parametrize("command", ["ACKJOB", "FASTACK", "DELJOB", "DEQUEUE"])
def test_other_clients_are_served_while_many_jobs_are_taken_out(local: LocalNode, command: str) -> None:
    client, other = local.client(), local.client()
    ids = fill(client)
    slow(local)
    client.send(command, *ids)
    local.run(milliseconds=1)
    assert 0 < qlen(other) < MANY
    assert other.call("PING") == b"PONG"
    assert local.node.state.blocked_clients == 1
    assert finish(local, client) == MANY
    assert qlen(other) == 0
    assert local.node.state.blocked_clients == 0


@pytest.mark.parametrize("command", ["NACK", "ENQUEUE"])
def test_other_clients_are_served_while_many_jobs_are_queued_again(local: LocalNode, command: str) -> None:
    client, other = local.client(), local.client()
    ids = fill(client)
    assert client.call("DEQUEUE", *ids) == MANY
    slow(local)
    client.send(command, *ids)
    local.run(milliseconds=1)
    assert 0 < qlen(other) < MANY
    assert finish(local, client) == MANY
    assert qlen(other) == MANY


def test_nothing_is_done_when_one_of_many_ids_is_wrong(local: LocalNode) -> None:
    client = local.client()
    ids = fill(client)
    slow(local)
    client.send("ACKJOB", *ids, *ids, "x" * 40)
    assert str(finish(local, client)).startswith("BADID")
    assert qlen(client) == MANY
    assert client.call("PING") == b"PONG"


def test_later_requests_of_the_client_wait(local: LocalNode) -> None:
    client = local.client()
    ids = fill(client)
    slow(local)
    client.send_bytes(encode("ACKJOB", *ids) + encode("QLEN", "mail") + encode("PING"))
    assert finish(local, client) == MANY
    assert client.replies() == [0, b"PONG"]


def test_what_was_done_stays_done_when_the_client_disconnects(local: LocalNode) -> None:
    client, other = local.client(), local.client()
    ids = fill(client)
    slow(local)
    client.send("ACKJOB", *ids)
    local.run(milliseconds=1)
    client.disconnect()
    local.run(milliseconds=1)
    left = qlen(other)
    assert 0 < left < MANY
    local.run(seconds=1)
    assert qlen(other) == left
    assert local.node.state.long_commands == []


def test_two_long_commands_take_turns(local: LocalNode) -> None:
    first, second = local.client(), local.client()
    ids = fill(first)
    slow(local)
    first.send("ACKJOB", *ids[: MANY // 2])
    second.send("DELJOB", *ids[MANY // 2 :])
    local.run(milliseconds=1)
    assert len(local.node.state.long_commands) == 2
    assert finish(local, first) == MANY // 2
    local.run(milliseconds=200)
    assert second.replies() == [MANY // 2]


@pytest.mark.parametrize(("mode", "replies"), [("OFF", []), ("SKIP", [0])])
def test_a_reply_that_the_client_does_not_want_is_not_sent(local: LocalNode, mode: str, replies: list[int]) -> None:
    client = local.client()
    ids = fill(client)
    slow(local)
    client.send("CLIENT", "REPLY", mode)
    client.send("ACKJOB", *ids)
    client.send("QLEN", "mail")
    local.run(seconds=1)
    assert client.replies() == replies


def test_the_whole_time_of_a_long_command_is_counted_once(local: LocalNode) -> None:
    client = local.client()
    ids = fill(client)
    client.call("CONFIG", "SET", "slowlog-log-slower-than", 20_000)
    slow(local)
    client.send("ACKJOB", *ids)
    finish(local, client)
    local.host.command_ns = 0
    (logged,) = local.node.state.monitoring.slowlog.entries
    assert logged.spent_us > 20_000
    assert logged.arguments[:2] == (b"ACKJOB", ids[0])
    assert logged.arguments[-1] == b"... (%d more arguments)" % (MANY + 1 - 31)
    (entry,) = [entry for entry in local.node.state.command_entries if entry.name == b"ackjob"]
    assert (entry.calls, entry.done, entry.latency.count) == (1, 1, 1)


@pytest.mark.parametrize(
    "request_words",
    [
        ("JSCAN", "0", "BUSYLOOP"),
        ("JSCAN", "0", "BUSYLOOP", "STATE", "queued", "QUEUE", "mail"),
        ("JSCAN", "0", "COUNT", "2000"),
        ("QSCAN", "0", "BUSYLOOP"),
        ("QSCAN", "0", "COUNT", "2500"),
        ("QPEEK", "mail", str(MANY)),
        ("QPEEK", "mail", str(-MANY)),
        ("QPEEK", "mail", "1500"),
    ],
    ids=" ".join,
)
def test_a_long_reply_is_the_same_in_slices(local: LocalNode, request_words: tuple[str, ...]) -> None:
    client = local.client()
    ids = fill(client)
    client.call("DEQUEUE", *ids[::3])
    client.call("ENQUEUE", *ids[::6])
    for number in range(MANY):
        client.call("PAUSE", f"queue {number}", "in")
    at_once = whole_reply(local, client, *request_words)
    assert len(at_once) > 10_000
    slow(local)
    client.send("PING")
    assert whole_reply(local, client, *request_words) == at_once


def test_peeking_continues_behind_jobs_that_leave_the_queue(local: LocalNode) -> None:
    client, worker = local.client(), local.client()
    ids = fill(client)
    slow(local)
    client.send("QPEEK", "mail", MANY)
    local.run(milliseconds=1)
    taken = worker.take("mail", count=500) + worker.take("mail", count=500)
    peeked = finish(local, client)
    assert isinstance(peeked, list)
    seen = [job[1] for job in peeked]
    assert taken == ids[:1000]
    assert len(seen) == len(set(seen))
    assert seen[-1] == ids[-1]
    assert set(ids[1000:]) <= set(seen)


def test_everything_is_gone_at_once_and_freed_in_slices(local: LocalNode) -> None:
    client, other, waiting = local.client(), local.client(), local.client()
    fill(client)
    client.add("mail", "keyed", "KEY", "k")
    client.call("PAUSE", "print", "in")
    waiting.send("GETJOB", "FROM", "empty")
    slow(local)
    assert client.call("DEBUG", "FLUSHALL") == b"OK"
    assert waiting.next_reply() is None
    assert qlen(other) == 0
    kept = other.add("mail", "new", "KEY", "k")
    assert local.node.state.lifecycle.dropped
    local.run(seconds=2)
    local.host.command_ns = 0
    assert not local.node.state.lifecycle.dropped
    assert other.take("mail") == [kept]
    assert local.node.state.lifecycle.table.count == 1
    assert other.call("QSCAN", "0") == [b"0", [b"mail"]]


def test_other_clients_are_served_while_a_client_takes_many_jobs(local: LocalNode) -> None:
    client, other = local.client(), local.client()
    ids = fill(client)
    more = fill(client, 600, "more")
    slow(local)
    client.send("GETJOB", "COUNT", 2 * MANY, "FROM", "mail", "none", "more")
    local.run(milliseconds=1)
    assert 0 < qlen(other) < MANY
    assert other.call("PING") == b"PONG"
    reply = finish(local, client)
    assert isinstance(reply, list)
    taken = [job[1] for job in reply]
    assert taken[:4] == [ids[0], more[0], ids[1], more[1]], "the queues are visited in turn"
    assert sorted(taken) == sorted(ids + more)
    assert qlen(other) == 0
    assert other.take("mail", "more") == []


def test_dropped_jobs_are_not_queued_again_while_they_are_freed(local: LocalNode) -> None:
    client = local.client()
    for number in range(MANY):
        client.add("mail", f"job {number}", "RETRY", 1)
    local.run(milliseconds=500)
    local.host.command_ns = 3_000_000_000
    client.call("DEBUG", "FLUSHALL")
    local.run(milliseconds=1)
    assert local.node.state.lifecycle.dropped
    local.host.command_ns = 0
    local.run(seconds=3)
    assert qlen(client) == 0
    assert client.stat("mail") == {}
    assert local.node.state.lifecycle.timers.next_ms() == 0


def test_all_memory_of_dropped_jobs_is_given_back(local: LocalNode) -> None:
    client = local.client()
    memory = local.node.state.lifecycle.memory
    before = memory.used_bytes
    fill(client)
    client.add("mail", "keyed", "KEY", "k")
    client.call("DEBUG", "FLUSHALL")
    local.run(milliseconds=10)
    assert memory.used_bytes == before


def test_clients_are_told_that_the_node_loads_while_it_reloads_its_file() -> None:
    local = logging_node()
    client, other = local.client(), local.client()
    ids = fill(client)
    slow(local)
    client.send("DEBUG", "LOADAOF")
    local.run(milliseconds=1)
    assert isinstance(other.call("ADDJOB", "mail", "x", 0), ResponseError)
    assert "LOADING" in str(other.call("GETJOB", "NOHANG", "FROM", "mail"))
    assert finish(local, client) == b"OK"
    local.host.command_ns = 0
    assert sorted(jobs_of(other)) == sorted(ids)


def test_a_reload_is_completed_when_its_client_disconnects() -> None:
    local = logging_node()
    client, other = local.client(), local.client()
    ids = fill(client)
    slow(local)
    client.send("DEBUG", "LOADAOF")
    local.run(milliseconds=1)
    client.disconnect()
    local.run(seconds=2)
    local.host.command_ns = 0
    assert sorted(jobs_of(other)) == sorted(ids)


def jobs_of(client: LocalClient) -> list[bytes]:
    """The IDs of all jobs of the node."""
    reply = client.call("JSCAN", "0", "BUSYLOOP")
    assert isinstance(reply, list)
    ids = reply[1]
    assert isinstance(ids, list)
    return [bytes(job_id) for job_id in ids]  # type: ignore[arg-type]


def test_a_long_pipeline_runs_in_turns_with_other_clients(local: LocalNode) -> None:
    local.host.command_ns = 1_000_000
    client, other = local.client(), local.client()
    client.send_bytes(encode("PING") * 1000)
    assert 0 < len(client.replies()) < 20
    assert other.call("PING") == b"PONG"
    client.send("ECHO")
    client.session.end_input()
    local.run(seconds=1)
    assert client.received.count(b"+PONG") == 1000
    assert client.closed, "what it had sent before it closed its side was run"
