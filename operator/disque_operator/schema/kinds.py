"""Short words for the schemas of simple fields."""

from __future__ import annotations

from disque_operator.spec import Json

LONGEST_NAME = 253
"""Of most objects of Kubernetes."""


def text(description: str, longest: int, **more: object) -> Json:
    """A string. Lengths are bounded everywhere, so that what rules cost can be known beforehand."""
    return {"description": description, "type": "string", "maxLength": longest, **more}


def choice(description: str, *words: str) -> Json:
    """One of a few words."""
    return {"description": description, "type": "string", "enum": list(words)}


def whole(description: str, least: int | None = None, most: int | None = None) -> Json:
    """A whole number."""
    bounds = {"minimum": least, "maximum": most}
    known = {word: number for word, number in bounds.items() if number is not None}
    return {"description": description, "type": "integer", "format": "int32" if most else "int64", **known}


def flag(description: str) -> Json:
    """True or false."""
    return {"description": description, "type": "boolean"}


def texts(description: str, most: int = 64, longest: int = 1024) -> Json:
    """Texts by name, as labels and annotations."""
    values = {"type": "string", "maxLength": longest}
    return {"description": description, "type": "object", "maxProperties": most, "additionalProperties": values}


def entries(description: str, entry: Json, most: int, key: str = "") -> Json:
    """A list; with `key` one whose entries are told apart by that field."""
    kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]} if key else {}
    return {"description": description, "type": "array", "maxItems": most, "items": entry, **kind}


def part(description: str, properties: Json, rules: list[Json] | None = None, **more: object) -> Json:
    """An object."""
    schema = {"description": description, "type": "object", "properties": properties, **more}
    return schema | {"x-kubernetes-validations": rules} if rules else schema


def open_part(description: str, properties: Json, rules: list[Json] | None = None, **more: object) -> Json:
    """An object that may have other fields, which are kept as they are."""
    return part(description, properties, rules, **more) | {"x-kubernetes-preserve-unknown-fields": True}


def rule(expression: str, message: str) -> Json:
    """What has to hold, in Kubernetes' expression language, and what a person reads when it does not."""
    return {"rule": expression, "message": message}
