"""used_memory follows the memory of the process, and freed memory is returned."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from disqued.client.wire import Decoder, encode
from disqued.testing.processes import ServerProcess

pytestmark = pytest.mark.slow

MB = 1 << 20
MARGIN = 0.15
TIMEOUT_S = 20.0


class Node:
    """A fresh node, and a connection to it."""

    def __init__(self, server: ServerProcess) -> None:
        self.process_id = server.process.pid
        self.socket = server.connect(60)
        self._decoder = Decoder()
        self.calls([("ADDJOB", "mail", "warm", 0), ("GETJOB", "FROM", "mail")])
        self._used_bytes, self._resident_bytes = self._sizes()

    def calls(self, requests: list[tuple[Any, ...]]) -> list[Any]:
        """The replies, in batches."""
        replies: list[Any] = []
        for start in range(0, len(requests), 100):
            self.socket.sendall(b"".join([encode(words) for words in requests[start : start + 100]]))
            wanted = min(len(requests), start + 100)
            while len(replies) < wanted:
                replies += self._decoder.feed(self.socket.recv(1 << 20))
        return replies

    def _sizes(self) -> tuple[int, int]:
        (text,) = self.calls([("INFO", "memory")])
        info = dict(line.split(":", 1) for line in text.decode().split("\r\n") if ":" in line)
        return int(info["used_memory"]), int(info["used_memory_rss"])

    def growth(self) -> tuple[int, int]:
        """By how much the count grew, and by how much the process, in bytes."""
        used_bytes, resident_bytes = self._sizes()
        return used_bytes - self._used_bytes, resident_bytes - self._resident_bytes


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with ServerProcess(tmp_path, "--maxmemory", "300mb") as server:
        node = Node(server)
        yield node
        node.socket.close()


@pytest.mark.parametrize(
    ("size", "count"), [(0, 40_000), (64, 40_000), (1000, 20_000), (20_000, 2000), (300_000, 200), (1_500_000, 40)]
)
def test_used_memory_of_jobs_matches_the_process_and_is_released(node: Node, size: int, count: int) -> None:
    added = node.calls([("ADDJOB", "mail", b"x" * size, 0)] * count)
    used_bytes, resident_bytes = node.growth()
    assert used_bytes > 10 * MB
    assert abs(resident_bytes - used_bytes) <= MARGIN * used_bytes
    assert node.calls([("DELJOB", *added[start : start + 100]) for start in range(0, count, 100)])
    deadline = time.monotonic() + TIMEOUT_S
    while node.growth()[1] > max(used_bytes // 2, 40 * MB):
        assert time.monotonic() < deadline, node.growth()
        time.sleep(0.1)
    assert node.growth()[0] < MB


def test_used_memory_of_keys_matches_the_process_and_is_released(node: Node) -> None:
    count = 60_000
    for start in range(0, count, 100):
        keys = range(start, start + 100)
        added = node.calls([("ADDJOB", "mail", "", 0, "KEY", f"{key}", "WINDOW", 600) for key in keys])
        node.calls([("ACKJOB", *added)])
    used_bytes, resident_bytes = node.growth()
    assert used_bytes > 10 * MB
    assert abs(resident_bytes - used_bytes) <= MARGIN * used_bytes
    node.calls([("DEBUG", "FLUSHALL")])
    assert node.growth()[0] < MB


def test_used_memory_of_queues_matches_the_process(node: Node) -> None:
    node.calls([("PAUSE", f"queue-{number}", "in") for number in range(40_000)])
    used_bytes, resident_bytes = node.growth()
    assert abs(resident_bytes - used_bytes) <= MARGIN * used_bytes
