"""From a message to the options of ADDJOB.

- The ID of the job is a hash of the publish and the queue, so a publish that is repeated at another node after a lost
  answer adds nothing. It is not made of the task's ID: `Task.retry` publishes the same task again.
- An ETA is a delay: the task waits in the broker, not in the memory of a worker. Delays are whole seconds. A task that
  arrives up to a second early waits in the worker; none is late by more than `LATE_S`.
- The time to live is longer by twice the delay, because a job can be renewed only in the first half of it.
- A task with `expires` stays for a while after that, so that a worker can report it as revoked, and can be renewed. The
  property `expiration` of AMQP, in milliseconds, is exact for messages without that header; Celery sets both.
"""

from __future__ import annotations

import time
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final
from uuid import uuid4

from disqued.kombu.envelope import AFTER, Message
from disqued.kombu.options import TransportOptions

PUBLICATION: Final = "disque_publication"
"""The property under which kombu keeps the `Publication` when it publishes the same message again."""

LATE_S: Final = 0.1
"""How late a task may be so that it waits in the broker only: `countdown=3` is a little less than 3 s from now."""

_TRANSIENT: Final = 1
_MOST_PRIORITY: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Publication:
    """One publish, however often it is tried: what the IDs of its jobs are made of, and when it began."""

    tag: bytes = field(default_factory=lambda: uuid4().bytes)
    began_s: float = field(default_factory=time.time)

    def job_id(self, queue: str) -> str:
        """Return the 24 characters in the middle of the ID of the job in this queue."""
        return b64encode(sha256(self.tag + queue.encode()).digest()[:18]).decode()


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options of ADDJOB for a message."""

    retry_s: int
    ttl_s: int
    delay_s: int | None
    priority: int | None
    replicate: int | None
    sync: int | None
    after: tuple[str, ...] = ()


def publication_of(message: Message) -> Publication:
    """Return the publish that a message belongs to."""
    found = message["properties"].get(PUBLICATION)
    return found if isinstance(found, Publication) else Publication()


def job_options(message: Message, began_s: float, options: TransportOptions, nodes: int) -> JobOptions:
    """Return the options for a message that was published at this time in a cluster of so many nodes."""
    headers: dict[str, Any] = message.get("headers") or {}
    properties: dict[str, Any] = message["properties"]
    transient = properties.get("delivery_mode") == _TRANSIENT
    eta_s = unix_seconds(headers.get("eta"))
    delay_s = 0 if eta_s is None else max(0, int(eta_s - time.time() + LATE_S))
    ttl_s = (options.transient_ttl if transient else options.ttl) + 2 * delay_s
    expires_s = unix_seconds(headers.get("expires"))
    if expires_s is not None:
        left_s = max(0, int(expires_s - began_s) + 1)
        ttl_s = min(ttl_s, 2 * max(left_s, delay_s) + options.expires_grace)
    expiration_ms = _number(properties.get("expiration"))
    if expiration_ms is not None and expires_s is None:
        ttl_s = min(ttl_s, max(1, round(expiration_ms / 1000)))
    ttl_s = max(ttl_s, 1)
    if delay_s >= ttl_s:
        delay_s = ttl_s - 1
    replicate = 1 if transient and options.replicate is None else options.replicate
    return JobOptions(
        options.retry,
        ttl_s,
        delay_s or None,
        _priority(properties),
        replicate,
        _sync(options, replicate, nodes),
        tuple(headers.get(AFTER) or ()),
    )


def _sync(options: TransportOptions, replicate: int | None, nodes: int) -> int | None:
    if options.sync is not None:
        return options.sync if replicate is None else min(options.sync, replicate)
    if nodes < 3 or (replicate is not None and replicate < 3):
        return None
    return 2


def _priority(properties: dict[str, Any]) -> int | None:
    number = _number(properties.get("priority"))
    return None if not number else max(-_MOST_PRIORITY, min(_MOST_PRIORITY, int(number)))


def _number(value: object) -> float | None:
    try:
        return None if value is None else float(value)  # type: ignore[arg-type]  # whatever it is
    except (TypeError, ValueError):
        return None


def unix_seconds(value: object) -> float | None:
    """Return the time that a header names, as ISO text or `datetime`; times without a zone are UTC. None for others."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
