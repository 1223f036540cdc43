"""Kubernetes nodes: the zone and the addresses of a node, and whether it is cordoned.

Clusters share the results, and a node is read again after some seconds, so the requests depend on the number of nodes
with brokers, not on that of clusters. The operator works without the permission: then it knows only zones that
Kubernetes copied to pods, no addresses, and no cordoned nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from disque_operator.kube import FORBIDDEN, Kube, KubeError
from disque_operator.names import ZONE_LABEL
from disque_operator.observed import Node

KEPT_S: Final = 20.0
"""How long a node is not read again, in seconds."""
FORBIDDEN_S: Final = 300.0
"""After how long the operator tries again if it is not permitted to read nodes, in seconds."""


class Nodes:
    """Reads nodes by name. `clock` is monotonic."""

    def __init__(self, kube: Kube, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._kept: dict[str, tuple[float, Node]] = {}
        self._forbidden_until_s = float("-inf")

    async def read(self, names: Iterable[str]) -> Mapping[str, Node] | None:
        """Return these nodes, without those that do not exist; None if the operator is not permitted to read them."""
        now_s = self._clock()
        if now_s < self._forbidden_until_s:
            return None
        self._kept = {name: entry for name, entry in self._kept.items() if now_s - entry[0] < KEPT_S}
        wanted = sorted(set(names))
        missing = [name for name in wanted if name not in self._kept]
        try:
            found = await asyncio.gather(*(self._kube.get("Node", None, name) for name in missing))
        except KubeError as error:
            if error.status != FORBIDDEN:
                raise
            self._forbidden_until_s = now_s + FORBIDDEN_S
            return None
        for name, item in zip(missing, found, strict=True):
            if item is not None:
                zone = (item["metadata"].get("labels") or {}).get(ZONE_LABEL, "")
                listed = (item.get("status") or {}).get("addresses") or ()
                addresses = tuple((entry["type"], entry["address"]) for entry in listed)
                self._kept[name] = (now_s, Node(zone, bool(item["spec"].get("unschedulable")), addresses))
        return {name: self._kept[name][1] for name in wanted if name in self._kept}
