"""What the page can have done: the commands for it, made of what it sends as JSON.

{"action": "pause", "queue": "mail", "pause": "in" | "out" | "all" | "none", "everywhere": true | false}
{"action": "requeue", "jobs": ["D-…", …]}
{"action": "delete", "jobs": ["D-…", …]}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from disqued.console.text import name_of

MOST_JOBS: Final = 50
MOST_BYTES: Final = 4096
"""Of what is sent."""
_PAUSES: Final = ("in", "out", "all", "none")


class NoActionError(ValueError):
    """What was sent is no action; the text says why."""


def command_of(body: bytes) -> list[bytes]:
    """The words of the command. Raises NoActionError."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NoActionError("An action is sent as JSON") from error
    make = _ACTIONS.get(str(asked.get("action"))) if isinstance(asked, dict) else None
    if make is None:
        raise NoActionError(f"An action is one of: {', '.join(_ACTIONS)}")
    return make(asked)


def _pause(asked: Mapping[str, Any]) -> list[bytes]:
    queue, pause, everywhere = asked.get("queue"), asked.get("pause"), asked.get("everywhere", False)
    if not isinstance(queue, str) or pause not in _PAUSES or not isinstance(everywhere, bool):
        raise NoActionError(f"Pausing needs a queue and one of: {', '.join(_PAUSES)}")
    return [b"pause", name_of(queue), pause.encode(), *([b"bcast"] if everywhere else [])]


def _with_jobs(command: bytes) -> Callable[[Mapping[str, Any]], list[bytes]]:
    """An action on some jobs."""

    def make(asked: Mapping[str, Any]) -> list[bytes]:
        jobs = asked.get("jobs")
        if (
            not isinstance(jobs, list)
            or not 0 < len(jobs) <= MOST_JOBS
            or not all(isinstance(job, str) for job in jobs)
        ):
            raise NoActionError(f"This needs the IDs of 1 to {MOST_JOBS} jobs")
        return [command, *(job.encode("utf-8", "replace") for job in jobs)]

    return make


_ACTIONS: Final = {"pause": _pause, "requeue": _with_jobs(b"enqueue"), "delete": _with_jobs(b"deljob")}
