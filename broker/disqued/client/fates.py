"""The calls about the ends of jobs: RESULT and WAITJOB. `calls` describes what a call is. Both change nothing."""

from __future__ import annotations

from collections.abc import Sequence

from disqued.client import replies
from disqued.client.calls import Call, seconds
from disqued.client.values import JobEnd, JobFate
from disqued.client.wire import flag_words

_ASKING_S = 1.0
"""How long a node waits for the answers of other nodes."""


def result(job_id: str) -> Call[JobFate | None]:
    """Return what the cluster knows about the end of a job, None if no node knows the job (Disque command RESULT).

    A node that took the job remembers its end for the time that `retain_s` of `add` says. `outcome` is `waiting` while
    the job has not ended. Any node can be asked; nodes of the original do not know the command.
    """
    return Call(("RESULT", job_id), replies.optional(replies.job_fate), repeat=True, wait_s=_ASKING_S)


def results(ids: Sequence[str]) -> Call[dict[str, JobFate | None]]:
    """Return what the cluster knows about the ends of at most 1,000 jobs, by ID, as `result` does for one."""
    names = tuple(dict.fromkeys(ids))
    if not names:
        raise ValueError("results() needs at least one job")
    return Call(("RESULT", *names), replies.job_fates(names), repeat=True, wait_s=_ASKING_S)


def wait(ids: str | Sequence[str], *, any: bool = False, timeout_ms: int = 0) -> Call[dict[str, JobEnd]]:  # noqa: A002 - named as the option of WAITJOB
    """Wait until jobs have ended, at most 1,000, and return how, by ID (Disque command WAITJOB).

    With `any`, the first job that ends is enough. Returns an empty dictionary if the time is over first; 0 means no
    timeout. A job that is moved has not ended: its successor takes its place. A job that became a dead letter has the
    outcome `dead`; after a redrive, the next call waits again. A job that ended before this call is known only by its
    record (`retain_s` of `add`). Any node can be asked; nodes of the original do not know the command.
    """
    names = (ids,) if isinstance(ids, str) else tuple(ids)
    if not names:
        raise ValueError("wait() needs at least one job")
    arguments = ("WAITJOB", *names, *flag_words(ANY=any, WITHRESULT=True), "TIMEOUT", timeout_ms)
    return Call(arguments, replies.job_ends, repeat=True, wait_s=seconds(timeout_ms))
