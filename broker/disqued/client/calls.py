"""The definition of every command: signature, words on the wire, decoder of the reply, whether it may be repeated.

Each function returns a `Call`, a plain value. The blocking and the asyncio client are tables of these functions, so
each signature and its documentation exist once.

`repeat` decides what happens when the connection breaks after the command was sent. It is True only for commands that
are idempotent, even if they are executed on two different nodes:

- Reads (QLEN, QPEEK, QSTAT, SHOW, HELLO, INFO, the first page of a scan) change nothing.
- QCONF SET and UNSET lead to the same settings, however often they run.
- GETJOB: jobs whose reply was lost are delivered again after their RETRY, as when a worker dies. At-most-once jobs
  (`retry_s=0`) are lost, as their contract allows.
- ACKJOB, FASTACK, WORKING: the second command finds the job finished, or postpones its delivery again.

It is False for ADDJOB and ADDTO, which would create a second job (a `key` prevents that on one node, not on two); for
NACK and ENQUEUE, because another worker may have the job by then; for DEQUEUE, DELJOB and PAUSE on one node, because
the second attempt may reach another node; and for commands that the client does not know. The calls that add
jobs are in `adding`, those for jobs that fail in `failing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from disqued.client import replies
from disqued.client.values import (
    Hello,
    Job,
    JobDetails,
    JobFilter,
    JobId,
    PauseState,
    Purged,
    PurgeState,
    QueueCount,
    QueueSetting,
    QueueStats,
    StoredSetting,
)
from disqued.client.wire import Argument, Reply, encode, flag_words, option_words

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One request.

    `wait_s` is how long the command may block on the node; None means no timeout.
    """

    arguments: tuple[Argument, ...]
    decode: Callable[[Reply], T_co]
    repeat: bool = False
    wait_s: float | None = 0.0

    @property
    def name(self) -> str:
        """The name of the command, for messages."""
        return str(self.arguments[0]) if self.arguments else "(nothing)"

    def encode(self) -> bytes:
        """Return the bytes of the request."""
        return encode(self.arguments)


@dataclass(frozen=True, slots=True)
class Scan(Generic[T_co]):
    """A paged iteration: the words before and after the cursor, and the decoder of an element."""

    command: str
    options: tuple[Argument, ...]
    decode: Callable[[Reply], T_co]

    def page(self, cursor: int) -> Call[tuple[int, list[T_co]]]:
        """Return the call for the page at `cursor`. Only the first may be repeated: a cursor belongs to one node."""
        arguments = (self.command, cursor, *self.options)
        return Call(arguments, replies.page(self.decode), repeat=cursor == 0)


def seconds(timeout_ms: int) -> float | None:
    """The timeout of a command in seconds; 0 means none on the wire."""
    return timeout_ms / 1000 if timeout_ms else None


def execute(*args: Argument, repeat: bool = False, wait_s: float | None = 0.0) -> Call[Reply]:
    """Send any command, one argument per word, and return the raw reply: bytes, int, list, or None for null.

    `wait_s` is how long the command may block on the node, in addition to the client's own timeout; None means
    without limit. `repeat=True` lets the client send the command again when the connection breaks.

    Raises:
        ResponseError: the reply is an error.
        ConnectionLost: no reply arrived.
    """
    if not args:
        raise ValueError("execute() needs at least the name of a command")
    return Call(args, replies.raw, repeat, wait_s)


def execute_many(commands: Iterable[Sequence[Argument]]) -> Iterator[Call[Reply]]:
    """Send many commands in a pipeline, each a sequence of words; `commands` is consumed lazily.

    Returns a list with the reply or the error of each command, in order. No command is repeated when the connection
    breaks.
    """
    return (execute(*words) for words in commands)


def execute_ahead(commands: Iterable[Sequence[Argument]]) -> Iterator[Call[Reply]]:
    """Send commands and iterate over the reply or error of each, in order, over one connection.

    Each command is sent before you get the reply to the one before, so the node and your code work at the same time.
    `commands` is consumed as they are sent, so it may depend on earlier replies. No command is repeated.

    Raises:
        ConnectionFailed: no node can be reached; nothing was sent.
        ConnectionLost: the connection broke. The commands without a reply, at most two, may have been executed.
    """
    return execute_many(commands)


