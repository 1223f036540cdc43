"""One job of which other nodes were asked to keep a copy, because it has too few."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disqued.core.jobs.job import NOBODY, Job, NodeIds


@mypyc_attr(acyclic=True)
class Rebuild:
    """What was asked, and what was confirmed."""

    def __init__(self, job: Job, reason: i64, size_bytes: i64) -> None:
        self.job = job
        self.reason: i64 = reason
        """The number of a reason (`counters`)."""
        self.unconfirmed: NodeIds = NOBODY
        """The nodes that were asked and have not confirmed."""
        self.size_bytes: i64 = size_bytes
        self.asked_ms: i64 = 0
        """When nodes were last asked."""
        self.rounds: i64 = 0
        """How often nodes were asked."""
        self.aside: bool = False
        """Whether it does not count for the window: no node takes it."""
