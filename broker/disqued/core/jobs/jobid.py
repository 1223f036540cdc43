"""Job IDs: their format, how they are made, and what can be read from them.

`D-` + first 8 digits of the creating node's ID + `-` + 24 random characters of the base64 alphabet + `-` + 4 hex
digits: the time to live in minutes, odd for at-least-once jobs and even for at-most-once ones (Disque README, "Job
IDs"). An ID has 40 bytes. Random characters are drawn for many IDs at once, so that an ID costs one slice and one join.

In the ID of a job that is added under a key (ADDJOB KEY), the first 16 of the 24 characters are a *stamp*: a hash of
queue and key. It has 96 bits, so no two keys that a node remembers collide. The other 8 characters stay random: a key
may be used again when its window is over, and IDs must not repeat, because other nodes remember which jobs are done.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from mypy_extensions import i64

from disqued.errors import BadJobId

JOB_ID_BYTES: Final = 40
_RANDOM_CHARACTERS: Final = 24
_RANDOM_BYTES: Final = 18
_IDS_PER_DRAW: Final = 128
"""Few, so that clients do not wait for a draw: one for 1,024 IDs takes 80 us."""
_MAX_MINUTES: Final = 65535
_STAMP_BYTES: Final = 12
_STAMP_FROM: Final = 11
_STAMP_TO: Final = 27
"""The position of the stamp in an ID."""
MAX_TTL_S: Final = (1 << 32) - 1
"""The largest time to live: it has 32 bits on the wire."""
_TTL_FROM: Final = 36
"""The position of the time to live."""
_DASH: Final = 45
_HEX_DIGITS: Final = bytes([max(b"0123456789abcdef".find(bytes((byte,)).lower()), 0) for byte in range(256)])
"""The value of each character; 0 of one that is no hex digit."""
_MADE: Final = re.compile(rb"D-[0-9a-fA-F]{8}-[A-Za-z0-9+/]{24}-[0-9a-fA-F]{4}")


class JobIds:
    """Makes the IDs of the jobs that one node creates."""

    def __init__(self, node_id: bytes, random_bytes: Callable[[int], bytes]) -> None:
        self._prefix = b"D-" + node_id[:8] + b"-"
        self._random_bytes = random_bytes
        self._characters = b""
        self._position: i64 = 0
        self._suffix = b""
        self._suffix_ttl_s: i64 = -1
        self._suffix_odd: bool = False

    def make(self, ttl_s: i64, at_least_once: bool) -> bytes:
        """A new ID for a job that lives `ttl_s` seconds."""
        if ttl_s != self._suffix_ttl_s or at_least_once != self._suffix_odd:
            self._suffix = suffix_for(int(ttl_s), at_least_once)
            self._suffix_ttl_s = ttl_s
            self._suffix_odd = at_least_once
        position = self._position
        if position >= len(self._characters):
            self._characters = b2a_base64(self._random_bytes(_RANDOM_BYTES * _IDS_PER_DRAW), newline=False)
            position = 0
        self._position = position + _RANDOM_CHARACTERS
        return self._prefix + self._characters[position : position + _RANDOM_CHARACTERS] + self._suffix


def suffix_for(ttl_s: int, at_least_once: bool) -> bytes:
    """How the ID of a job ends that lives `ttl_s` seconds: a dash and the time to live."""
    minutes = min(ttl_s // 60, _MAX_MINUTES)
    return b"-%04x" % (minutes | 1 if at_least_once else minutes & ~1)


def stamp_for(queue: bytes, key: bytes) -> bytes:
    """The stamp of a queue and a key. The hash includes the length of the queue name: "ab", "c" is not "a", "bc"."""
    words = len(queue).to_bytes(8, "big") + queue + key
    return b2a_base64(blake2b(words, digest_size=_STAMP_BYTES).digest(), newline=False)


def stamped(job_id: bytes, characters: bytes) -> bytes:
    """The ID, with a stamp in place of its first 16 random characters."""
    return job_id[:_STAMP_FROM] + characters + job_id[_STAMP_TO:]


def stamp_of(job_id: bytes) -> bytes:
    """The stamp in an ID; random characters if its job was added without a key."""
    return job_id[_STAMP_FROM:_STAMP_TO]


def is_job_id(word: bytes) -> bool:
    """Whether a word has the format of a job ID; its characters are not verified."""
    return len(word) == JOB_ID_BYTES and word[0] == 68 and word[1] == _DASH and word[10] == _DASH and word[35] == _DASH


def can_exist(word: bytes) -> bool:
    """Whether a node can have made this job ID: all of its characters are from their alphabets."""
    return _MADE.fullmatch(word) is not None


def require_job_ids(words: list[bytes], first: int) -> None:
    """Raise BadJobId unless all words, beginning at index `first`, are job IDs."""
    for index in range(first, len(words)):
        if not is_job_id(words[index]):
            raise BadJobId


def ttl_minutes(job_id: bytes) -> int:
    """The TTL field of an ID, in minutes; odd for at-least-once jobs. A character that is no hex digit counts as 0."""
    minutes: i64 = 0
    for at in range(_TTL_FROM, JOB_ID_BYTES):
        minutes = minutes * 16 + _HEX_DIGITS[job_id[at]]
    return int(minutes)


def ttl_range_s(job_id: bytes) -> tuple[int, int]:
    """The smallest and the largest time to live, in seconds, that the ID can mean."""
    minutes = ttl_minutes(job_id)
    if minutes & 1:
        return (minutes - 1) * 60, MAX_TTL_S if minutes == _MAX_MINUTES else minutes * 60 + 59
    return minutes * 60, MAX_TTL_S if minutes == _MAX_MINUTES - 1 else minutes * 60 + 119


def is_made_by(job_id: bytes, node_id: bytes) -> bool:
    """Whether the ID names that node as the job's creator."""
    return job_id[2:10] == node_id[:8]
