"""Every command once: its Python signature, its words on the wire, how its answer reads, whether it may be repeated.

Each function returns a `Call`, a plain value; the blocking and the asyncio client are two tables of these functions, so
a signature and its text stand here and nowhere else.

`repeat` decides what happens when the connection breaks after the command was sent. It is True only where carrying
the command out twice, perhaps on two different nodes, has the effect of once:

- reading (QLEN, QPEEK, QSTAT, SHOW, HELLO, INFO, the first page of a scan): nothing changes;
- GETJOB: jobs whose answer was lost come back after their RETRY, as for any worker that died; at-most-once jobs
  (`retry_s=0`) are lost then, which is their contract;
- ACKJOB, FASTACK, WORKING: the second one finds the work done, or postpones again.

It is False for ADDJOB (a second job would be created; a `key` keeps one node from that, not two), NACK and ENQUEUE
(another worker may have the job by then), DEQUEUE, DELJOB and a PAUSE of one node (they concern one node, and the
second try may reach another one), and for words that the client does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Generic, Literal, TypedDict, TypeVar, Unpack

from disqued.client import replies
from disqued.client.values import Hello, Job, JobDetails, JobId, JobState, PauseState, QueueStats
from disqued.client.wire import Argument, Reply, encode

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One request.

    `wait_s` is how long the node may hold the answer back on purpose; None is for ever.
    """

    arguments: tuple[Argument, ...]
    decode: Callable[[Reply], T_co]
    repeat: bool = False
    wait_s: float | None = 0.0

    @property
    def name(self) -> str:
        """The command's name, for messages."""
        return str(self.arguments[0]) if self.arguments else "(nothing)"

    def encode(self) -> bytes:
        """The request's bytes."""
        return encode(self.arguments)


@dataclass(frozen=True, slots=True)
class Scan(Generic[T_co]):
    """An iteration in pages: the words before and after the cursor, and how one element reads."""

    command: str
    options: tuple[Argument, ...]
    decode: Callable[[Reply], T_co]

    def page(self, cursor: int) -> Call[tuple[int, list[T_co]]]:
        """The call for the page at `cursor`. Only the first may be repeated: a cursor belongs to one node."""
        arguments = (self.command, cursor, *self.options)
        return Call(arguments, replies.page(self.decode), repeat=cursor == 0)


def _options(**values: Argument | None) -> tuple[Argument, ...]:
    """Options with a value, in the order given; None leaves one out."""
    return tuple(word for name, value in values.items() if value is not None for word in (name, value))


def _flags(**values: bool) -> tuple[Argument, ...]:
    """Options without a value."""
    return tuple(name for name, value in values.items() if value)


def _seconds(timeout_ms: int) -> float | None:
    """A command's own time limit; 0 means none on the wire."""
    return timeout_ms / 1000 if timeout_ms else None


def execute(*args: Argument, repeat: bool = False, wait_s: float | None = 0.0) -> Call[Reply]:
    """Send any command, word by word, and return the reply as it came: bytes, int, list, or None for null.

    `wait_s` is how long the node may hold the answer back on purpose, beyond the client's own limit; None is for
    ever. `repeat=True` lets the client send the command again when the connection breaks.

    Raises:
        ResponseError: the reply is an error.
        ConnectionLost: the answer did not come.
    """
    if not args:
        raise ValueError("execute needs at least the name of a command")
    return Call(args, replies.raw, repeat, wait_s)


def execute_many(commands: Iterable[Sequence[Argument]]) -> Iterator[Call[Reply]]:
    """Send many commands, pipelined, each a sequence of words; `commands` is read as it is needed.

    Returns a list with the reply, or the error, of each in order. Nothing is repeated when the connection breaks.
    """
    return (execute(*words) for words in commands)


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
    asynchronous: bool = False,
    repeat: bool = False,
) -> Call[JobId]:
    """Add a job and return its ID (Disque command ADDJOB). What is left out is decided by the node.

    Args:
        queue: The queue's name.
        body: What the worker gets; text travels as UTF-8.
        timeout_ms: How long the node may try to place all copies; 0 is for ever.
        replicate: How many nodes must hold a copy before the call returns.
        delay_s: Wait this long before the first delivery.
        retry_s: Deliver again when not acknowledged for this long; 0 means at most one delivery, with `replicate=1`.
        ttl_s: Forget the job after this long, delivered or not.
        maxlen: Refuse when the queue holds this many jobs.
        key: Add once: where a job was added to the queue under this key before, nothing is added and that job's ID is
            the answer, whatever became of it. Only the node that added it knows, and not for ever.
        window_s: For how long the key counts, 300 seconds if left out.
        asynchronous: Return at once and place the other copies in the background.
        repeat: Add again when the connection breaks before the answer. The job may then exist twice; with a `key` only
            if the second try reaches another node than the first.

    Raises:
        NotReplicated: unknown whether the job exists; read the class's text before adding it again.
        ConnectionLost: unknown too, without `repeat`.
        QueuePaused: the queue is paused in input.
        QueueFull: it holds `maxlen` jobs.
        OutOfMemory: the node takes no more.
    """
    options = _options(
        REPLICATE=replicate, DELAY=delay_s, RETRY=retry_s, TTL=ttl_s, MAXLEN=maxlen, KEY=key, WINDOW=window_s
    )
    arguments = ("ADDJOB", queue, body, timeout_ms, *options, *_flags(ASYNC=asynchronous))
    return Call(arguments, replies.job_id, repeat, _seconds(timeout_ms))


