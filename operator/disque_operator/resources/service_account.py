"""The account of the pods. It may do nothing, and its token is not mounted: brokers do not speak to Kubernetes."""

from __future__ import annotations

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.resources.common import child
from disque_operator.spec import Spec


def service_account(spec: Spec) -> Json:
    """The ServiceAccount."""
    name = names.service_account(spec.name)
    return child(spec, "v1", "ServiceAccount", name, {"automountServiceAccountToken": False})
