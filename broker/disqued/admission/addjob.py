"""ADDJOB: parses the options, checks the request, and creates the job.

The checks run in a fixed order, and the first one that fails determines the reply (Disque command ADDJOB): options from
left to right, the timeout, contradictions between options, replication, MAXLEN, pause, and memory for big jobs.

A KEY, which the original does not have, makes ADDJOB idempotent. After the options, the node checks whether a job was
added here to this queue under this key, at most WINDOW seconds ago. If so, it replies with the ID of that job, whatever
its state, even if a new job would be refused now. If that job still waits for its copies it may fail to get them, so
the reply is an error and not its ID.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.admission.copyto import add_copies
from disqued.admission.counters import JOBS_DEDUPLICATED
from disqued.admission.given import answer_known, require_id
from disqued.admission.options import (
    MOST_WORDS,
    UNSET,
    AddJob,
    attributes_for,
    complete_for,
    parse_options,
    settings_of,
)
from disqued.admission.overflow import drop_oldest, may_become_full, refuse_if_full
from disqued.core.clients.pipeline import waiting_requests
from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.commands.scope import first_word
from disqued.core.jobs.job import ACKED, WAIT_REPL, Job
from disqued.core.jobs.jobid import stamp_for, stamped
from disqued.core.lifecycle.keys import Remembered
from disqued.core.memory.accounting import BIG_BYTES, COPIES_UNDER_WAY
from disqued.core.queues.queue import PAUSED_IN, Queue
from disqued.core.queues.settings import QueueSettings
from disqued.core.runtime.counters import JOBS_ADDED
from disqued.core.runtime.memorymonitor import make_room_for
from disqued.core.runtime.state import NodeState
from disqued.errors import TOO_BIG, NotReplicated, OutOfMemory, QueueFull, QueuePaused, ReplyError
from disqued.placing.added import added, added_before
from disqued.placing.homes import is_home
from disqued.placing.otherhomes import ask_other_homes
from disqued.resp.integers import require_timeout_ms

NO_COPIES: Final = "This node leaves or is short of memory, and copy-to of this queue needs a node that keeps jobs"
NO_END: Final = "This node leaves or is short of memory, and UNTIL done needs a node that keeps jobs"
STILL_WAITS: Final = "The job with this key still waits for its copies, try again later"
_DEPENDENT: Final = frozenset({b"MAXLEN", b"KEY", b"ID"})
_DEPENDENT_LENGTHS: Final = (6, 3, 2)
"""Options whose effect depends on earlier jobs of the queue, and their lengths."""
_OPTIONS_AT: Final = 4
"""Where the options of ADDJOB begin, after queue, body and timeout."""


def _known(state: NodeState, options: AddJob, stamp: bytes) -> Remembered | None:
    """An earlier ADDJOB with the same key that is within the window, or that has no reply yet.

    UNTIL done: whose job is unfinished. The job then also keeps a key that was added with a window.
    """
    lifecycle = state.lifecycle
    known = lifecycle.keys.get(stamp)
    if known is None or known.added_ms == 0:
        return known
    if options.until_done:
        job = lifecycle.table.get(known.job_id)
        if job is None or job.state == ACKED:
            return None
        lifecycle.keys.keep_until_done(known)
        return known
    return None if known.added_ms <= state.now_ms - options.window * 1000 else known


def _needs_nothing(state: NodeState, args: list[bytes]) -> bool:
    """Whether an earlier ADDJOB counts as the same one."""
    try:
        options = parse_options(args, _OPTIONS_AT)
        require_timeout_ms(args[3])
        complete_for(options, settings_of(state, args[1]), state.view.size)
    except ReplyError:
        return False
    key = options.key
    return key is not None and _known(state, options, stamp_for(args[1], key)) is not None


def _may_follow(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Whether the ADDJOB does the same now as after the replies to earlier ones of its client.

    It does not if it could be refused for MAXLEN or settings of its queue only once those jobs are queued, or if one of
    them has its key.
    """
    if may_fill(state, session, args[1]):
        return False
    return not has_dependent(args, _OPTIONS_AT) or _changes_nothing(state, session, args)


