"""Reads requests: which operation, and its values."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_to_bytes

from disqued.core.jobs.jobid import JOB_ID_BYTES, is_job_id
from disqued.httpapi.kinds import Data, InvalidValueError
from disqued.httpapi.operation import BODY, PATH, QUERY, Operation, Parameter
from disqued.httpapi.statuses import INVALID, ApiError
from disqued.httpapi.table import OPERATIONS

_MAX_QUERY_FIELDS: Final = 16
_JOBS: Final = "jobs/"


def find(method: str, path: str) -> Operation:
    """The operation of a request, by the path below `/v1/`. HEAD is GET. Raises ApiError."""
    parts = parts_of(path)
    candidates = [operation for operation in OPERATIONS if _matches(operation, parts)]
    if not candidates:
        raise ApiError("NOTFOUND", "there is no such path; see /v1/docs")
    wanted = "GET" if method == "HEAD" else method
    for operation in candidates:
        if operation.method == wanted:
            return operation
    methods = ", ".join(operation.method for operation in candidates)
    raise ApiError("METHOD", f"this path has no {method}; use {methods}")


def parts_of(path: str) -> list[str]:
    """The parts of a path. A job ID is one part, although it can contain slashes."""
    job_id = path[len(_JOBS) : len(_JOBS) + JOB_ID_BYTES]
    rest = path[len(_JOBS) + JOB_ID_BYTES :]
    if path.startswith(_JOBS) and is_job_id(job_id.encode()) and rest[:1] in {"", "/"}:
        return [_JOBS.rstrip("/"), job_id, *rest.split("/")[1:]]
    return path.split("/")


def _matches(operation: Operation, parts: list[str]) -> bool:
    segments = operation.segments
    return len(segments) == len(parts) and all(
        segment == part or (segment.startswith("{") and part != "")
        for segment, part in zip(segments, parts, strict=True)
    )


def values_of(operation: Operation, path: str, query: str, body: bytes) -> dict[str, Any]:
    """The values of a request. Raises ApiError with INVALID."""
    values: dict[str, Any] = {}
    for segment, part in zip(operation.segments, parts_of(path), strict=True):
        if segment.startswith("{"):
            parameter = next(one for one in operation.among(PATH) if one.name == segment[1:-1])
            values[parameter.name] = _checked(parameter.name, parameter.kind.read, unquote_to_bytes(part))
    _read_query(operation, query, values)
    _read_body(operation, body, values)
    for parameter in operation.parameters:
        _complete(parameter, values)
    return values


def _complete(parameter: Parameter, values: dict[str, Any]) -> None:
    """Set the default of a parameter, and refuse it if it is missing, or has no effect."""
    name = parameter.name
    is_of_use = not parameter.needs or parameter.needs in values
    if name in values:
        if not is_of_use:
            raise ApiError(INVALID, f"{name} has no effect without {parameter.needs}")
    elif parameter.required:
        also = f" or {name}_base64" if isinstance(parameter.kind, Data) else ""
        raise ApiError(INVALID, f"{name}{also} is missing")
    elif parameter.default is not None and is_of_use:
        values[name] = parameter.default


def _checked(name: str, read: Any, value: object) -> Any:
    try:
        return read(value)
    except InvalidValueError as error:
        raise ApiError(INVALID, f"{name} {error}") from error


def _read_query(operation: Operation, query: str, values: dict[str, Any]) -> None:
    known = {parameter.name: parameter for parameter in operation.among(QUERY)}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="surrogateescape", max_num_fields=_MAX_QUERY_FIELDS)
    except ValueError:
        raise ApiError(INVALID, "the query has too many fields") from None
    for name, text in pairs:
        parameter = known.get(name)
        if parameter is None:
            raise ApiError(INVALID, f"unknown query field {_quoted(name)}; known: {', '.join(known) or 'none'}")
        values[name] = _checked(name, parameter.kind.read_text, text)


def _read_body(operation: Operation, body: bytes, values: dict[str, Any]) -> None:
    known = operation.among(BODY)
    try:
        given = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError):
        raise ApiError(INVALID, "the content must be a JSON object") from None
    if not isinstance(given, dict):
        raise ApiError(INVALID, "the content must be a JSON object")
    for parameter in known:
        _read_field(parameter, given, values)
    if given:
        names = [name for one in known for name in field_names(one)]
        raise ApiError(INVALID, f"unknown field {_quoted(next(iter(given)))}; known: {', '.join(names) or 'none'}")


def _read_field(parameter: Parameter, given: dict[str, Any], values: dict[str, Any]) -> None:
    """Move a value from the JSON object to the values."""
    name, kind = parameter.name, parameter.kind
    encoded = f"{name}_base64"
    if isinstance(kind, Data) and encoded in given:
        if name in given:
            raise ApiError(INVALID, f"give {name} or {encoded}, not both")
        values[name] = _checked(encoded, kind.read_base64, given.pop(encoded))
    elif name in given:
        value = given.pop(name)
        if value is not None:
            values[name] = _checked(name, kind.read, value)


def field_names(parameter: Parameter) -> tuple[str, ...]:
    """The names of the fields of a parameter in a JSON object."""
    encoded = (f"{parameter.name}_base64",) if isinstance(parameter.kind, Data) else ()
    return (parameter.name, *encoded)


def _quoted(name: str) -> str:
    return json.dumps(name[:64])
