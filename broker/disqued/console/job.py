"""One job: what this node has of it (SHOW), how it ended (RESULT), and its progress log (SHOWLOG)."""

from __future__ import annotations

from typing import Any, Final

from disqued.console.figures import bytes_of
from disqued.console.jobs import job_fields
from disqued.console.text import is_text, shown
from disqued.resp.replies import Failure, Reply, Truncated

ENTRIES: Final = 100
"""The last entries of a progress log that are shown."""
_UNENDED: Final = "waiting"


def questions(job_id: bytes) -> list[list[bytes]]:
    """The commands whose replies `described` takes."""
    return [[b"show", job_id], [b"result", job_id], [b"showlog", job_id]]


def described(replies: list[Reply], now_ms: int) -> dict[str, Any]:
    """The job as this node has it, its end, and the end of its log; null where there is none or it may not be read."""
    show, result, log = replies
    entries = log if isinstance(log, list) else []
    return {
        "job": job_fields(show, now_ms),
        "end": _end(result),
        "is_known": isinstance(result, list),
        "entries": len(entries),
        "log": [_entry(row) for row in entries[-ENTRIES:]],
    }


def refusal(replies: list[Reply]) -> str:
    """Why the node does not tell about the job; empty if it does."""
    show, result, _ = replies
    refused = [reply.message for reply in (show, result) if isinstance(reply, Failure)]
    return refused[0] if len(refused) == 2 else ""  # a user may read one of them only


def _end(reply: Reply) -> dict[str, Any] | None:
    """How the job ended; None if it did not, or no node knows."""
    match reply:
        case [bytes(outcome), int(ended_ms), int(claim), result] if outcome.decode() != _UNENDED:
            data = bytes_of(result)
            return {
                "outcome": outcome.decode(),
                "ended_ms": ended_ms or None,
                "claim": str(claim) if claim else "",
                "result": shown(data, breaks=True),
                "result_bytes": None if result is None else _size_of(result),
                "is_text": is_text(data),
            }
    return None


def _size_of(data: Reply) -> int:
    return data.size_bytes if isinstance(data, Truncated) else len(bytes_of(data))


def _entry(row: Reply) -> dict[str, Any]:
    """One entry of a progress log; a claim does not fit a number of JavaScript."""
    claim, seq, at_ms, entry = row if isinstance(row, list) else (0, 0, 0, None)
    return {"claim": str(claim) if claim else "", "seq": seq, "at_ms": at_ms, "entry": shown(bytes_of(entry))}
