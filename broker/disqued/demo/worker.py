"""One worker process: take some jobs, count each file, report, acknowledge.

The result is reported before the job is acknowledged: who dies between the two leaves a job that is done again, and
the tally counts it once; the other order would lose the result. After each fetch the worker waits for a word from its
leader, so that the leader can be certain of what a worker holds at the moment it is killed.
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
class Taken:
    """Jobs were fetched; the worker waits for the word to go on."""

    ids: tuple[JobId, ...]
    at_s: float


@dataclass(frozen=True, slots=True)
class Counted:
    """The file of a job was counted."""

    id: JobId
    count: Count


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The broker knows that the job is done."""

    id: JobId
    at_s: float


Report: TypeAlias = Taken | Counted | Acknowledged
"""What a worker says; times are of the system's monotonic clock, the same in all processes."""


def work(nodes: tuple[str, ...], folder: Path, batch: int, leader: Connection) -> None:
    """Work until killed or until the leader is gone."""
    ignore_interrupt()
    with Client(nodes) as client:
        while True:
            jobs = client.get(QUEUE, count=batch, timeout_ms=FETCH_TIMEOUT_MS)
            if jobs and not _handle(jobs, client, folder, leader):
                return


def _handle(jobs: list[Job], client: Client, folder: Path, leader: Connection) -> bool:
    """Count the jobs' files; False when the leader is gone."""
    client.working_many(job.id for job in jobs)  # each gets its full retry time from now on
    try:
        leader.send(Taken(tuple(job.id for job in jobs), time.monotonic()))
        leader.recv()
        for job in jobs:
            leader.send(Counted(job.id, count_file(folder / job.body.decode("utf-8", "surrogateescape"))))
            client.ack(job.id)
            leader.send(Acknowledged(job.id, time.monotonic()))
    except (EOFError, OSError):
        return False
    return True
