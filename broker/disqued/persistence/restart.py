"""Controlled restart: the next run goes on with the queues of the last one, once (`aof-enqueue-jobs-once`).

The last run left a file that says what was queued (`SHUTDOWN REWRITE-AOF`), with the option switched on and written to
the configuration file. Loading it puts the jobs back into their queues, oldest first, and nothing is counted: for
clients the node was only away. Before any client is served the option is switched off, in the configuration file too.
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

    def add(self, job: Job) -> None:
        """A job that is to be queued when the file is loaded."""
        self._jobs.append(job)

    def part(self, state: NodeState, limit: i64) -> bool:
        """Queue up to `limit` jobs, the oldest first, which is cheap; False when there are no more."""
        jobs = self._jobs
        if not self._sorted:
            self._sorted = True
            jobs.sort(key=_age)
        end: i64 = min(self._at + limit, len(jobs))
        lifecycle = state.lifecycle
        while self._at < end:
            lifecycle.requeue_loaded(jobs[self._at], state.now_ms)
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
