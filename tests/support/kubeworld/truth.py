"""Whether a status is true: no status of the present spec reports a change as complete before the world matches it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from disque_operator.apivalues import Json, condition_of
from disque_operator.directives import restart_hash
from disque_operator.names import RESTART_HASH
from disque_operator.resources import same, settings
from disque_operator.spec import Spec
from support.kubeworld.services import external_directive
from support.kubeworld.world import World

_REFUSALS = frozenset({"BelowMinimum", "NotEnoughMembers", "Waiting"})
"""Reasons of a drain that does not start, which the user reads in the condition Draining."""
_WAITS = frozenset({"WindowClosed", "NotHealthy", "OtherCluster", "RolloutInProgress"})
"""Reasons of an update that the operator brings and that does not start yet, which is no change of the spec."""


def false_claims(status: Json, spec: Spec, missing: str) -> list[str]:
    """Return the conditions of a status that are wrong. `missing` is the first field that is not in effect."""
    if not missing or status["observedGeneration"] != spec.generation or _is_explained(status):
        return []
    settled = condition_of(status, "Progressing")["status"] == condition_of(status, "Draining")["status"] == "False"
    ready = condition_of(status, "Ready")["status"] == "True"
    return [
        *([f"nothing is in progress, but {missing}"] if settled else []),
        *([f"Ready, but {missing}"] if ready else []),
        *([f"the phase is Running, but {missing}"] if status["phase"] == "Running" else []),
    ]


def _is_explained(status: Json) -> bool:
    """Return whether the status says that the change does not continue, and why."""
    return (
        status["phase"] in {"Paused", "Hibernated"}
        or condition_of(status, "Degraded")["status"] == "True"
        or condition_of(status, "SpecValid")["status"] == "False"
        or condition_of(status, "Draining")["reason"] in _REFUSALS
        or condition_of(status, "Updated")["reason"] in _WAITS
    )


def not_in_effect(world: World) -> str:
    """Return the first part of the spec that the world does not match; empty if it matches."""
    return next(_differences(world), "")


def _differences(world: World) -> Iterator[str]:
    spec, live = world.spec, world.stateful_set()
    if spec.hibernate:
        return
    if live is None or live["spec"]["replicas"] != spec.replicas or len(world.pods) != spec.replicas:
        yield f"there are not {spec.replicas} pods"
        return
    template = live["spec"]["template"]
    if template["metadata"]["annotations"][RESTART_HASH] != restart_hash(spec):
        yield "the template has other directives"
    revision = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:8]
    for pod in world.pods.values():
        if spec.image and pod.image != spec.image:
            yield f"{pod.name} runs {pod.image}"
        if pod.revision != revision:
            yield f"{pod.name} has an older template"
    for name, broker in world.bus.running.items():
        yield from (
            f"{name} has {directive} {broker.config[directive]}"
            for directive, value in settings(spec).items()
            if broker.loaded(world.now_s) and not same(directive, broker.config[directive], value)
        )
    for one in world.observe().pods:
        process = world.bus.running.get(one.name)
        wanted = external_directive(world.api, spec, one)
        if process is not None and process.loaded(world.now_s) and wanted is not None:
            announced = process.config["cluster-announce-external"]
            if announced != wanted:
                yield f"{one.name} announces {announced!r} instead of {wanted!r}"
