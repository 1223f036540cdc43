"""Replies that wait for a real disk, while clients close, quit or keep sending."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from durability.conftest import Make
from support.durable import DurableNode
from support.faultydisk import SYNC, FaultyDisk

ADD = b"ADDJOB work body 0\r\n"


@pytest.fixture
def node(make_faulty: Make) -> DurableNode:
    """A node with slow syncs."""
    new = make_faulty("node", "always", "--client-output-buffer-limit", "normal", "1mb", "0", "0")
    new.start()
    FaultyDisk(new.directory).slow(SYNC, seconds=0.2)
    return new


@pytest.fixture
def client(node: DurableNode) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", node.port), timeout=20) as connection:
        yield connection


def all_received(client: socket.socket) -> bytes:
    """Everything that arrives until the server closes the connection."""
    received = b""
    while data := client.recv(1 << 16):
        received += data
    return received


def test_client_that_shuts_down_its_side_gets_all_replies(client: socket.socket) -> None:
    """The client closes its side of the connection at once."""
    client.sendall(ADD)
    client.sendall(ADD)
    client.shutdown(socket.SHUT_WR)
    assert all_received(client).count(b"+D-") == 2


def test_client_that_quits_during_a_sync_gets_all_replies(node: DurableNode, client: socket.socket) -> None:
    for number in range(1, 6):
        client.sendall(ADD)
        node.until(lambda number=number: node.call("QLEN", "work") == number, "the job is queued")
    client.sendall(b"QUIT\r\n")
    received = all_received(client)
    assert received.count(b"+D-") == 5
    assert received.endswith(b"+OK\r\n")


def test_client_with_too_many_held_replies_is_disconnected(node: DurableNode, client: socket.socket) -> None:
    """client-output-buffer-limit applies to held replies as to unread ones."""
    disk = FaultyDisk(node.directory)
    disk.hang(SYNC)
    client.sendall(ADD)
    with contextlib.suppress(ConnectionError):
        for _ in range(2000):
            client.sendall(b"PING " + b"X" * 1000 + b"\r\n")
        assert all_received(client) == b""
    assert "overcoming of output buffer limits" in node.log
    assert node.call("QLEN", "work") == 1
    disk.repair()
    node.until(lambda: node.call("INFO", "persistence").count(b"aof_pending_bio_fsync:0"), "the sync is over")
    assert len(node.jobs()) == 1
