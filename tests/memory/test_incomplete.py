"""Requests that many clients do not complete take a bounded share of the memory."""

from __future__ import annotations

import pytest

from disqued.core.runtime.clientlimits import INCOMPLETE_BYTES
from disqued.core.runtime.counters import CLOSED_FOR_MEMORY
from disqued.testing.local import LocalClient, LocalNode, encode

MB = 1 << 20
PIECE = 60_000
PART = b"*4\r\n$6\r\nADDJOB\r\n$4\r\nmail\r\n$61000\r\n" + b"x" * PIECE
COUNT = 300
"""So many of these parts are well above the bound."""


@pytest.fixture
def local() -> LocalNode:
    """A node with 64 MB, which are short."""
    local = LocalNode()
    assert local.client().call("CONFIG", "SET", "maxmemory", "64mb") == b"OK"
    local.node.state.lifecycle.memory.used_bytes += 40 * MB
    return local


def holding(local: LocalNode) -> list[LocalClient]:
    """Clients that do not complete their requests."""
    clients = [local.client() for _ in range(COUNT)]
    for client in clients:
        client.send_bytes(PART)
    return clients


def test_clients_that_do_not_complete_requests_are_disconnected_the_longest_waiting_first(local: LocalNode) -> None:
    good = local.client()
    old = holding(local)
    local.run(seconds=5)
    late = local.client()
    late.send_bytes(PART)
    assert local.node.state.lifecycle.memory.input_bytes > COUNT * PIECE
    local.run(seconds=4)
    assert not any(client.closed for client in old)
    local.run(seconds=2)
    closed = [client.closed for client in old]
    assert closed == sorted(closed, reverse=True)
    assert 0 < local.node.state.lifecycle.memory.input_bytes <= INCOMPLETE_BYTES
    assert not late.closed
    assert sum(closed) == local.node.state.counters.value(CLOSED_FOR_MEMORY)
    assert len([text for _, text in local.host.log_lines if "incomplete" in text]) == 1
    assert good.call("PING") == b"PONG"


def test_a_client_whose_requests_run_is_not_disconnected(local: LocalNode) -> None:
    busy = local.client()
    busy.send_bytes(PART)
    local.run(seconds=1)
    holding(local)
    for _ in range(20):
        local.run(seconds=1)
        busy.send_bytes(b"x" * 1000 + b"\r\n$1\r\n0\r\n" + PART)
    assert not busy.closed


def test_input_that_ran_after_a_wait_is_not_counted_any_more(local: LocalNode) -> None:
    waiting, other = local.client(), local.client()
    waiting.send("GETJOB", "FROM", "mail")
    waiting.send_bytes(encode("QLEN", "x" * 1000) * 100)
    memory = local.node.state.lifecycle.memory
    assert memory.input_bytes > 100_000
    other.add("mail")
    assert memory.input_bytes == 0


def test_clients_have_a_second_to_complete_requests_when_memory_is_used_up(local: LocalNode) -> None:
    clients = holding(local)
    local.node.state.lifecycle.memory.used_bytes += 20 * MB
    local.run(milliseconds=900)
    assert not any(client.closed for client in clients)
    local.run(milliseconds=300)
    assert any(client.closed for client in clients)