def may_fill(state: NodeState, session: Session, name: bytes) -> bool:
    """Whether a queue could be full, according to its settings, once the earlier jobs of the client are queued."""
    settings = settings_of(state, name)
    if settings is None or not settings.bounded:
        return False
    return may_become_full(state.lifecycle.queues.get(name), settings, waiting_requests(session))


def has_dependent(args: list[bytes], first: int) -> bool:
    """Whether the effect of the options from the word at `first` on may depend on earlier jobs."""
    for index in range(first, len(args)):
        word = args[index]
        if len(word) in _DEPENDENT_LENGTHS and word.upper() in _DEPENDENT:
            return True
    return False


def _changes_nothing(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Whether the earlier jobs of the client make no difference to an ADDJOB with MAXLEN or KEY."""
    try:
        options = parse_options(args, _OPTIONS_AT)
    except ReplyError:
        return True
    if options.max_length != UNSET:
        queue = state.lifecycle.queues.get(args[1])
        length: i64 = 0 if queue is None else queue.length
        if length + waiting_requests(session) >= options.max_length:
            return False
    if options.given_id is not None:
        return False
    if options.key is None:
        return True
    known = state.lifecycle.keys.get(stamp_for(args[1], options.key))
    return known is None or known.added_ms > 0


def _answer_again(state: NodeState, session: Session, known: Remembered, *, with_copies: bool) -> None:
    """Reply with the ID of a job that was added before, once it is safe on disk."""
    if known.added_ms == 0:
        raise NotReplicated(STILL_WAITS)
    state.counters.add(JOBS_DEDUPLICATED)
    state.ready.tell_again(session)
    session.out.append(added_before(known.job_id, with_copies=with_copies))


def _check_replication(state: NodeState, options: AddJob) -> bool:
    """Refuse a job that could not get enough copies; True if other nodes must keep all copies.

    An ADDJOB that waits for its copies also waits for members that have just gone. With SYNC, only the copies that the
    client waits for must be possible.
    """
    view = state.view
    external = view.leaving or state.lifecycle.memory.level() > 0
    wanted: i64 = options.replicate if options.asynchronous else options.confirmed
    if not external:
        wanted -= 1
    needs = options.needs
    reachable = view.count_reachable(needs)
    if wanted <= reachable:
        return external
    timeout_ms = state.config.cluster_node_timeout
    if not options.asynchronous and wanted <= view.count_expected(state.now_ms, timeout_ms, needs):
        return external
    if wanted <= len(view.reachable):
        here: i64 = 0 if external else 1
        raise NotReplicated(f"Not enough reachable nodes know AFTER: {reachable + here} of {wanted + here}")
    if external and wanted - 1 == reachable:
        reason = "I'm leaving the cluster" if view.leaving else "I'm out of memory"
        raise NotReplicated(
            "Not enough reachable nodes for the requested replication level, since I'm unable to hold a copy of the "
            f"message for the following reason: {reason}"
        )
    raise NotReplicated


def _obey(state: NodeState, queue: Queue | None, settings: QueueSettings, body_bytes: i64) -> None:
    """Refuse a job that the settings of its queue do not allow now. The pause of a queue that exists was checked."""
    if settings.bounded:
        refuse_if_full(state, queue, settings, body_bytes)
    if queue is None and settings.pause & PAUSED_IN:
        raise QueuePaused


def addjob(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Create a job, and reply with its ID."""
    options = parse_options(args, _OPTIONS_AT)
    timeout_ms: i64 = require_timeout_ms(args[3])
    complete_for(options, settings_of(state, args[1]), state.view.size)
    add(state, session, args[1], args[2], timeout_ms, options)


def add(state: NodeState, session: Session, name: bytes, body: bytes, timeout_ms: i64, options: AddJob) -> None:
    """Create a job, and reply with its ID, now or later. Raises ReplyError if that is refused.

    The job is queued here unless it must wait for copies or only other nodes keep it.
    """
    stamp: bytes | None = None
    if options.key is not None:
        stamp = stamp_for(name, options.key)
        known = _known(state, options, stamp)
        if known is not None:
            _answer_again(state, session, known, with_copies=options.with_copies)
            return
    given: bytes | None = None
    if options.given_id is not None:
        given = require_id(options.given_id, int(options.ttl_s), at_least_once=options.retry_s > 0)
        if answer_known(state, session, given, name, with_copies=options.with_copies):
            return
    lifecycle = state.lifecycle
    queue = lifecycle.queues.get(name)
    settings = queue.settings if queue is not None else lifecycle.queues.settings_of(name)
    queue_type = queue.type if queue is not None else lifecycle.queues.type_of(name)
    placement = queue_type.placement
    external = placement.by_copies and _check_replication(state, options)
    if queue is not None:
        if options.max_length != UNSET and queue.length >= options.max_length:
            raise QueueFull
        if queue.pause & PAUSED_IN:
            raise QueuePaused
        name = queue.name
    if settings is not None:
        _obey(state, queue, settings, len(body))
        if external and settings.copy_to:
            raise NotReplicated(NO_COPIES)
    if external and options.until_done:
        raise NotReplicated(NO_END)
    if given is not None and not external:
        external = not is_home(state, given, options.replicate, options.needs)
    if len(body) > BIG_BYTES and not make_room_for(state, COPIES_UNDER_WAY * len(body)):
        raise OutOfMemory(TOO_BIG)
    if queue is not None and settings is not None and settings.drops_oldest:
        drop_oldest(state, queue, settings, len(body))
    now_ms = state.now_ms
    job_id = given if given is not None else state.job_ids.make(options.ttl_s, options.retry_s > 0)
    if stamp is not None:
        job_id = stamped(job_id, stamp)
    expire_at_s: i64 = now_ms // 1000 + options.ttl_s
    ctime = state.next_ctime(name) if given is None else state.next_named_ctime(name)
    job = Job(job_id, name, body, ctime, expire_at_s, options.delay_s, options.retry_s, int(options.replicate))
    if options.priority != 0 or options.attributes is not None or options.parents is not None:
        job.extra = attributes_for(options)
    if placement.place(
        session,
        job,
        timeout_ms,
        now_ms,
        confirmed=options.confirmed,
        external=external,
        with_copies=options.with_copies,
    ):
        state.counters.add(JOBS_ADDED)
        session.out.append(added(job_id, 1, with_copies=options.with_copies))
        if given is not None:
            ask_other_homes(state, job)
    if stamp is not None:
        lifecycle.keys.add(job_id, options.window, until_done=options.until_done)
        if job.state != WAIT_REPL:
            lifecycle.keys.begin(job_id, now_ms, now_ms)
    if settings is not None and settings.copy_to:
        add_copies(state, session, settings.copy_to, job, options.ttl_s)


COMMAND: Final[Command] = Command(
    "addjob",
    -4,
    ("write", "denyoom", "fast"),
    addjob,
    "jobs",
    "Adds a job to a queue and replies with its ID.",
    "queue body ms-timeout [REPLICATE n] [DELAY sec] [RETRY sec] [TTL sec] [MAXLEN n] [KEY key] [WINDOW sec] "
    "[UNTIL window|done] [ID id] [PRIORITY n] [META bytes] [RETAIN sec] [AFTER id] ... [ELSE dead|run|drop] [SYNC n] "
    "[ASYNC] [WITHCOPIES]",
    "O(1) plus one message per copy",
    needs_log=True,
    needs_clock=True,
    needs_nothing=_needs_nothing,
    may_follow=_may_follow,
    queues=first_word,
    categories=("producer",),
    most_words=MOST_WORDS,
)
