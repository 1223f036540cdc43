"""The logs of the jobs of one node.

Nothing is done about a log when its job ends or moves: logs of jobs that are gone are forgotten a little later, and
holders that the job got since then are sent its log (`visit`). So jobs without a log pay nothing. A node that confirms
a copy is sent the log at once (`follow`), because the other holders may stop as soon as no copy is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.jobs.job import ACKED, NOBODY
from disqued.core.jobs.joblog import ADDED, JobLog, LogLine
from disqued.core.runtime.outbox import send
from disqued.progress.payload import LAST, PAST, pack_entry
from disqued.progress.words import words_of

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState

_VISITED_AT_ONCE: Final = 500
_SPREAD_EVERY_MS: Final = 2000
"""A holder that does not confirm a log may not have the job yet: the log is sent again after this time."""


def holders_with_logs(state: NodeState, job: Job) -> list[Peer]:
    """The other holders of a job that keep logs, whether they can be reached or not."""
    state.holders.complete(job, state.view)
    peers = [state.view.peers.get(node_id) for node_id in job.delivered or NOBODY]
    return [peer for peer in peers if peer is not None and peer.features & kinds.FEATURE_LOGS]


def key_of(peer: Peer) -> bytes:
    """A run of a node."""
    return peer.id + peer.incarnation


def send_log(state: NodeState, peer: Peer, job_id: bytes, log: JobLog) -> None:
    """Send all entries of a log; the receiver confirms the last one."""
    left = int(log.count)
    for line in log.lines():
        left -= 1
        send(state, peer, state.bus.other(kinds.LOGENTRY, pack_entry(job_id, line, PAST if left else LAST)))


class Logs:
    """All logs, by job ID."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self.by_job = state.lifecycle.logs
        self._unvisited: list[bytes] = []

    def get(self, job_id: bytes) -> JobLog | None:
        """The log of a job; None if it has none here."""
        return self.by_job.get(job_id)

    def add(self, job: Job, line: LogLine) -> int:
        """Add an entry, and have it logged; returns ADDED, SAME, OTHER or FULL. The other holders get it, too."""
        is_new = job.id not in self.by_job
        outcome = self.load(job.id, line)
        if is_new:
            self.by_job[job.id].told.update([key_of(peer) for peer in holders_with_logs(self._state, job)])
        if outcome == ADDED and job.retry_s > 0:  # otherwise the job may not be in the file any more
            self._state.lifecycle.journal.note(words_of(job.id, line))
        return outcome

    def load(self, job_id: bytes, line: LogLine) -> int:
        """Add an entry that is in the file, or that is not to be."""
        config, memory = self._state.config, self._state.lifecycle.memory
        log = self.by_job.get(job_id)
        if log is None:
            log = JobLog()
            self.by_job[job_id] = log
            memory.used_bytes += log.used_bytes
        before = log.used_bytes
        outcome = log.add(line, config.job_log_entries, config.job_log_bytes)
        memory.used_bytes += log.used_bytes - before
        return outcome

    def visit(self) -> None:
        """Forget the logs of some jobs that are gone, and send others to holders that do not have them yet."""
        if not self._unvisited:
            self._unvisited = list(self.by_job)
        table = self._state.lifecycle.table
        visited, self._unvisited = self._unvisited[-_VISITED_AT_ONCE:], self._unvisited[:-_VISITED_AT_ONCE]
        for job_id in visited:
            job, log = table.get(job_id), self.by_job.get(job_id)
            if log is None:
                continue
            if job is None:
                if self._state.view.leaving:
                    self._transfer(job_id, log)
                self.forget(job_id)
            elif job.state != ACKED and self._state.now_ms - log.spread_ms >= _SPREAD_EVERY_MS:
                self._spread(job, log)

    def _spread(self, job: Job, log: JobLog) -> None:
        """Send a log to holders of the job that do not have it yet."""
        for peer in holders_with_logs(self._state, job):
            self._offer(peer, job, log)

    def _offer(self, peer: Peer, job: Job, log: JobLog) -> None:
        """Send a log to a holder that does not have it yet."""
        link = peer.link
        if key_of(peer) not in log.told and link is not None and link.answered and not link.congested:
            log.spread_ms = self._state.now_ms
            send_log(self._state, peer, job.id, log)

    def follow(self, job: Job, peer: Peer) -> None:
        """Send the log of a job, if it has one, to a node that has just confirmed its copy."""
        log = self.by_job.get(job.id)
        if log is not None and job.state != ACKED and peer.features & kinds.FEATURE_LOGS:
            self._offer(peer, job, log)

    def _transfer(self, job_id: bytes, log: JobLog) -> None:
        """Send the log of a job that a leaving node transferred to all others; only its new holders keep it."""
        for peer in self._state.view.reachable:
            if peer.features & kinds.FEATURE_LOGS:
                send_log(self._state, peer, job_id, log)

    def forget(self, job_id: bytes) -> None:
        """Forget the log of a job."""
        log = self.by_job.pop(job_id, None)
        if log is not None:
            self._state.lifecycle.memory.used_bytes -= log.used_bytes

    def forget_all(self) -> None:
        """Forget all logs at once. Their memory does not count any more."""
        self.by_job.clear()
        self._unvisited.clear()
