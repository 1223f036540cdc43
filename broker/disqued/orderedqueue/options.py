"""What an ordered queue is declared with, and the settings that can be changed later.

The options of QNEW never change. The settings are those of `core.queues.settings` that a machine needs, as integers:
the node that proposes CONF resolves patterns and defaults, so that all replicas use the same values. Defaults of ADDJOB
(`retry`, `ttl`, `retain`) are resolved by the node that proposes ADD.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.orderedqueue.encoding import Reader, Writer

DEFAULT_LIMIT: Final = 20
"""Attempts before a job becomes a dead letter, unless `limit` is set."""
DEFAULT_DEAD_TTL_S: Final = 604_800
DEFAULT_CONSUMER_TIMEOUT_MS: Final = 60_000
PAUSED_IN: Final = 1
PAUSED_OUT: Final = 2


class QueueOptions:
    """How a queue was declared."""

    def __init__(self, name: bytes, *, single: bool = False, prefetch: i64 = 0) -> None:
        self.name = name
        self.single = single
        """Whether one consumer at a time gets jobs."""
        self.prefetch: i64 = prefetch
        """How many jobs a consumer has at most; 0 for any number. Without `single`, a consumer is a node."""

    def write(self, out: Writer) -> None:
        """Append the options to an encoding."""
        out.text(self.name)
        out.flag(self.single)
        out.number(self.prefetch)


def read_options(data: Reader) -> QueueOptions:
    """Decode options. Raises Malformed."""
    name = data.text()
    single = data.flag()
    return QueueOptions(name, single=single, prefetch=data.number())


class Settings:
    """The settings of a queue. A new value replaces the old one as a whole."""

    def __init__(self) -> None:
        self.limit: i64 = DEFAULT_LIMIT
        """After so many attempts a job becomes a dead letter."""
        self.limit_is_exact: bool = False
        """Whether `limit` is set for the name of the queue; only then it holds for dead letters."""
        self.dead = b""
        """The queue of dead letters; empty for the name of the queue with `.dead` behind it."""
        self.drops_dead: bool = False
        """Whether a dead job ends without a dead letter."""
        self.dead_ttl_s: i64 = DEFAULT_DEAD_TTL_S
        self.dead_expired: bool = False
        """Whether a job becomes a dead letter when its TTL ends."""
        self.backoff_min_ms: i64 = 0
        """0 without `backoff`."""
        self.backoff_max_ms: i64 = 0
        self.backoff_permille: i64 = 2000
        """The factor of `backoff` in thousandths: the machine has no floating point numbers."""
        self.max_length: i64 = 0
        """`maxlen`; 0 without."""
        self.max_bytes: i64 = 0
        """`maxbytes`, the bytes of the bodies of waiting jobs; 0 without."""
        self.drops_oldest: bool = False
        """Whether a full queue deletes its oldest jobs (`overflow drop-oldest`) instead of refusing new ones."""
        self.pause: i64 = 0
        """`PAUSED_IN` and `PAUSED_OUT`."""
        self.consumer_timeout_ms: i64 = DEFAULT_CONSUMER_TIMEOUT_MS

    def write(self, out: Writer) -> None:
        """Append the settings to an encoding."""
        out.number(self.limit)
        out.flag(self.limit_is_exact)
        out.text(self.dead)
        out.flag(self.drops_dead)
        out.number(self.dead_ttl_s)
        out.flag(self.dead_expired)
        out.number(self.backoff_min_ms)
        out.number(self.backoff_max_ms)
        out.number(self.backoff_permille)
        out.number(self.max_length)
        out.number(self.max_bytes)
        out.flag(self.drops_oldest)
        out.number(self.pause)
        out.number(self.consumer_timeout_ms)


def read_settings(data: Reader) -> Settings:
    """Decode settings. Raises Malformed."""
    settings = Settings()
    settings.limit = data.number()
    settings.limit_is_exact = data.flag()
    settings.dead = data.text()
    settings.drops_dead = data.flag()
    settings.dead_ttl_s = data.number()
    settings.dead_expired = data.flag()
    settings.backoff_min_ms = data.number()
    settings.backoff_max_ms = data.number()
    settings.backoff_permille = data.number()
    settings.max_length = data.number()
    settings.max_bytes = data.number()
    settings.drops_oldest = data.flag()
    settings.pause = data.number()
    settings.consumer_timeout_ms = data.number()
    return settings
