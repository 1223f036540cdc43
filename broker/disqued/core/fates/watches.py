"""What watches a job: parts of this node (watchers), and other nodes that asked what becomes of it (JOBASK).

A part of the node subclasses `Watcher`, and watches IDs with `state.watches`. The fates room asks this node and all
others, every 30 s, and passes each answer on. Answers come between two inputs, never within a change of a job.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.fates.fate import Fate
from disqued.core.fates.keeper import FateKeeper
from disqued.core.memory.accounting import Memory

WATCH_BYTES: Final = 500
"""The size of one watched ID, including the entry that says when to ask again."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Watcher:
    """Wants to know what becomes of jobs."""

    def told(self, job_id: bytes, fate: Fate, node_id: bytes) -> None:
        """A node said what it knows about a watched job. `node_id` is the own ID for what this node knows.

        Each answer comes here, UNKNOWN and WAITING too. The watch continues until `Watches.unwatch`.
        """


@mypyc_attr(acyclic=True)
class Watched:
    """An ID that somebody watches."""

    def __init__(self) -> None:
        self.watchers: list[Watcher] = []
        self.askers: dict[bytes, i64] = {}
        """Until when each other node is notified of changes, in unix milliseconds, by node ID."""
        self.is_scheduled: bool = False
        """The other nodes will be asked again."""

    @property
    def is_over(self) -> bool:
        """Whether nobody watches it any more."""
        return not self.watchers and not self.askers


class Watches:
    """All watched IDs of one node."""

    def __init__(self, memory: Memory) -> None:
        self.watched: dict[bytes, Watched] = {}
        """By ID. The lifecycle has this dict too: it reports the ends of these jobs."""
        self._memory = memory
        self.fresh: dict[bytes, None] = {}
        """IDs about which this node and all others must be asked now."""
        self.changed: dict[bytes, None] = {}
        """IDs whose fate may have changed on this node: all who watch them are told."""

        self.confirmed: list[tuple[bytes, bytes]] = []
        """Watched jobs that have ended here, each with the ID of a node that confirmed that it knows (GOTACK)."""

        self.keeper = FateKeeper()

    @property
    def has_work(self) -> bool:
        """Whether somebody must be told or asked now."""
        return bool(self.changed) or bool(self.fresh) or bool(self.confirmed)

    def of(self, job_id: bytes) -> Watched:
        """The entry of an ID; it is made if it does not exist."""
        watched = self.watched.get(job_id)
        if watched is None:
            watched = Watched()
            self.watched[job_id] = watched
            self._memory.used_bytes += WATCH_BYTES
        return watched

    def forget_if_over(self, job_id: bytes) -> None:
        """Remove the entry of an ID that nobody watches any more."""
        watched = self.watched.get(job_id)
        if watched is not None and watched.is_over:
            del self.watched[job_id]
            self._memory.used_bytes -= WATCH_BYTES

    def watch(self, job_id: bytes, watcher: Watcher) -> None:
        """Tell a watcher what becomes of a job. Its first answers come at the end of this turn."""
        watched = self.of(job_id)
        if watcher not in watched.watchers:
            watched.watchers.append(watcher)
        self.fresh[job_id] = None

    def unwatch(self, job_id: bytes, watcher: Watcher) -> None:
        """Tell a watcher no more about a job."""
        watched = self.watched.get(job_id)
        if watched is not None and watcher in watched.watchers:
            watched.watchers.remove(watcher)
            self.forget_if_over(job_id)

    def tell(self, job_id: bytes, fate: Fate, node_id: bytes) -> None:
        """Pass the answer of a node on to all watchers of a job."""
        watched = self.watched.get(job_id)
        if watched is not None:
            for watcher in list(watched.watchers):
                watcher.told(job_id, fate, node_id)

    def note_change(self, job_id: bytes) -> None:
        """The fate of a job may have changed on this node."""
        if job_id in self.watched:
            self.changed[job_id] = None
