"""Controlled restart: the next run goes on with the queues of the last one, once (`aof-enqueue-jobs-once`).

The last run left a file that says what was queued (`SHUTDOWN REWRITE-AOF`), with the option switched on and written to
the configuration file. Loading it puts the jobs back into their queues, oldest first, and nothing is counted: for
clients the node was only away. While it was, other holders of a job may have queued it, delivered it and heard that it
is done, so they are asked first. Before any client is served the option is switched off, in the configuration file too.
A node without an append only file gives the file another name then: what is in it belongs to this run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core import configfile, disk
from disqued.core.disk import DiskWork

if TYPE_CHECKING:
    from disqued.core.job import Job
    from disqued.core.state import NodeState

ASK_MS: Final = 1000
"""How long after loading other holders of a job are asked whether they have queued it: then there are links to them."""
ASKED_PER_MS: Final = 20
"""So that a million questions do not come at once."""
LOADED: Final = ".loaded"
"""What a file that was loaded once is called: its name, and this."""


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
        """A job that is to be queued when the file is loaded."""
        self._jobs.append(job)

    def part(self, state: NodeState, limit: i64) -> bool:
        """Queue up to `limit` jobs, the oldest first, which is cheap; False when there are no more.

        Jobs that other members of the cluster may have too are queued a little later, when these were asked.
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


def conclude(state: NodeState, name: str, *, found: bool) -> None:
    """The jobs of the last run are back, or there was no file: see that it was the only time."""
    config = state.config
    log = state.host.log
    config.assign("aof_enqueue_jobs_once", False)
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
            "no there by hand, or jobs that were delivered meanwhile may be queued by the next start.",
        )
    if config.appendonly or not found:
        return
    work = DiskWork(disk.REPLACE, name)
    work.other = name + LOADED
    state.host.disk.perform(work)
    if work.error:
        log(
            "warning",
            f"{name} was loaded and can't be renamed to {work.other}: {work.error}. Remove it by hand: its jobs belong "
            "to this run, and must not be loaded once more.",
        )
    else:
        log("notice", f"{name} was loaded and is called {work.other} now")
