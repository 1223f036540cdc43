"""GETJOB: take jobs from queues, or wait for one.

With COUNT and several queues the queues are visited in turn, one job each, until COUNT jobs were taken or a whole round
yielded none. A client that has to wait gets exactly one job (`waiters`). Many jobs are taken in slices.

A queue is not made only to see that it has no job: without a cluster, it is made when a client waits for it. In a
cluster other nodes may have jobs of it, so it is made at once, unless memory is used up.

WITHREQUEUE is an extension, which INFO announces (`disqued_extensions`): the reply says for each job when this node
delivers it again, so that a worker that finishes before needs no WORKING. So is WITHMETA: the reply has the META and
the PRIORITY that ADDJOB gave to the job, and WITHCLAIM: each job has a claim (`claim`).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.blocked import CLAIM, COUNTERS, META, REQUEUE
from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.commands.longreply import LongReply
from disqued.core.jobs.attributes import META as META_TAG
from disqued.core.jobs.attributes import Attributes
from disqued.core.jobs.claims import claim_of
from disqued.core.jobs.job import Job
from disqued.core.memory.accounting import FULL
from disqued.core.queues.limited import take_limited
from disqued.core.queues.queue import PAUSED_OUT, Queue
from disqued.core.runtime.claiming import claims_refused
from disqued.core.runtime.slices import run_long
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import block, block_on_patterns
from disqued.delivery.claim import grant, is_claimed
from disqued.delivery.counters import DELIVERY_AGE, JOBS_DELIVERED
from disqued.delivery.frompattern import next_queue, patterns_of
from disqued.errors import CommandSyntaxError, NodeLeaving, OutOfMemory, ReplyError
from disqued.resp import writer
from disqued.resp.integers import parse_integer, require_timeout_ms

MOST_QUEUES: Final = 1024
"""How many queues one request may name. Each can become a queue here, and a message to every other node."""
SHORT_JOBS: Final = 512
"""A request that can take more jobs takes them in slices."""
_STEP_JOBS: Final = 32
_LARGE_BODY_BYTES: Final = 16384
"""From here on a body is not copied into the reply but written as it is."""


@mypyc_attr(acyclic=True, free_list_len=1)
class GetJob:
    """The options of one GETJOB."""

    def __init__(self) -> None:
        self.count: i64 = 1
        self.timeout_ms: i64 = 0
        self.wait: bool = True
        self.fields: i64 = 0
        """What the reply has of each job besides queue, ID, body: a sum of `COUNTERS`, `REQUEUE`, `META`, `CLAIM`."""
        self.first_queue: i64 = 0
        """Index of the first queue name, or pattern, among the words of the request."""
        self.by_pattern: bool = False


def _count(word: bytes) -> int:
    value = parse_integer(word)
    if value is None or value <= 0:
        raise ReplyError("ERR COUNT must be a number greater than zero")
    return value


def parse_getjob(args: list[bytes]) -> GetJob:
    """The options before FROM."""
    options = GetJob()
    last = len(args) - 1
    index = 1
    while index < last:
        word = args[index]
        if word != b"FROM":
            word = word.upper()
        if word == b"FROM":
            options.first_queue = index + 1
            return options
        if word == b"FROMPATTERN":
            options.first_queue = index + 1
            options.by_pattern = True
            return options
        if word == b"NOHANG":
            options.wait = False
        elif word == b"WITHCOUNTERS":
            options.fields |= COUNTERS
        elif word == b"WITHREQUEUE":
            options.fields |= REQUEUE
        elif word == b"WITHMETA":
            options.fields |= META
        elif word == b"WITHCLAIM":
            options.fields |= CLAIM
        elif word == b"COUNT":
            index += 1
            options.count = _count(args[index])
        elif word == b"TIMEOUT":
            index += 1
            options.timeout_ms = require_timeout_ms(args[index])
        else:
            raise CommandSyntaxError
        index += 1
    raise CommandSyntaxError


def append_job(out: list[bytes], queue: Queue, job: Job, fields: i64, now_ms: i64) -> None:
    """Append a delivered job to a reply, with these further fields."""
    body = job.body
    prefix = queue.reply_prefix if fields == 0 else _prefix(queue, fields)
    if len(body) < _LARGE_BODY_BYTES:
        out.append(b"".join((prefix, job.id, b"\r\n", writer.bulk_header(len(body)), body, b"\r\n")))
    else:
        out.append(prefix + job.id + b"\r\n" + writer.bulk_header(len(body)))
        out.append(body)
        out.append(writer.CRLF)
    if fields & COUNTERS:
        out.append(b"$5\r\nnacks\r\n" + writer.integer(job.nacks))
        out.append(b"$21\r\nadditional-deliveries\r\n" + writer.integer(job.additional_deliveries))
    if fields & REQUEUE:
        out.append(b"$13\r\nrequeue-in-ms\r\n" + writer.integer(_requeue_in_ms(job, now_ms)))
    if fields & CLAIM:
        out.append(b"$5\r\nclaim\r\n" + writer.integer(claim_of(job)))
        out.append(b"$5\r\nlease\r\n" + writer.integer(_requeue_in_ms(job, now_ms)))
    if fields & META:
        _append_meta(out, job.extra)


def _append_meta(out: list[bytes], extra: Attributes | None) -> None:
    """Append what the producer gave with the body: no bytes and priority 0 unless it said so."""
    meta = None if extra is None else extra.get(META_TAG)
    priority: i64 = 0 if extra is None else extra.priority
    out.append(b"$4\r\nmeta\r\n" + writer.bulk(meta or b""))
    out.append(b"$8\r\npriority\r\n" + writer.integer(priority))


def _prefix(queue: Queue, fields: i64) -> bytes:
    """How a job with further fields begins in a reply: the longer array, the queue, the header of the ID."""
    if fields == COUNTERS:
        return queue.reply_prefix_counters
    length: i64 = 3
    if fields & COUNTERS:
        length += 4
    if fields & REQUEUE:
        length += 2
    if fields & CLAIM:
        length += 4
    if fields & META:
        length += 4
    return b"*%d" % length + queue.reply_prefix[2:]


def _requeue_in_ms(job: Job, now_ms: i64) -> i64:
    """Milliseconds until this node queues the job again unless it is finished or postponed; -1 for never."""
    if job.retry_s == 0 or job.requeue_at_ms == 0:
        return -1
    return max(job.requeue_at_ms - now_ms, 0)


def getjob(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with up to COUNT jobs, or block."""
    options = parse_getjob(args)
    if options.fields & CLAIM and claims_refused(state):
        raise ReplyError(claims_refused(state))
    if options.by_pattern:
        _from_patterns(state, session, args[options.first_queue :], options)
        return
    names = _names(args, int(options.first_queue))
    lifecycle = state.lifecycle
    queues: list[Queue] = []
    for name in names:
        queue = lifecycle.queues.get(name)
        if queue is None and len(state.view.peers) > 0 and lifecycle.memory.level() < FULL:
            queue = lifecycle.make_queue(name, state.now_ms)
        if queue is not None:
            queues.append(queue)
    if options.count > SHORT_JOBS and _available(queues, state.now_ms) > SHORT_JOBS:
        run_long(state, session, ManyJobs(queues, options))
        return
    if take_now(state, session, queues, options):
        return
    if not options.wait:
        session.reply_null_array()
    elif state.view.leaving:
        raise NodeLeaving
    elif len(queues) == len(names):
        block(state, session, queues, options.timeout_ms, options.fields)
    elif lifecycle.memory.level() < FULL:
        queues = [lifecycle.make_queue(name, state.now_ms) for name in names]
        block(state, session, queues, options.timeout_ms, options.fields)
    else:
        raise OutOfMemory


