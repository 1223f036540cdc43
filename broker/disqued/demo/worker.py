"""A worker process: fetch some jobs, count each file, send the result, acknowledge the job.

The worker sends the result before it acknowledges the job. If it dies in between, the broker delivers the job again and
the report counts it once; in the other order the result would be lost. After each fetch the worker waits for permission
from its leader, so the leader knows exactly which jobs a worker holds when it kills it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias

from disqued.client import Client, Job, JobId
from disqued.demo.source import Count, count_file, ignore_interrupt

QUEUE = "demo:python-files"

FETCH_TIMEOUT_MS = 1000


@dataclass(frozen=True, slots=True)
class Fetched:
    """Jobs were fetched. The worker waits for permission to continue."""

    ids: tuple[JobId, ...]
    at_s: float


@dataclass(frozen=True, slots=True)
class Counted:
    """The file of a job was counted."""

    id: JobId
    count: Count


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The job was acknowledged."""

    id: JobId
    at_s: float


WorkerMessage: TypeAlias = Fetched | Counted | Acknowledged
"""A message of a worker. Times are those of the monotonic clock, which all processes share."""


def work(nodes: tuple[str, ...], folder: Path, batch: int, leader: Connection) -> None:
    """Process jobs until killed or until the leader is gone."""
    ignore_interrupt()
    with Client(nodes) as client:
        while True:
            jobs = client.get(QUEUE, count=batch, timeout_ms=FETCH_TIMEOUT_MS)
            if jobs and not _handle(jobs, client, folder, leader):
                return


def _handle(jobs: list[Job], client: Client, folder: Path, leader: Connection) -> bool:
    """Count the files of the jobs. Return False if the leader is gone."""
    client.working_many(job.id for job in jobs)  # restarts the retry time of each job
    try:
        leader.send(Fetched(tuple(job.id for job in jobs), time.monotonic()))
        leader.recv()
        for job in jobs:
            leader.send(Counted(job.id, count_file(folder / job.body.decode("utf-8", "surrogateescape"))))
            client.ack(job.id)
            leader.send(Acknowledged(job.id, time.monotonic()))
    except (EOFError, OSError):
        return False
    return True
