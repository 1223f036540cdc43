"""What kopf remembers about resources: in memory, where it can neither become stale nor stay behind.

kopf compares each version of a resource with the one it handled last, to tell whether a user has changed something. By
default it keeps that, and the progress of its handlers, in annotations.
"""

from __future__ import annotations

from typing import Any

import kopf


class LastHandled(kopf.DiffBaseStorage):
    """Keeps the last handled version in memory. After a start, each resource therefore counts as created."""

    def __init__(self) -> None:
        super().__init__()
        self._essences: dict[str, kopf.BodyEssence] = {}
        """Versions by UID."""

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        """Return the version that was handled last."""
        return self._essences.get(str(body.metadata.uid))

    def store(self, *, body: kopf.Body, essence: kopf.BodyEssence, **_: Any) -> None:
        """Remember a handled version, and write nothing."""
        self._essences[str(body.metadata.uid)] = essence

    def forget(self, uid: str) -> None:
        """Forget a deleted resource."""
        self._essences.pop(uid, None)


class NoProgress(kopf.ProgressStorage):
    """Keeps no progress: handlers only wake the queue, so they finish at once and never fail."""

    def fetch(self, **_: Any) -> None:
        """Return nothing."""

    def store(self, **_: Any) -> None:
        """Write nothing."""

    def purge(self, **_: Any) -> None:
        """Write nothing."""

    def touch(self, **_: Any) -> None:
        """Write nothing."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Return what was given: it contains no progress."""
        return essence
