"""Schemas of types of Kubernetes, made from the models of its client."""

from __future__ import annotations

import re
from typing import Any, Final

from kubernetes.client import models

from disque_operator.apivalues import Json

_SIMPLE: Final = {"str": "string", "int": "integer", "bool": "boolean"}
_NUMBER_OR_TEXT: Final[Json] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_QUANTITY: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$"
_QUANTITIES: Final = ("limits", "requests")


def embedded(name: str, description: str = "") -> Json:
    """Return the schema of a model such as `V1Affinity`."""
    model: Any = getattr(models, name)
    properties = {}
    required = []
    for attribute, field in model.model_fields.items():
        known = field.alias or attribute
        written = model.attribute_map[known]
        text = field.description or ""
        properties[written] = _quantities(text) if written in _QUANTITIES else _schema(model.openapi_types[known], text)
        if field.is_required():
            required.append(written)
    described = {"description": description} if description else {}
    return {**described, "type": "object", "properties": properties} | ({"required": required} if required else {})


def _schema(kind: str, description: str) -> Json:
    described = {"description": _first_sentence(description)} if description else {}
    many = re.fullmatch(r"List\[(.+)\]", kind)
    if many:
        return {**described, "type": "array", "items": _schema(many[1], "")}
    by_name = re.fullmatch(r"Dict\[str, (.+)\]", kind)
    if by_name:
        return {**described, "type": "object", "additionalProperties": _schema(by_name[1], "")}
    if kind == "object":  # a port, by number or by name
        return {**described, **_NUMBER_OR_TEXT}
    if kind in _SIMPLE:
        return {**described, "type": _SIMPLE[kind]}
    return described | embedded(kind)


def _quantities(description: str) -> Json:
    amount = {**_NUMBER_OR_TEXT, "pattern": _QUANTITY}
    return {"description": _first_sentence(description), "type": "object", "additionalProperties": amount}


def _first_sentence(description: str) -> str:
    return re.split(r"(?<=[a-z)`'\"])\. ", description.replace("\n", " "))[0].rstrip(".") + "."
