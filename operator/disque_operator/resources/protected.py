"""Fields that `spec.podTemplate` must not change: the cluster depends on them, or a field of the spec sets them.

All other fields of a pod can be changed, and sidecars and volumes can be added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.resources.merging import KEYS
from disque_operator.spec import Spec

_BROKER: Final = f"spec.containers[{names.CONTAINER}]"
_NAMED: Final = "a member is identified by the host name of its StatefulSet pod"
_MOUNTED: Final = "the operator manages the volumes of the broker; you can add others"

PROTECTED: Final[dict[str, str]] = {
    "spec.hostname": _NAMED,
    "spec.subdomain": _NAMED,
    "spec.restartPolicy": "a broker that exits must be restarted",
    f"{_BROKER}.image": "set spec.image",
    f"{_BROKER}.imagePullPolicy": "set spec.imagePullPolicy",
    f"{_BROKER}.resources": "set spec.resources",
    f"{_BROKER}.command": "set directives in spec.config",
    f"{_BROKER}.args": "set directives in spec.config",
    f"{_BROKER}.ports": "set the port for clients in spec.service.port",
    f"{_BROKER}.readinessProbe": "it keeps clients away from members that are leaving",
    f"{_BROKER}.lifecycle": "it prevents two members from stopping at the same time",
    f"{_BROKER}.env[POD_NAME]": _NAMED,
    f"{_BROKER}.volumeMounts[/data]": _MOUNTED,
    f"{_BROKER}.volumeMounts[/etc/disque]": _MOUNTED,
    f"{_BROKER}.volumeMounts[/etc/disque-auth]": _MOUNTED,
    f"{_BROKER}.volumeMounts[/etc/disque-tls]": _MOUNTED,
    f"{_BROKER}.volumeMounts[/etc/disque-bus]": _MOUNTED,
    "spec.volumes[data]": _MOUNTED,
    "spec.volumes[config]": _MOUNTED,
    "spec.volumes[auth]": _MOUNTED,
    "spec.volumes[certificate]": _MOUNTED,
    "spec.volumes[bus]": _MOUNTED,
}
"""Fields of a pod template, with the reason or with what to do instead. List entries are named by their key."""

_STEP: Final = re.compile(r"(\w+)(?:\[([^\]]+)\])?")


def protected(spec: Spec) -> Iterator[tuple[str, str]]:
    """Yield the protected fields that a spec sets anyway, with the reason or with what to do instead."""
    for path, instead in PROTECTED.items():
        if _without(spec.pod_template, _STEP.findall(path)) != spec.pod_template:
            yield path, instead
    own = names.labels(spec.name)
    for label in (spec.pod_template.get("metadata") or {}).get("labels") or {}:
        if label in own:
            yield f"metadata.labels[{label}]", "the operator selects pods by it"


def allowed(spec: Spec) -> Json:
    """Return `spec.podTemplate` without protected fields."""
    template: Json = spec.pod_template
    for path in PROTECTED:
        template = _without(template, _STEP.findall(path))
    labels = (template.get("metadata") or {}).get("labels")
    if not labels:
        return template
    kept = {name: value for name, value in labels.items() if name not in names.labels(spec.name)}
    return template | {"metadata": template["metadata"] | {"labels": kept}}


def _without(tree: Any, steps: list[tuple[str, str]]) -> Any:
    """Return the tree without what the steps lead to; the same tree if that does not exist."""
    (field, key), *rest = steps
    if not isinstance(tree, dict) or field not in tree:
        return tree
    if not key:
        if not rest:
            return {name: value for name, value in tree.items() if name != field}
        return tree | {field: _without(tree[field], rest)}
    if not isinstance(tree[field], list):
        return tree
    here = [entry for entry in tree[field] if _is_keyed(field, entry, key)]
    if not rest:
        return tree | {field: [entry for entry in tree[field] if entry not in here]}
    return tree | {field: [_without(entry, rest) if entry in here else entry for entry in tree[field]]}


def _is_keyed(field: str, entry: Any, key: str) -> bool:
    return isinstance(entry, dict) and entry.get(KEYS[field][0]) == key
