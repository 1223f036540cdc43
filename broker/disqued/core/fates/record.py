"""The record of one finished job, which its holders keep for a while."""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.fates.fate import DEAD, DONE, MOVED, Fate
from disqued.core.jobs.joblog import JobLog
from disqued.core.memory.accounting import body_bytes
from disqued.core.timers.alarm import Alarm

_COMPILED: Final = hasattr(Alarm, "__mypyc_attrs__")
RECORD_BYTES: Final = 350 if _COMPILED else 600
"""The size of a record without its result and its log: measured 310 and 530, with its entry in the table; links of
chains have one more."""
_EXTENDED_MS: Final = 600_000
"""A record is kept for so much longer while the job is not forgotten."""


@mypyc_attr(acyclic=True)
class Record(Alarm):
    """How a job ended. It is not a job: it is in no queue, has no state, and nothing delivers it."""

    def __init__(
        self, job_id: bytes, queue: bytes, origin: bytes, fate: Fate, until_ms: i64, log: JobLog | None = None
    ) -> None:
        super().__init__()
        self.job_id = job_id
        self.queue = queue
        """Empty if that is unknown."""
        self.origin = origin
        """The ID of the first job of its chain of moves, its own if it is the first."""
        self.fate = fate
        self.until_ms: i64 = until_ms
        """When the record is forgotten, in unix milliseconds."""
        self.log = log
        """The progress log of the job; None if it has none here."""
        self.older: Record | None = None
        self.newer: Record | None = None

    @property
    def size_bytes(self) -> i64:
        """The memory that it takes."""
        result = self.fate.result
        log = self.log
        log_bytes: i64 = 0 if log is None else log.used_bytes
        return RECORD_BYTES + log_bytes + (0 if result is None else body_bytes(len(result)))

    @property
    def is_final(self) -> bool:
        """Whether the job was acknowledged somewhere, so that a late copy of it must not be delivered."""
        return self.fate.outcome in (DONE, DEAD, MOVED)

    def ring(self, state: Any) -> None:
        """Forget the record: its time is over."""
        if state.records.get(self.job_id) is not self:  # all records were dropped at once
            return
        if state.lifecycle.table.get(self.job_id) is not None:  # its other holders must still learn of its end
            self.until_ms = state.now_ms + _EXTENDED_MS
            state.lifecycle.timers.arm(self, self.until_ms)
        else:
            state.records.remove(self)


def united(known: Fate, received: Fate) -> Fate:
    """What two nodes know about the end of one and the same job.

    DONE wins over other outcomes, and an outcome with a successor over one without. Of two results, that of the greater
    claim wins; an end without a claim takes the claim of the other one. Of two results under one claim the earlier one
    wins, so all nodes come to the same result in whatever order they learn about the two.
    """
    if (known.outcome == DONE) != (received.outcome == DONE):
        return received if received.outcome == DONE else known
    if known.outcome != DONE:
        return received if known.successor is None and received.successor is not None else known
    if known.claim != received.claim and known.claim != 0 and received.claim != 0:
        return known if known.claim > received.claim else received
    best = known
    if received.result is not None and (
        known.result is None or (received.ended_ms, received.result) < (known.ended_ms, known.result)
    ):
        best = received
    claim: i64 = max(known.claim, received.claim)
    if best.claim == claim:
        return best
    return Fate(DONE, best.ended_ms, claim, best.moves, best.successor, best.result)
