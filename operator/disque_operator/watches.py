"""What watches have reported, and whether they still work.

A watch can stop without an error (kopf issues 1145 and 1276). Therefore the versions of all objects are listed
periodically and compared with those that the watches reported last. An object that differs is read by a round at once.
If its watch reports nothing about it until the third list that differs, whether or not it has changed again, the
liveness probe fails. One list is not enough, because a broken connection is closed only after a minute without traffic.

After a watch was interrupted for long, kopf lists its kind again, and does not notice which objects were deleted
meanwhile. Two lists without an object remove it from what is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.queue import Key

MISSED_LISTS: Final = 3
GONE_LISTS: Final = 2


@dataclass
class _Reported:
    """An object. `lists` counts the lists that differ from what its watch reported, since it last reported it."""

    kind: str
    name: str
    cluster: Key
    version: str = ""
    """The version that the watch reported last; empty if it did not report the object."""
    lists: int = 0


class WatchTracker:
    """Compares watches with lists. `stale` is called with each cluster of which a watch may have missed a change."""

    def __init__(self, stale: Callable[[Key], None]) -> None:
        self._stale = stale
        self._objects: dict[str, _Reported] = {}
        """Objects by UID."""
        self._gone: set[str] = set()
        """UIDs of objects that no longer exist, although no watch reported their deletion."""

    @property
    def missed(self) -> str:
        """Return which change the watches missed; empty if none."""
        lost = (known for known in self._objects.values() if known.lists >= MISSED_LISTS)
        return next((f"no watch reported {known.kind} {known.name}" for known in lost), "")

    def is_gone(self, body: Json) -> bool:
        """Return whether an object no longer exists although a watch has reported it last as existing."""
        return body["metadata"]["uid"] in self._gone

    def reported(self, kind: str, body: Json, *, is_gone: bool) -> None:
        """Handle a watch event."""
        uid = body["metadata"]["uid"]
        self._gone.discard(uid)
        self._objects.pop(uid, None)
        if not is_gone:
            self._objects[uid] = _reported(kind, body, body["metadata"]["resourceVersion"])

    def listed(self, kind: str, items: Iterable[Json]) -> None:
        """Handle a list of all objects of a kind."""
        present = {item["metadata"]["uid"]: item for item in items}
        for uid, item in present.items():
            self._gone.discard(uid)
            known = self._objects.setdefault(uid, _reported(kind, item, ""))
            if known.version == item["metadata"]["resourceVersion"]:
                known.lists = 0
            else:
                self._differs(known)
        for uid in [uid for uid, known in self._objects.items() if known.kind == kind and uid not in present]:
            known = self._objects[uid]
            self._differs(known)
            if known.lists >= GONE_LISTS or not known.version:
                del self._objects[uid]
                self._gone.add(uid)

    def _differs(self, known: _Reported) -> None:
        known.lists += 1
        self._stale(known.cluster)


def _reported(kind: str, body: Json, version: str) -> _Reported:
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    return _Reported(kind, f"{namespace}/{name}", cluster_of(kind, body), version)


def cluster_of(kind: str, body: Json) -> Key:
    """Return the cluster that an object belongs to."""
    metadata = body["metadata"]
    if kind == names.KIND:
        return metadata["namespace"], metadata["name"]
    if kind in names.DECLARED:
        return metadata["namespace"], names.cluster_of(body)
    return metadata["namespace"], (metadata.get("labels") or {}).get(names.CLUSTER_LABEL, "")
