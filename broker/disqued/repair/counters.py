"""The counters of the repair room."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

RESTARTED: Final = 0
FORGOTTEN: Final = 1
FAILED: Final = 2
MISSING: Final = 3
COMPARED: Final = 4
"""Why a job had too few copies: a holder came back without its jobs, is no member any more, or has failed for long; or
it never had enough holders, or a comparison of two nodes found that one lacked the job."""
_REASONS: Final = ("restarted", "forgotten", "failed", "missing", "compared")
_TEXT: Final = (
    "Copies that this node made again at another one: because a holder came back without its jobs (restarted), is no "
    "member any more (forgotten) or did not answer for long (failed), because there were too few from the beginning "
    "(missing), or because a comparison of two nodes showed that one lacks the job (compared)."
)

REBUILT: Final = tuple(
    Counter(
        f"copies_rebuilt_{reason}",
        _TEXT,
        metric="disque_copies_rebuilt_total",
        labels=(("reason", reason),),
        shown=False,
    )
    for reason in _REASONS
)
"""By reason."""
COUNTERS: Final = REBUILT
