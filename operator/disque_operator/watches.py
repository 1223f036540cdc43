"""Watch events: which cluster an object belongs to, and whether the watches still work.

A watch can stop without an error (kopf issues 1145 and 1276). Therefore all clusters are listed periodically. If a
list has a version that the watch does not report before the second list after it, the liveness probe fails. One list is
not enough, because a broken connection is closed only after a minute without traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.queue import Key

MISSED_LISTS: Final = 3


@dataclass(frozen=True)
class _Unreported:
    name: str
    version: str
    lists: int
    """How many lists have contained it."""


class WatchTracker:
    """Handles watch events and lists. `wake` schedules a round, `changed` makes the next round read objects again."""

    def __init__(self, wake: Callable[[Key], None], changed: Callable[[Key], None]) -> None:
        self._wake = wake
        self._changed = changed
        self._seen: dict[str, str] = {}
        """The version of each cluster that was reported last, by UID."""
        self._user_state: dict[str, tuple[Any, ...]] = {}
        """The parts of each cluster that users change, by UID. Writes of the status leave them unchanged."""
        self._unreported: dict[str, _Unreported] = {}
        """Versions that lists contained and no watch reported, by UID."""

    @property
    def missed(self) -> str:
        """Return which change the watches missed; empty if none."""
        lost = [unreported.name for unreported in self._unreported.values() if unreported.lists >= MISSED_LISTS]
        return f"no watch reported DisqueCluster {lost[0]}" if lost else ""

    def cluster(self, body: Json, *, is_gone: bool) -> None:
        """Handle a watch event of a cluster."""
        metadata = body["metadata"]
        key, uid = (metadata["namespace"], metadata["name"]), metadata["uid"]
        self._changed(key)
        user_state = _user_state(metadata)
        if is_gone or self._user_state.get(uid) != user_state:
            self._wake(key)
        self._seen[uid], self._user_state[uid] = metadata["resourceVersion"], user_state
        self._unreported.pop(uid, None)
        if is_gone:
            self._forget(uid)

    def child(self, body: Json) -> None:
        """Handle a watch event of an object of a cluster."""
        metadata = body["metadata"]
        cluster = (metadata.get("labels") or {}).get(names.CLUSTER_LABEL)
        if cluster:
            key = (metadata["namespace"], cluster)
            self._changed(key)
            self._wake(key)

    def listed(self, clusters: Iterable[Json]) -> None:
        """Handle a list of all clusters."""
        versions = {item["metadata"]["uid"]: item["metadata"] for item in clusters}
        for uid, metadata in versions.items():
            if self._seen.get(uid) != metadata["resourceVersion"]:
                self._miss(uid, metadata)
        for uid in {*self._seen, *self._unreported} - versions.keys():
            self._forget(uid)

    def _miss(self, uid: str, metadata: Json) -> None:
        key, version = (metadata["namespace"], metadata["name"]), metadata["resourceVersion"]
        self._changed(key)
        self._wake(key)
        before = self._unreported.get(uid)
        lists = before.lists + 1 if before is not None and before.version == version else 1
        self._unreported[uid] = _Unreported("/".join(key), version, lists)

    def _forget(self, uid: str) -> None:
        self._seen.pop(uid, None)
        self._user_state.pop(uid, None)
        self._unreported.pop(uid, None)


def _user_state(metadata: Json) -> tuple[Any, ...]:
    return metadata.get("generation"), metadata.get("annotations"), metadata.get("deletionTimestamp")
