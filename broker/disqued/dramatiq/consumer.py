"""Consumes a queue for a worker: fetches messages, and takes note of what became of them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

import dramatiq.errors
from dramatiq.broker import Consumer, MessageProxy
from dramatiq.common import q_name
from dramatiq.errors import DecodeError
from dramatiq.logging import get_logger
from dramatiq.message import Message

from disqued.client import (
    Backoff,
    ClockError,
    ConnectionFailed,
    ConnectionLost,
    DisqueError,
    Job,
    Loading,
    NodeLeaving,
    Reject,
    ResponseError,
)
from disqued.client.consuming import Plan
from disqued.client.outcomes import described
from disqued.client.session import ONE_ATTEMPT, Session
from disqued.client.transport import run_now
from disqued.dramatiq.keeper import Keeper

_ANOTHER_NODE: Final = (ConnectionLost, NodeLeaving, ClockError, Loading)
"""Errors after which the next fetch is from another node, or from the same one a little later."""

_BACKOFF: Final = Backoff(longest_s=1.0)
_NO_REASON: Final = "rejected"


class DisqueMessage(MessageProxy):
    """A message that a consumer returned, and the job that carried it."""

    def __init__(self, message: Message[Any], job: Job, consumer: DisqueConsumer) -> None:
        super().__init__(message)
        self.job = job
        self.consumer = consumer
        """Where the message came from. Its worker may finish it after another consumer has taken the place."""


class DisqueConsumer(Consumer):
    """Consumes one queue. One thread iterates over it; any thread may finish messages."""

    def __init__(
        self, session: Session, keeper: Keeper, queue_name: str, job_queue: str, *, prefetch: int, timeout_ms: int
    ) -> None:
        """Consume `queue_name`, whose jobs are in `job_queue`.

        At most `prefetch` messages are with the worker at once. Iterating waits for the next one up to `timeout_ms`.
        """
        self.logger = get_logger(__name__, type(self))
        self.queue_name = queue_name
        self._keeper = keeper
        self._rng = session.settings.rng
        ahead = prefetch // 2
        self._plan = Plan(session, job_queue, concurrency=max(prefetch - ahead, 1), prefetch=ahead)
        self._timeout_ms = max(timeout_ms, 1)
        self._fetched: deque[Job] = deque()
        self._freed = threading.Condition()
        self._failures = 0
        keeper.keep(self._plan)

    @property
    def outstanding_message_count(self) -> int:
        """How many messages were fetched and are not finished."""
        return len(self._plan.schedule)

    def __next__(self) -> DisqueMessage | None:
        """Return the next message; None if there is none within the timeout, or the worker has as many as it may."""
        if not self._fetched:
            if not self._has_room():
                return None
            self._fetch()
        while self._fetched:
            message = self._decode(self._fetched.popleft())
            if message is not None:
                return message
        return None

    def _has_room(self) -> bool:
        with self._freed:
            return self._freed.wait_for(lambda: self._plan.has_room, self._timeout_ms / 1000)

    def _fetch(self) -> None:
        source, fetch = self._plan.fetch(self._timeout_ms)
        try:
            jobs = run_now(source.perform(fetch, ONE_ATTEMPT))
        except ConnectionFailed as error:
            self._plan.disconnected(source)
            raise dramatiq.errors.ConnectionFailed(str(error)) from error
        except _ANOTHER_NODE as error:
            self._plan.disconnected(source)
            self._wait_after(error)
            return
        except ResponseError as error:
            if not self._plan.is_unknown_option(error, source, fetch):
                raise
            return
        self._failures = 0
        creator = self._plan.fetched(jobs, source, time.monotonic())
        self._fetched += jobs
        if creator is not None:
            self._plan.moved(creator, run_now(self._plan.source.session_at(creator)), time.monotonic())

    def _wait_after(self, error: DisqueError) -> None:
        wait_s = _BACKOFF.wait_s(self._failures, self._rng)
        self._failures += 1
        self.logger.warning("Failed to fetch messages, trying again in %.2f seconds: %s", wait_s, error)
        time.sleep(wait_s)

    def _decode(self, job: Job) -> DisqueMessage | None:
        """Return the message of a job; None if the job has none, and becomes a dead letter."""
        try:
            message = Message.decode(job.body)
        except DecodeError as error:
            self.logger.exception("Job %s has no message that can be decoded, it becomes a dead letter.", job.id)
            self.finish(job, Reject(described(error).decode()))
            return None
        if q_name(message.queue_name) != self.queue_name:  # moved here; workers look up its consumer by that name
            message = message.copy(queue_name=self.queue_name)
        return DisqueMessage(message, job, self)

    def ack(self, message: MessageProxy) -> None:
        """Acknowledge a message: it is not delivered again. The node is told soon, together with other messages."""
        if isinstance(message, DisqueMessage):
            message.consumer.finish(message.job, None)
        else:
            self._ignore(message)

    def nack(self, message: MessageProxy) -> None:
        """Make a message a dead letter, with its exception as the reason."""
        if isinstance(message, DisqueMessage):
            message.consumer.finish(message.job, Reject(_reason(message)))
        else:
            self._ignore(message)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Return messages that no actor has begun to their queues. It does not count as a failed attempt."""
        for message in messages:
            if isinstance(message, DisqueMessage):
                message.consumer.give_back([message.job])
            else:
                self._ignore(message)

    def _ignore(self, message: MessageProxy) -> None:
        self.logger.warning("Message %r does not come from this broker, nothing is done about it.", message.message_id)

    def finish(self, job: Job, error: Exception | None) -> None:
        """Note that a job of this consumer is done, or what is wrong with it."""
        self._plan.settle(job, error)
        self._settled()

    def give_back(self, jobs: Iterable[Job]) -> None:
        """Note that jobs of this consumer return to their queue; it does not count."""
        self._plan.give_back_unstarted([job.id for job in jobs])
        self._settled()

    def close(self) -> None:
        """Return the messages that the worker did not take, and send all that is known of the others.

        Those that worker threads still have are renewed and finished as before.
        """
        self.give_back(self._fetched)
        self._fetched.clear()
        self._keeper.retire(self._plan)

    def _settled(self) -> None:
        self._keeper.settled(self._plan)
        with self._freed:
            self._freed.notify_all()


def _reason(message: DisqueMessage) -> str:
    """Why a message failed: the class and text of the exception of its actor, or of a middleware."""
    error = message._exception  # noqa: SLF001 (Dramatiq has no other way to it)
    if error is not None:
        return described(error).decode()
    lines = str(message.options.get("traceback") or "").split("\n")
    return next((line for line in reversed(lines) if line.strip()), _NO_REASON)
