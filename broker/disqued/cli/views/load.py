"""The load of a node: samples of its queues, and rates as differences of two samples.

The age of the oldest queued job takes two more requests per queue, so only the queues on the screen are asked for it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from disqued.cli.views.client import ask_many
from disqued.cli.views.jobs import CTIME_PER_S
from disqued.cli.views.queues import stats_of
from disqued.client import Client, QueueStats
from disqued.client.replies import job_details, jobs

MAX_QUEUES = 2000
"""Maximum number of queues in a sample."""
PAGE_SIZE = 1000


@dataclass(frozen=True)
class Load:
    """A queue, and its rates since the previous sample."""

    stats: QueueStats
    in_per_s: float
    out_per_s: float
    oldest_s: float | None = None
    """Age of the oldest queued job; None if the queue is empty or was not asked."""


@dataclass(frozen=True)
class Sample:
    """All statistics at one time. `taken_s` is on the monotonic clock."""

    node: str
    taken_s: float
    info: Mapping[str, str]
    loads: tuple[Load, ...]

    @property
    def in_per_s(self) -> float:
        """Jobs queued per second, all queues together."""
        return round(sum(load.in_per_s for load in self.loads), 3)

    @property
    def out_per_s(self) -> float:
        """Jobs fetched per second, all queues together."""
        return round(sum(load.out_per_s for load in self.loads), 3)


def take_sample(client: Client, node: str, before: Sample | None = None) -> Sample:
    """Take a sample; rates are those since the sample `before`, 0 without one."""
    info = client.info()
    names = sorted(set(islice(client.qscan(page_size=PAGE_SIZE), MAX_QUEUES)))
    now_s = time.monotonic()
    known = {} if before is None else {load.stats.name: load.stats for load in before.loads}
    elapsed_s = now_s - (now_s if before is None else before.taken_s)
    loads = (_load(stats, known.get(stats.name), elapsed_s) for stats in stats_of(client, names))
    return Sample(node, now_s, info, tuple(loads))


def _load(stats: QueueStats, before: QueueStats | None, elapsed_s: float) -> Load:
    """Compute the rates of one queue. The counters of a queue younger than the previous sample began at 0."""
    if elapsed_s <= 0 or (before is None and stats.age_s > elapsed_s):
        return Load(stats, 0.0, 0.0)
    jobs_in, jobs_out = (0, 0) if before is None else (before.jobs_in, before.jobs_out)
    return Load(
        stats,
        round(max(0, stats.jobs_in - jobs_in) / elapsed_s, 3),
        round(max(0, stats.jobs_out - jobs_out) / elapsed_s, 3),
    )


def with_oldest(client: Client, loads: Sequence[Load]) -> list[Load]:
    """Add the age of the oldest queued job to each row."""
    asked = [load for load in loads if load.stats.length]
    first = [jobs(reply) for reply in ask_many(client, [("QPEEK", load.stats.name, 1) for load in asked])]
    ids = [found[0].id for found in first if found]
    now_s = time.time()
    ages_s: dict[str, float] = {}
    for reply in ask_many(client, [("SHOW", job_id) for job_id in ids]):
        if reply is not None and (job := job_details(reply)).queue is not None:
            ages_s[job.queue] = round(max(0.0, now_s - job.ctime / CTIME_PER_S), 3)
    return [replace(load, oldest_s=ages_s.get(load.stats.name)) for load in loads]
