"""A producer process: adds a job for each file and reads which nodes hold its copies.

It uses one node. It adds the next jobs when two nodes hold each of the last ones.
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
"""The number of jobs in one pipeline. They share the time at which they were added."""

COPIES = 2
"""The number of nodes that hold each job: no job is lost if one of them fails."""


@dataclass(frozen=True, slots=True)
class Added:
    """Jobs were added at this time.

    `holders` are the IDs of the nodes with copies, for each job that was not already done when the producer asked.
    """

    ids: tuple[JobId, ...]
    at_s: float
    holders: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A job could not be added, and the producer stopped."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finished:
    """All jobs are added. The producer sends no more messages."""


ProducerMessage: TypeAlias = Added | Refused | Finished
"""A message of a producer. Times are those of the monotonic clock, which all processes share."""


def produce(nodes: tuple[str, ...], names: list[str], retry_s: int, leader: Connection) -> None:
    """Add a job for each name. Stop early if the leader is gone."""
    ignore_interrupt()
    try:
        with Client(nodes) as client:
            for message in _add(client, iter(names), retry_s):
                leader.send(message)
    except (EOFError, OSError):
        return


def _add(client: Client, names: Iterator[str], retry_s: int) -> Iterator[ProducerMessage]:
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
