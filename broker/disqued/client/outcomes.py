"""What becomes of a job whose handler did not return: how the consumer gives it back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from disqued.client import failing
from disqued.client.calls import Call


class Retry(Exception):
    """Raised by a handler: deliver the job again, after `delay_s` seconds or when the back-off of its queue says.

    `reason` is kept with the job. Without one, the exception that this one was raised from is the reason.
    """

    def __init__(self, delay_s: float | None = None, reason: str | None = None) -> None:
        if delay_s is not None and delay_s < 0:
            raise ValueError("delay_s must not be negative")
        super().__init__("retry" if delay_s is None else f"retry in {delay_s} s")
        self.delay_s = delay_s
        self.reason = reason


class Reject(Exception):
    """Raised by a handler: the job can never succeed, so it becomes a dead letter now, whatever its limit is."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "rejected")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class GiveBack:
    """How jobs are given back: the options of NACK. Jobs with equal ones are given back together."""

    reason: bytes | None = None
    delay_ms: int | None = None
    uncounted: bool = False
    dead: bool = False

    def call(self, *ids: str) -> Call[int]:
        """Return the call that gives these jobs back."""
        reason = None if self.reason is None else self.reason.decode()
        return failing.nack(*ids, delay_ms=self.delay_ms, reason=reason, uncounted=self.uncounted, dead=self.dead)


PLAIN: Final = GiveBack()
"""Without options, as nodes of the original understand it."""
UNSTARTED: Final = GiveBack(uncounted=True)
"""A job that was fetched and that no handler has begun."""
INTERRUPTED: Final = GiveBack(reason=b"the worker stopped before the handler ended")
"""A job whose handler did not end before the consumer did: an attempt, because the job itself may hang."""


def give_back_after(error: Exception) -> GiveBack:
    """Return how to give back a job whose handler raised this exception."""
    if isinstance(error, Retry):
        delay_ms = None if error.delay_s is None else max(round(error.delay_s * 1000), 1)
        return GiveBack(reason=_reason(error), delay_ms=delay_ms)
    if isinstance(error, Reject):
        return GiveBack(reason=_reason(error), dead=True)
    return GiveBack(reason=described(error))


def _reason(error: Retry | Reject) -> bytes | None:
    if error.reason is not None:
        return failing.short_reason(error.reason)
    return None if error.__cause__ is None else described(error.__cause__)


def described(error: BaseException) -> bytes:
    """Return the class and the message of an exception, as the last line of a traceback has them: a reason for NACK."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 (a broken __str__ must not lose the job's result)
        message = "<exception str() failed>"
    name = type(error).__qualname__
    return failing.short_reason(f"{name}: {message}" if message else name)
