"""The objects that a cluster is made of, as manifests, and whether what is there is what they say.

One module for each object. Volume claims are not among them: the StatefulSet makes them. All belongs to the resource
and goes with it, and pods run where Pod Security is restricted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from disque_operator.apivalues import Json
from disque_operator.directives import same, settings
from disque_operator.resources.comparing import differs
from disque_operator.resources.config_map import config_map
from disque_operator.resources.disruption_budget import disruption_budget
from disque_operator.resources.network_policy import network_policy
from disque_operator.resources.secret import secret
from disque_operator.resources.service_account import service_account
from disque_operator.resources.services import client_service, members_service
from disque_operator.resources.stateful_set import stateful_set
from disque_operator.spec import Spec
from disque_operator.wanted import Wanted

__all__ = ["desired", "differs", "same", "settings", "surplus"]

_DISPENSABLE: Final = ("PodDisruptionBudget", "NetworkPolicy")


def desired(spec: Spec, wanted: Wanted) -> tuple[Json, ...]:
    """All objects there should be, in the order in which they are made: the StatefulSet needs the others."""
    manifests = (
        service_account(spec),
        config_map(spec),
        secret(spec, wanted.passwords),
        members_service(spec),
        client_service(spec),
        network_policy(spec, wanted.operator_namespace),
        disruption_budget(spec, wanted.replicas),
        stateful_set(spec, wanted),
    )
    return tuple(manifest for manifest in manifests if manifest is not None)


def surplus(manifests: tuple[Json, ...], children: Mapping[tuple[str, str], Json]) -> tuple[Json, ...]:
    """Live objects of the resource that are not wanted any more, of the kinds that it can do without."""
    kept = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}
    (owner,) = manifests[0]["metadata"]["ownerReferences"]
    return tuple(
        live
        for (kind, name), live in children.items()
        if kind in _DISPENSABLE and (kind, name) not in kept and _has_owner(live, owner["uid"])
    )


def _has_owner(live: Json, uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in live["metadata"].get("ownerReferences") or ())