def get(
    queues: str | Sequence[str],
    *,
    count: int = 1,
    timeout_ms: int = 0,
    nohang: bool = False,
    with_counters: bool = False,
    with_requeue: bool = False,
    with_claim: bool = False,
    with_meta: bool = False,
) -> Call[list[Job]]:
    """Fetch up to `count` jobs from one or several queues, in the order given (Disque command GETJOB).

    Waits up to `timeout_ms` for a job (0 means no timeout), or not at all with `nohang`. Returns an empty list if no
    job arrives in time. A job that is not acknowledged within its retry time is delivered again, to any worker.
    `with_requeue` requests the time until then, `Job.requeue_in_ms`, `with_meta` what `add` gave with the body,
    `Job.meta` and `Job.priority`, and `with_claim` the number of the delivery, `Job.claim`; nodes of the original
    refuse all three.

    Raises:
        ResponseError: `ERR syntax error`, the node does not know one of the options.
        ClockError: with `with_claim`, the clock of every reachable node is too far ahead.
        NodeLeaving: every reachable node is leaving its cluster.
    """
    names = (queues,) if isinstance(queues, str) else tuple(queues)
    if not names:
        raise ValueError("get() needs at least one queue")
    wait_s = 0.0 if nohang else seconds(timeout_ms)
    flags = flag_words(
        NOHANG=nohang,
        WITHCOUNTERS=with_counters,
        WITHREQUEUE=with_requeue,
        WITHCLAIM=with_claim,
        WITHMETA=with_meta,
    )
    arguments = ("GETJOB", *flags, "TIMEOUT", timeout_ms, "COUNT", count, "FROM", *names)
    return Call(arguments, replies.jobs, repeat=True, wait_s=wait_s)


def get_matching(
    patterns: str | Sequence[str],
    *,
    count: int = 1,
    timeout_ms: int = 0,
    nohang: bool = False,
    with_counters: bool = False,
    with_requeue: bool = False,
    with_claim: bool = False,
    with_meta: bool = False,
) -> Call[list[Job]]:
    """Fetch up to `count` jobs, at most 512, from the queues that match one of up to 16 patterns (GETJOB FROMPATTERN).

    A pattern is a glob as in Redis: `mail:*`, `?`, `[abc]`. Queues that are made while the call waits match, too. The
    queues are visited in turn. The other arguments are those of `get`.

    Raises:
        ResponseError: the node does not know patterns, or its clients wait for too many of them.
        NodeLeaving: every reachable node is leaving its cluster.
    """
    model = get(
        patterns,
        count=count,
        timeout_ms=timeout_ms,
        nohang=nohang,
        with_counters=with_counters,
        with_requeue=with_requeue,
        with_claim=with_claim,
        with_meta=with_meta,
    )
    at = model.arguments.index("FROM")
    arguments = (*model.arguments[:at], "FROMPATTERN", *model.arguments[at + 1 :])
    return Call(arguments, model.decode, repeat=True, wait_s=model.wait_s)


def ack(
    *ids: str,
    claim: int | None = None,
    seq: int | None = None,
    result: str | bytes | None = None,
    copies: int | None = None,
    timeout_ms: int = 5000,
) -> Call[int]:
    """Acknowledge jobs: they are not delivered again (Disque command ACKJOB). Returns how many this node knew.

    Nodes of the original know none of the options.

    Args:
        ids: The jobs; with an option, only one.
        claim: The claim with which `get` returned the job: the node refuses if it knows that the job was delivered
            again since.
        seq: How many entries the worker wrote to the progress log: the node refuses if one of them is missing there.
        result: Up to 64 KiB for whoever waits for the job (`wait`, `result`); it must have been added with `retain_s`.
        copies: Return when so many nodes that have the job know that it has ended.
        timeout_ms: How long to wait for them; 0 means no timeout.

    Raises:
        BadJobId: an argument is not a job ID; no job was acknowledged.
        StaleClaim: the job was delivered again since.
        SequenceConflict: entries are missing; the job was not acknowledged.
        NotReplicated: fewer than `copies` nodes know yet; the job is acknowledged, and the others learn of it later.
        ResponseError: nobody would keep the result; the job is not acknowledged.
    """
    options = option_words(CLAIM=claim, SEQ=seq, RESULT=result, COPIES=copies)
    if copies is not None:
        options += option_words(TIMEOUT=timeout_ms)
    wait_s = 0.0 if copies is None else seconds(timeout_ms)
    return Call(("ACKJOB", *ids, *options), replies.integer, repeat=True, wait_s=wait_s)


def fast_ack(*ids: str) -> Call[int]:
    """Acknowledge jobs with fewer messages between nodes; after a failure they may be delivered again (FASTACK).

    Raises:
        BadJobId: an argument is not a job ID; no job was acknowledged.
    """
    return Call(("FASTACK", *ids), replies.integer, repeat=True)


