"""The actions of the page: converts an action in JSON to a command.

{"action": "pause", "queue": "mail", "pause": "in" | "out" | "all" | "none", "everywhere": true | false}
{"action": "requeue", "jobs": ["D-…", …]}
{"action": "delete", "jobs": ["D-…", …]}
{"action": "cancel", "jobs": ["D-…", …]}
{"action": "move", "jobs": ["D-…", …], "queue": "mail"}
{"action": "redrive", "queue": "mail.dead", "rate": 100, "reason": "…", all of the queue without a reason}
{"action": "cancel-redrive", "queue": "mail.dead"}
{"action": "schedule", "name": "nightly", "change": "run" | "pause" | "resume"}

Names of queues and schedules, and reasons are keys (`console.text`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from disqued.console.text import name_of
from disqued.moves.redrivetask import MOST_PATTERN_BYTES as MAX_PATTERN_BYTES
from disqued.moves.redriving import DEFAULT_RATE

MAX_JOBS: Final = 50
MAX_RATE: Final = 1_000_000
MAX_BYTES: Final = 4096
"""Maximum length of the JSON text."""
_PAUSES: Final = ("in", "out", "all", "none")
_CHANGES: Final = ("run", "pause", "resume")


class InvalidActionError(ValueError):
    """The action is invalid; the text says why."""


def command_of(body: bytes) -> list[bytes]:
    """Return the words of the command. Raises InvalidActionError."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidActionError("invalid JSON") from error
    make = _ACTIONS.get(str(asked.get("action"))) if isinstance(asked, dict) else None
    if make is None:
        raise InvalidActionError(f"invalid action; use one of: {', '.join(_ACTIONS)}")
    return make(asked)


def _pause(asked: Mapping[str, Any]) -> list[bytes]:
    queue, pause, everywhere = asked.get("queue"), asked.get("pause"), asked.get("everywhere", False)
    if not isinstance(queue, str) or pause not in _PAUSES or not isinstance(everywhere, bool):
        raise InvalidActionError(f"invalid pause; give a queue and one of: {', '.join(_PAUSES)}")
    return [b"pause", name_of(queue), pause.encode(), *([b"bcast"] if everywhere else [])]


def _with_jobs(command: bytes) -> Callable[[Mapping[str, Any]], list[bytes]]:
    """Return the converter of an action on jobs."""
    return lambda asked: [command, *_jobs(asked)]


def _jobs(asked: Mapping[str, Any]) -> list[bytes]:
    jobs = asked.get("jobs")
    if not isinstance(jobs, list) or not 0 < len(jobs) <= MAX_JOBS or not all(isinstance(job, str) for job in jobs):
        raise InvalidActionError(f"invalid jobs; give the IDs of 1 to {MAX_JOBS} jobs")
    return [job.encode("utf-8", "replace") for job in jobs]


def _move(asked: Mapping[str, Any]) -> list[bytes]:
    queue = asked.get("queue")
    if not isinstance(queue, str):
        raise InvalidActionError("invalid move; give a queue")
    return [b"movejob", *_jobs(asked), b"TO", name_of(queue)]


def _redrive(asked: Mapping[str, Any]) -> list[bytes]:
    queue, reason = asked.get("queue"), asked.get("reason")
    if not isinstance(queue, str) or not isinstance(reason, str | None) or reason == "":
        raise InvalidActionError("invalid redrive; give a queue, and a reason or none")
    rate = asked.get("rate", DEFAULT_RATE)
    if type(rate) is not int or not 0 < rate <= MAX_RATE:
        raise InvalidActionError(f"invalid rate; give 1 to {MAX_RATE} jobs per second")
    pattern = [] if reason is None else [b"REASON", pattern_of(name_of(reason))]
    return [b"redrive", name_of(queue), b"RATE", b"%d" % rate, *pattern]


def _cancel_redrive(asked: Mapping[str, Any]) -> list[bytes]:
    queue = asked.get("queue")
    if not isinstance(queue, str):
        raise InvalidActionError("invalid cancel-redrive; give a queue")
    return [b"redrive", name_of(queue), b"CANCEL"]


def _schedule(asked: Mapping[str, Any]) -> list[bytes]:
    name, change = asked.get("name"), asked.get("change")
    if not isinstance(name, str) or change not in _CHANGES:
        raise InvalidActionError(f"invalid schedule; give a name and one of: {', '.join(_CHANGES)}")
    return [b"schedule", name_of(name), change.upper().encode()]


def pattern_of(text: bytes) -> bytes:
    """Return the pattern that matches this text only; of a long one, all texts with the same beginning."""
    parts = [re.sub(rb"[*?\[\\]", rb"\\\g<0>", text[at : at + 1]) for at in range(len(text))]
    if sum(map(len, parts)) <= MAX_PATTERN_BYTES:
        return b"".join(parts)
    while sum(map(len, parts)) >= MAX_PATTERN_BYTES:
        parts.pop()
    return b"".join(parts) + b"*"


_ACTIONS: Final = {
    "pause": _pause,
    "requeue": _with_jobs(b"enqueue"),
    "delete": _with_jobs(b"deljob"),
    "cancel": _with_jobs(b"fastack"),
    "move": _move,
    "redrive": _redrive,
    "cancel-redrive": _cancel_redrive,
    "schedule": _schedule,
}
