"""What this node knows about the ends of jobs of ordered queues: for WAITJOB, RESULT, and jobs that wait (AFTER).

Nodes ask each other about jobs of any type (JOBASK), and every replica can answer: an end that it has applied is one
that a majority has. The answer comes from the job, or from its record. A job that somebody asked about and that leaves
no record is remembered here for a while.

A move continues a job under another ID, and clients only know the first one. Replicas remember which of their jobs
belong to which chain of moves, as long as they run.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.fates.fate import DEAD, DONE, NOTHING, WAITING, Fate
from disqued.ordered.catalog import Catalog
from disqued.ordered.exchange import Exchange
from disqued.ordered.jobids import group_of, index_of
from disqued.ordered.queuemachine import QueueMachine
from disqued.ordered.replica import Replica
from disqued.orderedqueue.add import Add
from disqued.orderedqueue.effects import Ended

KEPT_S: Final = 600
"""For how long the end of a job that somebody asked about is remembered."""
_LOOK_EVERY_MS: Final = 10_000
MOST_KEPT: Final = 10_000
MOST_LINKS: Final = 100_000
"""How many jobs that moves added are remembered."""


class _Place:
    """Where a job is or was."""

    def __init__(self, group: int, index: int, moves: i64) -> None:
        self.group = group
        self.index = index
        self.moves: i64 = moves
        """How many moves led to it."""


class _Kept:
    """The end of a job without a record."""

    def __init__(self, fate: Fate, until_ms: i64) -> None:
        self.fate = fate
        self.until_ms: i64 = until_ms


class OrderedFates:
    """The ends of jobs, as the replicas of one node know them."""

    def __init__(self, exchange: Exchange, catalog: Catalog) -> None:
        self._exchange = exchange
        self._catalog = catalog
        self._asked: dict[int, dict[int, list[bytes]]] = {}
        """By group and index: the IDs under which somebody asked about an unfinished job."""
        self._kept: dict[tuple[int, int], _Kept] = {}
        """By group and index, in the order of their ends."""
        self._links: dict[bytes, list[_Place]] = {}
        """Jobs that moves added, by the first ID of their chain."""
        self._link_count: i64 = 0
        self._look_ms: i64 = 0
        """When old ends are forgotten next."""

    # --- what happens -------------------------------------------------------------------------------------------------

    def moved_in(self, group: i64, index: i64, add: Add) -> None:
        """A move added a job."""
        if self._link_count >= MOST_LINKS:
            self._link_count -= len(self._links.pop(next(iter(self._links))))
        self._links.setdefault(add.origin_id, []).append(_Place(int(group), int(index), add.moves))
        self._link_count += 1
        self._exchange.state.watches.note_change(add.origin_id)

    def jobs_ended(self, group: i64, ended: list[Ended]) -> None:
        """Jobs ended: tell those who asked about them."""
        asked = self._asked.get(int(group))
        if not asked:
            return
        state = self._exchange.state
        for one in ended:
            job_ids = asked.pop(int(one.index), None)
            if job_ids is None:
                continue
            fate = Fate(one.outcome, state.now_ms, one.claim)
            self._kept[int(group), int(one.index)] = _Kept(fate, state.now_ms + KEPT_S * 1000)
            if len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            for job_id in job_ids:
                state.watches.note_change(job_id)

    def forget_old(self) -> None:
        """Forget ends whose time is over, and what nobody watches any more."""
        now_ms = self._exchange.state.now_ms
        if now_ms < self._look_ms:
            return
        self._look_ms = now_ms + _LOOK_EVERY_MS
        while self._kept:
            first = next(iter(self._kept))
            if self._kept[first].until_ms > now_ms:
                break
            del self._kept[first]
        watched = self._exchange.state.lifecycle.watched
        for group in list(self._asked):
            asked = self._asked[group]
            for index in [index for index, job_ids in asked.items() if not any(one in watched for one in job_ids)]:
                del asked[index]
            if not asked:
                del self._asked[group]

    # --- questions ----------------------------------------------------------------------------------------------------

    def fate_of(self, job_id: bytes) -> Fate:
        """What this node knows about a job, or about the newest link of its chain that it knows."""
        best = NOTHING
        queue = self._catalog.by_word.get(group_of(job_id))
        index = 0 if queue is None else int(index_of(job_id))
        if queue is not None and index > 0:
            best = self._at(job_id, _Place(int(queue.group), index, 0))
        for place in self._links.get(job_id, ()):
            fate = self._at(job_id, place)
            if fate.is_newer_than(best):
                best = fate
        return best

    def _at(self, job_id: bytes, place: _Place) -> Fate:
        """What is known about the job at a place, of which somebody asks under this ID."""
        replica = self._exchange.replicas.get(place.group)
        if not isinstance(replica, Replica) or not isinstance(replica.applier, QueueMachine):
            return NOTHING
        applier = replica.applier
        machine = applier.machine
        copies: i64 = len(applier.queue.replicas)
        job = machine.job(place.index)
        if job is not None or place.index > machine.index:  # an ID says that the job was added, also if not yet here
            asked = self._asked.setdefault(place.group, {}).setdefault(place.index, [])
            if job_id not in asked:
                asked.append(job_id)
            if job is None or not job.profile.dead:
                return Fate(WAITING, 0, 0, place.moves, None, None, copies)
            profile = job.profile
            queue = applier.queue
            own_id = queue.job_id(place.index, profile.ttl_s, profile.retry_s > 0)
            return Fate(DEAD, 0, 0, place.moves, own_id, None, copies)
        record = machine.record(place.index)
        if record is not None:
            result = record.result if record.outcome == DONE else None
            return Fate(record.outcome, record.ended_ms, record.claim, place.moves, record.successor or None, result)
        kept = self._kept.get((place.group, place.index))
        if kept is None:
            return NOTHING
        fate = kept.fate
        return Fate(fate.outcome, fate.ended_ms, fate.claim, place.moves)
