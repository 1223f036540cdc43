"""The calls for jobs that fail: NACK with its options, MOVEJOB and REDRIVE. `calls` describes what a call is.

MOVEJOB may be repeated: every node derives the same ID for the successor of a job, so a second move changes nothing.
NACK may not, because another worker may have the job by then. The start and the end of a REDRIVE may not, because the
second attempt gets an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from disqued.client import replies
from disqued.client.calls import Call
from disqued.client.values import RedriveStatus
from disqued.client.wire import flag_words, option_words

REASON_BYTES: Final = 1024
"""The longest reason that a node takes."""

_MOVE_WAIT_S: Final = 5.0
"""How long a node waits for moves before it replies."""


def nack(
    *ids: str,
    claim: int | None = None,
    delay_ms: int | None = None,
    reason: str | None = None,
    uncounted: bool = False,
    dead: bool = False,
) -> Call[int]:
    """Return jobs to their queues, counted as a failed attempt (Disque command NACK). Returns how many could be.

    The jobs are queued again at once, or after the back-off that their queue has set. Nodes of the original know none
    of the options and refuse the call with `BadJobId`.

    Args:
        ids: The jobs.
        claim: The claim with which `get` returned the job, the only one of the call.
        delay_ms: Queue the jobs again after this time.
        reason: Why the jobs failed: kept with them, and shown for dead letters. Cut to 1 KiB of UTF-8.
        uncounted: Do not count a failed attempt, for example because the worker stops.
        dead: Move the jobs to the dead-letter queue now; not together with `delay_ms` or `uncounted`.

    Raises:
        BadJobId: an argument is not a job ID, or the node knows no options; no job was returned.
        StaleClaim: the job was delivered again since the delivery of `claim`; it was not returned.
        DelayTooLong: the only job of the call expires before the delay ends; it was not returned.
        ConnectionLost: unknown; jobs that were not returned are delivered again after their retry time.
    """
    text = None if reason is None else short_reason(reason)
    options = option_words(CLAIM=claim, PDELAY=delay_ms, REASON=text)
    return Call(("NACK", *ids, *options, *flag_words(UNCOUNTED=uncounted, DEAD=dead)), replies.integer)


def short_reason(text: str) -> bytes:
    """Return a reason as UTF-8, cut at a character so that a node takes it."""
    encoded = text.encode("utf-8", "replace")
    return encoded[:REASON_BYTES].decode("utf-8", "ignore").encode()


def movejob(ids: str | Sequence[str], queue: str, *, keep_counters: bool = False) -> Call[int]:
    """Move jobs to another queue (Disque command MOVEJOB). Returns how many were moved.

    Jobs that this node knows and that no worker has are moved: each has a successor in the other queue, with an ID of
    its own. Moves that take longer than 5 seconds are not counted and continue. `keep_counters` keeps the number of
    attempts; otherwise the job has its full limit again.

    Raises:
        BadJobId: an argument is not a job ID; no job was moved.
        ResponseError: a job is in that queue already; those before it were moved.
    """
    names = (ids,) if isinstance(ids, str) else tuple(ids)
    if not names:
        raise ValueError("movejob() needs at least one job")
    flags = flag_words(UNCOUNTED=keep_counters)
    return Call(("MOVEJOB", *names, "TO", queue, *flags), replies.integer, repeat=True, wait_s=_MOVE_WAIT_S)


def redrive(
    queue: str,
    *,
    to: str | None = None,
    count: int | None = None,
    rate: int | None = None,
    reason: str | None = None,
    older_s: int | None = None,
) -> Call[str]:
    """Begin to move the dead letters of a queue back to the queues that they failed in (Disque command REDRIVE).

    Returns `started` at once; `redrive_status` says how far it is. The jobs start again with no failed attempts.

    Args:
        queue: The queue of dead letters, for example `mail.dead`.
        to: Move all jobs to this queue instead.
        count: Move at most this many jobs.
        rate: Move this many jobs per second, all nodes together; the node's default is 500.
        reason: Only jobs whose reason matches this glob of at most 256 bytes.
        older_s: Only jobs that have been dead letters for this long.

    Raises:
        ResponseError: the node does not know REDRIVE, or jobs of the queue are being redriven already.
        ConnectionLost: unknown; `redrive_status` says whether it began.
    """
    options = option_words(TO=to, COUNT=count, RATE=rate, REASON=reason, OLDER=older_s)
    return Call(("REDRIVE", queue, *options), replies.text)


def redrive_status(queue: str) -> Call[RedriveStatus | None]:
    """Return how far the last REDRIVE of a queue is, over all nodes; None if this node knows none (REDRIVE STATUS)."""
    return Call(("REDRIVE", queue, "STATUS"), replies.optional(replies.redrive_status), repeat=True)


def redrive_cancel(queue: str) -> Call[str]:
    """End the REDRIVE of a queue on all nodes; jobs that were moved stay moved (REDRIVE CANCEL).

    Raises:
        ResponseError: none is running, as far as this node knows.
    """
    return Call(("REDRIVE", queue, "CANCEL"), replies.text)
