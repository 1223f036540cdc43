"""One producer process: adds a job for each file, and looks where its copies are.

It talks to one node. Each job is on its way to the workers, and on two nodes, before the next ones are added.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from typing import TypeAlias

from disqued.client import Client, DisqueError, JobId
from disqued.demo.source import ignore_interrupt
from disqued.demo.worker import QUEUE

ADD_AT_ONCE = 8
"""Jobs in one pipeline; they share the time at which they were added."""

COPIES = 2
"""Nodes that hold each job: one may fail, and nothing is lost."""


@dataclass(frozen=True, slots=True)
class Added:
    """Jobs were added at that time.

    `holders` are the IDs of the nodes with copies, for each job that was still known when asked for.
    """

    ids: tuple[JobId, ...]
    at_s: float
    holders: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A job could not be added; the producer gave up."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finished:
    """All jobs are added; the producer has no more to say."""


ProducerReport: TypeAlias = Added | Refused | Finished
"""What a producer says; times are of the system's monotonic clock, the same in all processes."""


def produce(nodes: tuple[str, ...], names: list[str], retry_s: int, leader: Connection) -> None:
    """Add a job for each name; ends early when the leader is gone."""
    ignore_interrupt()
    try:
        with Client(nodes) as client:
            for report in _reports(client, iter(names), retry_s):
                leader.send(report)
    except (EOFError, OSError):
        return


def _reports(client: Client, names: Iterator[str], retry_s: int) -> Iterator[ProducerReport]:
    while some := list(islice(names, ADD_AT_ONCE)):
        at_s = time.monotonic()
        bodies = [name.encode("utf-8", "surrogateescape") for name in some]
        results = client.add_many(QUEUE, bodies, retry_s=retry_s, replicate=COPIES)
        ids = tuple(result for result in results if not isinstance(result, DisqueError))
        yield Added(ids, at_s, tuple(_holders(client, ids)))
        refused = [result for result in results if isinstance(result, DisqueError)]
        if refused:
            yield Refused(str(refused[0]))
            return
    yield Finished()


def _holders(client: Client, ids: tuple[JobId, ...]) -> Iterator[tuple[str, ...]]:
    for job_id in ids:
        details = client.show(job_id)
        if details is not None and details.nodes_delivered:
            yield details.nodes_delivered
