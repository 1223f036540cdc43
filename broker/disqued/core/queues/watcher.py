"""What a room keeps about a queue: the one slot of a queue for it, and what others ask of it."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr


@mypyc_attr(acyclic=True)
class QueueWatcher:
    """Wants nothing of its queue. The federation room derives its own."""

    def __init__(self) -> None:
        self.wanted: bool = False
        """Other nodes want jobs of the queue: it stays, and new jobs put it on the list `Lifecycle.wanted`."""
        self.listed: bool = False
        """On that list."""

    def import_rate(self, now_ms: i64) -> i64:  # noqa: ARG002 - for rooms that import
        """Jobs per second that come from other nodes."""
        return 0

    def sources(self, now_ms: i64) -> list[bytes]:  # noqa: ARG002 - for rooms that import
        """The IDs of the nodes that sent jobs recently."""
        return []
