"""The account of a load: the jobs that producers added, the jobs that consumers received, and whether they match.

A pure function of the lines that `support.loadpod` writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from disqued.client.values import JobId
from disqued.testing.account import JobAccount

ONCE: Final = "once"
"""The kind of at-most-once jobs."""


@dataclass
class Account(JobAccount[str]):
    """Jobs by key. A key identifies an ADDJOB call, which the client repeats if the connection breaks."""

    kinds: dict[str, str] = field(default_factory=dict)
    """Kind of each added job, by key."""
    job_ids: dict[str, str] = field(default_factory=dict)
    """IDs of the added jobs, by key."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Error of each ADDJOB that failed, by key; the job may exist."""
    keys: dict[str, str] = field(default_factory=dict)
    """Keys of delivered jobs, by ID."""
    deliveries: Counter[str] = field(default_factory=Counter)
    """Number of deliveries, by job ID."""
    taken: dict[str, str] = field(default_factory=dict)
    """Keys of jobs that were delivered and deliberately not acknowledged, by ID."""
    milliseconds: list[int] = field(default_factory=list)
    """Duration of each successful ADDJOB, in ms."""
    failed: list[str] = field(default_factory=list)
    """Failed calls of consumers."""

    def read(self, lines: Iterable[str]) -> None:
        """Add the records of a log."""
        for line in lines:
            match line.split(" "):
                case ["add", kind, took_ms, *pairs]:
                    for key, job_id in zip(pairs[::2], pairs[1::2], strict=True):
                        self.add(key)
                        self.kinds[key] = kind
                        self.job_ids[key] = job_id
                        self.milliseconds.append(int(took_ms))
                case ["unknown", key, kind, *error]:
                    self.attempted.add(key)
                    self.unknown[key] = f"{kind} {' '.join(error)}"
                case ["got", *pairs]:
                    for job_id, key in zip(pairs[::2], pairs[1::2], strict=True):
                        self.delivered[key] += 1
                        self.deliveries[job_id] += 1
                        self.keys[job_id] = key
                case ["took", *pairs]:
                    self.taken |= dict(zip(pairs[::2], pairs[1::2], strict=True))
                case ["failed", *what]:
                    self.failed.append(" ".join(what))

    @property
    def lost(self) -> set[str]:
        """Jobs that were added, must be delivered at least once, and were never delivered."""
        return {key for key in self.undelivered if self.kinds[key] != ONCE}

    @property
    def lost_once(self) -> set[str]:
        """At-most-once jobs that were added and never delivered."""
        return self.undelivered - self.lost

    @property
    def twice_once(self) -> set[str]:
        """At-most-once jobs that were delivered more than once."""
        again = (job_id for job_id, count in self.deliveries.items() if count > 1)
        return {self.keys[job_id] for job_id in again if JobId(job_id).at_most_once}

    @property
    def duplicates(self) -> int:
        """Deliveries beyond the first one of each job ID."""
        return self.deliveries.total() - len(self.deliveries)

    @property
    def repeated(self) -> int:
        """Additional jobs with the same key: the client repeated an ADDJOB whose reply was lost."""
        return len(self.keys) - len(self.delivered)

    @property
    def slowest_ms(self) -> int:
        """The slowest reply."""
        return max(self.milliseconds, default=0)

    def percentile_ms(self, share: float) -> int:
        """The time within which this share of the replies arrived."""
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0

    def __str__(self) -> str:
        return (
            f"{super().__str__()}, repeated {self.repeated}, once: lost {len(self.lost_once)}, "
            f"twice {len(self.twice_once)}, 99 % within {self.percentile_ms(0.99)} ms, slowest {self.slowest_ms} ms, "
            f"failed calls {len(self.failed)}"
        )

    def check(self, at_least: int, *, once_may_be_lost: bool = False, calls_may_fail: bool = False) -> None:
        """Assert that no job is lost or unexpected, at-most-once jobs come once, and enough were added.

        With `once_may_be_lost`, a node was killed, and at-most-once jobs with it, as documented. With `calls_may_fail`,
        the cluster was unreachable for longer than clients retry.
        """
        assert not self.lost, f"{self}: lost {sorted(self.lost)[:20]}"
        assert not self.unexpected, f"{self}: unexpected {sorted(self.unexpected)[:20]}"
        assert not self.twice_once, f"{self}: twice {sorted(self.twice_once)[:20]}"
        lost_once = {key: self.job_ids[key] for key in sorted(self.lost_once)[:20]}
        assert once_may_be_lost or not lost_once, f"{self}: lost {lost_once}"
        assert calls_may_fail or not self.failed, f"{self}: {self.failed[:5]}"
        assert calls_may_fail or not self.unknown, f"{self}: {list(self.unknown.items())[:5]}"
        assert len(self.added) >= at_least, str(self)
