"""The calls that add jobs: ADDJOB, ADDTO and NEWID. `calls` describes what a call is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypedDict, Unpack

from disqued.client import replies
from disqued.client.calls import Call, seconds
from disqued.client.errors import ResponseError
from disqued.client.values import Added, JobId, Otherwise
from disqued.client.wire import flag_words, option_words, to_bytes


def add(
    queue: str,
    body: str | bytes,
    *,
    timeout_ms: int = 5000,
    replicate: int | None = None,
    delay_s: int | None = None,
    retry_s: int | None = None,
    ttl_s: int | None = None,
    maxlen: int | None = None,
    key: str | bytes | None = None,
    window_s: int | None = None,
    until: Literal["window", "done"] | None = None,
    job_id: str | None = None,
    sync: int | None = None,
    priority: int | None = None,
    meta: str | bytes | None = None,
    retain_s: int | None = None,
    after: Sequence[str] = (),
    otherwise: Otherwise | None = None,
    group: str | bytes | None = None,
    asynchronous: bool = False,
    repeat: bool = False,
) -> Call[JobId]:
    """Add a job and return its ID (Disque command ADDJOB). The node chooses the defaults of omitted options.

    Args:
        queue: The queue's name.
        body: The data for the worker; text is sent as UTF-8.
        timeout_ms: How long the node may try to replicate the job; 0 means no timeout.
        replicate: How many nodes must hold a copy before the call returns.
        delay_s: How long to wait before the first delivery.
        retry_s: How long to wait for an acknowledgement before the next delivery; 0 (`replicate=1`): at most one.
        ttl_s: Delete the job after this time, whether it was delivered or not.
        maxlen: Refuse the job when the queue already holds this many jobs.
        key: Deduplication key. If a job with this key was added to the queue before, its ID is returned, whatever its
            state, and no job is added. Only the node that added it knows the key; in an ordered queue, all nodes do.
        window_s: How long the key is known; default 300 seconds.
        until: `done`: the key is known as long as the job is unfinished, instead of for `window_s`.
        job_id: The ID of the job, or the 24 characters in its middle; `new_id` makes one. The same call can be
            repeated at any node and adds one job; without a reply it is repeated. The original does not know it.
        sync: Return when this many of the `replicate` copies are confirmed; the others follow.
        priority: Jobs with a higher priority are delivered first; default 0, and less than 0 is allowed. Each node
            orders the jobs that it has queued. Nodes of the original do not know it.
        meta: Up to 4 KiB beside the body, for example a trace ID; `get` returns it with `with_meta`.
        retain_s: For how long the nodes that have the job remember its end and its result (`result`, `wait`).
        after: The IDs of up to 64 jobs that must be done before this one is delivered.
        otherwise: If one of them cannot be done: `dead` (default): a dead letter; `run`: run it; `drop`: delete it.
        group: Jobs of an ordered queue with the same group, up to 128 bytes, are delivered one after the other.
        asynchronous: Return at once and replicate in the background.
        repeat: Add the job again when the connection breaks before the reply. The job may then exist twice; with a
            `key` only if the second attempt reaches another node.

    Raises:
        NotReplicated: the job may or may not exist; read the documentation of the class before adding it again.
        ConnectionLost: the job may or may not exist; only without `repeat`.
        NoQuorum: the queue is an ordered one and has no leader; the job was not added.
        QueuePaused: the queue is paused for input.
        QueueFull: the queue holds `maxlen` jobs, or as much as its settings allow.
        JobExists: a job with this ID is in another queue.
        NoParent: too few nodes know a job of `after`; the job was not added.
        ClockError: the clock of every reachable node is too far ahead.
        OutOfMemory: the node is at its memory limit.
    """
    words = option_words(REPLICATE=replicate, DELAY=delay_s, RETRY=retry_s, TTL=ttl_s, MAXLEN=maxlen, KEY=key)
    words += option_words(WINDOW=window_s, UNTIL=until, ID=job_id, SYNC=sync, PRIORITY=priority, META=meta)
    words += (*option_words(RETAIN=retain_s), *_parent_words(after), *option_words(ELSE=otherwise, GROUP=group))
    arguments = ("ADDJOB", queue, body, timeout_ms, *words, *flag_words(ASYNC=asynchronous))
    return Call(arguments, replies.job_id, repeat or job_id is not None, seconds(timeout_ms))


def _parent_words(after: Sequence[str]) -> Iterator[str]:
    if isinstance(after, str):
        raise ValueError(f"after must be a sequence of job IDs; write [{after!r}]")  # noqa: TRY004 - as in other calls
    return (word for parent in after for word in ("AFTER", parent))


class CommonOptions(TypedDict, total=False):
    """The options of `add` that every other call that adds jobs has as well; for callers that pass them on."""

    timeout_ms: int
    replicate: int | None
    delay_s: int | None
    retry_s: int | None
    ttl_s: int | None
    maxlen: int | None
    sync: int | None
    priority: int | None
    meta: str | bytes | None
    otherwise: Otherwise | None
    asynchronous: bool
    repeat: bool


class KeyOptions(TypedDict, total=False):
    """The options for a key, which is remembered for each queue."""

    key: str | bytes | None
    window_s: int | None
    until: Literal["window", "done"] | None


class AddOptions(CommonOptions, total=False):
    """The options of `add` that jobs added together can share."""

    retain_s: int | None
    after: Sequence[str]


class ManyOptions(AddOptions, total=False):
    """Those and the group of jobs of an ordered queue."""

    group: str | bytes | None


class KeyedOptions(AddOptions, KeyOptions, total=False):
    """Those and the options for a key."""


class AllOptions(KeyedOptions, ManyOptions, total=False):
    """All options of `add`."""

    job_id: str | None


def add_with_copies(queue: str, body: str | bytes, **options: Unpack[AllOptions]) -> Call[Added]:
    """Add a job as `add` does, and return its ID and how many nodes have confirmed it so far (ADDJOB WITHCOPIES).

    Nodes of the original refuse the call.
    """
    call = add(queue, body, **options)
    return Call((*call.arguments, "WITHCOPIES"), replies.added, call.repeat, call.wait_s)


def new_id(*, ttl_s: int | None = None, retry_s: int | None = None) -> Call[JobId]:
    """Return an ID for a job that is added later with this `job_id`, `ttl_s` and `retry_s` (NEWID).

    The node keeps nothing. The add can be repeated at any node.
    """
    return Call(("NEWID", *option_words(TTL=ttl_s, RETRY=retry_s)), replies.job_id, repeat=True)


def add_many(queue: str, bodies: Iterable[str | bytes], **options: Unpack[ManyOptions]) -> Iterator[Call[JobId]]:
    """Add many jobs in a pipeline, with the options of `add`; `bodies` is consumed lazily.

    Returns a list with the job ID or the error for each body, in order. The call does not raise the errors of single
    jobs: check each result. `ConnectionLost` means that the job may or may not exist, as for `add`.
    """
    model = add(queue, b"", **options)
    before, after = model.arguments[:2], tuple(map(to_bytes, model.arguments[3:]))
    return (Call((*before, body, *after), model.decode, model.repeat, model.wait_s) for body in bodies)


def add_to(
    queues: Sequence[str], body: str | bytes, **options: Unpack[KeyedOptions]
) -> Call[list[JobId | ResponseError]]:
    """Add a job with this body to each of several queues, up to 100 (ADDTO), with the options of `add`.

    Returns a list with the job ID or the error for each queue, in order. The jobs are independent of each other, and
    nothing is undone if some of them are refused: check each result. `key` is remembered for each queue.

    Raises:
        ResponseError: no job was added.
        ConnectionLost: each of the jobs may or may not exist; only without `repeat`.
    """
    if isinstance(queues, str) or not queues:
        raise ValueError("add_to() needs a sequence of queues")
    model = add("", body, **options)
    arguments = ("ADDTO", len(queues), *queues, *model.arguments[2:])
    return Call(arguments, replies.job_ids, model.repeat, model.wait_s)


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job for `add_jobs`, with its own options of `add`."""

    queue: str
    body: str | bytes
    _: KW_ONLY
    timeout_ms: int = 5000
    replicate: int | None = None
    delay_s: int | None = None
    retry_s: int | None = None
    ttl_s: int | None = None
    maxlen: int | None = None
    key: str | bytes | None = None
    window_s: int | None = None
    until: Literal["window", "done"] | None = None
    job_id: str | None = None
    sync: int | None = None
    priority: int | None = None
    meta: str | bytes | None = None
    retain_s: int | None = None
    after: Sequence[str] = ()
    otherwise: Otherwise | None = None
    group: str | bytes | None = None
    asynchronous: bool = False
    repeat: bool = False


def add_jobs(jobs: Iterable[NewJob]) -> Iterator[Call[JobId]]:
    """Add many jobs in a pipeline, each with its own queue and options; `jobs` is consumed lazily.

    Returns a list with the job ID or the error for each job, in order, as `add_many` does.
    """
    return (_add_new(job) for job in jobs)


def _add_new(job: NewJob) -> Call[JobId]:
    return add(
        job.queue,
        job.body,
        timeout_ms=job.timeout_ms,
        replicate=job.replicate,
        delay_s=job.delay_s,
        retry_s=job.retry_s,
        ttl_s=job.ttl_s,
        maxlen=job.maxlen,
        key=job.key,
        window_s=job.window_s,
        until=job.until,
        job_id=job.job_id,
        sync=job.sync,
        priority=job.priority,
        meta=job.meta,
        retain_s=job.retain_s,
        after=job.after,
        otherwise=job.otherwise,
        group=job.group,
        asynchronous=job.asynchronous,
        repeat=job.repeat,
    )
