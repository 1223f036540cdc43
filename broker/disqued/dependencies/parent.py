"""One parent of held jobs, as this node knows it: which nodes say that it waits, and whether it can still be done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.fates.fate import DEAD, DELETED, EXPIRED, MOVED, NOTHING, WAITING, Fate
from disqued.core.jobs.job import NOBODY, NodeIds
from disqued.core.lifecycle.held import HeldFor
from disqued.core.queues.settings import DEFAULT_DEAD_TTL_S

LEAST_HOLDERS: Final = 2
"""So many nodes must say that a parent waits before a job is added that waits for it; all if it has fewer copies."""
_LINKS: Final = (DEAD, MOVED)


def is_alive(fate: Fate) -> bool:
    """Whether the node that says this has the newest link of the chain, unfinished: the job, or its dead letter."""
    return fate.outcome == WAITING or (fate.outcome == DEAD and fate.copies > 0)


def is_over(fate: Fate) -> bool:
    """Whether this link of the chain has ended, is not done, and nothing has taken its place."""
    return fate.outcome in (EXPIRED, DELETED) or (fate.outcome == DEAD and fate.copies == 0 and fate.successor is None)


@mypyc_attr(acyclic=True)
class Parent(HeldFor):
    """A parent of jobs that this node holds. Its timer rings when its life may be over, and while that is asked."""

    def __init__(self, parent_id: bytes, until_ms: i64, doubt: Callable[[Parent], None]) -> None:
        super().__init__(parent_id)
        self._doubt = doubt
        self.until_ms: i64 = until_ms
        """When the life of the parent is over, as far as its ID says."""
        self.adding: dict[bytes, None] = {}
        """The IDs of new jobs among the children, which are not added before enough nodes know the parent."""
        self.todo: list[bytes] = []
        """The IDs of children that must still learn that the parent is met, or can no longer be done."""
        self.is_met: bool = False
        self.waiting_at: NodeIds = NOBODY
        """The nodes that said that it waits, since `asked_ms`."""
        self.asked_ms: i64 = 0
        self.copies: i64 = 0
        """Its REPLICATE; 0 while no node has said so."""
        self.answers: dict[bytes, Fate] | None = None
        """What each node says since this node asked whether the parent can still be done; None while it does not."""
        self.gone = b""
        """Why it can no longer be done; empty while it can."""

    @property
    def is_known(self) -> bool:
        """Whether so many nodes know the parent that its end will be heard."""
        return len(self.waiting_at) >= min(LEAST_HOLDERS, self.copies) and self.copies > 0

    @property
    def unknown_because(self) -> str:
        """Why a job cannot be added that waits for this parent."""
        name = self.id.decode("ascii")
        if self.gone:
            return f"{self.gone.decode()}, so a job that waits for it would never run"
        if self.copies > 0:
            return (
                f"{name} is known to {len(self.waiting_at)} reachable node, and at least {LEAST_HOLDERS} of the "
                f"{self.copies} that have it must know that a job waits for it; try again later"
            )
        return f"{name} is not known to any reachable node; add parents with RETAIN"

    def best(self) -> Fate:
        """The answer that says most about the chain."""
        best = NOTHING
        if self.answers is not None:
            for fate in self.answers.values():
                if fate.is_newer_than(best):
                    best = fate
        return best

    def ring(self, state: Any) -> None:
        """Ask whether the parent can still be done, or ask again."""
        del state
        self._doubt(self)


def reason(parent_id: bytes, fate: Fate) -> bytes:
    """Why a parent can no longer be done, for people."""
    what = {EXPIRED: b"expired", DELETED: b"was deleted", DEAD: b"failed and was dropped"}
    return b"parent %b %b" % (parent_id, what.get(int(fate.outcome), b"is not known to any node, and its time is over"))


def chain_ends_ms(parent: Parent, fate: Fate) -> i64:
    """When the life of the newest link of the chain must be over, if no node has it. `fate` is the best that is known.

    A link that was moved has a successor, which no reachable node knows. It may live as long as a dead letter.
    """
    if fate.outcome not in _LINKS or fate.ended_ms == 0:
        return parent.until_ms
    return max(parent.until_ms, fate.ended_ms + DEFAULT_DEAD_TTL_S * 1000)
