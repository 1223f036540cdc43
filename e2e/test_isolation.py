"""Clusters beside each other stay apart."""

from __future__ import annotations

from collections.abc import Callable

from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Json, Kube
from e2e.support.settings import Settings


def test_clusters_in_one_namespace_and_of_one_name_stay_apart(
    namespaces: Callable[[], str], kube: Kube, operator: Json, settings: Settings
) -> None:
    assert operator
    here, there = namespaces(), namespaces()
    clusters = [
        DisqueCluster(kube, namespace, name, settings.image)
        for namespace, name in ((here, "shop"), (here, "depot"), (there, "shop"))
    ]
    for cluster in clusters:
        cluster.create(replicas=2)
    for cluster in clusters:
        cluster.wait_running(2)
    ids = [set(cluster.ids().values()) for cluster in clusters]
    assert len(set.union(*ids)) == 6
    assert len({cluster.password for cluster in clusters}) == 3

    one, other, far = clusters
    with one.broker(0) as broker:
        broker.call("ADDJOB", "mail", "body", 0)
    with other.broker(0) as near, far.broker(0) as distant:
        assert near.jobs() == distant.jobs() == 0
    one.delete()
    one.wait_pods(lambda pods: not pods, "one is gone")
    for cluster, members in zip(clusters[1:], ids[1:], strict=True):
        cluster.wait_running(2)
        assert set(cluster.ids().values()) == members
