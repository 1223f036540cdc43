"""ADDJOB: parses the options, checks the request, and creates the job.

The checks run in a fixed order, and the first one that fails determines the reply (Disque command ADDJOB): options from
left to right, the timeout, contradictions between options, replication, MAXLEN, pause, and memory for big jobs.

A KEY, which the original does not have, makes ADDJOB idempotent. After the options, the node checks whether a job was
added here to this queue under this key, at most WINDOW seconds ago. If so, it replies with the ID of that job, whatever
its state, even if a new job would be refused now. If that job still waits for its copies it may fail to get them, so
the reply is an error and not its ID.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.admission.copyto import add_copies
from disqued.admission.counters import JOBS_DEDUPLICATED
from disqued.admission.given import answer_known, require_id
from disqued.admission.overflow import drop_oldest, may_become_full, refuse_if_full
from disqued.core.clients.pipeline import waiting_requests
from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.commands.scope import first_word
from disqued.core.jobs.attributes import (
    LEAST_PRIORITY,
    MAX_META_BYTES,
    META,
    MOST_PRIORITY,
    NAMED,
    PRIORITY,
    RETAIN,
    Attributes,
    i32_value,
    of_priority,
    u32_value,
)
from disqued.core.jobs.attributes import of as attributes_of
from disqued.core.jobs.job import ACKED, WAIT_REPL, Job
from disqued.core.jobs.jobid import stamp_for, stamped
from disqued.core.lifecycle.keys import DEFAULT_WINDOW_S, Remembered
from disqued.core.memory.accounting import BIG_BYTES, COPIES_UNDER_WAY
from disqued.core.queues.queue import PAUSED_IN, Queue
from disqued.core.queues.settings import MOST_RETAIN_S, QueueSettings
from disqued.core.runtime.counters import JOBS_ADDED
from disqued.core.runtime.memorymonitor import make_room_for
from disqued.core.runtime.state import NodeState
from disqued.errors import TOO_BIG, CommandSyntaxError, NotReplicated, OutOfMemory, QueueFull, QueuePaused, ReplyError
from disqued.placing.added import added, added_before
from disqued.placing.homes import is_home
from disqued.resp.integers import parse_integer, require_timeout_ms

DEFAULT_TTL_S: Final = 86400
DEFAULT_MAX_RETRY_S: Final = 300
DEFAULT_REPLICATE: Final = 3
MAX_REPLICATE: Final = 65535
MAX_WINDOW_S: Final = 86400
MAX_KEY_BYTES: Final = 1024
MAX_SECONDS: Final = (1 << 32) - 1
"""Times are 32 bits on the wire and on disk."""

NO_COPIES: Final = "This node leaves or is short of memory, and copy-to of this queue needs a node that keeps jobs"
NO_END: Final = "This node leaves or is short of memory, and UNTIL done needs a node that keeps jobs"
STILL_WAITS: Final = "The job with this key still waits for its copies, try again later"
_DEPENDENT: Final = frozenset({b"MAXLEN", b"KEY", b"ID"})
_DEPENDENT_LENGTHS: Final = (6, 3, 2)
"""Options whose effect depends on earlier jobs of the queue, and their lengths."""
_OPTIONS_AT: Final = 4
"""Where the options of ADDJOB begin, after queue, body and timeout."""
_UNSET: Final = -1
_UNTIL: Final = (b"window", b"done")
_NO_PRIORITY: Final = 1 << 40
"""The priority while none is given: -1 is one."""


@mypyc_attr(acyclic=True, free_list_len=1)
class AddJob:
    """The options of one ADDJOB."""

    def __init__(self) -> None:
        self.replicate: i64 = _UNSET
        self.ttl_s: i64 = _UNSET
        self.retry_s: i64 = _UNSET
        self.delay_s: i64 = 0
        self.max_length: i64 = _UNSET
        self.window_s: i64 = _UNSET
        """DEFAULT_WINDOW_S if not given."""
        self.until_done: bool = False
        """The key is remembered until the job ends, instead of for the window."""
        self.asynchronous: bool = False
        self.with_copies: bool = False
        """The reply says how many nodes have the job."""
        self.confirmed: i64 = _UNSET
        """How many nodes must have the job before the reply (SYNC); after `complete_options`, 0 with ASYNC."""
        self.key: bytes | None = None
        self.given_id: bytes | None = None
        """What the client gave with ID."""
        self.retain_s: i64 = _UNSET
        """What the client gave with RETAIN, which is an attribute too."""
        self.priority: i64 = _NO_PRIORITY
        self.attributes: dict[int, bytes] | None = None
        """The values of other attributes that the client gave, by tag."""


def copy_of(options: AddJob) -> AddJob:
    """The same options, to complete them for another queue."""
    new = AddJob()
    new.replicate = options.replicate
    new.ttl_s = options.ttl_s
    new.retry_s = options.retry_s
    new.delay_s = options.delay_s
    new.max_length = options.max_length
    new.window_s = options.window_s
    new.until_done = options.until_done
    new.with_copies = options.with_copies
    new.asynchronous = options.asynchronous
    new.confirmed = options.confirmed
    new.key = options.key
    new.retain_s = options.retain_s
    new.priority = options.priority
    new.attributes = options.attributes
    return new


def _seconds(word: bytes, name: str, least: int, wrong: str) -> int:
    """Parse a time in seconds, which must fit into 32 bits."""
    value = parse_integer(word)
    if value is None or value < least:
        raise ReplyError(wrong)
    if value > MAX_SECONDS:
        raise ReplyError(f"ERR {name} must be at most {MAX_SECONDS} seconds")
    return value


def _set_replicate(options: AddJob, word: bytes) -> None:
    value = parse_integer(word)
    if value is None or not 1 <= value <= MAX_REPLICATE:
        raise ReplyError(f"ERR REPLICATE must be between 1 and {MAX_REPLICATE}")
    options.replicate = value


def _set_ttl(options: AddJob, word: bytes) -> None:
    options.ttl_s = _seconds(word, "TTL", 1, "ERR TTL must be a number > 0")


def _set_retry(options: AddJob, word: bytes) -> None:
    options.retry_s = _seconds(word, "RETRY", 0, "ERR RETRY time must be a non negative number")


def _set_delay(options: AddJob, word: bytes) -> None:
    options.delay_s = _seconds(word, "DELAY", 0, "ERR DELAY time must be a non negative number")


def _set_max_length(options: AddJob, word: bytes) -> None:
    value = parse_integer(word)
    if value is None or value <= 0:
        raise ReplyError("ERR MAXLEN must be a positive number")
    options.max_length = value


def _set_key(options: AddJob, word: bytes) -> None:
    if not 1 <= len(word) <= MAX_KEY_BYTES:
        raise ReplyError(f"ERR KEY must have 1 to {MAX_KEY_BYTES} bytes")
    options.key = word


def _set_window(options: AddJob, word: bytes) -> None:
    value = parse_integer(word)
    if value is None or not 1 <= value <= MAX_WINDOW_S:
        raise ReplyError(f"ERR WINDOW must be between 1 and {MAX_WINDOW_S} seconds")
    options.window_s = value


def _set_until(options: AddJob, word: bytes) -> None:
    until = word.lower()
    if until not in _UNTIL:
        raise ReplyError("ERR UNTIL must be window or done")
    options.until_done = until == b"done"


def _set_confirmed(options: AddJob, word: bytes) -> None:
    value = parse_integer(word)
    if value is None or value < 1:
        raise ReplyError("ERR SYNC must be at least 1")
    options.confirmed = value


def _set_priority(options: AddJob, word: bytes) -> None:
    value = parse_integer(word)
    if value is None or not LEAST_PRIORITY <= value <= MOST_PRIORITY:
        raise ReplyError(f"ERR PRIORITY must be between {LEAST_PRIORITY} and {MOST_PRIORITY}")
    options.priority = value


def _set_meta(options: AddJob, word: bytes) -> None:
    if len(word) > MAX_META_BYTES:
        raise ReplyError(f"ERR META must have at most {MAX_META_BYTES} bytes, not {len(word)}")
    _set_attribute(options, META, word or None)


def _set_retain(options: AddJob, word: bytes) -> None:
    value = parse_integer(word)
    if value is None or not 0 <= value <= MOST_RETAIN_S:
        raise ReplyError(f"ERR RETAIN must be between 0 and {MOST_RETAIN_S} seconds")
    options.retain_s = value
    _set_attribute(options, RETAIN, u32_value(value) if value > 0 else None)


def _set_attribute(options: AddJob, tag: int, value: bytes | None) -> None:
    """Set an attribute; None stands for its default, which is not stored."""
    attributes = options.attributes
    if attributes is None:
        attributes = {}
        options.attributes = attributes
    if value is None:
        attributes.pop(tag, None)
    else:
        attributes[tag] = value


def _set_id(options: AddJob, word: bytes) -> None:
    options.given_id = word
    _set_attribute(options, NAMED, b"")


_OPTIONS: Final[dict[bytes, Callable[[AddJob, bytes], None]]] = {
    b"REPLICATE": _set_replicate,
    b"TTL": _set_ttl,
    b"RETRY": _set_retry,
    b"DELAY": _set_delay,
    b"MAXLEN": _set_max_length,
    b"KEY": _set_key,
    b"WINDOW": _set_window,
    b"UNTIL": _set_until,
    b"SYNC": _set_confirmed,
    b"PRIORITY": _set_priority,
    b"META": _set_meta,
    b"RETAIN": _set_retain,
    b"ID": _set_id,
}


def parse_options(args: list[bytes], index: int) -> AddJob:
    """Parse the options from the word at `index` on."""
    options = AddJob()
    last = len(args) - 1
    while index <= last:
        word = args[index]
        setter = _OPTIONS.get(word)
        if setter is None:
            word = word.upper()
            if word == b"ASYNC":
                options.asynchronous = True
                index += 1
                continue
            if word == b"WITHCOPIES":
                options.with_copies = True
                index += 1
                continue
            setter = _OPTIONS.get(word)
        if setter is None or index == last:
            raise CommandSyntaxError
        setter(options, args[index + 1])
        index += 2
    return options


def complete_options(options: AddJob, cluster_size: i64) -> None:
    """Fill in the defaults that depend on other options, then refuse contradictions."""
    if options.ttl_s == _UNSET:
        options.ttl_s = DEFAULT_TTL_S
    if options.replicate == _UNSET:
        options.replicate = min(DEFAULT_REPLICATE, cluster_size)
    if options.retry_s == _UNSET:
        options.retry_s = max(1, min(DEFAULT_MAX_RETRY_S, options.ttl_s // 10))
    if options.priority == _NO_PRIORITY:
        options.priority = 0
    if options.replicate > 1 and options.retry_s == 0:
        raise ReplyError(
            "ERR With RETRY set to 0 please explicitly set  REPLICATE to 1 (at-most-once delivery)",
        )
    if options.delay_s >= options.ttl_s:
        raise ReplyError(
            "ERR The specified DELAY is greater than TTL. Job refused since would never be delivered",
        )
    if options.given_id is not None and options.key is not None:
        raise ReplyError("ERR ID and KEY cannot be combined")
    if options.window_s != _UNSET and options.key is None:
        raise ReplyError("ERR WINDOW is of use with a KEY only")
    if options.until_done:
        _require_end(options)
    if options.confirmed == _UNSET:
        options.confirmed = 0 if options.asynchronous else options.replicate
    elif options.asynchronous:
        raise ReplyError("ERR SYNC and ASYNC cannot be combined")
    elif options.confirmed > options.replicate:
        raise ReplyError(f"ERR SYNC must be at most REPLICATE, which is {options.replicate}")


def _require_end(options: AddJob) -> None:
    """Refuse UNTIL done if it contradicts other options."""
    if options.key is None:
        raise ReplyError("ERR UNTIL is of use with a KEY only")
    if options.window_s != _UNSET:
        raise ReplyError("ERR UNTIL done and WINDOW cannot be combined")
    if options.retry_s == 0:
        raise ReplyError("ERR UNTIL done needs a RETRY above 0: the end of an at-most-once job may not be noticed here")


def settings_of(state: NodeState, name: bytes) -> QueueSettings | None:
    """The settings of a queue that may not exist."""
    queues = state.lifecycle.queues
    if not queues.index.some:
        return None
    queue = queues.get(name)
    return queue.settings if queue is not None else queues.settings_of(name)


def _use_settings(options: AddJob, settings: QueueSettings) -> None:
    """Take the defaults that are set for the queue, and refuse options that contradict them."""
    if options.ttl_s == _UNSET:
        options.ttl_s = settings.ttl_s
        if 0 < settings.ttl_s <= options.delay_s:
            raise ReplyError(
                f"ERR DELAY is {options.delay_s} seconds, and the setting ttl of this queue {settings.ttl_s}: add a TTL"
            )
    if options.priority == _NO_PRIORITY:
        options.priority = settings.priority
    if options.retain_s == _UNSET and settings.retain_s > 0:
        options.attributes = (options.attributes or {}) | {RETAIN: u32_value(int(settings.retain_s))}
    given = options.retry_s != _UNSET
    if not given:
        options.retry_s = settings.retry_s
    if options.replicate == _UNSET:
        options.replicate = 1 if options.retry_s == 0 and not given and settings.replicate < 0 else settings.replicate
        if options.retry_s == 0 and options.replicate > 1:
            raise ReplyError(
                f"ERR RETRY 0 needs REPLICATE 1, and the setting replicate of this queue is {settings.replicate}: add "
                "REPLICATE 1"
            )
    elif options.retry_s == 0 and not given and options.replicate > 1:
        raise ReplyError(
            f"ERR REPLICATE {options.replicate} needs a RETRY above 0, and the setting retry of this queue is 0: add a "
            "RETRY"
        )


def complete_for(options: AddJob, settings: QueueSettings | None, cluster_size: i64) -> None:
    """Complete the options of a job for a queue with these settings, and refuse contradictions."""
    if settings is not None:
        _use_settings(options, settings)
    complete_options(options, cluster_size)


def _window_s(options: AddJob) -> i64:
    return DEFAULT_WINDOW_S if options.window_s == _UNSET else options.window_s


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
    return None if known.added_ms <= state.now_ms - _window_s(options) * 1000 else known


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
    if options.max_length != _UNSET:
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
    reachable: i64 = len(view.reachable)
    if wanted <= reachable:
        return external
    if not options.asynchronous and wanted <= view.count_expected(state.now_ms, state.config.cluster_node_timeout):
        return external
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


def _attributes(options: AddJob) -> Attributes | None:
    """The attributes that the options ask for."""
    values = options.attributes
    if not values:
        return of_priority(options.priority)
    if options.priority != 0:
        values = values | {PRIORITY: i32_value(int(options.priority))}
    return attributes_of(values)


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
        if options.max_length != _UNSET and queue.length >= options.max_length:
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
        external = not is_home(state, given, options.replicate)
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
    if options.priority != 0 or options.attributes is not None:
        job.extra = _attributes(options)
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
    if stamp is not None:
        lifecycle.keys.add(job_id, _window_s(options), until_done=options.until_done)
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
    "[UNTIL window|done] [ID id] [PRIORITY n] [META bytes] [RETAIN sec] [SYNC n] [ASYNC] [WITHCOPIES]",
    "O(1) plus one message per copy",
    needs_log=True,
    needs_clock=True,
    needs_nothing=_needs_nothing,
    may_follow=_may_follow,
    queues=first_word,
    categories=("producer",),
)
