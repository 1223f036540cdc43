"""What the workers reported, added up. Pure: reports come in, figures come out.

A job may be delivered more than once and counted more than once; its ID makes it count once in every figure but the
number of deliveries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from disqued.client import JobId
from disqued.demo.source import Count
from disqued.demo.worker import Acknowledged, Counted, Report, Taken


@dataclass(slots=True)
class WorkerTally:
    """One worker's part. `held` are the jobs it took and has not acknowledged."""

    name: str
    held: set[JobId] = field(default_factory=set)
    acknowledged: int = 0
    definitions: int = 0
    killed: bool = False


@dataclass(slots=True)
class Tally:
    """Everything known so far; times in seconds."""

    workers: list[WorkerTally]
    added_s: dict[JobId, float] = field(default_factory=dict)
    acknowledged_s: dict[JobId, float] = field(default_factory=dict)
    latencies_s: list[float] = field(default_factory=list)
    hold_times_s: list[float] = field(default_factory=list)
    _taken_s: dict[JobId, float] = field(default_factory=dict)
    _counts: dict[JobId, Count] = field(default_factory=dict)
    _deliveries: int = 0

    def added(self, ids: Iterable[JobId], at_s: float) -> None:
        """Jobs were added at that time."""
        self.added_s.update(dict.fromkeys(ids, at_s))

    def report(self, worker: WorkerTally, report: Report) -> None:
        """Take in what a worker says."""
        match report:
            case Taken(ids, at_s):
                self._deliveries += len(ids)
                self._taken_s.update(dict.fromkeys(ids, at_s))
                worker.held.update(ids)
            case Counted(job_id, count):
                worker.definitions += count.definitions
                self._counts[job_id] = count
            case Acknowledged(job_id, at_s):
                worker.held.discard(job_id)
                worker.acknowledged += 1
                self._acknowledged(job_id, at_s)

    def _acknowledged(self, job_id: JobId, at_s: float) -> None:
        if job_id not in self.acknowledged_s:
            self.acknowledged_s[job_id] = at_s
            self.latencies_s.append(at_s - self.added_s[job_id])
            self.hold_times_s.append(at_s - self._taken_s[job_id])

    @property
    def is_complete(self) -> bool:
        """True when every job is acknowledged."""
        return len(self.acknowledged_s) == len(self.added_s)

    @property
    def is_halfway(self) -> bool:
        """True when half of the jobs have been delivered."""
        return 2 * len(self._taken_s) >= len(self.added_s)

    @property
    def redeliveries(self) -> int:
        """Deliveries beyond the first one of each job."""
        return self._deliveries - len(self._taken_s)

    @property
    def total(self) -> Count:
        """The sum over all jobs, each counted once."""
        return sum(self._counts.values(), Count())

    @property
    def elapsed_s(self) -> float:
        """From the first job added to the last one acknowledged."""
        if not self.acknowledged_s:
            return 0.0
        return max(self.acknowledged_s.values()) - min(self.added_s.values())


def percentile(values: list[float], percent: float) -> float:
    """The smallest value that at least `percent` of the values do not exceed; 0 of no values."""
    ordered = sorted(values)
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)] if ordered else 0.0
