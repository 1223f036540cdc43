"""Writes what the charts have from elsewhere: `python charts/generate.py`, or `--check` to only tell what is old.

- The resource definition in the operator's chart is that of `manifests/crd`; dashboards and alerts are those of
  `dashboards/json` and `alerts`.
- The values of the cluster's chart are the fields of the resource's `spec`: names, defaults and comments.
- `values.schema.json` says the same of the values as the resource definition and the comments in `values.yaml`, and
  refuses keys that nobody knows. What only the API server can check (rules across fields) stays with it.
- The tables in the READMEs are the comments in `values.yaml`.

A comment that begins with `# --` describes the key that follows. In brackets it may begin with what is allowed, where
the default does not show it: a type, or words with bars between them. A key with such a comment is described as a
whole, whatever is in it; one without is a group of keys that are described each.
"""
# ruff: noqa: INP001, T201  (a script, not a package, that says what it wrote)

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
DEFINITION: Final = CHARTS.parent / "manifests" / "crd" / "disqueclusters.yaml"
DASHBOARDS: Final = CHARTS.parent / "dashboards" / "json"
RULES: Final = CHARTS.parent / "alerts" / "disque.rules.yaml"
OPERATOR: Final = CHARTS / "disque-operator"
CLUSTER: Final = CHARTS / "disque-cluster"

WIDTH: Final = 110
TYPES: Final = ("string", "integer", "number", "boolean", "object", "array")
FIELDS: Final = ("# The fields of the resource, generated from manifests/crd", "# End of the fields of the resource")
TABLE: Final = ("<!-- values -->", "<!-- end of values -->")
GLOBAL: Final[Json] = {
    "type": ["object", "null"],
    "description": "Values that a chart shares with those it depends on.",
}
"""Helm hands it to every chart that another one depends on, so it can not be refused."""

KEPT: Final = (
    *("description", "enum", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)
"""What a resource definition and JSON Schema say with the same words."""


@dataclass(frozen=True)
class Value:
    """A key of `values.yaml` with its comment."""

    path: tuple[str, ...]
    allowed: tuple[str, ...]
    """The type, or the words that are allowed; empty: what the default is."""
    default: Any
    text: str

    @property
    def shown_type(self) -> str:
        """The first column of the README's table that is not a name."""
        return " | ".join(self.allowed) if self.allowed else type_of(self.default)


def type_of(value: object) -> str:
    """The type of a default, as JSON Schema calls it."""
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
    """The keys of a `values.yaml` that have a comment of their own, in order."""
    content = yaml.safe_load(text)
    path: list[str] = []
    comment: list[str] = []
    inside = -1  # how far the last described key is indented: what is further to the right belongs to it
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
    """A key with what its comment says."""
    allowed = re.match(r"\(([^()]+)\) ", comment)
    if allowed is None:
        return Value(path, (), default, comment)
    return Value(path, tuple(word.strip() for word in allowed[1].split("|")), default, comment[allowed.end() :])


def schema_of_values(values: list[Value]) -> Json:
    """The JSON Schema of described keys."""
    top: Json = {"type": "object", "properties": {}, "additionalProperties": False}
    for value in values:
        here = top
        for name in value.path[:-1]:
            group = {"type": ["object", "null"], "properties": {}, "additionalProperties": False}
            here = here["properties"].setdefault(name, group)
        here["properties"][value.path[-1]] = schema_of_value(value)
    return top


def schema_of_value(value: Value) -> Json:
    """The JSON Schema of one of them. Null takes a default away, as anywhere in Helm."""
    described_as: Json = {"description": value.text}
    words = value.allowed or (type_of(value.default),)
    if all(word in TYPES for word in words):
        return {"type": [*words, "null"], **described_as}
    return {"enum": [*words, None], **described_as}


def schema_of_field(field: Json) -> Json:
    """The JSON Schema of a field of the resource: closed wherever the API server knows all names."""
    if "anyOf" in field and not field.get("x-kubernetes-int-or-string"):
        raise ValueError(f"A schema with anyOf is not known here, give it a place in schema_of_field: {field}")
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
    """The same, or null, which takes a default away."""
    changed = dict(schema)
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        changed["type"] = [*types, "null"]
    if "enum" in schema:
        changed["enum"] = [*schema["enum"], None]
    return changed


def field_lines(name: str, field: Json, default: object, indent: str = "") -> Iterator[str]:
    """A field of the resource as it stands in `values.yaml`: those that have no default are not taken apart."""
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
    """What is allowed, where the default does not show it."""
    if "enum" in field:
        return " | ".join(str(word) for word in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "integer | string"
    return "" if default is not None and type_of(default) == field["type"] else str(field["type"])


def table(values: list[Value]) -> str:
    """The table of a README."""
    rows = ["| value | type | default | what |", "| --- | --- | --- | --- |"]
    rows += [
        f"| `{'.'.join(value.path)}` | {value.shown_type.replace('|', 'or')} "
        f"| {shown_default(value.default)} | {value.text.replace('|', '&#124;')} |"
        for value in values
    ]
    return "\n".join(rows)


def shown_default(default: object) -> str:
    """A default in the table; nothing where there is none."""
    return "" if default is None else f"`{json.dumps(default)}`"


def between(text: str, marks: tuple[str, str], new: str) -> str:
    """A text with what stands between two lines of it replaced."""
    head, begin, rest = text.partition(marks[0] + "\n")
    _, end, tail = rest.partition(marks[1] + "\n")
    if not begin or not end:
        raise ValueError(f"There are no lines '{marks[0]}' and '{marks[1]}'")
    return f"{head}{begin}\n{new}\n\n{end}{tail}"


def compact(text: str) -> str:
    """JSON without spaces: Helm keeps a release in a Secret, of which a megabyte is the limit."""
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")) + "\n"


def generated() -> Iterator[tuple[Path, str]]:
    """All files with what they should be."""
    definition = DEFINITION.read_text()
    yield OPERATOR / "files" / "crd" / DEFINITION.name, definition
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
    """Write what is old, or only name it."""
    old = [(path, text) for path, text in generated() if not path.exists() or path.read_text() != text]
    for path, text in old:
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        print(f"{'old' if '--check' in arguments else 'written'}: {path.relative_to(CHARTS.parent)}")
    if old and "--check" in arguments:
        print("run: python charts/generate.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
