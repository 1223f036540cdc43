"""The objects of all clusters as watches reported them last, in kopf's indexes.

Rounds at rest read them from here, which costs no requests. They can be outdated for a moment, so nothing is changed
because of them alone: a round that has something to do reads the objects from the API server first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import kopf

from disque_operator.apivalues import Json
from disque_operator.queue import Key


def entry(body: Mapping[str, Any], kind: str) -> Json:
    """Return what an index keeps of an object. `managedFields` is half of it, and nobody reads that."""
    metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    return {**body, "kind": kind, "metadata": metadata}


class Indexes:
    """The objects by cluster. `is_gone` tells whether an object is known not to exist any more."""

    def __init__(self, is_gone: Callable[[Json], bool]) -> None:
        self._is_gone = is_gone
        self._clusters: Mapping[Key, Iterable[Json]] = {}
        self._children: Mapping[Key, Iterable[Json]] = {}

    def attach(self, clusters: kopf.Index[Key, Json], children: kopf.Index[Key, Json]) -> None:
        """Read from these indexes from now on."""
        self._clusters, self._children = clusters, children

    def cluster(self, key: Key) -> Json | None:
        """Return a cluster; None if no watch has reported it."""
        return next((body for body in self._clusters.get(key, ()) if not self._is_gone(body)), None)

    def children(self, key: Key) -> dict[tuple[str, str], Json]:
        """Return the labelled objects of a cluster by kind and name."""
        bodies = (body for body in self._children.get(key, ()) if not self._is_gone(body))
        return {(body["kind"], body["metadata"]["name"]): body for body in bodies}
