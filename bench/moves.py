"""What a move costs: MOVEJOB beside an ADDJOB and an ACKJOB with as many copies, on one node and on three.

A move is over when its client has the reply and no node holds the old job any more, as after an acknowledgement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, TypeAlias

from brokers import BROKERS, Running
from clusters import NODES, Disqued, wait_for_jobs
from disqued.client import Client
from generator import QUEUE, Load, offer
from workloads import BATCH, Sizes

AT_ONCE: Final = 100
"""The jobs of one MOVEJOB or ACKJOB."""
CLIENTS: Final = 4
"""Clients that send them at the same time, so that the nodes always have work."""

Nodes: TypeAlias = Running | Disqued
MoveCosts = dict[str, list[dict[str, float]]]  # row -> rates of each round


def compare(sizes: Sizes, say: Callable[[str], None]) -> MoveCosts:
    """Both on fresh nodes, `sizes.few_rounds` times."""
    found: MoveCosts = {}
    for number in range(sizes.few_rounds):
        for name, make, copies in _rows():
            line = {
                "adds_and_acks_per_s": sizes.quorum / _add_and_end(make(), copies, sizes.quorum, "ACKJOB"),
                "moves_per_s": sizes.quorum / _add_and_end(make(), copies, sizes.quorum, "MOVEJOB"),
            }
            found.setdefault(name, []).append(line)
            rates = ", ".join(f"{rate:,.0f} {what}" for what, rate in line.items())
            say(f"round {number + 1}  {name}: {rates}")
    return found


def _rows() -> Iterator[tuple[str, Callable[[], AbstractContextManager[Nodes]], int]]:
    yield "one", lambda: Running(BROKERS[0]), 1
    yield f"three, REPLICATE {NODES}", Disqued, NODES


def _add_and_end(made: AbstractContextManager[Nodes], copies: int, jobs: int, command: str) -> float:
    """Add jobs, then acknowledge or move them all. Return the seconds of both, or of the moves alone."""
    with made as nodes:
        added = offer(nodes, Load("add", jobs, pipeline=BATCH, add_options=f"REPLICATE {copies}"))
        with Client([f"127.0.0.1:{nodes.port}"], discover=False) as client:
            ids = [job.id for job in client.qpeek(QUEUE, jobs)]
        tail = ("TO", "moved") if command == "MOVEJOB" else ()
        requests = [(command, *ids[first : first + AT_ONCE], *tail) for first in range(0, jobs, AT_ONCE)]
        send = partial(_send, nodes.port)
        with ThreadPoolExecutor(CLIENTS) as clients:
            began = time.perf_counter()
            ended = sum(clients.map(send, [requests[number::CLIENTS] for number in range(CLIENTS)]))
        wait_for_jobs(nodes.nodes if isinstance(nodes, Disqued) else [nodes], jobs if tail else 0)
        seconds = time.perf_counter() - began
    if ended != jobs:
        raise SystemExit(f"bench: {command} ended {ended} of {jobs} jobs")
    return seconds if tail else seconds + float(added["seconds"])


def _send(port: int, requests: Sequence[tuple[str, ...]]) -> int:
    """Send requests with a client of their own. Return the sum of their replies."""
    with Client([f"127.0.0.1:{port}"], discover=False) as client:
        replies = client.execute_many(requests)
    return sum(reply for reply in replies if isinstance(reply, int))