def take_now(state: NodeState, session: Session, queues: list[Queue], options: GetJob) -> bool:
    """Reply with the jobs that the queues have now; False if they have none."""
    out = session.out
    header = len(out)
    taken: i64 = 0
    visited = queues
    found = True
    while found and taken < options.count:
        found = False
        emptied = False
        for queue in visited:
            job = _take(state, queue)
            if job is None:
                emptied = True
                continue
            if taken == 0:
                out.append(b"")
            _append(state, queue, job, out, options.fields)
            found = True
            taken += 1
            if taken == options.count:
                break
        if emptied:
            visited = [queue for queue in visited if _may_have_jobs(queue, state.now_ms)]
    if taken > 0:
        state.counters.add(JOBS_DELIVERED, taken)
        out[header] = writer.array_header(taken)
    return taken > 0


def _from_patterns(state: NodeState, session: Session, texts: list[bytes], options: GetJob) -> None:
    """Reply with up to COUNT jobs, at most `SHORT_JOBS`, of queues that match the patterns, or block."""
    patterns = patterns_of(state, session, texts)
    out = session.out
    header = len(out)
    taken: i64 = 0
    most: i64 = min(options.count, SHORT_JOBS)
    turn = 0
    while taken < most:
        turn, queue = next_queue(patterns, turn)
        if queue is None:
            break
        job = _take(state, queue)
        if job is None:
            continue
        if queue.length > 0:
            patterns[(turn - 1) % len(patterns)].put_back(queue)
        if taken == 0:
            out.append(b"")
        _append(state, queue, job, out, options.fields)
        taken += 1
    if taken > 0:
        state.counters.add(JOBS_DELIVERED, taken)
        out[header] = writer.array_header(taken)
    elif not options.wait:
        session.reply_null_array()
    elif state.view.leaving:
        raise NodeLeaving
    elif state.lifecycle.memory.level() < FULL:
        block_on_patterns(state, session, patterns, options.timeout_ms, options.fields)
    else:
        raise OutOfMemory


