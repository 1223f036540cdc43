"""IDs of the jobs of ordered queues: 40 characters as all job IDs, but made from the position of the job in the log.

`D-`, 8 hex digits of the group, `-`, 24 characters, `-`, the time to live. The 24 characters are 18 bytes in base64:
the index of the entry that added the job (8 bytes), a check sum (4), and 6 bytes derived from the salt of the queue and
the index, so that an ID cannot be guessed from an earlier one. Every replica can make the ID, and any node can tell
from an ID alone which group must be asked.

The check sum is the CRC-32 of all other parts. A random ID of another node passes it once in 2^32 IDs, and only if it
begins with the number of a group in the catalog.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from hashlib import blake2b
from typing import Final
from zlib import crc32

from mypy_extensions import i64

from disqued.core.jobs.jobid import JOB_ID_BYTES, suffix_for

SALT_BYTES: Final = 16
_DERIVED_BYTES: Final = 6
_DERIVED_AT_ONCE: Final = 10
"""A digest has 64 bytes."""
_MOST_KEPT: Final = 64
_GROUP_FROM: Final = 2
_GROUP_TO: Final = 10
_CODE_FROM: Final = 11
_CODE_TO: Final = 35


def group_word(group: i64) -> bytes:
    """How the IDs of a group name it: 8 hex digits."""
    return b"%08x" % group


class GroupIds:
    """Makes the IDs of the jobs of one group; `word` is its `group_word`."""

    def __init__(self, word: bytes, salt: bytes) -> None:
        self._first = b"D-" + word + b"-"
        self._salt = salt
        self._check: i64 = crc32(word)
        self._digests: dict[int, bytes] = {}
        """One digest derives the IDs of several indexes in sequence."""
        self._suffixes: dict[int, bytes] = {}

    def make(self, index: i64, ttl_s: i64, at_least_once: bool) -> bytes:
        """The ID of the job that the entry `index` added."""
        key = int(index) // _DERIVED_AT_ONCE
        digest = self._digests.get(key)
        if digest is None:
            digest = self._digest(key)
        at = int(index) % _DERIVED_AT_ONCE * _DERIVED_BYTES
        place = int(index).to_bytes(8, "big")
        derived = digest[at : at + _DERIVED_BYTES]
        suffix = self._suffixes.get(2 * int(ttl_s) + at_least_once)
        if suffix is None:
            suffix = self._suffix(ttl_s, at_least_once)
        check = crc32(place + derived + suffix, self._check)
        code = b2a_base64(place + check.to_bytes(4, "big") + derived, newline=False)
        return self._first + code + suffix

    def _digest(self, key: int) -> bytes:
        if len(self._digests) >= _MOST_KEPT:
            self._digests.clear()
        digest = blake2b(key.to_bytes(8, "big"), key=self._salt).digest()
        self._digests[key] = digest
        return digest

    def _suffix(self, ttl_s: i64, at_least_once: bool) -> bytes:
        if len(self._suffixes) >= _MOST_KEPT:
            self._suffixes.clear()
        suffix = suffix_for(int(ttl_s), at_least_once)
        self._suffixes[2 * int(ttl_s) + at_least_once] = suffix
        return suffix


def group_of(job_id: bytes) -> bytes:
    """The `group_word` in an ID."""
    return job_id[_GROUP_FROM:_GROUP_TO]


def index_of(job_id: bytes) -> i64:
    """The index in the ID of a job of an ordered queue; 0 if it is the ID of another job."""
    if len(job_id) != JOB_ID_BYTES:
        return 0
    try:
        code = a2b_base64(job_id[_CODE_FROM:_CODE_TO])
    except Base64Error:
        return 0
    if len(code) != 18:
        return 0
    place, check, derived = code[:8], code[8:12], code[12:]
    expected = crc32(place + derived + job_id[_CODE_TO:], crc32(job_id[_GROUP_FROM:_GROUP_TO]))
    if expected.to_bytes(4, "big") != check or place[0] & 0x80:
        return 0
    return int.from_bytes(place, "big")
