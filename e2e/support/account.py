"""The account of a load: the jobs that producers added, the jobs that consumers received, and whether they match.

A pure function of the lines that `support.loadpod` writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from disqued.client.values import JobId

ONCE: Final = "once"
"""The kind of at-most-once jobs."""


@dataclass
class Account:
    """What happened to each job. A key identifies an ADDJOB call, which the client repeats if the connection breaks."""

    added: dict[str, str] = field(default_factory=dict)
    """Kind of each job whose ADDJOB replied with an ID, by key."""
    job_ids: dict[str, str] = field(default_factory=dict)
    """IDs of the added jobs, by key."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Error of each ADDJOB that failed, by key; the job may exist."""
    delivered: Counter[str] = field(default_factory=Counter)
    """Number of deliveries, by job ID."""
    keys: dict[str, str] = field(default_factory=dict)
    """Keys of delivered jobs, by ID."""
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
                        self.added[key] = kind
                        self.job_ids[key] = job_id
                        self.milliseconds.append(int(took_ms))
                case ["unknown", key, kind, *error]:
                    self.unknown[key] = f"{kind} {' '.join(error)}"
                case ["got", *pairs]:
                    for job_id, key in zip(pairs[::2], pairs[1::2], strict=True):
                        self.delivered[job_id] += 1
                        self.keys[job_id] = key
                case ["took", *pairs]:
                    self.taken |= dict(zip(pairs[::2], pairs[1::2], strict=True))
                case ["failed", *what]:
                    self.failed.append(" ".join(what))

    @property
    def lost(self) -> set[str]:
        """Keys of at-least-once jobs that were added and never delivered."""
        return {key for key, kind in self.added.items() if kind != ONCE} - set(self.keys.values())

    @property
    def lost_once(self) -> set[str]:
        """Keys of at-most-once jobs that were added and never delivered."""
        return {key for key, kind in self.added.items() if kind == ONCE} - set(self.keys.values())

    @property
    def twice_once(self) -> set[str]:
        """Keys of at-most-once jobs that were delivered more than once."""
        again = (job_id for job_id, count in self.delivered.items() if count > 1)
        return {self.keys[job_id] for job_id in again if JobId(job_id).at_most_once}

    @property
    def unexpected(self) -> set[str]:
        """Keys of jobs that were delivered but never added."""
        return set(self.keys.values()) - self.added.keys() - self.unknown.keys()

    @property
    def duplicates(self) -> int:
        """The number of repeated deliveries of the same job."""
        return self.delivered.total() - len(self.delivered)

    @property
    def repeated(self) -> int:
        """The number of extra jobs with the same key: the client repeated an ADDJOB whose reply was lost."""
        return len(self.keys) - len(set(self.keys.values()))

    @property
    def slowest_ms(self) -> int:
        """Duration of the slowest ADDJOB."""
        return max(self.milliseconds, default=0)

    def percentile_ms(self, share: float) -> int:
        """Return the duration that this share of the ADDJOB calls did not exceed."""
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0

    def __str__(self) -> str:
        return (
            f"added {len(self.added)}, unknown {len(self.unknown)}, delivered {len(self.keys)}, "
            f"duplicates {self.duplicates}, repeated {self.repeated}, lost {len(self.lost)}, "
            f"once: lost {len(self.lost_once)}, twice {len(self.twice_once)}, unexpected {len(self.unexpected)}, "
            f"99 % within {self.percentile_ms(0.99)} ms, slowest {self.slowest_ms} ms, failed calls {len(self.failed)}"
        )

    def check(self, at_least: int, *, once_may_be_lost: bool = False, calls_may_fail: bool = False) -> None:
        """Assert that no job was lost or invented, that no at-most-once job was repeated, and that enough were added.

        `once_may_be_lost`: a node was killed, so at-most-once jobs may be lost, as documented. `calls_may_fail`: the
        cluster was unreachable for longer than clients retry.
        """
        assert not self.lost, f"{self}: lost {sorted(self.lost)[:20]}"
        assert not self.unexpected, f"{self}: never added {sorted(self.unexpected)[:20]}"
        assert not self.twice_once, f"{self}: twice {sorted(self.twice_once)[:20]}"
        lost_once = {key: self.job_ids[key] for key in sorted(self.lost_once)[:20]}
        assert once_may_be_lost or not lost_once, f"{self}: lost {lost_once}"
        assert calls_may_fail or not self.failed, f"{self}: {self.failed[:5]}"
        assert calls_may_fail or not self.unknown, f"{self}: {list(self.unknown.items())[:5]}"
        assert len(self.added) >= at_least, str(self)
