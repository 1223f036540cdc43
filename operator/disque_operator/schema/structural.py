"""Turns models into structural schemas, the subset of JSON Schema that CustomResourceDefinitions accept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel

from disque_operator.apivalues import Json
from disque_operator.schema.embedded import embedded
from disque_operator.sections import EMBEDDED

_ORDER: Final = ("description", "type", "format")
"""Keywords that are written first."""
_LAST: Final = ("default", "required", "x-kubernetes-validations", "x-kubernetes-list-type")
"""Keywords that are written last."""
_DROPPED: Final = frozenset({"$defs", "$ref", "additionalProperties", "anyOf", "default", "title"})

_INT32: Final = (1 << 31) - 1


def structural(model: type[BaseModel], *, defaults: bool) -> Json:
    """Return the schema of a model.

    Args:
        model: The model.
        defaults: Whether the API server should fill in defaults.
    """
    document = model.model_json_schema(by_alias=True)
    return _Converter(document.get("$defs", {}), defaults=defaults).node(document)


class _Converter:
    def __init__(self, definitions: Mapping[str, Json], *, defaults: bool) -> None:
        self._definitions = definitions
        self._defaults = defaults

    def node(self, found: Json) -> Json:
        """Return a schema without references, titles and null."""
        is_optional = "anyOf" in found
        found = self._resolved(found)
        if EMBEDDED in found:
            return embedded(found[EMBEDDED], found["description"])
        made = {word: value for word, value in found.items() if word not in _DROPPED}
        if isinstance(found.get("default"), bool | int | str):
            made["default"] = found["default"]
        if found["type"] == "integer":
            made["format"] = "int32" if found.get("maximum", _INT32 + 1) <= _INT32 else "int64"
        if "items" in found:
            made["items"] = self.node(found["items"])
        if isinstance(found.get("additionalProperties"), dict):
            made["additionalProperties"] = self.node(found["additionalProperties"])
        if "properties" in found:
            made["properties"] = {name: self.node(below) for name, below in found["properties"].items()}
            if "required" not in made:  # with a default the API server would add the object, and then reject it
                made |= self._object_default(made["properties"])
        if not self._defaults or (is_optional and "properties" in made):
            made.pop("default", None)  # an optional object is absent unless it is given
        return {word: made[word] for word in sorted(made, key=_rank)}

    def _resolved(self, found: Json) -> Json:
        """Replace a reference by what it refers to, and `X | None` by X: a field without a value is left out."""
        if "anyOf" in found:
            (kind,) = (one for one in found["anyOf"] if one != {"type": "null"})
            found = kind | {word: value for word, value in found.items() if word != "anyOf"}
        if "$ref" in found:
            found = self._definitions[found["$ref"].rpartition("/")[2]] | found
        return found

    @staticmethod
    def _object_default(properties: Json) -> Json:
        """Return the default of an object: rules are checked against it before its fields get their own defaults."""
        default = {name: below["default"] for name, below in properties.items() if "default" in below}
        return {"default": default} if default else {}


def _rank(word: str) -> int:
    if word in _ORDER:
        return _ORDER.index(word)
    return len(_ORDER) + (1 + _LAST.index(word) if word in _LAST else 0)