def enqueue(*ids: str) -> Call[int]:
    """Queue jobs now, counted as an additional delivery (Disque command ENQUEUE). Returns how many were queued.

    Raises:
        BadJobId: an argument is not a job ID; no job was queued.
    """
    return Call(("ENQUEUE", *ids), replies.integer)


def dequeue(*ids: str) -> Call[int]:
    """Remove jobs from their queue on this node without delivering them (DEQUEUE). Returns how many were removed.

    Raises:
        BadJobId: an argument is not a job ID; no job was removed.
    """
    return Call(("DEQUEUE", *ids), replies.integer)


def delete(*ids: str) -> Call[int]:
    """Delete jobs from this node only, in any state (Disque command DELJOB). Returns how many were deleted.

    Raises:
        BadJobId: an argument is not a job ID; no job was deleted.
    """
    return Call(("DELJOB", *ids), replies.integer)


def working(
    job_id: str, *, claim: int | None = None, lease_s: int | None = None, note: str | bytes | None = None
) -> Call[int]:
    """Postpone the next delivery of a job in progress to one retry time from now (Disque command WORKING).

    Returns the time in seconds until then, 0 for an at-most-once job. Nodes of the original know none of the options.

    Args:
        job_id: The job.
        claim: The claim with which `get` returned the job: the node refuses if it knows that the job was delivered
            again since.
        lease_s: Postpone the delivery to this time from now instead, at most half of the job's time to live.
        note: A line of progress, at most 1 KiB, which `show` returns until the next one.

    Raises:
        StaleClaim: the job was delivered again since the delivery of `claim`.
        NoSuchJob: the node does not know the job: it was acknowledged or deleted, or has expired.
        JobAcknowledged: the job is acknowledged, but not yet deleted.
        TooLate: more than half of the job's time to live has passed.
    """
    options = option_words(CLAIM=claim, FOR=lease_s, NOTE=note)
    return Call(("WORKING", job_id, *options), replies.integer, repeat=True)


def working_many(ids: Iterable[str]) -> Iterator[Call[int]]:
    """Call `working` for many jobs in a pipeline. Returns a list with the retry time in s or the error of each."""
    return (working(job_id) for job_id in ids)


def show(job_id: str) -> Call[JobDetails | None]:
    """Return all that the node knows about a job, or None if it does not know the job (Disque command SHOW)."""
    return Call(("SHOW", job_id), replies.optional(replies.job_details), repeat=True)


def qlen(queue: str, *, exact: bool = False) -> Call[int]:
    """Return the number of jobs in the queue on this node (Disque command QLEN).

    An ordered queue is counted by its leader; with `exact` after a majority has confirmed that it still leads.
    """
    return Call(("QLEN", queue, *(("EXACT",) if exact else ())), replies.integer, repeat=True)


def qpeek(queue: str, count: int = 10) -> Call[list[Job]]:
    """Return queued jobs without fetching them, in the order of delivery; with a negative `count` from its end (QPEEK).

    Jobs with a higher priority come first, then older ones.
    """
    return Call(("QPEEK", queue, count), replies.jobs, repeat=True)


def qstat(queue: str) -> Call[QueueStats | None]:
    """Return the statistics of the queue on this node, or None if there is no such queue (Disque command QSTAT)."""
    return Call(("QSTAT", queue), replies.optional(replies.queue_stats), repeat=True)


def qcount(queue: str, *, timeout_ms: int = 5000) -> Call[QueueCount]:
    """Count the jobs of the queue over all nodes of the cluster (Disque command QCOUNT).

    A node that does not answer within `timeout_ms`, at most 60,000, is missing: compare `nodes_answered` with
    `nodes_known`. The figures may be a second old.
    """
    return Call(("QCOUNT", queue, "TIMEOUT", timeout_ms), replies.queue_count, repeat=True, wait_s=timeout_ms / 1000)


def qpurge(
    queue: str, *, states: Iterable[PurgeState] = (), before_ms: int | None = None, timeout_ms: int = 5000
) -> Call[Purged]:
    """Delete the jobs of the queue on all nodes, also on nodes that return later (Disque command QPURGE).

    Jobs that workers have stay unless `states` names `leased`; without states, the others go.
    `before_ms`, unix milliseconds, spares younger jobs. The counts miss nodes that do not answer within `timeout_ms`;
    if the client had to repeat the call, they miss what the first one deleted.
    """
    in_states = tuple(word for state in states for word in ("STATE", state))
    options = option_words(BEFORE=before_ms, TIMEOUT=timeout_ms)
    return Call(("QPURGE", queue, *in_states, *options), replies.purged, repeat=True, wait_s=timeout_ms / 1000)


