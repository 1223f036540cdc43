"""The command ADD: the fields of a new job, and its body as the tail.

A replica reads the fields alone with `add_head`, and takes the body from `body_at` on. The node that proposes ADD fills
in all defaults, so that every replica has the same values. The machine does not read META, EXTRA and what a move
carries (origin, attempts, reason): nodes read those from the log when they need them.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.orderedqueue.encoding import Malformed, Reader, Writer, read_seconds, read_time_ms

ADD: Final = 1
"""The kind of the command."""

_DELAY: Final = 1
_GROUP: Final = 2
_KEY: Final = 4
_UNTIL_DONE: Final = 8
_META: Final = 16
_RETAIN: Final = 32
_MAXLEN: Final = 64
_ORIGIN: Final = 128
_REASON: Final = 256
_DEAD: Final = 512
_CLAIM: Final = 1024
_COUNTERS: Final = 2048
_EXTRA: Final = 4096
"""Which fields an ADD has."""
_ALL_FIELDS: Final = 8191

MOST_CLAIM: Final = 1 << 62
"""The greatest claim that a job can bring along, so that a later one is always greater."""
MOST_SIZE: Final = 1 << 31
"""The least number of bytes that a body cannot have."""


class Add:
    """Add a job."""

    def __init__(self, retry_s: i64, ttl_s: i64) -> None:
        self.retry_s: i64 = retry_s
        self.ttl_s: i64 = ttl_s
        self.size: i64 = 0
        """Bytes of the body."""
        self.body_at: i64 = 0
        """Where the body begins in the data of the entry."""
        self.delay_ms: i64 = 0
        self.group = b""
        """The group key; empty for none."""
        self.key = b""
        """The key of deduplication; empty for none."""
        self.window_s: i64 = 0
        self.until_done: bool = False
        """Whether the key is kept until the job ends, instead of for its window."""
        self.meta = b""
        self.retain_s: i64 = 0
        self.max_length: i64 = 0
        """MAXLEN of the command; 0 for none."""
        self.origin_id = b""
        """The ID of the first job of the chain of moves; empty if no move led to this job."""
        self.origin_queue = b""
        self.moves: i64 = 0
        self.attempts: i64 = 0
        """Attempts of the previous job of the chain."""
        self.reason = b""
        self.dead_since_ms: i64 = 0
        """Since when the job is a dead letter; 0 if it is none."""
        self.claim: i64 = 0
        """The last claim of the previous job of the chain."""
        self.nacks: i64 = 0
        self.additional: i64 = 0
        """Counters that the job keeps from the previous one."""
        self.extra = b""
        """Further attributes of the job, which the machine does not read."""

    def _fields(self) -> i64:
        """Which optional fields the command has."""
        fields: i64 = 0
        if self.delay_ms > 0:
            fields |= _DELAY
        if self.group:
            fields |= _GROUP
        if self.key:
            fields |= _KEY
        if self.until_done:
            fields |= _UNTIL_DONE
        if self.meta:
            fields |= _META
        if self.retain_s > 0:
            fields |= _RETAIN
        if self.max_length > 0:
            fields |= _MAXLEN
        if self.origin_id or self.moves > 0 or self.origin_queue or self.attempts > 0:
            fields |= _ORIGIN
        if self.reason:
            fields |= _REASON
        if self.dead_since_ms > 0:
            fields |= _DEAD
        if self.claim > 0:
            fields |= _CLAIM
        if self.nacks > 0 or self.additional > 0:
            fields |= _COUNTERS
        if self.extra:
            fields |= _EXTRA
        return fields

    def encode(self, body: bytes) -> bytes:
        """The data of an entry that adds a job with this body."""
        out = Writer()
        fields = self._fields()
        out.number(ADD)
        out.number(fields)
        out.number(self.retry_s)
        out.number(self.ttl_s)
        out.number(len(body))
        if fields > 0:
            self._write_fields(out, fields)
        out.raw(body)
        return out.done()

    def _write_fields(self, out: Writer, fields: i64) -> None:
        if fields & _DELAY:
            out.number(self.delay_ms)
        if fields & _GROUP:
            out.text(self.group)
        if fields & _KEY:
            out.text(self.key)
            out.number(self.window_s)
        if fields & _META:
            out.text(self.meta)
        if fields & _RETAIN:
            out.number(self.retain_s)
        if fields & _MAXLEN:
            out.number(self.max_length)
        if fields & _ORIGIN:
            out.text(self.origin_id)
            out.text(self.origin_queue)
            out.number(self.moves)
            out.number(self.attempts)
        if fields & _REASON:
            out.text(self.reason)
        if fields & _DEAD:
            out.number(self.dead_since_ms)
        if fields & _CLAIM:
            out.number(self.claim)
        if fields & _COUNTERS:
            out.number(self.nacks)
            out.number(self.additional)
        if fields & _EXTRA:
            out.text(self.extra)

    def read_fields(self, data: Reader, fields: i64) -> None:
        """Decode the optional fields."""
        if fields & _DELAY:
            self.delay_ms = read_time_ms(data)
        if fields & _GROUP:
            self.group = data.text()
        if fields & _KEY:
            self.key = data.text()
            self.window_s = read_seconds(data)
        self.until_done = fields & _UNTIL_DONE != 0
        if fields & _META:
            self.meta = data.text()
        if fields & _RETAIN:
            self.retain_s = read_seconds(data)
        if fields & _MAXLEN:
            self.max_length = data.number()
        if fields & _ORIGIN:
            self.origin_id = data.text()
            self.origin_queue = data.text()
            self.moves = data.number()
            self.attempts = data.number()
        if fields & _REASON:
            self.reason = data.text()
        if fields & _DEAD:
            self.dead_since_ms = data.number()
        if fields & _CLAIM:
            self.claim = min(data.number(), MOST_CLAIM)
        if fields & _COUNTERS:
            self.nacks = data.number()
            self.additional = data.number()
        if fields & _EXTRA:
            self.extra = data.text()


def is_moved(data: bytes) -> bool:
    """Whether a valid ADD adds a job for a move. The lowest bit of the second byte of the fields is `_ORIGIN`."""
    return len(data) > 2 and data[1] > 127 and data[2] & 1 != 0


def add_head(data: bytes) -> Add:
    """Decode the command ADD without its body. Raises Malformed."""
    reader = Reader(data)
    if reader.number() != ADD:
        raise Malformed("the entry adds no job")
    fields = reader.number()
    if fields > _ALL_FIELDS:
        raise Malformed("ADD has unknown fields")
    retry_s = read_seconds(reader)
    add = Add(retry_s, read_seconds(reader))
    add.size = reader.number()
    if fields > 0:
        add.read_fields(reader, fields)
    if add.ttl_s == 0:
        raise Malformed("ADD has no TTL")
    if add.size != reader.left or add.size >= MOST_SIZE:
        raise Malformed("the body has another length than ADD says")
    add.body_at = reader.at
    return add
