"""Drops everything: all jobs, queues and keys of jobs, and the waits of clients. This runs in slices.

Jobs that clients add to this node meanwhile stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.session import Session
from disqued.core.commands.longcommand import LongWork
from disqued.core.jobs.job import Job
from disqued.core.jobs.jobid import is_made_by
from disqued.core.jobs.table import SHARDS
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import release_all

_JOBS_PER_STEP: Final = 100
_QUEUES_PER_STEP: Final = 100


@mypyc_attr(acyclic=True)
class Dropping:
    """Drops the jobs, keys and queues that a node has when it begins. Waiting clients get the reply of a timeout.

    A record for each job would make the append-only file long, so the journal is off in each part, and the event
    `all_dropped` follows at the end.
    """

    def __init__(self, state: NodeState) -> None:
        self._began_ms: i64 = state.now_ms
        self._began_ctime: i64 = state.next_ctime()
        self._last_queue: i64 = state.lifecycle.queues.made
        self._jobs: list[Job] = []
        """Jobs of one dict of the table."""
        self._position: i64 = 0
        """The first of them that was not dropped."""
        self._shard: i64 = 0
        """The next dict of the table."""
        self._keys: i64 = 0
        """The next dict of the keys."""
        self._cursor = 0
        """The last queue that was looked at."""
        release_all(state)

    def part(self, state: NodeState) -> bool:
        """Drop some more; False when everything is dropped."""
        lifecycle = state.lifecycle
        journal = lifecycle.journal
        noting = journal.on
        journal.on = False
        unfinished = self._drop_jobs(state) or self._drop_keys(state) or self._remove_queues(state)
        journal.on = noting
        if not unfinished:
            state.events.all_dropped()
        return unfinished

    def _drop_jobs(self, state: NodeState) -> bool:
        """Drop some jobs; False when there are none left."""
        lifecycle = state.lifecycle
        if self._position >= len(self._jobs):
            if self._shard >= SHARDS:
                self._jobs = []
                return False
            self._jobs = lifecycle.table.jobs_of(self._shard)
            self._position = 0
            self._shard += 1
        until: i64 = min(self._position + _JOBS_PER_STEP, len(self._jobs))
        node_id = state.view.node_id
        while self._position < until:
            job = self._jobs[self._position]
            self._position += 1
            if job.ctime >= self._began_ctime and is_made_by(job.id, node_id):
                continue
            if lifecycle.table.get(job.id) is job:
                lifecycle.drop(job)
        return True

    def _drop_keys(self, state: NodeState) -> bool:
        """Forget the keys of one dict; False when all are forgotten."""
        if self._keys >= SHARDS:
            return False
        state.lifecycle.keys.forget_until(self._keys, self._began_ms)
        self._keys += 1
        return True

    def _remove_queues(self, state: NodeState) -> bool:
        """Remove some queues; False when there are no older ones left."""
        lifecycle = state.lifecycle
        self._cursor, queues = lifecycle.queues.scan(self._cursor, _QUEUES_PER_STEP)
        for queue in queues:
            if queue.number > self._last_queue:
                return False
            if queue.length == 0 and queue.waiting == 0:
                lifecycle.remove_queue(queue)
        return self._cursor != 0


@mypyc_attr(acyclic=True)
class Flush(LongWork):
    """A command that drops everything, and then does something that completes it."""

    def __init__(self, state: NodeState, then: Callable[[NodeState, Session], None]) -> None:
        super().__init__()
        self.ends_without_client = True
        self._dropping = Dropping(state)
        self._then = then

    def step(self, state: NodeState, session: Session) -> bool:
        """Drop some jobs or queues."""
        if self._dropping.part(state):
            return True
        self._then(state, session)
        return False
