"""Tasks: jobs that a program follows to their end, with what their workers returned.

`Client.submit` returns a `Task`, `AsyncClient.submit` an `AsyncTask`, which has the same methods as coroutines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Unpack

from disqued.client import adding, fates
from disqued.client.adding import CommonOptions, KeyOptions
from disqued.client.calls import Call
from disqued.client.errors import JobFailed
from disqued.client.session import Session
from disqued.client.transport import run_now
from disqued.client.values import JobEnd, JobId, Outcome

RETAIN_S = 3600
"""How long the end of a task is remembered if `retain_s` is omitted, in seconds."""


class SubmitOptions(CommonOptions, KeyOptions, total=False):
    """The options of `add` that `submit` passes on."""

    job_id: str | None


class BaseTask:
    """The base of `Task` and `AsyncTask`."""

    def __init__(self, session: Session, job_id: JobId) -> None:
        self._session = session
        self.id = job_id
        """The ID of the job."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.id)!r})"


class Task(BaseTask):
    """A job that `Client.submit` added. Threads can share it, and it can be used until the client is closed."""

    def result(self, timeout_s: float | None = None) -> bytes:
        """Wait until the job is done and return what its worker gave with the acknowledgement; empty without a result.

        Waits at most `timeout_s`; None means no timeout. A job that its worker gave back or did not finish has not
        ended: it is delivered again. The call can be repeated, also by other programs (`Client.wait`).

        Raises:
            JobFailed: the job ended otherwise: it became a dead letter, expired, or was deleted. After a redrive of the
                dead letter, the next call waits again.
            TimeoutError: the job has not ended in time, or no node knows it.
        """
        return _result(self.id, run_now(self._session.perform(_wait(self.id, timeout_s))), timeout_s)

    def outcome(self) -> Outcome | None:
        """Return how the job ended, without waiting: `waiting` if it has not ended, None if no node knows it."""
        fate = run_now(self._session.perform(fates.result(self.id)))
        return None if fate is None else fate.outcome


class AsyncTask(BaseTask):
    """A job that `AsyncClient.submit` added, for asyncio."""

    async def result(self, timeout_s: float | None = None) -> bytes:
        """Wait until the job is done and return what its worker gave with the acknowledgement; see `Task.result`."""
        return _result(self.id, await self._session.perform(_wait(self.id, timeout_s)), timeout_s)

    async def outcome(self) -> Outcome | None:
        """Return how the job ended, without waiting; see `Task.outcome`."""
        fate = await self._session.perform(fates.result(self.id))
        return None if fate is None else fate.outcome


def submit(
    queue: str,
    body: str | bytes,
    *,
    after: Sequence[BaseTask | str] = (),
    retain_s: int = RETAIN_S,
    **options: Unpack[SubmitOptions],
) -> Call[JobId]:
    """Add a job as `add` does, and return a task: `task.result()` waits for what its worker returns.

    Args:
        queue: The queue's name.
        body: The data for the worker.
        after: Up to 64 tasks, or IDs of jobs, that must be done before this one is delivered.
        retain_s: For how long the nodes remember how the job ended, and its result; default one hour. A later
            `task.result()` times out.
        options: The other options of `add`.

    Raises:
        NoParent: too few nodes know a job of `after`; the job was not added.
        NotReplicated: as for `add`.
        ConnectionLost: the job may or may not exist. Give a `job_id` (`new_id`), then the client repeats the call.
    """
    if isinstance(after, str | BaseTask):
        raise ValueError(f"after must be a sequence of tasks or job IDs; write [{after!r}]")  # noqa: TRY004 - as `add`
    parents = [task.id if isinstance(task, BaseTask) else task for task in after]
    return adding.add(queue, body, after=parents, retain_s=retain_s, **options)


def _wait(job_id: str, timeout_s: float | None) -> Call[dict[str, JobEnd]]:
    return fates.wait(job_id, timeout_ms=0 if timeout_s is None else max(1, math.ceil(timeout_s * 1000)))


def _result(job_id: str, ends: Mapping[str, JobEnd], timeout_s: float | None) -> bytes:
    if not ends:
        raise TimeoutError(f"job {job_id} has not ended after {timeout_s} s")
    (end,) = ends.values()
    if end.outcome != "done":
        raise JobFailed(job_id, end.outcome)
    return end.result or b""
