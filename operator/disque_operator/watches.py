"""What watches tell: which cluster an object belongs to, and whether the watches still tell anything.

A watch can die without a word (kopf 1145, 1276). So all clusters are listed now and then: a version that the watch
should have told of, and has not by the second list after that, means that it is deaf, which the liveness probe says.
One list would not do: a connection that broke without a word is given up after a minute of silence only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.queue import Key

DEAF_LISTS: Final = 3


@dataclass(frozen=True)
class _Untold:
    name: str
    version: str
    lists: int
    """How many lists had it."""


class WatchTracker:
    """Takes events, and lists to compare them with. `wake` has a cluster looked at soon, `changed` when it is due."""

    def __init__(self, wake: Callable[[Key], None], changed: Callable[[Key], None]) -> None:
        self._wake = wake
        self._changed = changed
        self._seen: dict[str, str] = {}
        """The version of each cluster that was told last, by UID,"""
        self._asked: dict[str, tuple[Any, ...]] = {}
        """and what people asked for in it, which a change of the status leaves as it is."""
        self._untold: dict[str, _Untold] = {}
        """Versions that lists had and nobody told of, by UID."""

    @property
    def missed(self) -> str:
        """What was never told of; empty while all is well."""
        never = [untold.name for untold in self._untold.values() if untold.lists >= DEAF_LISTS]
        return f"no watch told of DisqueCluster {never[0]}" if never else ""

    def cluster(self, body: Json, *, is_gone: bool) -> None:
        """A watch told of a cluster."""
        metadata = body["metadata"]
        key, uid = (metadata["namespace"], metadata["name"]), metadata["uid"]
        self._changed(key)
        asked = _asked(metadata)
        if is_gone or self._asked.get(uid) != asked:
            self._wake(key)
        self._seen[uid], self._asked[uid] = metadata["resourceVersion"], asked
        self._untold.pop(uid, None)
        if is_gone:
            self._forget(uid)

    def child(self, body: Json) -> None:
        """A watch told of an object of a cluster."""
        metadata = body["metadata"]
        cluster = (metadata.get("labels") or {}).get(names.CLUSTER_LABEL)
        if cluster:
            key = (metadata["namespace"], cluster)
            self._changed(key)
            self._wake(key)

    def listed(self, clusters: Iterable[Json]) -> None:
        """All clusters, as the API server has them."""
        versions = {item["metadata"]["uid"]: item["metadata"] for item in clusters}
        for uid, metadata in versions.items():
            if self._seen.get(uid) != metadata["resourceVersion"]:
                self._miss(uid, metadata)
        for uid in {*self._seen, *self._untold} - versions.keys():
            self._forget(uid)

    def _miss(self, uid: str, metadata: Json) -> None:
        key, version = (metadata["namespace"], metadata["name"]), metadata["resourceVersion"]
        self._changed(key)
        self._wake(key)
        before = self._untold.get(uid)
        lists = before.lists + 1 if before is not None and before.version == version else 1
        self._untold[uid] = _Untold("/".join(key), version, lists)

    def _forget(self, uid: str) -> None:
        self._seen.pop(uid, None)
        self._asked.pop(uid, None)
        self._untold.pop(uid, None)


def _asked(metadata: Json) -> tuple[Any, ...]:
    return metadata.get("generation"), metadata.get("annotations"), metadata.get("deletionTimestamp")
