"""Clients that wait in GETJOB: who waits for which queues, in which order, until when.

A waiting client is one `Blocked` with a deadline on the agenda and one `Wait` per queue. The waits of a queue form an
intrusive list in order of arrival, so that blocking, serving and giving up take constant time per queue however many
clients wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from disqued.core.job import Timed

if TYPE_CHECKING:
    from disqued.core.queue import Queue
    from disqued.core.session import Session


@mypyc_attr(acyclic=True)
class Blocked(Timed):
    """A client that waits for a job from any of its queues."""

    def __init__(self, session: Session, with_counters: bool) -> None:
        super().__init__()
        self.session = session
        self.with_counters: bool = with_counters
        self.waits: list[Wait] = []


@mypyc_attr(acyclic=True)
class Wait:
    """One client's place in the line of one queue."""

    def __init__(self, blocked: Blocked, queue: Queue) -> None:
        self.blocked = blocked
        self.queue = queue
        self.previous: Wait | None = None
        self.next: Wait | None = None
