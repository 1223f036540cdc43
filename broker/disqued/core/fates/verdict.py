"""The verdict about one job: what the answers of all nodes together say.

DONE wins. Otherwise the newest link of the chain counts. Of two answers about one link, the one that knows of a
successor counts; then that of a node that has the job unfinished, because a job that expired or was deleted on one node
may still be done on another one.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.fates.fate import DEAD, DELETED, DONE, EXPIRED, MOVED, NOTHING, UNKNOWN, WAITING, Fate
from disqued.core.fates.record import united

STALE_MS: Final = 75_000
"""How long an answer counts: a node that can be reached repeats it about every 30 s."""
_WEIGHTS: Final = {EXPIRED: 0, DELETED: 0, WAITING: 1, DEAD: 2, MOVED: 3}


@mypyc_attr(acyclic=True)
class Verdict:
    """The latest answers of all nodes about one job."""

    def __init__(self) -> None:
        self._answers: dict[bytes, Fate] = {}
        self._times: dict[bytes, i64] = {}

    def add(self, fate: Fate, node_id: bytes, now_ms: i64) -> None:
        """Take an answer of a node in the place of its last one; a node that knew the job as done does not forget."""
        known = self._answers.get(node_id)
        if known is not None and known.outcome == DONE:
            fate = united(known, fate)
        self._answers[node_id] = fate
        self._times[node_id] = now_ms

    @property
    def answered(self) -> i64:
        """How many nodes have answered."""
        return len(self._answers)

    def has_answer_of(self, node_id: bytes) -> bool:
        """Whether a node has answered."""
        return node_id in self._answers

    def count(self, outcome: i64) -> i64:
        """How many nodes said this last."""
        found: i64 = 0
        for fate in self._answers.values():
            if fate.outcome == outcome:
                found += 1
        return found

    def fate(self, now_ms: i64) -> Fate:
        """What all answers together say; old ones count only if they say that the job ended."""
        best = NOTHING
        done: Fate | None = None
        for node_id, fate in self._answers.items():
            if fate.outcome == UNKNOWN:
                continue
            if fate.outcome == DONE:
                done = fate if done is None else united(done, fate)
            elif fate.outcome != WAITING or now_ms - self._times[node_id] < STALE_MS:
                best = _weightier(best, fate)
        return best if done is None else done


def _weightier(known: Fate, fate: Fate) -> Fate:
    """The one of two answers that counts, neither of which is DONE."""
    if known.outcome == UNKNOWN or fate.moves > known.moves:
        return fate
    if fate.moves < known.moves:
        return known
    return fate if _WEIGHTS[int(fate.outcome)] > _WEIGHTS[int(known.outcome)] else known
