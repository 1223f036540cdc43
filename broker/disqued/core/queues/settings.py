"""The settings of queues: the table of all settings, and the values that hold for one queue.

A setting is set for a name or a pattern of names (`settingsindex` says which one wins). Each row of `SETTINGS` checks a
value and stores it in a `QueueSettings`, which all queues with the same values share. Other code reads the attributes
of `Queue.settings`, None for a queue without settings, or `Queues.settings_of` for a name without a queue.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.resp.integers import parse_integer
from disqued.resp.words import split_words

NONE: Final = -1
"""The value of a number that is not set."""
MOST_VALUE_BYTES: Final = 1024
MOST_NAME_BYTES: Final = 1024
"""The longest name or pattern, and the longest name of a queue that has settings: matching takes time."""
MOST_COPIES: Final = 16
"""The most queues of `copy-to`."""
DEFAULT_DEAD_TTL_S: Final = 604_800
_MOST_SECONDS: Final = (1 << 32) - 1
MOST_RETAIN_S: Final = 30 * 86_400
_MOST_BACKOFF_MS: Final = 30 * 86_400_000
_MOST: Final = 1 << 53
_MOST_FACTOR: Final = 100.0
_PAUSES: Final = {b"none": 0, b"in": 1, b"out": 2, b"all": 3}
_UNSET: Final = b"none"
_MOST_RATE: Final = 1_000_000
_MOST_BURST: Final = 1_000_000
_MOST_IN_FLIGHT: Final = 1_000_000
_MOST_CONSUMER_TIMEOUT_S: Final = 86_400
_LEAST_AMOUNT: Final = 0.001
_BURSTS_PER_S: Final = 10
_AMOUNT: Final = re.compile(rb"\d{1,7}(\.\d{1,6})?")
_UNITS_S: Final = {b"s": 1, b"m": 60, b"h": 3600, b"d": 86_400}
"""The units of a rate, in seconds."""


@mypyc_attr(acyclic=True)
class QueueSettings:
    """The settings of a queue. Nothing changes a value that a queue refers to: changed settings are a new value."""

    def __init__(self) -> None:
        self.retry_s: i64 = NONE
        self.ttl_s: i64 = NONE
        self.replicate: i64 = NONE
        """Defaults of ADDJOB."""
        self.priority: i64 = 0
        self.retain_s: i64 = 0
        self.max_length: i64 = NONE
        self.max_bytes: i64 = NONE
        """Bytes of the bodies of queued jobs."""
        self.bounded: bool = False
        """Whether there is a `max_length` or `max_bytes`."""
        self.drops_oldest: bool = False
        """What `overflow` says."""
        self.backoff_min_ms: i64 = 0
        """0 without `backoff`."""
        self.backoff_max_ms: i64 = 0
        self.backoff_factor: float = 2.0
        self.limit: i64 = NONE
        """After so many attempts a job becomes a dead letter."""
        self.limit_is_exact: bool = False
        """Whether `limit` is set for the name of the queue, not for a pattern; only then it holds for dead letters."""
        self.limit_is_set: bool = False
        """Whether `limit` is set, also to none: an ordered queue has a limit unless it is."""
        self.dead = b""
        """The queue of dead letters; empty for the name of the queue with `.dead` behind it (`dead_queue`)."""
        self.drops_dead: bool = False
        """Whether a dead job ends without a dead letter (`dead drop`)."""
        self.dead_ttl_s: i64 = DEFAULT_DEAD_TTL_S
        self.dead_expired: bool = False
        self.pause: i64 = 0
        """The flags of `queue.PAUSED_IN` and `queue.PAUSED_OUT`."""
        self.consumer_timeout_s: i64 = NONE
        """Of ordered queues."""
        self.copy_to: tuple[bytes, ...] = ()
        self.rate_per_s: float = 0.0
        """Deliveries per second in the whole cluster; 0 without `rate`."""
        self.burst: i64 = NONE
        """NONE for the default (`capacity`)."""
        self.in_flight: i64 = NONE
        """How many jobs all workers may have at a time."""
        self.limited: bool = False
        """Whether there is a `rate` or `inflight`."""
        self.limited_ms: i64 = 0
        """When these limits were last changed, or when this node learned it if that is earlier by its clock."""

    @property
    def capacity(self) -> float:
        """How many deliveries the rate allows at once: `burst`, or what it allows in a tenth of a second."""
        return float(self.burst) if self.burst > 0 else max(1.0, self.rate_per_s / _BURSTS_PER_S)


def dead_queue(settings: QueueSettings | None, queue: bytes) -> bytes:
    """The name of the queue in which the dead letters of a queue arrive."""
    if settings is not None and settings.dead:
        return settings.dead
    return queue + b".dead"


class Setting:
    """One setting: a row of `SETTINGS`."""

    def __init__(
        self, name: str, syntax: str, default: str, text: str, take: Callable[[QueueSettings, bytes], None]
    ) -> None:
        self.name = name.encode()
        self.syntax = syntax
        """What a value looks like."""
        self.default = default.encode()
        self.text = text
        """What the setting does, for the documentation."""
        self.take = take
        """Stores a value. Raises ValueError, which says what the value must be."""


def _number(value: bytes, least: int, most: int, unit: str) -> int:
    found = parse_integer(value) if value else None
    if found is None or not least <= found <= most:
        raise ValueError(f"must be {least} to {most}{unit}")
    return found


def _number_or_none(value: bytes, least: int, most: int, unit: str) -> int:
    if value.lower() == _UNSET:
        return NONE
    found = parse_integer(value) if value else None
    if found is None or not least <= found <= most:
        raise ValueError(f"must be {least} to {most}{unit}, or none")
    return found


def _choice(value: bytes, one: bytes, other: bytes) -> bool:
    """Whether a value is `one`; it must be that or `other`."""
    word = value.lower()
    if word not in {one, other}:
        raise ValueError(f"must be {one.decode()} or {other.decode()}")
    return word == one


def _take_retry(settings: QueueSettings, value: bytes) -> None:
    settings.retry_s = _number_or_none(value, 0, _MOST_SECONDS, " seconds")


def _take_ttl(settings: QueueSettings, value: bytes) -> None:
    settings.ttl_s = _number_or_none(value, 1, _MOST_SECONDS, " seconds")


def _take_replicate(settings: QueueSettings, value: bytes) -> None:
    settings.replicate = _number_or_none(value, 1, 65535, " nodes")


def _take_priority(settings: QueueSettings, value: bytes) -> None:
    settings.priority = _number(value, -(1 << 31), (1 << 31) - 1, "")


def _take_retain(settings: QueueSettings, value: bytes) -> None:
    settings.retain_s = _number(value, 0, MOST_RETAIN_S, " seconds")


def _take_max_length(settings: QueueSettings, value: bytes) -> None:
    settings.max_length = _number_or_none(value, 1, _MOST, " jobs")
    settings.bounded = settings.max_length >= 0 or settings.max_bytes >= 0


def _take_max_bytes(settings: QueueSettings, value: bytes) -> None:
    settings.max_bytes = _number_or_none(value, 1, _MOST, " bytes")
    settings.bounded = settings.max_length >= 0 or settings.max_bytes >= 0


def _take_overflow(settings: QueueSettings, value: bytes) -> None:
    settings.drops_oldest = _choice(value, b"drop-oldest", b"reject")


def _take_backoff(settings: QueueSettings, value: bytes) -> None:
    if value.lower() == _UNSET:
        settings.backoff_min_ms = 0
        return
    words = value.split()
    if len(words) not in {2, 3}:
        raise ValueError("must be one argument with 'min-ms max-ms' or 'min-ms max-ms factor', or none")
    least_ms = parse_integer(words[0])
    most_ms = parse_integer(words[1])
    if least_ms is None or most_ms is None or not 1 <= least_ms <= most_ms <= _MOST_BACKOFF_MS:
        raise ValueError(f"needs a min-ms of 1 or more, and a max-ms from that to {_MOST_BACKOFF_MS}")
    factor = 2.0
    if len(words) == 3:
        try:
            factor = float(words[2].decode("latin-1"))
        except ValueError:
            factor = 0.0
        if not 1.0 <= factor <= _MOST_FACTOR:
            raise ValueError(f"needs a factor from 1 to {int(_MOST_FACTOR)}")
    settings.backoff_min_ms = least_ms
    settings.backoff_max_ms = most_ms
    settings.backoff_factor = factor


def _take_limit(settings: QueueSettings, value: bytes) -> None:
    settings.limit = _number_or_none(value, 1, 65535, " attempts")
    settings.limit_is_set = True


def _take_dead(settings: QueueSettings, value: bytes) -> None:
    if not value:
        raise ValueError("must be the name of a queue, or drop")
    settings.drops_dead = value.lower() == b"drop"
    settings.dead = b"" if settings.drops_dead else value


def _take_dead_ttl(settings: QueueSettings, value: bytes) -> None:
    settings.dead_ttl_s = _number(value, 1, _MOST_SECONDS, " seconds")


def _take_dead_expired(settings: QueueSettings, value: bytes) -> None:
    settings.dead_expired = _choice(value, b"yes", b"no")


def _take_pause(settings: QueueSettings, value: bytes) -> None:
    flags = _PAUSES.get(value.lower())
    if flags is None:
        raise ValueError("must be in, out, all or none")
    settings.pause = flags


def _take_copy_to(settings: QueueSettings, value: bytes) -> None:
    if value.lower() == _UNSET:
        settings.copy_to = ()
        return
    settings.copy_to = copied_to(value)


def copied_to(value: bytes) -> tuple[bytes, ...]:
    """The queues that a value of `copy-to` names. Raises ValueError."""
    words = split_words(value)
    if not words or len(words) > MOST_COPIES or b"" in words:
        raise ValueError(f"must be one argument with 1 to {MOST_COPIES} queues, separated by blanks, or none")
    return tuple(words)


def _take_rate(settings: QueueSettings, value: bytes) -> None:
    settings.rate_per_s = 0.0 if value.lower() == _UNSET else _rate(value)
    settings.limited = settings.rate_per_s > 0 or settings.in_flight > 0


def _rate(value: bytes) -> float:
    """The deliveries per second of a value as `10`, `0.5`, `10/s`, `90/m`, `5/h` or `2/d`."""
    amount, slash, unit = value.lower().partition(b"/")
    per_s = _UNITS_S.get(unit if slash else b"s", 0)
    if per_s == 0 or not _AMOUNT.fullmatch(amount) or not _LEAST_AMOUNT <= float(amount.decode()) <= _MOST_RATE:
        raise ValueError(f"must be {_LEAST_AMOUNT} to {_MOST_RATE} per second, as 10, 10/s, 90/m, 5/h or 2/d, or none")
    return float(amount.decode()) / per_s


def _take_burst(settings: QueueSettings, value: bytes) -> None:
    settings.burst = _number_or_none(value, 1, _MOST_BURST, " deliveries")


def _take_in_flight(settings: QueueSettings, value: bytes) -> None:
    settings.in_flight = _number_or_none(value, 1, _MOST_IN_FLIGHT, " jobs")
    settings.limited = settings.rate_per_s > 0 or settings.in_flight > 0


def _take_consumer_timeout(settings: QueueSettings, value: bytes) -> None:
    settings.consumer_timeout_s = _number(value, 1, _MOST_CONSUMER_TIMEOUT_S, " seconds")


_ROWS: Final[tuple[Setting, ...]] = (
    Setting(
        "retry",
        "sec|none",
        "none",
        "RETRY of jobs that are added without it; `none` is the default of ADDJOB. If it is 0 and REPLICATE is given "
        "neither by an option nor by a setting, a job has one copy.",
        _take_retry,
    ),
    Setting(
        "ttl", "sec|none", "none", "TTL of jobs that are added without it; `none` is the default of ADDJOB.", _take_ttl
    ),
    Setting(
        "replicate",
        "n|none",
        "none",
        "REPLICATE of jobs that are added without it; `none` is the default of ADDJOB.",
        _take_replicate,
    ),
    Setting("priority", "n", "0", "Priority of jobs that are added without one.", _take_priority),
    Setting("retain", "sec", "0", "How long a record of a finished job is kept.", _take_retain),
    Setting(
        "maxlen",
        "n|none",
        "none",
        "ADDJOB is refused, or drops old jobs (`overflow`), while this node has so many jobs in the queue.",
        _take_max_length,
    ),
    Setting(
        "maxbytes",
        "n|none",
        "none",
        "The same if the bodies of the jobs that this node has in the queue would have more bytes.",
        _take_max_bytes,
    ),
    Setting(
        "overflow",
        "reject|drop-oldest",
        "reject",
        "What ADDJOB does at `maxlen` or `maxbytes`: refuse the job with MAXLEN, or delete the oldest jobs of the "
        "queue from all nodes, as FASTACK does.",
        _take_overflow,
    ),
    Setting(
        "backoff",
        '"min-ms max-ms [factor]"|none',
        "none",
        "How long a job waits after a NACK: the first value times the factor (2 if not given) for each earlier "
        "attempt, at most the second value.",
        _take_backoff,
    ),
    Setting(
        "limit",
        "n|none",
        "none",
        "After so many attempts a job becomes a dead letter. Ordered queues have a limit of 20 unless it is set.",
        _take_limit,
    ),
    Setting(
        "dead",
        "queue|drop",
        "<queue>.dead",
        "The queue in which dead letters arrive, or `drop` to keep none.",
        _take_dead,
    ),
    Setting("dead-ttl", "sec", str(DEFAULT_DEAD_TTL_S), "How long a dead letter lives.", _take_dead_ttl),
    Setting(
        "dead-expired",
        "yes|no",
        "no",
        "Whether a job becomes a dead letter when its TTL ends before it is acknowledged.",
        _take_dead_expired,
    ),
    Setting(
        "pause",
        "in|out|all|none",
        "none",
        "PAUSE on all nodes, also those that join later. What PAUSE or this setting stops is stopped.",
        _take_pause,
    ),
    Setting("copy-to", '"queue [queue ...]"|none', "none", "ADDJOB also adds the job to these queues.", _take_copy_to),
    Setting(
        "rate",
        "n[/s|/m|/h|/d]|none",
        "none",
        "How many jobs of the queue all nodes together deliver per second, minute, hour or day; per second without a "
        "unit. Fractions are possible. Clients wait meanwhile.",
        _take_rate,
    ),
    Setting(
        "burst",
        "n|none",
        "none",
        "How many deliveries a `rate` allows at once after a time without any; `none` is a tenth of what it allows per "
        "second, at least 1.",
        _take_burst,
    ),
    Setting(
        "inflight",
        "n|none",
        "none",
        "How many jobs of the queue workers have at a time, in the whole cluster.",
        _take_in_flight,
    ),
    Setting(
        "consumer-timeout",
        "sec",
        "60",
        "A consumer of a SINGLE queue that neither has a job nor asks for one loses its place after this time.",
        _take_consumer_timeout,
    ),
)
SETTINGS: Final[dict[bytes, Setting]] = {row.name: row for row in _ROWS}
"""All settings by name, in the order in which QCONF GET shows them."""


def fault(setting: Setting, value: bytes) -> str:
    """What is wrong with a value of a setting; empty if nothing is."""
    if len(value) > MOST_VALUE_BYTES:
        return f"must have at most {MOST_VALUE_BYTES} bytes"
    try:
        setting.take(QueueSettings(), value)
    except ValueError as error:
        return str(error)
    return ""
