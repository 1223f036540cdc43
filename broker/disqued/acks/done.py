"""Jobs that were finished recently and that this node does not have (any more).

Frames of one sender arrive in order, those of two senders do not. The acknowledgement of a job may overtake the copy
that the job's creator sent, above all on a node that was suspended for a while. Kept as a new job, the copy would be
delivered again long after the work was done, so it is kept as an acknowledged one.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

MAX_KEPT: Final = 8192
"""IDs in one of the two generations."""
SPAN_MS: Final = 30_000
"""How long a generation collects IDs; when it is over, those of the one before are forgotten."""


class RecentlyDone:
    """Remembers IDs for half a minute or longer, fewer when many come."""

    def __init__(self) -> None:
        self._recent: dict[bytes, None] = {}
        self._older: dict[bytes, None] = {}
        self._since_ms: i64 = 0

    def note(self, job_id: bytes, now_ms: i64) -> None:
        """Remember a job that is done and not here."""
        if now_ms - self._since_ms >= SPAN_MS or len(self._recent) >= MAX_KEPT:
            self._older = self._recent
            self._recent = {}
            self._since_ms = now_ms
        self._recent[job_id] = None

    def has(self, job_id: bytes) -> bool:
        """Whether the job is remembered as done."""
        return job_id in self._recent or job_id in self._older
