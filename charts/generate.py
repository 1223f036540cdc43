"""Generates files of the charts: `python charts/generate.py`; with `--check` it only lists outdated files.

- The resource definition, dashboards and alerts in the operator's chart are copies of `manifests/crd`,
  `dashboards/json` and `dashboards/alerts`.
- The values of the cluster's chart are the fields of the resource's `spec`: names, defaults and descriptions.
- `values.schema.json` is derived from the resource definition and the comments in `values.yaml`, and rejects unknown
  keys. The API server checks rules across fields.
- The tables in the READMEs are derived from the comments in `values.yaml`.

A comment that starts with `# --` describes the following key. It may start with the allowed values in parentheses, if
the default does not show them: a type, or words separated by bars. A key with such a comment is documented as a whole;
a key without one is a group whose keys are documented separately.
"""
# ruff: noqa: INP001, T201  (a script, not a package, that prints the files it wrote)

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

Json: TypeAlias = dict[str, Any]

CHARTS: Final = Path(__file__).resolve().parent
DEFINITIONS: Final = CHARTS.parent / "manifests" / "crd"
DEFINITION: Final = DEFINITIONS / "disqueclusters.yaml"
DASHBOARDS: Final = CHARTS.parent / "dashboards" / "json"
RULES: Final = CHARTS.parent / "dashboards" / "alerts" / "disque.rules.yaml"
OPERATOR: Final = CHARTS / "disque-operator"
CLUSTER: Final = CHARTS / "disque-cluster"

WIDTH: Final = 110
TYPES: Final = ("string", "integer", "number", "boolean", "object", "array")
FIELDS: Final = ("# Fields of the resource, generated from manifests/crd", "# End of the fields of the resource")
TABLE: Final = ("<!-- values -->", "<!-- end of values -->")
GLOBAL: Final[Json] = {
    "type": ["object", "null"],
    "description": "Values that a chart shares with its dependencies.",
}
"""Helm passes `global` to every dependency of a chart, so the schema must allow it."""