def _names(args: list[bytes], first: int) -> list[bytes]:
    """The names of the queues, each once. Raises ReplyError if there are too many."""
    if len(args) == first + 1:
        return [args[first]]
    names = list(dict.fromkeys(args[first:]))
    if len(names) > MOST_QUEUES:
        raise ReplyError(f"ERR GETJOB takes at most {MOST_QUEUES} queues, {len(names)} were given")
    return names


def _may_have_jobs(queue: Queue, now_ms: i64) -> bool:
    """Whether another visit of the queue may yield a job."""
    if queue.length == 0 or queue.pause & PAUSED_OUT:
        return False
    return queue.limiter is None or queue.limiter.has_token(now_ms)


def _available(queues: list[Queue], now_ms: i64) -> i64:
    """How many jobs the queues have for clients."""
    available: i64 = 0
    for queue in queues:
        if _may_have_jobs(queue, now_ms):
            available += queue.length
    return available


def _take(state: NodeState, queue: Queue) -> Job | None:
    """Take the next job of a queue; None if there is none. In a cluster, note that a client asked."""
    now_ms = state.now_ms
    job = queue.type.release.take(queue, now_ms) if queue.limiter is None else take_limited(queue, now_ms)
    if len(state.view.peers) > 0:
        queue.visited_ms = now_ms
        if job is None or queue.length == 0:
            state.events.queue_visited(queue, drained=job is not None)
    return job


def _append(state: NodeState, queue: Queue, job: Job, out: list[bytes], fields: i64) -> None:
    """Append a job that was taken to a reply."""
    now_ms = state.now_ms
    if fields & CLAIM or is_claimed(job):
        grant(state, job)
    append_job(out, queue, job, fields, now_ms)
    state.counters.observe(DELIVERY_AGE, max(now_ms - job.created_ms, 0))


@mypyc_attr(acyclic=True)
class ManyJobs(LongReply):
    """A GETJOB that takes many jobs."""

    def __init__(self, queues: list[Queue], options: GetJob) -> None:
        super().__init__()
        self._queues = deque(queues)
        """The queues that may have jobs, in the order of the next visits."""
        self._options = options

    def look(self, state: NodeState, session: Session) -> bool:
        """Take some more jobs."""
        for _ in range(_STEP_JOBS):
            if self.count >= self._options.count or not self._queues:
                break
            queue = self._queues.popleft()
            job = _take(state, queue)
            if job is not None:
                parts: list[bytes] = []
                _append(state, queue, job, parts, self._options.fields)
                self.add(1, parts)
                state.counters.add(JOBS_DELIVERED)
                self._queues.append(queue)
        if state.ready.changes:
            state.ready.tell_changed(session)
        return self.count < self._options.count and len(self._queues) > 0


def _queues(_state: NodeState, args: list[bytes]) -> list[bytes]:
    """The queues behind FROM. Which ones FROMPATTERN touches depends on the user (`patterns_of`)."""
    options = parse_getjob(args)
    return [] if options.by_pattern else args[options.first_queue :]


COMMAND: Final[Command] = Command(
    "getjob",
    -2,
    ("write", "fast"),
    getjob,
    "jobs",
    "Takes jobs from the first queues that have any, or waits for one.",
    "[NOHANG] [TIMEOUT ms] [COUNT n] [WITHCOUNTERS] [WITHREQUEUE] [WITHCLAIM] [WITHMETA] FROM queue [queue ...]"
    " | [NOHANG] [TIMEOUT ms] [COUNT n] [WITHCOUNTERS] [WITHREQUEUE] [WITHCLAIM] [WITHMETA]"
    " FROMPATTERN pattern [pattern ...]",
    "O(queues + jobs)",
    most_words=4 * MOST_QUEUES,
    queues=_queues,
    categories=("consumer",),
)
