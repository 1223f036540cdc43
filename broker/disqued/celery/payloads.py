"""The bytes of states and results: small states, and large results made to fit.

A state on the way to the result leaves out what is empty, because the log of a job has room for 64 KiB in all. What is
longer than a node keeps is compressed; then it gives up what Celery adds to a result; then a failure gives up most of
its text. Only a return value is never changed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from disqued.celery.errors import ResultTooLarge

MOST_STATE_BYTES: Final = 8 << 10
"""The longest state on the way to a result."""
_COMPRESSED: Final = b"\x01"
"""The first byte of compressed payloads; no serializer of Celery begins with it."""
_TEXT_CHARACTERS: Final = 2000
"""What is left of a text of a failure that is too long."""
_MOST_ARGUMENTS: Final = 5
"""How many arguments of its exception are left."""
_EMPTY: Final = frozenset({"traceback", "children", "date_done"})
"""What a state on the way rarely has."""

Encode = Callable[[dict[str, Any]], bytes]
"""Serializes a dictionary."""


def pack(meta: dict[str, Any], encode: Encode, most_bytes: int) -> bytes:
    """Return the bytes of a state or result, with as much of it as fits.

    Raises:
        ResultTooLarge: the result itself does not fit.
    """
    size = 0
    for version in _versions(meta):
        payload = encode(version)
        if len(payload) > most_bytes:
            payload = _COMPRESSED + zlib.compress(payload)
        if len(payload) <= most_bytes:
            return payload
        size = size or len(payload)
    raise ResultTooLarge(
        f"the result of task {meta['task_id']} has {size} bytes after compression, and nodes keep {most_bytes}: store "
        "it elsewhere, and return its address"
    )


def unpack(payload: bytes) -> bytes:
    """Return the bytes as they were serialized."""
    return zlib.decompress(payload[1:]) if payload.startswith(_COMPRESSED) else payload


def shorten_state(meta: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is empty, and the task's ID."""
    return {name: value for name, value in meta.items() if name != "task_id" and (name not in _EMPTY or value)}


def complete_state(meta: dict[str, Any], task_id: str) -> dict[str, Any]:
    """Add what was left out."""
    return {"traceback": None, "children": [], "date_done": None, "task_id": task_id, **meta}


def _versions(meta: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what to store, best first."""
    yield meta
    if "args" in meta:
        meta = meta | {"args": None, "kwargs": None}
        yield meta
    if meta.get("children"):
        meta = meta | {"children": []}
        yield meta
    if meta.get("traceback"):
        meta = meta | {"traceback": "[...]\n" + str(meta["traceback"])[-_TEXT_CHARACTERS:]}
        yield meta
    failure = meta["result"]
    if isinstance(failure, dict) and "exc_type" in failure:
        given = failure.get("exc_message")
        arguments = given[:_MOST_ARGUMENTS] if isinstance(given, list | tuple) else [given]
        yield meta | {"result": failure | {"exc_message": [_shortened(argument) for argument in arguments]}}
    elif isinstance(failure, BaseException):
        yield meta | {"result": ResultTooLarge(_shortened(f"{type(failure).__name__}: {failure}"))}


def _shortened(argument: object) -> str:
    text = str(argument)
    return text if len(text) <= _TEXT_CHARACTERS else f"{text[:_TEXT_CHARACTERS]} [...]"
