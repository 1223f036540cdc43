"""The PodDisruptionBudget: a machine that is drained takes the pods one after the other."""

from __future__ import annotations

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.resources.common import child
from disque_operator.spec import Spec


def disruption_budget(spec: Spec, replicas: int) -> Json | None:
    """The budget; None when it is not wanted, and for a single pod, which it could only hold fast."""
    if not spec.pod_disruption_budget.enabled or replicas < 2:
        return None
    body = {
        "maxUnavailable": spec.pod_disruption_budget.max_unavailable,
        "selector": {"matchLabels": names.selector(spec.name)},
    }
    return child(spec, "policy/v1", "PodDisruptionBudget", names.disruption_budget(spec.name), {"spec": body})
