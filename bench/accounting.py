"""Compares the memory that the broker counts (`used_memory`) with the memory that its process takes.

    python bench/accounting.py                 print the table
    python bench/accounting.py --document      also update docs/operations/memory.md

Both figures are growth: above the empty process, and above the count of an empty node.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import hiredis

import machine
from brokers import BROKERS, Running
from disqued.build import FLAVOUR
from page import renew

PAGE = machine.ROOT / "docs" / "operations" / "memory.md"
MB = 1e6
SETTLE_S = 0.5
BIG_BYTES = 10_000_000  # about this much is in flight at a time

Rows = dict[str, dict[str, float]]
Say = Callable[[str], None]


class Client:
    """A connection that pipelines."""

    def __init__(self, server: Running) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        self._reader = hiredis.Reader()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, *words: Any) -> None:
        """Send a request."""
        self._socket.sendall(hiredis.pack_command(words))

    def read(self) -> Any:
        """The next reply; exits if it is an error."""
        while (reply := self._reader.gets()) is False:
            self._reader.feed(self._socket.recv(1 << 20))
        if isinstance(reply, Exception):
            raise SystemExit(f"bench: {reply}")
        return reply

    def call(self, *words: Any) -> Any:
        """Send a request and wait for its reply."""
        self.send(*words)
        return self.read()

    def calls(self, requests: Iterator[tuple[Any, ...]], batch: int = 200) -> None:
        """Send all requests, `batch` at a time."""
        waiting = 0
        for request in requests:
            self.send(*request)
            waiting += 1
            if waiting >= batch:
                for _ in range(waiting):
                    self.read()
                waiting = 0
        for _ in range(waiting):
            self.read()


@dataclass(frozen=True, slots=True)
class Case:
    """What an empty broker is filled with before its memory is measured."""

    name: str
    fill: Callable[[Client, int], None]
    count: int


def _jobs(size: int, *options: Any) -> Callable[[Client, int], None]:
    body = os.urandom(size)
    batch = max(1, min(200, BIG_BYTES // (size + 100)))
    return lambda client, count: client.calls((("ADDJOB", "q", body, 0, *options) for _ in range(count)), batch)


def _queues(client: Client, count: int) -> None:
    client.calls(("GETJOB", "NOHANG", "FROM", f"queue-{number}") for number in range(count))


def _one_each(client: Client, count: int) -> None:
    client.calls(("ADDJOB", f"queue-{number}", b"x" * 64, 0) for number in range(count))


def _far(client: Client, count: int) -> None:
    chance = random.Random(1)
    client.calls(("ADDJOB", "q", b"x" * 64, 0, "TTL", 10**9, "DELAY", chance.randrange(10**8)) for _ in range(count))


def _mixed(client: Client, count: int) -> None:
    chance = random.Random(2)
    client.calls((("ADDJOB", "q", bytes(int(10 ** chance.uniform(0, 5))), 0) for _ in range(count)), 50)


def _churned(client: Client, count: int) -> None:
    """Jobs of all sizes are added and deleted in random order; a fifth of them remains."""
    chance = random.Random(3)
    ids: list[bytes] = []
    for _ in range(count):
        ids.append(client.call("ADDJOB", "q", bytes(int(10 ** chance.uniform(0, 5))), 0))
        if len(ids) > count // 5:
            at = chance.randrange(len(ids))
            ids[at], ids[-1] = ids[-1], ids[at]
            client.call("DELJOB", ids.pop())


CASES = (
    Case("jobs of 0 bytes", _jobs(0), 300_000),
    Case("jobs of 64 bytes", _jobs(64), 300_000),
    Case("jobs of 1 kB", _jobs(1000), 100_000),
    Case("jobs of 20 kB", _jobs(20_000), 10_000),
    Case("jobs of 200 kB", _jobs(200_000), 1500),
    Case("jobs of 1 MB", _jobs(1_000_000), 400),
    Case("jobs of 1 B to 100 kB", _mixed, 20_000),
    Case("the same after many adds and deletes", _churned, 40_000),
    Case("delayed jobs of 64 bytes", _jobs(64, "DELAY", 3600), 300_000),
    Case("jobs with different wake times", _far, 100_000),
    Case("queues with one job", _one_each, 100_000),
    Case("empty queues", _queues, 100_000),
)


def _used(client: Client) -> int:
    text: bytes = client.call("INFO", "memory")
    return int(dict(line.split(b":", 1) for line in text.split(b"\r\n") if b":" in line)[b"used_memory"])


def measure(scale: float, say: Say) -> Rows:
    """Growth of resident and of counted memory, in MB, by case."""
    rows: Rows = {}
    for case in CASES:
        with Running(BROKERS[0]) as server, Client(server) as client:
            client.call("PING")
            time.sleep(SETTLE_S)
            resident, used = server.rss_bytes(), _used(client)
            case.fill(client, max(int(case.count * scale), 10))
            time.sleep(SETTLE_S)
            row = {"resident_mb": (server.rss_bytes() - resident) / MB, "used_mb": (_used(client) - used) / MB}
            rows[case.name] = row
            say(f"{case.name:<40} resident {row['resident_mb']:7.1f} MB, counted {row['used_mb']:7.1f} MB")
    return rows


def as_markdown(rows: Rows) -> str:
    """The table."""
    lines = ["| what | process grew by | counted | process / counted |", "|---|---|---|---|"]
    for name, row in rows.items():
        ratio = row["resident_mb"] / row["used_mb"]
        lines.append(f"| {name} | {row['resident_mb']:.1f} MB | {row['used_mb']:.1f} MB | {ratio:.2f} |")
    return "\n".join(lines)


def update_page(rows: Rows, flavour: str) -> None:
    """Put the table between the markers for this build."""
    begin, end = f"<!-- accounting {flavour} -->", f"<!-- end of accounting {flavour} -->"
    renew(PAGE, begin, end, f"\n\n{as_markdown(rows)}\n\n")


def main() -> None:
    """Measure, print, and update the documentation if requested."""
    parser = argparse.ArgumentParser(prog="accounting", description="Compare counted memory with memory in use.")
    parser.add_argument("--scale", type=float, default=1.0, help="factor for the number of jobs and queues (default 1)")
    parser.add_argument("--document", action="store_true", help="update docs/operations/memory.md")
    options = parser.parse_args()
    flavour = FLAVOUR
    rows = measure(options.scale, print)
    print(f"\n{flavour}\n\n{as_markdown(rows)}")
    if options.document:
        update_page(rows, flavour)


if __name__ == "__main__":
    main()
