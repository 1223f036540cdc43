"""Evictions, as `kubectl drain` requests them."""

from __future__ import annotations

from disque_operator import names
from support.kubeworld.world import World


def drain_node(world: World, node: str) -> None:
    """Run a step of `kubectl drain`: cordon the node, and evict each pod that its budget allows to evict."""
    world.cordoned.add(node)
    for pod in [pod for pod in world.pods.values() if pod.node == node]:
        evict(world, pod.name)


def evict(world: World, name: str) -> bool:
    """Evict a pod; return whether the PodDisruptionBudget allows it."""
    budget = world.api.get("PodDisruptionBudget", names.disruption_budget(world.spec.name))
    unavailable = sum(not pod.ready or pod.ends_s is not None for pod in world.pods.values())
    if budget is not None and world.pods[name].ready and unavailable >= budget["spec"]["maxUnavailable"]:
        return False
    if budget is not None and not world.pods[name].ready and "unhealthyPodEvictionPolicy" not in budget["spec"]:
        return False
    world.delete_pod(name)
    return True
