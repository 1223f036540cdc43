"""What producers and workers reported, added up. Pure: reports come in, figures come out.

A job may be delivered more than once and counted more than once; its ID makes it count once in every figure but the
number of deliveries. Reports of different processes come in any order: a job may be done before it is known who added
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from disqued.client import JobId
from disqued.demo.producer import Added
from disqued.demo.source import Count
from disqued.demo.worker import Acknowledged, Counted, Report, Taken
from disqued.testing.account import JobAccount


@dataclass(slots=True)
class WorkerTally:
    """One worker's part. `held` are the jobs it took and has not acknowledged."""

    name: str
    held: set[JobId] = field(default_factory=set)
    acknowledged: int = 0
    definitions: int = 0
    killed: bool = False


@dataclass(slots=True)
class NodeTally:
    """One node: who talks to it, of how many jobs it got copies, and what happened to it (`held`: jobs in memory)."""

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
        """True when it was killed and is in the cluster again."""
        return self.back_s is not None


@dataclass(slots=True)
class Tally:
    """Everything known so far of `expected` jobs; times in seconds. `node_of` finds nodes by their IDs."""

    expected: int
    nodes: list[NodeTally] = field(default_factory=list)
    node_of: dict[str, NodeTally] = field(default_factory=dict)
    workers: list[WorkerTally] = field(default_factory=list)
    jobs: JobAccount[JobId] = field(default_factory=JobAccount)
    _taken_s: dict[JobId, float] = field(default_factory=dict)
    _hold_times_s: dict[JobId, float] = field(default_factory=dict)
    _counts: dict[JobId, Count] = field(default_factory=dict)

    def added(self, report: Added) -> None:
        """Jobs were added, and nodes got copies."""
        for job_id in report.ids:
            self.jobs.add(job_id, report.at_s)
        for holders in report.holders:
            for node_id in holders:
                if node_id in self.node_of:
                    self.node_of[node_id].copies += 1

    def report(self, worker: WorkerTally, report: Report) -> None:
        """Take in what a worker says."""
        match report:
            case Taken(ids, at_s):
                self.jobs.delivered.update(ids)
                self._taken_s.update(dict.fromkeys(ids, at_s))
                worker.held.update(ids)
            case Counted(job_id, count):
                worker.definitions += count.definitions
                self._counts[job_id] = count
            case Acknowledged(job_id, at_s):
                worker.held.discard(job_id)
                worker.acknowledged += 1
                if job_id not in self.jobs.completed:
                    self.jobs.complete(job_id, at_s)
                    self._hold_times_s[job_id] = at_s - self._taken_s[job_id]

    @property
    def is_complete(self) -> bool:
        """True when every job is added and acknowledged."""
        return len(self.jobs.added) == self.expected and not self.jobs.uncompleted

    @property
    def is_well_begun(self) -> bool:
        """True when a third of the jobs is done."""
        return 3 * len(self.jobs.completed) >= self.expected

    @property
    def is_halfway(self) -> bool:
        """True when half of the jobs have been delivered."""
        return 2 * len(self.jobs.delivered) >= self.expected

    @property
    def is_nearly_over(self) -> bool:
        """True when three quarters of the jobs have been delivered."""
        return 4 * len(self.jobs.delivered) >= 3 * self.expected

    @property
    def total(self) -> Count:
        """The sum over all jobs, each counted once."""
        return sum(self._counts.values(), Count())

    @property
    def latencies_s(self) -> list[float]:
        """From adding to acknowledging, for each job done."""
        added = self.jobs.added
        return [at_s - added[job_id] for job_id, at_s in self.jobs.completed.items() if job_id in added]

    @property
    def hold_times_s(self) -> list[float]:
        """From the last delivery to the acknowledgement, for each job done."""
        return list(self._hold_times_s.values())

    @property
    def elapsed_s(self) -> float:
        """From the first job added to the last one acknowledged."""
        jobs = self.jobs
        return max(jobs.completed.values()) - min(jobs.added.values()) if jobs.completed and jobs.added else 0.0


def percentile(values: list[float], percent: float) -> float:
    """The smallest value that at least `percent` of the values do not exceed; 0 of no values."""
    ordered = sorted(values)
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)] if ordered else 0.0
