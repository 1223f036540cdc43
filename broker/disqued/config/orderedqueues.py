"""The directives about ordered queues."""

from __future__ import annotations

from typing import Any, Final

from disqued.config.kinds import Choice, Size
from disqued.config.option import Option

ORDERED: Final[tuple[Option[Any], ...]] = (
    Option(
        "ordered-fsync",
        Choice(("always", "everysec")),
        "always",
        "persistence",
        "When the log of ordered queues is synced. `always`: before replies; `everysec`: once a second, and a loss of "
        "power at a majority of the replicas then loses jobs that were accepted.",
        added=True,
    ),
    Option(
        "ordered-cache",
        Size(),
        32 << 20,
        "memory",
        "Memory for recent entries of ordered queues. Jobs that are not in it are read from the disk when they are "
        "delivered.",
        added=True,
    ),
)
