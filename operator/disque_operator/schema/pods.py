"""The schema of `spec.podTemplate`: fields that the cluster depends on are refused, all others are kept as they are."""

from __future__ import annotations

import re
from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.resources.pod_template import GRACE_S, REWRITE_S_PER_GIB
from disque_operator.resources.protected import PROTECTED
from disque_operator.sections import LONGEST_NAME, rule

_MOST: Final = 32
_FIELD: Final = re.compile(r"spec\.(\w+)")
_IN_BROKER: Final = re.compile(rf"spec\.containers\[{names.CONTAINER}\]\.(\w+)")
_VOLUME: Final = re.compile(r"spec\.volumes\[(\w+)\]")
_OPEN: Final = {"x-kubernetes-preserve-unknown-fields": True}
_OBJECT: Final = {"type": "object", **_OPEN}
_STRINGS: Final = {"type": "array", "items": {"type": "string"}}
_TYPES: Final[dict[str, Json]] = {
    "args": _STRINGS,
    "command": _STRINGS,
    "lifecycle": _OBJECT,
    "ports": {"type": "array", "items": _OBJECT},
    "readinessProbe": _OBJECT,
    "resources": _OBJECT,
}


def pod_template(description: str) -> Json:
    """Return the schema of the field."""
    own = ", ".join(f"'{label}'" for label in names.labels(""))
    only_others = rule(f"self.all(name, !(name in [{own}]))", "labels of the operator cannot be set: use other labels")
    metadata = {
        "labels": _strings("Additional labels of the pods.", longest=1024)
        | {"x-kubernetes-validations": [only_others]},
        "annotations": _strings("Annotations of the pods.", longest=4096),
    }
    return _object(
        description, {"metadata": _object("Labels and annotations of the pods.", metadata), "spec": _pod_spec()}
    )


def _pod_spec() -> Json:
    refused = _protected(_FIELD)
    rules = [rule(f"!has(self.{name})", f"{name} cannot be set: {instead}") for name, instead in refused.items()]
    in_broker = _protected(_IN_BROKER)
    broker_rules = [
        rule(
            f"self.name != '{names.CONTAINER}' || !has(self.{name})",
            f"{name} of the container {names.CONTAINER} cannot be set: {instead}",
        )
        for name, instead in in_broker.items()
    ]
    volume_rules = [
        rule(f"self.name != '{name}'", f"the volume {name} cannot be set: {instead}")
        for name, instead in _protected(_VOLUME).items()
    ]
    properties = {
        **{name: _refused(name, "Cannot be set.") for name in refused},
        "terminationGracePeriodSeconds": {
            "description": "How long a pod may take to stop, in seconds. A broker that stops waits until no job "
            f"depends on it, then rewrites its append-only file. Defaults to {GRACE_S}, more with more memory "
            f"({REWRITE_S_PER_GIB} seconds per GiB). Deleting a namespace takes at least half of it.",
            "type": "integer",
            "format": "int32",
            "minimum": 1,
            "maximum": 86400,
        },
        "containers": _named_list(
            f"Containers to add, and additional fields of the container `{names.CONTAINER}`.",
            "A container.",
            {name: _refused(name, f"Cannot be set for the container `{names.CONTAINER}`.") for name in in_broker},
            broker_rules,
        ),
        "initContainers": _named_list("Containers that run before the broker.", "A container."),
        "volumes": _named_list("Volumes to add.", "A volume.", rules=volume_rules),
    }
    return _object("Fields of a PodSpec.", properties, rules) | _OPEN


def _protected(pattern: re.Pattern[str]) -> dict[str, str]:
    """Return the protected fields whose path matches, and the advice for each."""
    found = {path: pattern.fullmatch(path) for path in PROTECTED}
    return {match[1]: PROTECTED[path] for path, match in found.items() if match}


def _refused(name: str, description: str) -> Json:
    """Return the schema of a field that a rule refuses. It needs a type, or the rule could not refer to it."""
    return {"description": description} | _TYPES.get(name, {"type": "string"})


def _named_list(description: str, entry: str, properties: Json | None = None, rules: list[Json] | None = None) -> Json:
    """Return the schema of a list whose entries have a unique name and may have fields that are not listed."""
    name = {"description": "The name.", "type": "string", "maxLength": LONGEST_NAME}
    items = _object(entry, {"name": name} | (properties or {}), rules) | _OPEN | {"required": ["name"]}
    return {
        "description": description,
        "type": "array",
        "maxItems": _MOST,
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }


def _object(description: str, properties: Json, rules: list[Json] | None = None) -> Json:
    schema = {"description": description, "type": "object", "properties": properties}
    return schema | {"x-kubernetes-validations": rules} if rules else schema


def _strings(description: str, longest: int) -> Json:
    values = {"type": "string", "maxLength": longest}
    return {"description": description, "type": "object", "maxProperties": _MOST, "additionalProperties": values}
