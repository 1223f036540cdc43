"""Adds messages: each is one job, with an ID that the publisher chooses, so a repeated ADDJOB adds no second one.

The ID is not made of the ID of the message, because Dramatiq's retries publish the same message again.
"""

from __future__ import annotations

import base64
import math
import secrets
import time
from dataclasses import dataclass
from typing import Final

from disqued.client import Backoff, NotReplicated, ResponseError
from disqued.client.adding import add
from disqued.client.calls import hello
from disqued.client.session import Session
from disqued.client.transport import run_now

MOST_PRIORITY: Final = 2**31 - 1
LEAST_PRIORITY: Final = -(2**31)

_RANDOM_BYTES: Final = 18
_MOST_MINUTES: Final = 65535
_COPIES_CONFIRMED: Final = 2
"""A message survives the loss of one node, and one node of three may be away when it is added."""
_PAUSES: Final = Backoff(longest_s=1.0)
_SYNC_TOO_HIGH: Final = "ERR SYNC must be at most REPLICATE"
_ASK_AGAIN_S: Final = 30.0
"""How long a queue whose jobs have one copy is remembered; the cluster may have more nodes then."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """How messages are added; `DisqueBroker` documents them."""

    replicate: int | None
    sync: int | None
    retry_s: int
    ttl_s: int
    timeout_ms: int


class Publisher:
    """Adds messages to queues. Threads can share it."""

    def __init__(self, session: Session, options: JobOptions) -> None:
        self._session = session
        self._options = options
        self._single_until_s: dict[str, float] = {}
        """The queues whose jobs have a single copy."""

    def add(self, queue: str, body: bytes, *, delay_ms: int, priority: int) -> None:
        """Add a message. `delay_ms` is rounded up to a second, so that a message is never early.

        Raises:
            DisqueError: it was not added, or nobody knows; see `Client.add`.
        """
        delay_s = math.ceil(delay_ms / 1000)
        job_id = self._new_id(self._options.ttl_s + delay_s)
        give_up_s = time.monotonic() + self._options.timeout_ms / 1000
        failures = 0
        while True:
            try:
                self._add_here(queue, body, job_id, delay_s, priority)
            except NotReplicated:  # this node may be cut off from the others; another one takes the same job
                if time.monotonic() >= give_up_s:
                    raise
                self._session.use_another_node()
                time.sleep(_PAUSES.wait_s(failures, self._session.settings.rng))
                failures += 1
            else:
                return

    def _add_here(self, queue: str, body: bytes, job_id: str, delay_s: int, priority: int) -> None:
        """Add a job at the node in use, with as many confirmed copies as a job of the queue can have, at most two."""
        try:
            self._add(queue, body, job_id, delay_s, priority, self._sync(queue))
        except ResponseError as error:
            if self._options.sync is not None or not str(error).startswith(_SYNC_TOO_HIGH):
                raise
            self._single_until_s[queue] = time.monotonic() + _ASK_AGAIN_S
            self._add(queue, body, job_id, delay_s, priority, None)

    def _new_id(self, ttl_s: int) -> str:
        """The ID of a new job, as the node in use would make it: consumers move to the node that their jobs name."""
        if self._session.node_id is None:
            run_now(self._session.perform(hello()))
        creator = (self._session.node_id or "")[:8]
        middle = base64.b64encode(secrets.token_bytes(_RANDOM_BYTES)).decode()
        minutes = min(ttl_s // 60, _MOST_MINUTES) | 1  # odd: it may be delivered again
        return f"D-{creator:0<8}-{middle}-{minutes:04x}"

    def _sync(self, queue: str) -> int | None:
        """How many copies to wait for. An error reply tells that a single node, or a setting, makes only one."""
        if self._options.sync is not None:
            return self._options.sync
        if self._options.replicate is not None:
            return min(self._options.replicate, _COPIES_CONFIRMED)
        return None if self._single_until_s.get(queue, 0.0) > time.monotonic() else _COPIES_CONFIRMED

    def _add(self, queue: str, body: bytes, job_id: str, delay_s: int, priority: int, sync: int | None) -> None:
        options = self._options
        request = add(
            queue,
            body,
            timeout_ms=options.timeout_ms,
            replicate=options.replicate,
            sync=sync,
            delay_s=delay_s or None,
            retry_s=options.retry_s,
            ttl_s=options.ttl_s + delay_s,
            priority=max(LEAST_PRIORITY, min(priority, MOST_PRIORITY)) or None,
            job_id=job_id,
        )
        run_now(self._session.perform(request))
