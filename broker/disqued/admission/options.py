"""The options of ADDJOB, which ADDTO and NEWID take too: parsing, defaults, and contradictions between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus.kinds import FEATURE_AFTER, FEATURE_ATTRIBUTES
from disqued.core.jobs.attributes import (
    AFTER,
    DUE,
    LEAST_PRIORITY,
    MAX_META_BYTES,
    META,
    MOST_PRIORITY,
    NAMED,
    PRIORITY,
    RETAIN,
    SCHEDULE,
    Attributes,
    i32_value,
    i64_value,
    of_priority,
    u32_value,
)
from disqued.core.jobs.attributes import of as attributes_of
from disqued.core.jobs.jobid import can_exist
from disqued.core.jobs.parents import ACTIONS, MAX_PARENTS, pack_parents
from disqued.core.lifecycle.keys import DEFAULT_WINDOW_S
from disqued.core.queues.settings import MOST_RETAIN_S, QueueSettings
from disqued.core.runtime.state import NodeState
from disqued.errors import BadJobId, CommandSyntaxError, ReplyError
from disqued.resp.integers import parse_integer

DEFAULT_TTL_S: Final = 86400
DEFAULT_MAX_RETRY_S: Final = 300
DEFAULT_REPLICATE: Final = 3
MAX_REPLICATE: Final = 65535
MAX_WINDOW_S: Final = 86400
MAX_KEY_BYTES: Final = 1024
MAX_SECONDS: Final = (1 << 32) - 1
"""Times are 32 bits on the wire and on disk."""

MOST_WORDS: Final = 64 + 2 * MAX_PARENTS
"""How many words an ADDJOB may have: each option once, and all parents."""
UNSET: Final = -1
_UNTIL: Final = (b"window", b"done")
_NO_PRIORITY: Final = 1 << 40
"""The priority while none is given: -1 is one."""


@mypyc_attr(acyclic=True, free_list_len=1)
class AddJob:
    """The options of one ADDJOB."""

    def __init__(self) -> None:
        self.replicate: i64 = UNSET
        self.ttl_s: i64 = UNSET
        self.retry_s: i64 = UNSET
        self.delay_s: i64 = 0
        self.max_length: i64 = UNSET
        self.window_s: i64 = UNSET
        """DEFAULT_WINDOW_S if not given."""
        self.until_done: bool = False
        """The key is remembered until the job ends, instead of for the window."""
        self.asynchronous: bool = False
        self.with_copies: bool = False
        """The reply says how many nodes have the job."""
        self.confirmed: i64 = UNSET
        """How many nodes must have the job before the reply (SYNC); after `complete_options`, 0 with ASYNC."""
        self.key: bytes | None = None
        self.given_id: bytes | None = None
        """What the client gave with ID."""
        self.retain_s: i64 = UNSET
        """What the client gave with RETAIN, which is an attribute too."""
        self.priority: i64 = _NO_PRIORITY
        self.parents: list[bytes] | None = None
        """The jobs that must be done before (AFTER)."""
        self.otherwise: i64 = UNSET
        """What happens if one of them can no longer be done (ELSE)."""
        self.attributes: dict[int, bytes] | None = None
        """The values of other attributes that the client gave, by tag."""

    @property
    def has_priority(self) -> bool:
        """Whether the client gave a priority."""
        return self.priority != _NO_PRIORITY

    @property
    def needs(self) -> i64:
        """The features that a node must have to keep the job."""
        return FEATURE_ATTRIBUTES | FEATURE_AFTER if self.parents is not None else 0

    @property
    def window(self) -> i64:
        """For how many seconds the key is remembered."""
        return DEFAULT_WINDOW_S if self.window_s == UNSET else self.window_s


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
    new.parents = options.parents
    new.otherwise = options.otherwise
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


def _add_parent(options: AddJob, word: bytes) -> None:
    if not can_exist(word):
        raise BadJobId
    parents = options.parents
    if parents is None:
        parents = []
        options.parents = parents
    if word not in parents:
        parents.append(word)
    if len(parents) > MAX_PARENTS:
        raise ReplyError(f"ERR AFTER takes at most {MAX_PARENTS} jobs; collect more with jobs in between")


def _set_otherwise(options: AddJob, word: bytes) -> None:
    action = word.lower()
    if action not in ACTIONS:
        raise ReplyError("ERR ELSE must be dead, run or drop")
    options.otherwise = ACTIONS.index(action)


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
    b"AFTER": _add_parent,
    b"ELSE": _set_otherwise,
}


def name_run(options: AddJob, characters: bytes, schedule: bytes, due_ms: int) -> None:
    """Have the options name the job of a run of a schedule: its ID is derived, and its attributes say what it is."""
    _set_id(options, characters)
    _set_attribute(options, SCHEDULE, schedule)
    _set_attribute(options, DUE, i64_value(due_ms))


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
    if options.ttl_s == UNSET:
        options.ttl_s = DEFAULT_TTL_S
    if options.replicate == UNSET:
        options.replicate = min(DEFAULT_REPLICATE, cluster_size)
    if options.retry_s == UNSET:
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
    if options.window_s != UNSET and options.key is None:
        raise ReplyError("ERR WINDOW is of use with a KEY only")
    if options.until_done:
        _require_end(options)
    if options.parents is not None:
        _require_parents(options)
    elif options.otherwise != UNSET:
        raise ReplyError("ERR ELSE is of use with AFTER only")
    if options.confirmed == UNSET:
        options.confirmed = 0 if options.asynchronous else options.replicate
    elif options.asynchronous:
        raise ReplyError("ERR SYNC and ASYNC cannot be combined")
    elif options.confirmed > options.replicate:
        raise ReplyError(f"ERR SYNC must be at most REPLICATE, which is {options.replicate}")


def _require_end(options: AddJob) -> None:
    """Refuse UNTIL done if it contradicts other options."""
    if options.key is None:
        raise ReplyError("ERR UNTIL is of use with a KEY only")
    if options.window_s != UNSET:
        raise ReplyError("ERR UNTIL done and WINDOW cannot be combined")
    if options.retry_s == 0:
        raise ReplyError("ERR UNTIL done needs a RETRY above 0: the end of an at-most-once job may not be noticed here")


def _require_parents(options: AddJob) -> None:
    """Refuse parents that contradict other options."""
    parents = options.parents
    if parents is not None and options.given_id is not None and options.given_id in parents:
        raise ReplyError("ERR a job cannot wait for itself")


def settings_of(state: NodeState, name: bytes) -> QueueSettings | None:
    """The settings of a queue that may not exist."""
    queues = state.lifecycle.queues
    if not queues.index.some:
        return None
    queue = queues.get(name)
    return queue.settings if queue is not None else queues.settings_of(name)


def _use_settings(options: AddJob, settings: QueueSettings) -> None:
    """Take the defaults that are set for the queue, and refuse options that contradict them."""
    if options.ttl_s == UNSET:
        options.ttl_s = settings.ttl_s
        if 0 < settings.ttl_s <= options.delay_s:
            raise ReplyError(
                f"ERR DELAY is {options.delay_s} seconds, and the setting ttl of this queue {settings.ttl_s}: add a TTL"
            )
    if options.priority == _NO_PRIORITY:
        options.priority = settings.priority
    if options.retain_s == UNSET and settings.retain_s > 0:
        options.attributes = (options.attributes or {}) | {RETAIN: u32_value(int(settings.retain_s))}
    given = options.retry_s != UNSET
    if not given:
        options.retry_s = settings.retry_s
    if options.replicate == UNSET:
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


def attributes_for(options: AddJob) -> Attributes | None:
    """The attributes that the options ask for."""
    values = options.attributes
    parents = options.parents
    if parents is not None:
        values = (values or {}) | {AFTER: pack_parents(parents, max(int(options.otherwise), 0))}
    if not values:
        return of_priority(options.priority)
    if options.priority != 0:
        values = values | {PRIORITY: i32_value(int(options.priority))}
    return attributes_of(values)
