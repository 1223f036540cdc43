"""The schema of `spec.podTemplate`: what it may not change is refused, all else is kept for the API server to judge."""

from __future__ import annotations

import re
from typing import Any, Final

from disque_operator import names
from disque_operator.resources.pod_template import GRACE_S
from disque_operator.resources.protected import PROTECTED
from disque_operator.schema.kinds import LONGEST_NAME, entries, open_part, part, rule, text, texts, whole
from disque_operator.spec import Json

_MOST: Final = 32
_FIELD: Final = re.compile(r"spec\.(\w+)")
_IN_BROKER: Final = re.compile(rf"spec\.containers\[{names.CONTAINER}\]\.(\w+)")
_NOT_FOR_BROKER: Final = f"Not for the container `{names.CONTAINER}`."
_OBJECT: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_WORDS: Final = {"type": "array", "items": {"type": "string"}}
_TYPES: Final[dict[str, Json]] = {
    "args": _WORDS,
    "command": _WORDS,
    "lifecycle": _OBJECT,
    "ports": {"type": "array", "items": _OBJECT},
    "readinessProbe": _OBJECT,
    "resources": _OBJECT,
}
_VOLUME: Final = re.compile(r"spec\.volumes\[(\w+)\]")


def pod_template(description: str) -> Json:
    """The schema of the field."""
    own = ", ".join(f"'{label}'" for label in names.labels(""))
    labels = texts("Further labels of the pods.", most=_MOST) | {
        "x-kubernetes-validations": [
            rule(f"self.all(name, !(name in [{own}]))", "pods are found by labels that can not be given: choose others")
        ]
    }
    metadata = {"labels": labels, "annotations": texts("Annotations of the pods.", most=_MOST, longest=4096)}
    return part(
        description,
        {"metadata": part("Labels and annotations of the pods.", metadata), "spec": _pod()},
    )


def _pod() -> Json:
    properties = {
        **{name: _refused(name) for name in _matches(_FIELD)},
        "terminationGracePeriodSeconds": whole(
            "How long a pod may take to stop: it waits until it does no harm, and writes its append only file anew. "
            f"{GRACE_S} when not given; half of it is how long the deletion of a namespace may take.",
            1,
            86400,
        ),
        "containers": entries(
            f"Other containers beside the broker, and further fields of the container `{names.CONTAINER}`.",
            open_part(
                "A container.",
                _named() | {name: _refused(name, _NOT_FOR_BROKER) for name in _matches(_IN_BROKER)},
                _broker(),
            )
            | {"required": ["name"]},
            most=_MOST,
            key="name",
        ),
        "initContainers": entries(
            "Containers that run before the broker.",
            open_part("A container.", _named()) | {"required": ["name"]},
            most=_MOST,
            key="name",
        ),
        "volumes": entries(
            "Further volumes.",
            open_part("A volume.", _named(), _volumes()) | {"required": ["name"]},
            most=_MOST,
            key="name",
        ),
    }
    rules = [
        rule(f"!has(self.{name})", f"{name} can not be given: {instead}") for name, instead in _matches(_FIELD).items()
    ]
    return open_part("Fields of a PodSpec.", properties, rules)


def _broker() -> list[Json]:
    return [
        rule(
            f"self.name != '{names.CONTAINER}' || !has(self.{name})",
            f"{name} of the container {names.CONTAINER} can not be given: {instead}",
        )
        for name, instead in _matches(_IN_BROKER).items()
    ]


def _volumes() -> list[Json]:
    return [
        rule(f"self.name != '{name}'", f"the volume {name} can not be given: {instead}")
        for name, instead in _matches(_VOLUME).items()
    ]


def _matches(pattern: re.Pattern[str]) -> dict[str, str]:
    found = {path: pattern.fullmatch(path) for path in PROTECTED}
    return {match[1]: PROTECTED[path] for path, match in found.items() if match}


def _named() -> dict[str, Any]:
    return {"name": text("The name.", LONGEST_NAME)}


def _refused(name: str, told: str = "Can not be given.") -> Json:
    """A field that rules refuse: it has to have a type for them to see it."""
    return {"description": told} | _TYPES.get(name, {"type": "string"})
