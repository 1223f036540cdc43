"""The OpenAPI 3.1 document of the API, generated from the table (https://spec.openapis.org/oas/v3.1.1)."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from disqued import __version__
from disqued.httpapi.kinds import Data, Schema
from disqued.httpapi.operation import BODY, PATH, QUERY, Operation, Parameter
from disqued.httpapi.schemas import SCHEMAS
from disqued.httpapi.statuses import INVALID, status_of
from disqued.httpapi.table import OPERATIONS

ALWAYS: tuple[str, ...] = (INVALID, "UNAUTHORIZED", "FORBIDDEN", "NOPERM", "RATELIMIT", "LOADING")
"""The codes of errors that every operation can have."""
_ABOUT = (
    "Jobs of a Disque node over HTTP. Requests run as commands of the node, with the same users, rules and audit log. "
    "Off unless the directive `http-api` is `read` or `full`."
)


def document() -> dict[str, Any]:
    """The document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(f"/v1/{operation.path}", {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Disque", "version": __version__, "description": _ABOUT},
        "security": [{"bearer": []}, {"basic": []}, {}],
        "paths": paths,
        "components": {
            "schemas": dict(SCHEMAS),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "The password of the default user."},
                "basic": {"type": "http", "scheme": "basic", "description": "The name and the password of a user."},
            },
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.about,
        "parameters": [_parameter(one) for where in (PATH, QUERY) for one in operation.among(where)],
        "responses": _responses(operation),
    }
    fields = operation.among(BODY)
    if fields:
        required = any(one.required for one in fields)
        found["requestBody"] = {
            "required": required,
            "content": {"application/json": {"schema": body_schema(fields)}},
        }
    return found


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.where == PATH,
        "description": parameter.about,
        "schema": _schema(parameter),
    }


def default_of(parameter: Parameter) -> Any:
    """The default of a parameter, as JSON has it; None if the command has its own."""
    default = parameter.default
    return default.decode() if isinstance(default, bytes) else default


def _schema(parameter: Parameter) -> Schema:
    default = default_of(parameter)
    return parameter.kind.schema | ({} if default is None else {"default": default})


def body_schema(fields: Iterable[Parameter]) -> Schema:
    """The schema of the content of a request."""
    properties: dict[str, Schema] = {}
    required: list[str] = []
    choices: list[Schema] = []
    for one in fields:
        properties[one.name] = _schema(one) | {"description": one.about}
        if isinstance(one.kind, Data):
            encoded = f"{one.name}_base64"
            properties[encoded] = one.kind.base64_schema | {"description": f"Instead of `{one.name}`: any bytes."}
            if one.required:
                choices = [{"required": [one.name]}, {"required": [encoded]}]
        elif one.required:
            required.append(one.name)
    schema: Schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return schema | ({"oneOf": choices} if choices else {})


def errors_of(operation: Operation) -> dict[int, list[str]]:
    """The codes of errors of an operation by their status."""
    found: dict[int, list[str]] = {}
    for code in (*operation.errors, *ALWAYS):
        found.setdefault(status_of(code), []).append(code)
    return dict(sorted(found.items()))


def _responses(operation: Operation) -> dict[str, Any]:
    result = operation.result
    responses = {str(result.status): _response(result.about, result.schema)}
    for status, codes in errors_of(operation).items():
        responses[str(status)] = _response(f"{HTTPStatus(status).phrase}: {', '.join(codes)}.", "Error")
    return responses


def _response(about: str, schema: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": about, "content": content}
