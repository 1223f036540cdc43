"""The page about the API (`/v1/docs`), generated from the table. It has no scripts, and loads only its own style."""

from __future__ import annotations

from html import escape
from http import HTTPStatus
from typing import Final

from disqued.httpapi.kinds import Data, Schema
from disqued.httpapi.openapi import default_of, errors_of
from disqued.httpapi.operation import BODY, PATH, QUERY, Operation, Parameter
from disqued.httpapi.schemas import SCHEMAS
from disqued.httpapi.table import OPERATIONS

CSS: Final = """\
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-top: 1px solid; padding-top: 1rem; }
code { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid #8884; }
.method { display: inline-block; min-width: 4.5rem; }
"""
_HEAD: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>HTTP API of this Disque node</title>
<link rel="stylesheet" href="/v1/docs.css">
</head>
<body>
<h1>HTTP API</h1>
<p>Jobs of this Disque node in JSON. Requests run as commands of the node, with the same users, rules and limits.
Authenticate with <code>Authorization: Bearer PASSWORD</code> as the default user, or with Basic as any user.
Errors are objects with <code>code</code> and <code>message</code>. Programs read
<a href="/v1/openapi.json">openapi.json</a>.</p>
"""


def html() -> str:
    """The whole page."""
    links = "".join(
        f'<li><a href="#{operation.name}"><code>{_title(operation)}</code></a> {escape(operation.summary)}</li>\n'
        for operation in OPERATIONS
    )
    return f"{_HEAD}<ul>\n{links}</ul>\n{''.join(map(_section, OPERATIONS))}</body>\n</html>"


def _title(operation: Operation) -> str:
    return f'<span class="method">{operation.method}</span> /v1/{escape(operation.path)}'


def _section(operation: Operation) -> str:
    result = operation.result
    text = f'<h2 id="{operation.name}"><code>{_title(operation)}</code></h2>\n<p>{_prose(operation.summary)} '
    text += f"{_prose(operation.about)} Command: <code>{command_of(operation)}</code>.</p>\n"
    if operation.parameters:
        rows = "".join(_row(one) for where in (PATH, QUERY, BODY) for one in operation.among(where))
        heads = "<tr><th>field</th><th>in</th><th>type</th><th>meaning</th></tr>"
        text += f"<h3>Request</h3>\n<table>{heads}\n{rows}</table>\n"
    fields = ", ".join(f"<code>{escape(name)}</code>" for name in SCHEMAS[result.schema]["properties"])
    text += (
        f"<h3>Answer</h3>\n<p>{result.status}: {_prose(result.about)} {f'Fields: {fields}.' if fields else ''}</p>\n"
    )
    errors = "".join(
        f"<tr><td>{status} {escape(HTTPStatus(status).phrase)}</td><td>{', '.join(codes)}</td></tr>\n"
        for status, codes in errors_of(operation).items()
    )
    return text + f"<table><tr><th>status</th><th>codes</th></tr>\n{errors}</table>\n"


def command_of(operation: Operation) -> str:
    """The name of the command."""
    return operation.words[0]


def _row(parameter: Parameter) -> str:
    name = f"<code>{escape(parameter.name)}</code>"
    if isinstance(parameter.kind, Data):
        name += f" or <code>{escape(parameter.name)}_base64</code>"
    needed = " required" if parameter.required else ""
    cells = (name, parameter.where, type_of(parameter) + needed, _prose(parameter.about))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


def type_of(parameter: Parameter) -> str:
    """The type and the bounds of a value, for readers."""
    schema: Schema = parameter.kind.schema
    text = str(schema["type"])
    if "enum" in schema:
        text = " or ".join(f"`{choice}`" for choice in schema["enum"])
    elif "minimum" in schema:
        text = f"integer, {schema['minimum']} to {schema['maximum']}"
    elif "maxLength" in schema:
        text = f"text, at most {schema['maxLength']} bytes"
    elif "items" in schema:
        text = f"list of at most {schema['maxItems']} texts"
    default = default_of(parameter)
    text = text if default is None else f"{text}; default {default}"
    return f"{text}; only with {parameter.needs}" if parameter.needs else text


def _prose(text: str) -> str:
    """Text with code in backticks."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
