"""What watches tell: which cluster an object belongs to, and whether the watches still tell anything.

A watch can die without a word (kopf 1145, 1276). So all clusters are listed now and then: a version that the watch
should have told of and has not by the next list means that it is deaf, which the liveness probe says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from disque_operator import names
from disque_operator.queue import Key
from disque_operator.spec import Json


class Watching:
    """Takes events, and lists to compare them with. `wake` has a cluster looked at soon, `changed` when it is due."""

    def __init__(self, wake: Callable[[Key], None], changed: Callable[[Key], None]) -> None:
        self._wake = wake
        self._changed = changed
        self._heard: dict[str, str] = {}
        """The version of each cluster that was told last, by UID,"""
        self._asked: dict[str, tuple[Any, ...]] = {}
        """and what people asked for in it, which a change of the status leaves as it is."""
        self._untold: dict[str, str] = {}
        """Versions that the last list had and nobody had told of."""
        self.deaf = ""
        """What was never told of; empty while all is well."""

    def cluster(self, body: Json, *, is_gone: bool) -> None:
        """A watch told of a cluster."""
        metadata = body["metadata"]
        key, uid = (metadata["namespace"], metadata["name"]), metadata["uid"]
        self._changed(key)
        asked = _asked(metadata)
        if is_gone or self._asked.get(uid) != asked:
            self._wake(key)
        self._heard[uid], self._asked[uid] = metadata["resourceVersion"], asked
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
        versions = {item["metadata"]["uid"]: item for item in clusters}
        untold = {
            uid: item["metadata"]["resourceVersion"]
            for uid, item in versions.items()
            if self._heard.get(uid) != item["metadata"]["resourceVersion"]
        }
        for uid in untold:
            key = (versions[uid]["metadata"]["namespace"], versions[uid]["metadata"]["name"])
            self._changed(key)
            self._wake(key)
        never = [uid for uid, version in untold.items() if self._untold.get(uid) == version]
        self.deaf = f"no watch told of DisqueCluster {_name(versions[never[0]])}" if never else ""
        self._untold = untold
        for uid in [uid for uid in self._heard if uid not in versions]:
            self._forget(uid)

    def _forget(self, uid: str) -> None:
        self._heard.pop(uid, None)
        self._asked.pop(uid, None)
        self._untold.pop(uid, None)


def _asked(metadata: Json) -> tuple[Any, ...]:
    return metadata.get("generation"), metadata.get("annotations"), metadata.get("deletionTimestamp")


def _name(cluster: Json) -> str:
    return f"{cluster['metadata']['namespace']}/{cluster['metadata']['name']}"
