"""Aggregates the messages of producers and workers. It does no I/O.

A job may be delivered and counted more than once. It counts once, by its ID, in every figure except the number of
deliveries. Messages of different processes arrive in any order: a job may be done before the message that it was added.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from disqued.client import JobId
from disqued.demo.producer import Added
from disqued.demo.source import Count
from disqued.demo.worker import Acknowledged, Counted, Fetched, WorkerMessage
from disqued.testing.account import JobAccount


@dataclass(slots=True)
class WorkerReport:
    """One worker. `held` are the jobs that it fetched and has not acknowledged."""

    name: str
    held: set[JobId] = field(default_factory=set)
    acknowledged: int = 0
    definitions: int = 0
    killed: bool = False


@dataclass(slots=True)
class NodeReport:
    """One node. `part` names its clients, `copies` counts jobs it got, `held` is its jobs when it was killed."""

    name: str
    address: str
    part: str
    copies: int = 0
    held: int = 0
    killed_s: float | None = None
    started_s: float | None = None
    back_s: float | None = None

    @property
    def is_back(self) -> bool:
        """Whether it was killed and has rejoined the cluster."""
        return self.back_s is not None


@dataclass(slots=True)
class Report:
    """What is known about `expected` jobs. Times are in seconds. `node_of` maps node IDs to nodes."""

    expected: int
    nodes: list[NodeReport] = field(default_factory=list)
    node_of: dict[str, NodeReport] = field(default_factory=dict)
    workers: list[WorkerReport] = field(default_factory=list)
    jobs: JobAccount[JobId] = field(default_factory=JobAccount)
    _fetched_s: dict[JobId, float] = field(default_factory=dict)
    _hold_times_s: dict[JobId, float] = field(default_factory=dict)
    _counts: dict[JobId, Count] = field(default_factory=dict)

    def added(self, message: Added) -> None:
        """Record that jobs were added and nodes got copies."""
        for job_id in message.ids:
            self.jobs.add(job_id, message.at_s)
        for holders in message.holders:
            for node_id in holders:
                if node_id in self.node_of:
                    self.node_of[node_id].copies += 1

    def record(self, worker: WorkerReport, message: WorkerMessage) -> None:
        """Record a message of a worker."""
        match message:
            case Fetched(ids, at_s):
                self.jobs.delivered.update(ids)
                self._fetched_s.update(dict.fromkeys(ids, at_s))
                worker.held.update(ids)
            case Counted(job_id, count):
                worker.definitions += count.definitions
                self._counts[job_id] = count
            case Acknowledged(job_id, at_s):
                worker.held.discard(job_id)
                worker.acknowledged += 1
                if job_id not in self.jobs.completed:
                    self.jobs.complete(job_id, at_s)
                    self._hold_times_s[job_id] = at_s - self._fetched_s[job_id]

    @property
    def is_complete(self) -> bool:
        """Whether every job is added and acknowledged."""
        return len(self.jobs.added) == self.expected and not self.jobs.uncompleted

    @property
    def is_third_done(self) -> bool:
        """Whether a third of the jobs is done."""
        return 3 * len(self.jobs.completed) >= self.expected

    @property
    def is_halfway(self) -> bool:
        """Whether half of the jobs have been delivered."""
        return 2 * len(self.jobs.delivered) >= self.expected

    @property
    def is_nearly_over(self) -> bool:
        """Whether three quarters of the jobs have been delivered."""
        return 4 * len(self.jobs.delivered) >= 3 * self.expected

    @property
    def total(self) -> Count:
        """The sum over all jobs. Each counts once."""
        return sum(self._counts.values(), Count())

    @property
    def latencies_s(self) -> list[float]:
        """The times from adding to acknowledging, one for each job that is done."""
        added = self.jobs.added
        return [at_s - added[job_id] for job_id, at_s in self.jobs.completed.items() if job_id in added]

    @property
    def hold_times_s(self) -> list[float]:
        """The times from the last delivery to the acknowledgement, one for each job that is done."""
        return list(self._hold_times_s.values())

    @property
    def elapsed_s(self) -> float:
        """The time from the first added job to the last acknowledgement."""
        jobs = self.jobs
        return max(jobs.completed.values()) - min(jobs.added.values()) if jobs.completed and jobs.added else 0.0


def percentile(values: list[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of the values do not exceed, or 0 if there are no values."""
    ordered = sorted(values)
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)] if ordered else 0.0
