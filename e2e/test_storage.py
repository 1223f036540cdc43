"""Volumes that grow while clients use the cluster, and volumes that cannot.

The drivers of small clusters make directories: they accept no expansion, although Kubernetes and the operator do. There
the test completes it as a driver does, in the volume and then in the status of the claim. Elsewhere the driver does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pytest

from disque_operator.apivalues import is_less
from e2e.support.brokers import poll
from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Json, Kube
from e2e.support.load import Load

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
DIRECTORIES = {"kubernetes.io/host-path", "rancher.io/local-path"}
"""Drivers whose volumes are directories."""
SMALL, LARGE = "64Mi", "128Mi"
GROWN_S = 180


class MakeClass(Protocol):
    """Makes a StorageClass like the default one, whose volumes can grow or not; returns its name."""

    def __call__(self, *, can_grow: bool) -> str: ...


def default_class(kube: Kube) -> Json:
    """Return the default StorageClass."""
    classes = kube.all("StorageClass")
    [default] = [item for item in classes if item["metadata"].get("annotations", {}).get(DEFAULT_CLASS) == "true"]
    return default


@pytest.fixture
def make_class(kube: Kube, namespace: str) -> Iterator[MakeClass]:
    """A StorageClass of the test, deleted after it."""
    name = f"class-{namespace}"

    def make(*, can_grow: bool) -> str:
        fields = {key: value for key, value in default_class(kube).items() if key != "metadata"}
        fields |= {"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": name}}
        kube.create(fields | {"allowVolumeExpansion": can_grow})
        return name

    yield make
    kube.delete("StorageClass", name)


def capacities(cluster: DisqueCluster) -> list[str]:
    """Return the capacity of each volume."""
    claims = cluster.kube.all("PersistentVolumeClaim", cluster.namespace)
    return [claim["status"]["capacity"]["storage"] for claim in claims]


def expand(kube: Kube, cluster: DisqueCluster) -> None:
    """Complete the expansion of all claims, if their driver makes directories."""
    if default_class(kube)["provisioner"] not in DIRECTORIES:
        return
    for claim in kube.all("PersistentVolumeClaim", cluster.namespace):
        wanted = claim["spec"]["resources"]["requests"]["storage"]
        if is_less(claim["status"]["capacity"]["storage"], wanted):
            capacity = {"capacity": {"storage": wanted}}
            kube.patch("PersistentVolume", claim["spec"]["volumeName"], "", {"spec": capacity})
            name = claim["metadata"]["name"]
            kube.patch("PersistentVolumeClaim", name, cluster.namespace, {"status": capacity}, part="status")


def test_volumes_grow_under_load_without_a_restart(
    cluster: DisqueCluster, kube: Kube, load: Load, make_class: MakeClass
) -> None:
    cluster.create(replicas=3, storage={"size": SMALL, "className": make_class(can_grow=True)})
    cluster.wait_running(3)
    uids = [cluster.uid(ordinal) for ordinal in range(3)]

    def have_grown() -> bool:
        expand(kube, cluster)
        return capacities(cluster) == [LARGE] * 3

    with load:
        cluster.patch(storage={"size": LARGE})
        resizing = cluster.wait_condition("Progressing", "True", reason="Resizing")
        assert "data-shop-0" in resizing["message"]
        poll(have_grown, "all volumes have grown", GROWN_S)
        cluster.wait_running(3)
        account = load.settle()
    account.check(at_least=100)
    assert [cluster.uid(ordinal) for ordinal in range(3)] == uids


def test_size_that_the_storage_class_cannot_provide_can_be_taken_back(
    cluster: DisqueCluster, make_class: MakeClass
) -> None:
    cluster.create(replicas=1, storage={"size": SMALL, "className": make_class(can_grow=False)})
    cluster.wait_running(1)
    cluster.patch(storage={"size": LARGE})
    cluster.wait_condition("Degraded", "True", reason="VolumeNotExpandable")
    cluster.patch(storage={"size": SMALL})
    cluster.wait_running(1)
