"""Times as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(now_s: float) -> str:
    """A time in seconds since 1970, as in `2026-01-31T12:00:00Z`."""
    return datetime.fromtimestamp(int(now_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    """What `timestamp` made; raises ValueError for anything else."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z").timestamp()
