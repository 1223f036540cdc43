"""Controlled restart: the next run continues with the queues of the last one, once.

The last run left a file that says what was queued (`SHUTDOWN REWRITE-AOF`). Either it left a restart marker beside it
(`persistence.marker`), or `aof-enqueue-jobs-once` was switched on and written to the configuration file. Loading the
file puts the jobs back into their queues, oldest first, and counts nothing: to clients, the node was only unreachable.
Other holders of a job may have queued it, delivered it and received its acknowledgement meanwhile, so they are asked
first. Before any client is served, the marker is invalidated and the option is switched off, also in the configuration
file. A node with the log off renames the file then, because its jobs belong to this run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import DiskWork
from disqued.core.runtime import configfile

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState
    from disqued.persistence.marker import RestartMarker

ASK_MS: Final = 1000
"""How long after loading the other holders of a job are asked whether they queued it: links need time to open."""
ASKED_PER_MS: Final = 20
"""Spreads the questions, so that a million of them are not sent at once."""
LOADED: Final = ".loaded"
"""The suffix that renames a file that was loaded once."""


def _age(job: Job) -> int:
    return job.ctime


class Requeue:
    """Jobs that were queued when the last run ended."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._sorted: bool = False
        self._at: i64 = 0
        self._asked: i64 = 0

    def add(self, job: Job) -> None:
        """Add a job that must be queued when the file is loaded."""
        self._jobs.append(job)

    def part(self, state: NodeState, limit: i64) -> bool:
        """Queue up to `limit` jobs, the oldest first, which is cheap; return False if none are left.

        Jobs that other members of the cluster may have, too, are queued a little later, after these were asked.
        """
        jobs = self._jobs
        if not self._sorted:
            self._sorted = True
            jobs.sort(key=_age)
        end: i64 = min(self._at + limit, len(jobs))
        lifecycle = state.lifecycle
        while self._at < end:
            job = jobs[self._at]
            ask_at_ms: i64 = 0
            if job.delivered is not None and len(state.holders.members(job.delivered, state.view)) > 1:
                self._asked += 1
                ask_at_ms = state.now_ms + ASK_MS + self._asked // ASKED_PER_MS
            lifecycle.requeue_loaded(job, state.now_ms, ask_at_ms)
            self._at += 1
        if self._at < len(jobs):
            return True
        self._jobs = []
        return False


def conclude(state: NodeState, marker: RestartMarker, name: str, *, found: bool) -> str:
    """After loading, ensure that no other start queues the same jobs.

    `found`: the jobs of the last run were in the file. Returns why the node must not serve; empty if it may.
    """
    config = state.config
    if config.aof_enqueue_jobs_once:
        _switch_off(state)
    gone = found and not config.appendonly and _put_away(state, name)
    counted = marker.counts
    error = marker.use_up()
    if error and not gone:
        return (
            f"The restart marker must not be found again, and {error}. Let the user that the server runs as write to "
            "it and to its directory, then start again: no job was delivered, and all will be queued as they were."
        )
    if counted:
        state.host.log("notice", f"The queues are as the last run left them; {marker.name} said so, and is used up")
    return ""


def _switch_off(state: NodeState) -> None:
    """Switch the option off, since it is valid for one start."""
    log = state.host.log
    state.config.assign("aof_enqueue_jobs_once", False)
    try:
        if configfile.rewrite(state):
            log("notice", "aof-enqueue-jobs-once is done and switched off in the configuration file")
        else:
            log(
                "warning",
                "aof-enqueue-jobs-once is done. There is no configuration file to switch it off in: start the server "
                "without it the next time, unless it ends with SHUTDOWN REWRITE-AOF again.",
            )
    except OSError as error:
        log(
            "warning",
            f"aof-enqueue-jobs-once is done, but the configuration file can't be written: {error.strerror}. Set it to "
            "no there by hand, or jobs that were delivered meanwhile may be queued by the next start. (With "
            "aof-restart-marker yes the file need not be written.)",
        )


def _put_away(state: NodeState, name: str) -> bool:
    """Rename the file of a node with the log off; return False if that fails."""
    work = DiskWork(disk.REPLACE, name)
    work.other = name + LOADED
    state.host.disk.perform(work)
    if work.error:
        state.host.log(
            "warning",
            f"{name} was loaded and can't be renamed to {work.other}: {work.error}. Remove it by hand: its jobs belong "
            "to this run, and must not be loaded once more.",
        )
        return False
    state.host.log("notice", f"{name} was loaded and is called {work.other} now")
    return True
