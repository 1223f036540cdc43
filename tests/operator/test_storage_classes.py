"""StorageClasses are read only for claims that are too small. The operator can do without the right to read them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from disque_operator import observe
from disque_operator.apivalues import Json
from disque_operator.kube import KubeError
from disque_operator.observed import Platform
from disque_operator.spec import Storage
from support.kubeworld.scenario import a_spec


class Cluster:
    """The requests of `read_objects`: one claim, and its StorageClass or an HTTP status."""

    def __init__(self, storage_class: Json | int | None) -> None:
        self.storage_class = storage_class
        self.asked: list[str] = []

    async def list(self, kind: str, _namespace: str | None, **_selectors: str) -> list[Json]:
        if kind != "PersistentVolumeClaim":
            return []
        spec = {"resources": {"requests": {"storage": "2Gi"}}, "storageClassName": "fast"}
        return [{"apiVersion": "v1", "kind": kind, "metadata": {"name": "data-mail-0", "uid": "u"}, "spec": spec}]

    async def get(self, kind: str, namespace: str | None, name: str) -> Json | None:
        if kind != "StorageClass":
            return None
        assert namespace is None, "it is in no namespace"
        self.asked.append(name)
        if isinstance(self.storage_class, int):
            raise KubeError(self.storage_class, "refused")
        return self.storage_class


def expandable(storage_class: Json | int | None, size: str = "4Gi") -> tuple[dict[str, bool], list[str]]:
    cluster: Any = Cluster(storage_class)
    found = asyncio.run(observe.read_objects(cluster, a_spec(storage=Storage(size=size)), Platform()))
    return dict(found.expandable), cluster.asked


@pytest.mark.parametrize(
    ("storage_class", "expected"),
    [
        ({"allowVolumeExpansion": True}, {"fast": True}),
        ({"allowVolumeExpansion": False}, {"fast": False}),
        ({}, {"fast": False}),
        (None, {"fast": False}),
        (403, {}),
    ],
)
def test_class_of_a_claim_that_is_too_small_is_read(
    storage_class: Json | int | None, expected: dict[str, bool]
) -> None:
    assert expandable(storage_class) == (expected, ["fast"])


def test_class_is_not_read_while_claims_have_their_size() -> None:
    assert expandable({}, size="2Gi") == ({}, [])


def test_other_errors_fail_the_round() -> None:
    with pytest.raises(KubeError):
        expandable(500)