class AddOptions(TypedDict, total=False):
    """The options of `add` that many jobs may have in common, for those who pass them on."""

    timeout_ms: int
    replicate: int | None
    delay_s: int | None
    retry_s: int | None
    ttl_s: int | None
    maxlen: int | None
    asynchronous: bool
    repeat: bool


def add_many(queue: str, bodies: Iterable[str | bytes], **options: Unpack[AddOptions]) -> Iterator[Call[JobId]]:
    """Add many jobs, pipelined, with the options of `add`; `bodies` is read as it is needed.

    Returns a list with the job's ID, or the error, for each body in order. Nothing is raised for a single job: look at
    each result. Those whose answer was lost are `ConnectionLost`, which means unknown, as for `add`.
    """
    return (add(queue, body, **options) for body in bodies)


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job that is to be added, with the options of `add` of its own."""

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
    asynchronous: bool = False
    repeat: bool = False


def add_jobs(jobs: Iterable[NewJob]) -> Iterator[Call[JobId]]:
    """Add many jobs, pipelined, each to a queue and with options of its own; `jobs` is read as it is needed.

    Returns a list with the job's ID, or the error, for each in order, as `add_many` does.
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
        asynchronous=job.asynchronous,
        repeat=job.repeat,
    )


def get(
    queues: str | Sequence[str],
    *,
    count: int = 1,
    timeout_ms: int = 0,
    nohang: bool = False,
    with_counters: bool = False,
) -> Call[list[Job]]:
    """Take up to `count` jobs from one or several queues, in the order named (Disque command GETJOB).

    Waits until there is one, at most `timeout_ms` (0 is for ever), or with `nohang` not at all; nothing in time is an
    empty list. A job not acknowledged within its retry time is delivered again, to anybody.

    Raises:
        NodeLeaving: every node that can be reached is leaving its cluster.
    """
    names = (queues,) if isinstance(queues, str) else tuple(queues)
    if not names:
        raise ValueError("get needs at least one queue")
    wait_s = 0.0 if nohang else _seconds(timeout_ms)
    flags = _flags(NOHANG=nohang, WITHCOUNTERS=with_counters)
    arguments = ("GETJOB", *flags, "TIMEOUT", timeout_ms, "COUNT", count, "FROM", *names)
    return Call(arguments, replies.jobs, repeat=True, wait_s=wait_s)


def ack(*ids: str) -> Call[int]:
    """Finish jobs: they are never delivered again (Disque command ACKJOB). Returns how many this node knew.

    Raises:
        BadJobId: one argument is no job ID; nothing was acknowledged.
    """
    return Call(("ACKJOB", *ids), replies.integer, repeat=True)


def fast_ack(*ids: str) -> Call[int]:
    """Finish jobs with fewer messages between nodes, and a chance of a second delivery after a failure (FASTACK).

    Raises:
        BadJobId: one argument is no job ID; nothing was acknowledged.
    """
    return Call(("FASTACK", *ids), replies.integer, repeat=True)


def nack(*ids: str) -> Call[int]:
    """Give jobs back, to be delivered again at once; counts as a failure (Disque command NACK).

    Returns how many went back to their queues.

    Raises:
        BadJobId: one argument is no job ID; nothing was given back.
        ConnectionLost: unknown; what was not given back returns after its retry time.
    """
    return Call(("NACK", *ids), replies.integer)


def enqueue(*ids: str) -> Call[int]:
    """Put jobs into their queues now, counted as a further delivery (Disque command ENQUEUE). Returns how many.

    Raises:
        BadJobId: one argument is no job ID; nothing was queued.
    """
    return Call(("ENQUEUE", *ids), replies.integer)


def dequeue(*ids: str) -> Call[int]:
    """Take jobs out of their queue on this node without delivering them (Disque command DEQUEUE). Returns how many.

    Raises:
        BadJobId: one argument is no job ID; nothing was removed.
    """
    return Call(("DEQUEUE", *ids), replies.integer)