KEPT: Final = (
    *("description", "enum", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)
"""Keywords that resource definitions and JSON Schema share."""


@dataclass(frozen=True)
class Value:
    """A documented key of `values.yaml`."""

    path: tuple[str, ...]
    allowed: tuple[str, ...]
    """The allowed types or words; empty if the default shows the type."""
    default: Any
    text: str

    @property
    def shown_type(self) -> str:
        """The type column of the README's table."""
        return " | ".join(self.allowed) if self.allowed else type_of(self.default)


def type_of(value: object) -> str:
    """Return the JSON Schema type of a default."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "array"
        case dict():
            return "object"
    return "string"


def described(text: str) -> Iterator[Value]:
    """Yield the documented keys of a `values.yaml`, in order."""
    content = yaml.safe_load(text)
    path: list[str] = []
    comment: list[str] = []
    inside = -1  # indentation of the last documented key; deeper keys belong to it
    for line in text.splitlines():
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if stripped.startswith("#"):
            if stripped.startswith("# --") or comment:
                comment.append(stripped.removeprefix("#").strip().removeprefix("--").strip())
            continue
        key = re.match(r"([\w.-]+):", stripped)
        if key is None or (inside >= 0 and indent > inside):
            continue
        inside = indent if comment else -1
        path[indent // 2 :] = [key[1]]
        if comment:
            default = content
            for name in path:
                default = default[name]
            yield value_of(tuple(path), default, " ".join(comment))
        comment = []


def value_of(path: tuple[str, ...], default: object, comment: str) -> Value:
    """Parse the comment of a key."""
    allowed = re.match(r"\(([^()]+)\) ", comment)
    if allowed is None:
        return Value(path, (), default, comment)
    return Value(path, tuple(word.strip() for word in allowed[1].split("|")), default, comment[allowed.end() :])


def schema_of_values(values: list[Value]) -> Json:
    """Return the JSON Schema of documented keys."""
    top: Json = {"type": "object", "properties": {}, "additionalProperties": False}
    for value in values:
        here = top
        for name in value.path[:-1]:
            group = {"type": ["object", "null"], "properties": {}, "additionalProperties": False}
            here = here["properties"].setdefault(name, group)
        here["properties"][value.path[-1]] = schema_of_value(value)
    return top


def schema_of_value(value: Value) -> Json:
    """Return the JSON Schema of a documented key. Null is allowed and removes a default, as everywhere in Helm."""
    described_as: Json = {"description": value.text}
    words = value.allowed or (type_of(value.default),)
    if all(word in TYPES for word in words):
        return {"type": [*words, "null"], **described_as}
    return {"enum": [*words, None], **described_as}


def schema_of_field(field: Json) -> Json:
    """Return the JSON Schema of a field of the resource; it rejects unknown keys where the API server does."""
    if "anyOf" in field and not field.get("x-kubernetes-int-or-string"):
        raise ValueError(f"schema_of_field does not support anyOf: {field}")
    schema: Json = {word: field[word] for word in KEPT if word in field}
    if field.get("x-kubernetes-int-or-string"):
        return schema | {"type": ["integer", "string"]}
    if "type" in field:
        schema["type"] = field["type"]
    if "items" in field:
        schema["items"] = schema_of_field(field["items"])
    if "required" in field:
        schema["required"] = field["required"]
    if isinstance(field.get("additionalProperties"), dict):
        schema["additionalProperties"] = or_null(schema_of_field(field["additionalProperties"]))
    if "properties" in field:
        needed = field.get("required", ())
        schema["properties"] = {
            name: schema_of_field(child) if name in needed else or_null(schema_of_field(child))
            for name, child in field["properties"].items()
        }
        schema["additionalProperties"] = bool(field.get("x-kubernetes-preserve-unknown-fields"))
    return schema


def or_null(schema: Json) -> Json:
    """Return a schema that also allows null, which removes a default."""
    changed = dict(schema)
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        changed["type"] = [*types, "null"]
    if "enum" in schema:
        changed["enum"] = [*schema["enum"], None]
    return changed


def field_lines(name: str, field: Json, default: object, indent: str = "") -> Iterator[str]:
    """Yield the lines of a field in `values.yaml`; a field without a default is documented as a whole."""
    default = field.get("default") if default is None else default
    if isinstance(default, dict) and field.get("properties"):
        yield f"{indent}{name}:"
        for child, schema in field["properties"].items():
            yield from field_lines(child, schema, default.get(child), indent + "  ")
        return
    words = allowed_words(field, default)
    comment = f"{f'({words}) ' if words else ''}{' '.join(field['description'].split())}"
    yield from textwrap.wrap(
        comment, WIDTH, initial_indent=f"{indent}# -- ", subsequent_indent=f"{indent}# ", break_long_words=False
    )
    yield f"{indent}{name}: {json.dumps(default) if default is not None else 'null'}"


def allowed_words(field: Json, default: object) -> str:
    """Return the allowed types or words, if the default does not show them."""
    if "enum" in field:
        return " | ".join(str(word) for word in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "integer | string"
    return "" if default is not None and type_of(default) == field["type"] else str(field["type"])


def table(values: list[Value]) -> str:
    """Return the table of values in a README."""
    rows = ["| value | type | default | description |", "| --- | --- | --- | --- |"]
    rows += [
        f"| `{'.'.join(value.path)}` | {value.shown_type.replace('|', 'or')} "
        f"| {shown_default(value.default)} | {value.text.replace('|', '&#124;')} |"
        for value in values
    ]
    return "\n".join(rows)


def shown_default(default: object) -> str:
    """Return a default for the table; empty if there is none."""
    return "" if default is None else f"`{json.dumps(default)}`"


def between(text: str, marks: tuple[str, str], new: str) -> str:
    """Return the text with the part between two marker lines replaced."""
    head, begin, rest = text.partition(marks[0] + "\n")
    _, end, tail = rest.partition(marks[1] + "\n")
    if not begin or not end:
        raise ValueError(f"lines '{marks[0]}' and '{marks[1]}' are missing")
    return f"{head}{begin}\n{new}\n\n{end}{tail}"


def compact(text: str) -> str:
    """Return JSON without white space, because Helm stores a release in a Secret, which is limited to 1 MiB."""
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")) + "\n"


def generated() -> Iterator[tuple[Path, str]]:
    """Yield all generated files with their contents."""
    for path in sorted(DEFINITIONS.glob("*.yaml")):
        yield OPERATOR / "files" / "crd" / path.name, path.read_text()
    definition = DEFINITION.read_text()
    yield OPERATOR / "files" / RULES.name, RULES.read_text()
    for path in sorted(DASHBOARDS.glob("*.json")):
        yield OPERATOR / "files" / "dashboards" / path.name, compact(path.read_text())

    spec = yaml.safe_load(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    fields = "\n\n".join("\n".join(field_lines(name, field, None)) for name, field in spec["properties"].items())
    path = CLUSTER / "values.yaml"
    cluster_values = between(path.read_text(), FIELDS, fields)
    yield path, cluster_values

    for chart, text in ((OPERATOR, (OPERATOR / "values.yaml").read_text()), (CLUSTER, cluster_values)):
        values = list(described(text))
        own = schema_of_values(
            [value for value in values if chart is OPERATOR or value.path[0] not in spec["properties"]]
        )
        from_resource = schema_of_field(spec)["properties"] if chart is CLUSTER else {}
        schema = {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": f"Values of the chart {chart.name}",
            **own,
            "properties": {"global": GLOBAL} | own["properties"] | from_resource,
        }
        yield chart / "values.schema.json", json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        yield chart / "README.md", between((chart / "README.md").read_text(), TABLE, table(values))


def main(arguments: list[str]) -> int:
    """Write outdated files, or with `--check` only list them."""
    old = [(path, text) for path, text in generated() if not path.exists() or path.read_text() != text]
    for path, text in old:
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        print(f"{'outdated' if '--check' in arguments else 'written'}: {path.relative_to(CHARTS.parent)}")
    if old and "--check" in arguments:
        print("run: python charts/generate.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
