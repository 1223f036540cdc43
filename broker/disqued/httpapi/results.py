"""Converts replies of commands to JSON.

Names and bodies are bytes: text is shown as it is, other bytes in a field with `_base64` behind its name. Integers that
exceed 2^53, which many JSON readers round, are strings.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from disqued.core.jobs.job import CTIMES_PER_MS
from disqued.httpapi.operation import Values
from disqued.httpapi.statuses import ApiError
from disqued.resp.replies import Reply, Truncated

_LOST: Final = "the node replied something that this API does not know"


def text_of(reply: Reply) -> str:
    """A name; bytes that are not UTF-8 are escaped."""
    if not isinstance(reply, bytes):
        raise ApiError("INTERNAL", _LOST)
    return reply.decode("utf-8", "backslashreplace")


def list_of(reply: Reply) -> list[Reply]:
    """A list."""
    if not isinstance(reply, list):
        raise ApiError("INTERNAL", _LOST)
    return reply


def number_of(reply: Reply) -> int:
    """A number."""
    if not isinstance(reply, int):
        raise ApiError("INTERNAL", _LOST)
    return reply


def pairs_of(reply: Reply, start: int = 0) -> dict[str, Reply]:
    """A flat list of names and values, from an index on."""
    flat = list_of(reply)[start:]
    return {text_of(name): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def data_fields(name: str, value: Reply, *, base64: bool) -> dict[str, str]:
    """The field for some bytes."""
    if not isinstance(value, bytes):
        raise ApiError("INTERNAL", _LOST)
    if isinstance(value, Truncated):
        raise ApiError("TOOLARGE", f"the {name} has {value.size_bytes} bytes, which is too much for this API")
    if not base64:
        try:
            return {name: value.decode()}
        except UnicodeDecodeError:
            pass
    return {f"{name}_base64": b64encode(value).decode()}


def _wants_base64(values: Values) -> bool:
    return bool(values.get("base64"))


def plain(name: str, value: Reply) -> Any:
    """A value of unknown meaning."""
    if isinstance(value, bytes):
        return data_fields(name, value, base64=False)
    if isinstance(value, list):
        return {name: [text_of(one) for one in value]}
    return {name: value}


# --- jobs -------------------------------------------------------------------------------------------------------------


def added(reply: Reply, _values: Values) -> Any:
    """ADDJOB WITHCOPIES."""
    job_id, copies = list_of(reply)
    return {"id": text_of(job_id), "copies": None if copies is None else number_of(copies)}


_ROW: Final[Mapping[str, tuple[str, Callable[[int], Any]]]] = {
    "nacks": ("nacks", int),
    "additional-deliveries": ("additional_deliveries", int),
    "requeue-in-ms": ("requeue_in_ms", lambda ms: ms if ms >= 0 else None),
    "priority": ("priority", int),
    "claim": ("claim", str),
    "lease": ("lease_ms", int),
}
"""The fields of a job that was handed out: their names here, and how their numbers are shown."""


def delivered(row: Reply, values: Values) -> dict[str, Any]:
    """One job of GETJOB."""
    words = list_of(row)
    fields: dict[str, Any] = {"id": text_of(words[1]), "queue": text_of(words[0])}
    fields |= data_fields("body", words[2], base64=_wants_base64(values))
    for name, value in pairs_of(words, 3).items():
        if name == "meta":
            fields |= data_fields("meta", value, base64=_wants_base64(values)) if value else {}
        elif name in _ROW:
            field, shown = _ROW[name]
            fields[field] = shown(int(value) if isinstance(value, bytes) else number_of(value))
    return fields


_SHOWN: Final[Mapping[str, str]] = {
    "repl": "replicate",
    "ttl": "ttl_s",
    "delay": "delay_s",
    "retry": "retry_s",
    "nodes-delivered": "nodes_delivered",
    "nodes-confirmed": "nodes_confirmed",
    "next-requeue-within": "requeue_in_ms",
    "next-awake-within": "awake_in_ms",
}
"""The fields of SHOW that have other names here; of the others, hyphens become underscores."""
_BIG: Final = frozenset({"claim"})


def described(reply: Reply, values: Values) -> Any:
    """SHOW."""
    if reply is None:
        raise ApiError("NOJOB", "this node does not know the job")
    fields: dict[str, Any] = {}
    for name, value in pairs_of(reply).items():
        field = _SHOWN.get(name, name.replace("-", "_"))
        if name == "ctime":
            fields["created_ms"] = number_of(value) // CTIMES_PER_MS
        elif name in _BIG:
            fields[field] = str(number_of(value))
        elif name in {"body", "meta"}:
            fields |= data_fields(name, value, base64=_wants_base64(values))
        else:
            fields |= plain(field, value)
    return fields


def acknowledged(reply: Reply, _values: Values) -> Any:
    """ACKJOB and FASTACK."""
    return {"known": number_of(reply) > 0}


def given_back(reply: Reply, _values: Values) -> Any:
    """NACK."""
    if number_of(reply) == 0:
        raise ApiError("NOJOB", "this node does not know the job, or nobody is working on it")
    return {}


def postponed(reply: Reply, _values: Values) -> Any:
    """WORKING."""
    return {"postponed_s": number_of(reply)}


def deleted(reply: Reply, _values: Values) -> Any:
    """DELJOB."""
    if number_of(reply) == 0:
        raise ApiError("NOJOB", "this node does not know the job")
    return {}


def logged(reply: Reply, _values: Values) -> Any:
    """LOGJOB."""
    return {"copies": number_of(reply)}


def log(reply: Reply, values: Values) -> Any:
    """SHOWLOG."""
    return {"entries": [_entry(row, values) for row in list_of(reply)]}


def _entry(row: Reply, values: Values) -> dict[str, Any]:
    claim, seq, at_ms, entry = list_of(row)
    fields = {"claim": str(number_of(claim)), "seq": number_of(seq), "at_ms": number_of(at_ms)}
    return fields | data_fields("entry", entry, base64=_wants_base64(values))


def _result_fields(value: Reply, values: Values) -> dict[str, Any]:
    """The field for the result of a job."""
    return {"result": None} if value is None else data_fields("result", value, base64=_wants_base64(values))


def fate(reply: Reply, values: Values) -> Any:
    """RESULT."""
    if reply is None:
        raise ApiError("NOJOB", "no reachable node knows the job")
    name, ended_ms, claim, result = list_of(reply)
    outcome = text_of(name)
    return {
        "outcome": outcome,
        "ended_ms": number_of(ended_ms) or None,
        "claim": str(number_of(claim)) if claim else None,
        **_result_fields(result, values),
    }


def outcome(reply: Reply, values: Values) -> Any:
    """WAITJOB for one job; null when the time is over."""
    if reply is None:
        return {"outcome": "waiting", "result": None}
    [ended] = list_of(reply)
    _, name, result = list_of(ended)
    return {"outcome": text_of(name), **_result_fields(result, values)}


# --- queues -----------------------------------------------------------------------------------------------------------


def queues(reply: Reply, _values: Values) -> Any:
    """QSCAN."""
    cursor, names = list_of(reply)
    more = text_of(cursor)
    return {"queues": [text_of(name) for name in list_of(names)], "cursor": None if more == "0" else more}


def counted(reply: Reply, _values: Values) -> Any:
    """QCOUNT."""
    return {name.replace("-", "_"): number_of(value) for name, value in pairs_of(reply).items()}


# --- schedules --------------------------------------------------------------------------------------------------------

_LARGE: Final = frozenset({"body", "options"})
"""The fields of a schedule that a list does not have: 1,000 schedules have 32 MiB of them."""
_TIMES: Final = frozenset({"next-ms", "last-ms", "changed-ms"})


def schedules(reply: Reply, _values: Values) -> Any:
    """SCHEDULE SHOW with a pattern; a name without `*`, `?` and `[` is one schedule."""
    rows = list_of(reply)
    found = rows if not rows or isinstance(rows[0], list) else [rows]
    return {"schedules": [_schedule_fields(row, _LARGE) for row in found]}


def schedule(reply: Reply, values: Values) -> Any:
    """SCHEDULE SHOW of one schedule."""
    fields = _schedule_fields(reply, frozenset({"body"}))
    return fields | data_fields("body", pairs_of(reply)["body"], base64=_wants_base64(values))


def _schedule_fields(row: Reply, without: frozenset[str]) -> dict[str, Any]:
    """A schedule; times and texts that there are not are null."""
    fields: dict[str, Any] = {}
    for name, value in pairs_of(row).items():
        if name in without:
            continue
        field = name.replace("-", "_")
        if name in _TIMES:
            fields[field] = number_of(value) or None
        elif name == "strict":
            fields[field] = value == b"yes"
        elif isinstance(value, bytes):
            fields[field] = text_of(value) or None
        else:
            fields[field] = number_of(value)
    return fields


def schedule_deleted(reply: Reply, _values: Values) -> Any:
    """SCHEDULE DEL."""
    if number_of(reply) == 0:
        raise ApiError("NOSCHEDULE", "there is no schedule of that name")
    return {}


def done(reply: Reply, _values: Values) -> Any:
    """OK."""
    text_of(reply)
    return {}


def run(reply: Reply, _values: Values) -> Any:
    """SCHEDULE RUN: the ID of the job."""
    return {"id": text_of(reply)}