def delete(*ids: str) -> Call[int]:
    """Forget jobs on this node only, whatever their state (Disque command DELJOB). Returns how many.

    Raises:
        BadJobId: one argument is no job ID; nothing was deleted.
    """
    return Call(("DELJOB", *ids), replies.integer)


def working(job_id: str) -> Call[int]:
    """Say that the job is still worked on: its next delivery moves to one retry time from now (Disque command WORKING).

    Returns the job's retry time in seconds, 0 for an at-most-once job.

    Raises:
        NoSuchJob: unknown here: acknowledged, deleted or expired.
        JobAcknowledged: finished, but not yet forgotten.
        TooLate: half of the job's life is over.
    """
    return Call(("WORKING", job_id), replies.integer, repeat=True)


def working_many(ids: Iterable[str]) -> Iterator[Call[int]]:
    """Say `working` for many jobs, pipelined. Returns a list with the retry time in seconds, or the error, of each."""
    return (working(job_id) for job_id in ids)


def show(job_id: str) -> Call[JobDetails | None]:
    """All that the node knows about a job, or None when it knows nothing (Disque command SHOW)."""
    return Call(("SHOW", job_id), replies.optional(replies.job_details), repeat=True)


def qlen(queue: str) -> Call[int]:
    """How many jobs wait in the queue on this node (Disque command QLEN)."""
    return Call(("QLEN", queue), replies.integer, repeat=True)


def qpeek(queue: str, count: int = 10) -> Call[list[Job]]:
    """Look at waiting jobs without taking them: the oldest first, or with a negative `count` the newest (QPEEK)."""
    return Call(("QPEEK", queue, count), replies.jobs, repeat=True)


def qstat(queue: str) -> Call[QueueStats | None]:
    """The queue's figures on this node, or None when there is no such queue (Disque command QSTAT)."""
    return Call(("QSTAT", queue), replies.optional(replies.queue_stats), repeat=True)


def qscan(
    *,
    min_len: int | None = None,
    max_len: int | None = None,
    import_rate: int | None = None,
    page_size: int = 100,
) -> Scan[str]:
    """Iterate over the names of this node's queues (Disque command QSCAN).

    Each queue that exists all the time comes at least once, some may come twice. `import_rate` is a lower bound in
    jobs per second.

    Raises:
        ConnectionLost: the connection broke after the first page; start again.
    """
    return Scan(
        "QSCAN", _options(COUNT=page_size, MINLEN=min_len, MAXLEN=max_len, IMPORTRATE=import_rate), replies.text
    )


def jscan(*, queue: str | None = None, states: Iterable[JobState] = (), page_size: int = 100) -> Scan[JobId]:
    """Iterate over the IDs of this node's jobs, of one queue and in some states if given (Disque command JSCAN).

    Raises:
        ConnectionLost: the connection broke after the first page; start again.
    """
    return Scan("JSCAN", _job_filter(queue, states, page_size, "id"), replies.job_id)


def jscan_details(
    *, queue: str | None = None, states: Iterable[JobState] = (), page_size: int = 100
) -> Scan[JobDetails]:
    """As `jscan`, with what `show` tells for each job."""
    return Scan("JSCAN", _job_filter(queue, states, page_size, "all"), replies.job_details)


def _job_filter(queue: str | None, states: Iterable[JobState], page_size: int, reply: str) -> tuple[Argument, ...]:
    of_queue = () if queue is None else ("QUEUE", queue)
    in_states = tuple(word for state in states for word in ("STATE", state))
    return ("COUNT", page_size, *of_queue, *in_states, "REPLY", reply)


def pause(queue: str, state: PauseState | Literal["state"] = "state", *, everywhere: bool = False) -> Call[PauseState]:
    """Close the queue for jobs coming `in`, going `out`, `all` or `none`; `state` only asks (Disque command PAUSE).

    Returns the state after the call. `everywhere` tells all nodes.
    """
    flags = _flags(bcast=everywhere)
    return Call(("PAUSE", queue, state, *flags), replies.pause_state, repeat=everywhere or state == "state")


def hello() -> Call[Hello]:
    """Which node this is and which others it knows, with their priorities (Disque command HELLO)."""
    return Call(("HELLO",), replies.hello, repeat=True)


def info(section: str = "default") -> Call[dict[str, str]]:
    """The node's figures by name (Disque command INFO), of one section, of the `default` ones or of `all`."""
    return Call(("INFO", section), replies.info, repeat=True)


def ping() -> Call[str]:
    """Ask for `PONG` (Disque command PING)."""
    return Call(("PING",), replies.text, repeat=True)
