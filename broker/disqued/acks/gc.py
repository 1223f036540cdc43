"""Garbage collection of acknowledged jobs: one is forgotten when every node that may have it knows.

While this node is the only holder that is at once. (Asking the others by SETACK comes with the cluster.)
"""

from __future__ import annotations

from disqued.core.job import Job
from disqued.core.lifecycle import Lifecycle


def collect(lifecycle: Lifecycle, job: Job) -> None:
    """Forget an acknowledged job if nobody else may have it."""
    if job.delivered is None:
        lifecycle.drop(job)
