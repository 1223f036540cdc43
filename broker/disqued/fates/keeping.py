"""Keeps the records of finished jobs: for how long, and which are forgotten when there are too many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.fates.fate import DEAD, DONE, MOVED, Fate
from disqued.core.fates.record import Record, united
from disqued.core.jobs.attributes import MOVES, ORIGIN_ID, RETAIN
from disqued.core.jobs.claims import NO_NODE, claim_of
from disqued.core.jobs.jobid import can_exist
from disqued.fates.counters import RECORDS_DROPPED, RECORDS_KEPT, RESULTS_STALE
from disqued.fates.onfile import note_forgotten, note_kept

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.core.jobs.joblog import JobLog
    from disqued.core.runtime.state import NodeState

LEAST_KEPT_S: Final = 600
"""How long the record of a job is kept at least if it is watched, or a link of a chain of moves."""
_RETRIES_KEPT: Final = 2
"""The record of a link of a chain is kept for at least so many retry times."""
FULL_PERCENT: Final = 95
"""From this share of the bound on, the oldest records are forgotten."""
WITHOUT_MAXMEMORY_BYTES: Final = 64 << 20
"""The bound without `maxmemory`."""
_MOST_DROPS: Final = 100
"""Records that are dropped for one that is added: results differ in size."""


class Keeping:
    """The records of one node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state

    def limit_bytes(self) -> i64:
        """How much memory the records may take."""
        maximum_bytes: i64 = self._state.lifecycle.memory.maximum_bytes
        if maximum_bytes <= 0:
            return WITHOUT_MAXMEMORY_BYTES
        return maximum_bytes // 100 * self._state.config.records_max

    def note_end(self, job: Job, outcome: i64, successor: bytes | None) -> None:
        """Make the record of a job that ends here."""
        state = self._state
        fate = Fate(outcome, state.now_ms, last_claim(job), moves_of(job), successor)
        self._keep(job.id, job.queue, origin_of(job), fate, state.now_ms + self._kept_s(job, outcome) * 1000)

    def note_result(self, job_id: bytes, result: bytes, claim: i64) -> bool:
        """Keep the result with which a job is about to be acknowledged; False if nobody would keep it.

        A node without the job keeps it until a holder has it.
        """
        state = self._state
        job = state.lifecycle.table.get(job_id)
        known = state.records.get(job_id)
        if known is not None:
            fate = Fate(DONE, state.now_ms, claim, known.fate.moves, None, result)
            self._keep(job_id, known.queue, known.origin, fate, known.until_ms)
        elif job is None or job.is_dummy:
            fate = Fate(DONE, state.now_ms, claim, 0, None, result)
            if state.view.size > 1 and can_exist(job_id):
                self._keep(job_id, b"", job_id, fate, state.now_ms + LEAST_KEPT_S * 1000)
        else:
            kept_s = self._kept_s(job, DONE)
            fate = Fate(DONE, state.now_ms, claim or last_claim(job), moves_of(job), None, result)
            self._keep(job_id, job.queue, origin_of(job), fate, state.now_ms + kept_s * 1000)
            return kept_s > 0
        return True

    def note_received(self, job_id: bytes, fate: Fate, keep_ms: i64) -> None:
        """Keep what another node knows about the end of a job, if this node has the job or its record."""
        state = self._state
        job = state.lifecycle.table.get(job_id)
        known = state.records.get(job_id)
        if known is not None:
            self._keep(job_id, known.queue, known.origin, fate, state.now_ms + keep_ms)
        elif job is not None:
            # if the job was only queued again, no greater claim is known, and perhaps no worker will ever get one
            greatest = last_claim(job)
            if 0 < fate.claim < greatest and fate.result is not None:
                state.counters.add(RESULTS_STALE)
                fate = Fate(fate.outcome, fate.ended_ms, greatest, fate.moves, fate.successor)
            self._keep(job_id, job.queue, origin_of(job), fate, state.now_ms + keep_ms)

    def _kept_s(self, job: Job, outcome: i64) -> i64:
        """For how long the record of a job is kept, in seconds."""
        extra = job.extra
        retain_s: i64 = 0
        is_link = outcome in (DEAD, MOVED)
        if extra is not None:
            retain_s = int.from_bytes(extra.get(RETAIN) or b"", "little")
            is_link = is_link or extra.get(ORIGIN_ID) is not None
        if is_link:
            return max(retain_s, LEAST_KEPT_S, _RETRIES_KEPT * job.retry_s)
        return max(retain_s, LEAST_KEPT_S if job.id in self._state.lifecycle.watched else 0)

    def _keep(self, job_id: bytes, queue: bytes, origin: bytes, fate: Fate, until_ms: i64) -> None:
        """Keep a record, united with what is known already."""
        state = self._state
        records = state.records
        if until_ms <= state.now_ms:
            return
        known = records.get(job_id)
        log = self._take_log(job_id)
        if known is None:
            record = Record(job_id, queue, origin, fate, until_ms, log)
            records.add(record)
            state.counters.add(RECORDS_KEPT)
        else:
            fate = united(known.fate, fate)
            if fate is known.fate and until_ms <= known.until_ms and log is None:
                return
            record = Record(job_id, queue, origin, fate, max(known.until_ms, until_ms), log or known.log)
            records.replace(known, record)
        note_kept(state, record)
        self.make_room()

    def _take_log(self, job_id: bytes) -> JobLog | None:
        """Take the progress log of a job that ends, for its record; None if it has none here."""
        lifecycle = self._state.lifecycle
        log = lifecycle.logs.pop(job_id, None)
        if log is not None:
            lifecycle.memory.used_bytes -= log.used_bytes
        return log

    def make_room(self) -> None:
        """Forget the oldest records while they take more memory than they may."""
        state = self._state
        records = state.records
        most_bytes: i64 = self.limit_bytes() // 100 * FULL_PERCENT
        for _ in range(_MOST_DROPS):
            oldest = records.oldest
            if oldest is None or records.used_bytes <= most_bytes:
                return
            records.remove(oldest)
            note_forgotten(state, oldest.job_id)
            state.counters.add(RECORDS_DROPPED)


def last_claim(job: Job) -> i64:
    """The claim under which a job was delivered last; 0 if there is none, or if it is not known."""
    claim = claim_of(job)
    return 0 if claim & NO_NODE == NO_NODE else claim


def origin_of(job: Job) -> bytes:
    """The ID of the first job of the chain of moves to which a job belongs."""
    origin = None if job.extra is None else job.extra.get(ORIGIN_ID)
    return job.id if origin is None else origin


def moves_of(job: Job) -> i64:
    """How many moves led to a job."""
    return 0 if job.extra is None else max(job.extra.number(MOVES), 0)
