"""What a schedule does, and what is known about its runs, as values of entries that all members share.

A value begins with the time at which it is forgotten (0 for never) and a blank. Words follow, each as its length, a
colon, and its bytes. Words behind those that this release knows are ignored.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.cluster.entrykinds import MOST_SCHEDULE_BYTES
from disqued.core.host.host import Host
from disqued.schedule.timing import Timing, parse_timing

RUN: Final = b"run"
STATE: Final = b"state"
LAST: Final = b"last"
"""The keys of entries."""
PAUSED: Final = b"paused"
ACTIVE: Final = b"active"
_FIXED_WORDS: Final = 6
_LAST_WORDS: Final = 6


class Definition:
    """What a client set: when, and which job."""

    def __init__(
        self, spec: str, zone: str, queue: bytes, body: bytes, words: list[bytes], *, missed_once: bool, strict: bool
    ) -> None:
        self.spec = spec
        self.zone = zone
        """Empty unless the client gave one."""
        self.queue = queue
        self.body = body
        self.words = words
        """The options of ADDJOB."""
        self.missed_once: bool = missed_once
        """After a gap, the latest time that was missed is made up for, however late."""
        self.strict: bool = strict
        """It only fires on the side of the majority."""

    def timing(self, host: Host) -> Timing:
        """When it is due. Raises ValueError."""
        return parse_timing(host, self.spec, self.zone)

    def packed(self, timing: Timing) -> bytes:
        """The value of its entry."""
        flags = (b"once" if self.missed_once else b"skip", b"yes" if self.strict else b"no")
        words = [self.spec.encode(), self.zone.encode(), *flags, self.queue, self.body, *self.words]
        return pack(int(timing.forgotten_ms), words)


def definition_of(value: bytes) -> Definition | None:
    """The definition in an entry; None if it is malformed."""
    words = unpack(value)
    if words is None or len(words) < _FIXED_WORDS:
        return None
    spec, zone, missed, strict, queue, body = words[:_FIXED_WORDS]
    try:
        return Definition(
            spec.decode(),
            zone.decode(),
            queue,
            body,
            words[_FIXED_WORDS:],
            missed_once=missed == b"once",
            strict=strict == b"yes",
        )
    except UnicodeDecodeError:
        return None


class Runs:
    """What is known about the runs of a schedule. Times are unix milliseconds, 0 for never."""

    def __init__(self) -> None:
        self.through_ms: i64 = 0
        """All times up to this one are dealt with."""
        self.fired_ms: i64 = 0
        """The time of the last run."""
        self.job_id = b""
        """Its job."""
        self.fired: i64 = 0
        self.missed: i64 = 0
        self.problem = b""
        """Why the last run failed or was missed; empty if it was not."""

    def packed(self, forgotten_ms: i64) -> bytes:
        """The value of their entry."""
        numbers = [b"%d" % number for number in (self.through_ms, self.fired_ms, self.fired, self.missed)]
        return pack(int(forgotten_ms), [*numbers, self.job_id, self.problem])


def runs_of(value: bytes) -> Runs | None:
    """The runs in an entry; None if it is malformed."""
    words = unpack(value)
    if words is None or len(words) < _LAST_WORDS:
        return None
    numbers = [_number(word) for word in words[:4]]
    if min(numbers) < 0:
        return None
    runs = Runs()
    runs.through_ms, runs.fired_ms, runs.fired, runs.missed = numbers
    runs.job_id = words[4]
    runs.problem = words[5]
    return runs


def pack(forgotten_ms: int, words: list[bytes]) -> bytes:
    """A value with these words."""
    return b"%d " % forgotten_ms + b"".join([b"%d:%b" % (len(word), word) for word in words])


def unpack(value: bytes) -> list[bytes] | None:
    """The words of a value; None if it is malformed."""
    at = value.find(b" ") + 1
    if at == 0 or len(value) > MOST_SCHEDULE_BYTES:
        return None
    words: list[bytes] = []
    while at < len(value):
        colon = value.find(b":", at, at + 6)
        length = _number(value[at:colon]) if colon > at else -1
        end = colon + 1 + length
        if length < 0 or end > len(value):
            return None
        words.append(value[colon + 1 : end])
        at = end
    return words


def _number(word: bytes) -> int:
    """A number without a sign; -1 if it is none."""
    return int(word) if word.isdigit() and len(word) <= 18 else -1
