"""What `spec.podTemplate` may not change: a cluster would not work any more, or a field of the spec says it.

Everything else of a pod may be changed, sidecars and volumes may be added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from disque_operator import names
from disque_operator.resources.lists import KEYS
from disque_operator.spec import Json, Spec

_BROKER: Final = f"spec.containers[{names.CONTAINER}]"
_NAMED: Final = "a pod is known by the name that its StatefulSet gives it"
_MOUNTED: Final = "the volumes of the broker are the operator's; others may be added"

PROTECTED: Final[dict[str, str]] = {
    "spec.hostname": _NAMED,
    "spec.subdomain": _NAMED,
    "spec.restartPolicy": "a broker that ends is started again",
    f"{_BROKER}.image": "write it to spec.image",
    f"{_BROKER}.imagePullPolicy": "write it to spec.imagePullPolicy",
    f"{_BROKER}.resources": "write them to spec.resources",
    f"{_BROKER}.command": "write directives to spec.config",
    f"{_BROKER}.args": "write directives to spec.config",
    f"{_BROKER}.ports": "the one for clients is spec.service.port",
    f"{_BROKER}.readinessProbe": "it keeps clients away from nodes that are leaving",
    f"{_BROKER}.lifecycle": "it keeps two nodes from stopping at once",
    f"{_BROKER}.env[POD_NAME]": _NAMED,
    f"{_BROKER}.volumeMounts[/data]": _MOUNTED,
    f"{_BROKER}.volumeMounts[/etc/disque]": _MOUNTED,
    f"{_BROKER}.volumeMounts[/etc/disque-auth]": _MOUNTED,
    "spec.volumes[data]": _MOUNTED,
    "spec.volumes[config]": _MOUNTED,
    "spec.volumes[auth]": _MOUNTED,
}
"""Fields of a pod template, entries of lists by their key, and what to do instead of giving them."""

_STEP: Final = re.compile(r"(\w+)(?:\[([^\]]+)\])?")


def protected(spec: Spec) -> Iterator[tuple[str, str]]:
    """The protected fields that a spec gives all the same, and what to do instead."""
    for path, instead in PROTECTED.items():
        if _without(spec.pod_template, _STEP.findall(path)) != spec.pod_template:
            yield path, instead
    own = names.labels(spec.name)
    for label in (spec.pod_template.get("metadata") or {}).get("labels") or {}:
        if label in own:
            yield f"metadata.labels[{label}]", "pods are found by it"


def allowed(spec: Spec) -> Json:
    """`spec.podTemplate` without what it may not change."""
    template: Json = spec.pod_template
    for path in PROTECTED:
        template = _without(template, _STEP.findall(path))
    labels = (template.get("metadata") or {}).get("labels")
    if not labels:
        return template
    kept = {name: value for name, value in labels.items() if name not in names.labels(spec.name)}
    return template | {"metadata": template["metadata"] | {"labels": kept}}


def _without(tree: Any, steps: list[tuple[str, str]]) -> Any:
    """The tree but for what the steps lead to; the same tree when that is not there."""
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
