"""Zones of Kubernetes nodes, and what brokers know about them."""

from __future__ import annotations

from typing import Final, TypeAlias

from e2e.support.brokers import poll
from e2e.support.cluster import DisqueCluster

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
KNOWN_S: Final = 60

Zoned: TypeAlias = dict[str, str]
"""The zone of each Kubernetes node."""


def zone_of(cluster: DisqueCluster, zones: Zoned, pod: str) -> str:
    """Return the zone of a pod."""
    return zones[cluster.kubernetes_node(int(pod.rpartition("-")[2]))]


def wait_for_zones(cluster: DisqueCluster, zones: Zoned) -> None:
    """Wait until every broker knows how many members each zone has."""
    counts: dict[str, int] = {}
    for pod in cluster.pod_names():
        zone = zone_of(cluster, zones, pod)
        counts[zone] = counts.get(zone, 0) + 1
    expected = ",".join(f"{zone}={count}" for zone, count in sorted(counts.items()))

    def are_known() -> bool:
        with cluster.brokers() as brokers:
            return all(broker.info()["cluster_zones"] == expected for broker in brokers)

    poll(lambda: are_known() or None, f"all brokers know the zones {expected}", KNOWN_S)