def qscan(
    *,
    min_len: int | None = None,
    max_len: int | None = None,
    import_rate: int | None = None,
    page_size: int = 100,
) -> Scan[str]:
    """Iterate over the names of the queues of this node, and of all ordered queues (Disque command QSCAN).

    Each queue that exists during the whole scan is returned at least once; some may be returned twice. `import_rate` is
    a lower bound in jobs per second.

    Raises:
        ConnectionLost: the connection broke after the first page; start the scan again.
    """
    return Scan(
        "QSCAN", option_words(COUNT=page_size, MINLEN=min_len, MAXLEN=max_len, IMPORTRATE=import_rate), replies.text
    )


def jscan(*, queue: str | None = None, states: Iterable[JobFilter] = (), page_size: int = 100) -> Scan[JobId]:
    """Iterate over the IDs of the jobs of this node, optionally of one queue and in some states (JSCAN).

    The states `leased`, `delayed` and `held` are parts of `active`, `dead` is a part of `queued`.

    Raises:
        ConnectionLost: the connection broke after the first page; start the scan again.
    """
    return Scan("JSCAN", _job_filter(queue, states, page_size, "id"), replies.job_id)


def jscan_details(
    *, queue: str | None = None, states: Iterable[JobFilter] = (), page_size: int = 100
) -> Scan[JobDetails]:
    """Iterate over jobs as `jscan` does, with the details that `show` returns."""
    return Scan("JSCAN", _job_filter(queue, states, page_size, "all"), replies.job_details)


def _job_filter(queue: str | None, states: Iterable[JobFilter], page_size: int, reply: str) -> tuple[Argument, ...]:
    of_queue = () if queue is None else ("QUEUE", queue)
    in_states = tuple(word for state in states for word in ("STATE", state))
    return ("COUNT", page_size, *of_queue, *in_states, "REPLY", reply)


def pause(queue: str, state: PauseState | Literal["state"] = "state", *, everywhere: bool = False) -> Call[PauseState]:
    """Pause the queue: `in` refuses new jobs, `out` stops deliveries, `all` does both, `none` resumes (PAUSE).

    Returns the state after the call; `state` only returns it. `everywhere` pauses the queue on all nodes.
    """
    flags = flag_words(bcast=everywhere)
    return Call(("PAUSE", queue, state, *flags), replies.pause_state, repeat=everywhere or state == "state")


def qconf_set(name: str, settings: Mapping[str, str | int]) -> Call[str]:
    """Set settings of a queue, or of all queues that match a pattern, on all nodes (QCONF SET).

    For example `qconf_set("mail:*", {"retry": 30, "maxlen": 10_000})`. Returns `OK` when the change is on the disk of
    the node.
    """
    words = tuple(word for pair in settings.items() for word in pair)
    return Call(("QCONF", name, "SET", *words), replies.text, repeat=True)


def qconf_unset(name: str, *settings: str) -> Call[int]:
    """Remove settings of a name or pattern, all if none is given (QCONF UNSET).

    Returns how many there were. If the client had to repeat the call, that may be 0 although it removed some.
    """
    return Call(("QCONF", name, "UNSET", *(settings or ("*",))), replies.integer, repeat=True)


def qconf_get(queue: str) -> Call[dict[str, QueueSetting]]:
    """Return all settings of a queue, defaults included, with the name that each comes from (QCONF GET)."""
    return Call(("QCONF", queue, "GET"), replies.queue_settings, repeat=True)


def qconf_show(pattern: str = "*") -> Call[list[StoredSetting]]:
    """Return what is set for the names and patterns that match a pattern (QCONF SHOW)."""
    return Call(("QCONF", pattern, "SHOW"), replies.stored_settings, repeat=True)


def hello() -> Call[Hello]:
    """Return the ID of the node and the nodes that it knows, with their priorities (Disque command HELLO)."""
    return Call(("HELLO",), replies.hello, repeat=True)


def info(section: str = "default") -> Call[dict[str, str]]:
    """Return the statistics of the node by name: of one section, of the `default` ones or of `all` (INFO)."""
    return Call(("INFO", section), replies.info, repeat=True)


def ping() -> Call[str]:
    """Return `PONG` (Disque command PING)."""
    return Call(("PING",), replies.text, repeat=True)
