"""The error replies for what a machine refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disqued.errors import (
    DelayTooLong,
    NoJob,
    QueueFull,
    QueuePaused,
    ReplyError,
    ResultNotKept,
    StaleClaim,
    TooLate,
)
from disqued.ordered.results import Result
from disqued.orderedqueue import effects

_SIMPLE: Final[dict[int, Callable[[], ReplyError]]] = {
    effects.MAXLEN: QueueFull,
    effects.PAUSED: QueuePaused,
    effects.NO_JOB: NoJob,
    effects.TOO_LATE: TooLate,
    effects.NOT_KEPT: ResultNotKept,
}


def error_for(result: Result) -> ReplyError:
    """The error for a result that is not OK."""
    code: i64 = result.code
    if code == effects.STALE:
        return StaleClaim(result.value)
    if code == effects.TTL:
        return DelayTooLong(int(result.value // 1000))
    kind = _SIMPLE.get(int(code))
    if kind is not None:
        return kind()
    return ReplyError(f"ERR the queue refused the command: {effects.CODE_NAMES[code]}")
