"""Messages that a schedule of the broker repeats: what must differ from run to run is added when they are delivered.

The body of a schedule never changes, but each run is a task with an ID of its own, and expires a while after its own
beginning. So a message that is made for a schedule has `RUN_ID` as the task's ID, and the seconds after which it
expires in the header `EXPIRES_AFTER`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

from disqued.client import Client, Job
from disqued.kombu.envelope import Message

RUN_ID: Final = "disque-scheduled-run"
"""Stands for the ID of the task in a message of a schedule."""

EXPIRES_AFTER: Final = "disque_expires_after"
"""The header with the seconds from the time at which a run is due until it expires."""

_IDS: Final = ("id", "root_id")


def task_id_of(job_id: str) -> str:
    """Return the ID of the task that a scheduled job is. It is the same in every delivery of the job."""
    return str(uuid5(NAMESPACE_OID, job_id))


def complete(message: Message, job: Job, client: Client) -> Message:
    """Return the message of a job, with the ID and the time of this run if it comes from a schedule."""
    headers: dict[str, Any] | None = message.get("headers")
    if not headers or headers.get("id") != RUN_ID:
        return message
    task_id = task_id_of(job.id)
    headers |= {name: task_id for name in _IDS if headers.get(name) == RUN_ID}
    message["properties"]["correlation_id"] = task_id
    after_s = headers.pop(EXPIRES_AFTER, None)
    if after_s is not None:
        headers["expires"] = _expires(after_s, lambda: client.show(job.id))
    return message


def _expires(after_s: float, show: Callable[[], Any]) -> str | None:
    details = show()
    if details is None:  # it has just ended, so this delivery is a repetition
        return None
    added_s = details.ctime / 1e9
    return datetime.fromtimestamp(added_s + after_s, UTC).isoformat()
