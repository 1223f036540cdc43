"""The counters of the repair room."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

RESTARTED: Final = 0
FORGOTTEN: Final = 1
FAILED: Final = 2
MISSING: Final = 3
"""Why a job had too few copies: a holder came back without its jobs, is no member any more, or has failed for long; or
it never had enough holders."""
_REASONS: Final = ("restarted", "forgotten", "failed", "missing")
_TEXT: Final = (
    "Copies that this node made again at another one: because a holder came back without its jobs (restarted), is no "
    "member any more (forgotten) or did not answer for long (failed), or because there were too few from the beginning "
    "(missing)."
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
