"""Exposure: a service for each member, by which clients outside of Kubernetes reach it.

| observed | decision |
|---|---|
| a member, or one that will be created or comes back from hibernation, without its service | create it |
| a service that differs from the spec | apply it |
| a service of a member that is gone, or `spec.exposure` is removed | delete it |

Only services with the names of members are deleted. A member that is drained keeps its service until its pod is gone.
The services come last in the plan: a port that is taken, or a quota for load balancers, may refuse them for long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from disque_operator import names
from disque_operator.actions import DeleteChild
from disque_operator.apivalues import Json
from disque_operator.decisions import Decision
from disque_operator.members import ClusterView
from disque_operator.resources import external_service, has_owner


@dataclass(frozen=True)
class ExposureDecision:
    """The desired services, and which ones to delete."""

    manifests: tuple[Json, ...]
    decision: Decision


def decide(view: ClusterView, members: int) -> ExposureDecision:
    """Decide about the services. `members` is the number of members that run, or that come back from hibernation."""
    exposure = view.spec.exposure
    if exposure is None:
        return ExposureDecision((), Decision(tuple(_of_nobody(view, set()))))
    ordinals = {*range(members), *view.by_ordinal}
    manifests = tuple(external_service(view.spec, exposure, ordinal) for ordinal in sorted(ordinals))
    return ExposureDecision(manifests, Decision(tuple(_of_nobody(view, ordinals))))


def _of_nobody(view: ClusterView, ordinals: set[int]) -> Iterator[DeleteChild]:
    for (kind, name), live in view.observed.children.items():
        ordinal = names.external_ordinal(view.spec.name, name) if kind == "Service" else None
        is_left = ordinal is not None and ordinal not in ordinals and has_owner(live, view.spec.uid)
        if is_left and "deletionTimestamp" not in live["metadata"]:  # a load balancer is removed before its service
            yield DeleteChild(kind, name, live["metadata"]["uid"], "it is no longer desired")
