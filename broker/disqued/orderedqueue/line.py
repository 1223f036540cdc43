"""Waiting jobs that nobody had yet, in the order of their indexes: 16 bytes for each.

A row is two words: the index and the time of the job, relative to the first row of its chunk, with 31 and 32 bits; the
number of its profile and its size. A chunk has 512 rows. Jobs are taken from the front, and can be removed from the
middle: such a row stays as a gap, and a chunk with many gaps is written again without them.

The lives of the jobs end at times that are known, but sorted by nothing: each chunk has a bound, before which no life
in it ends. It can be too early, after the job with the earliest end was taken; then a look at the chunk finds a later
one.
"""

from __future__ import annotations

from array import array
from typing import Final

from mypy_extensions import i64

from disqued.orderedqueue.encoding import Malformed, Reader, Writer
from disqued.orderedqueue.job import Job, Profile, Profiles
from disqued.orderedqueue.packed import pack_words, unpack_words

CHUNK_ROWS: Final = 512
_SPAN: Final = 1 << 31
"""Indexes and times of a chunk differ by less from its first row."""
_LOW: Final = 0xFFFFFFFF
_GAP: Final = -1
_MOST_GAPS: Final = 4
"""A chunk is written again when its rows are more than so many times its jobs."""
_SMALL_ROWS: Final = 32


class Chunk:
    """Some consecutive rows."""

    def __init__(self, base_index: i64, base_ms: i64) -> None:
        self.base_index: i64 = base_index
        self.base_ms: i64 = base_ms
        self.words = array("q")
        self.start: i64 = 0
        """The word of the first row that is not taken."""
        self.count: i64 = 0
        """How many jobs it has."""
        self.soonest_ms: i64 = 0
        """No life of a job in it ends before; 0 without jobs."""

    def find(self, index: i64) -> i64:
        """The word of the row with this index, or with the next greater one; the end if there is none."""
        words = self.words
        wanted: i64 = index - self.base_index
        low = self.start >> 1
        high: i64 = len(words) >> 1
        while low < high:
            middle: i64 = (low + high) >> 1
            if i64(words[middle << 1]) >> 32 < wanted:
                low = middle + 1
            else:
                high = middle
        return low << 1


class Line:
    """The packed jobs of a queue."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles
        self._chunks: list[Chunk] = []
        self.first: i64 = 0
        """The index of the first job; 0 if there is none."""
        self.count: i64 = 0
        self.soonest_ms: i64 = 0
        """No life of a job ends before; 0 without jobs."""

    def append(self, index: i64, created_ms: i64, profile: Profile, size: i64) -> None:
        """Add a job behind all others."""
        chunks = self._chunks
        chunk = chunks[-1] if chunks else None
        if chunk is not None and chunk.count == 0:  # the only one
            chunk.base_index = index
            chunk.base_ms = created_ms
        elif (
            chunk is None
            or len(chunk.words) >= 2 * CHUNK_ROWS
            or index - chunk.base_index >= _SPAN
            or created_ms - chunk.base_ms >= _SPAN
        ):
            chunk = Chunk(index, created_ms)
            chunks.append(chunk)
        first_word: i64 = (index - chunk.base_index) << 32 | (created_ms - chunk.base_ms)
        second_word: i64 = profile.number << 32 | size
        words = chunk.words
        words.append(first_word)
        words.append(second_word)
        chunk.count += 1
        expires_ms: i64 = created_ms + profile.ttl_s * 1000
        if chunk.soonest_ms == 0 or expires_ms < chunk.soonest_ms:
            chunk.soonest_ms = expires_ms
        if self.count == 0:
            self.first = index
            self.soonest_ms = expires_ms
        elif expires_ms < self.soonest_ms:
            self.soonest_ms = expires_ms
        self.count += 1

    def pop(self) -> Job:
        """Take out the first job."""
        chunk = self._chunks[0]
        job = self._job(chunk, chunk.start)
        self._remove(0, chunk, chunk.start)
        return job

    def find(self, index: i64) -> Job | None:
        """A copy of the job with this index; None if it is not here."""
        number = self._chunk_of(index)
        if number < 0:
            return None
        chunk = self._chunks[number]
        at = chunk.find(index)
        return self._job(chunk, at) if _is_row(chunk, at, index) else None

    def remove(self, index: i64) -> None:
        """Take out a job that is here."""
        number = self._chunk_of(index)
        chunk = self._chunks[number]
        self._remove(number, chunk, chunk.find(index))

    def _chunk_of(self, index: i64) -> i64:
        """The number of the last chunk that does not begin after an index; -1 if there is none."""
        chunks = self._chunks
        low: i64 = 0
        high: i64 = len(chunks)
        while low < high:
            middle: i64 = (low + high) >> 1
            if chunks[middle].base_index <= index:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _job(self, chunk: Chunk, at: i64) -> Job:
        words = chunk.words
        place: i64 = words[at]
        rest: i64 = words[at + 1]
        profile = self._profiles.table[rest >> 32]
        assert profile is not None
        return Job(chunk.base_index + (place >> 32), chunk.base_ms + (place & _LOW), profile, rest & _LOW)

    def _remove(self, number: i64, chunk: Chunk, at: i64) -> None:
        """Take out the row at a word of a chunk."""
        words = chunk.words
        self.count -= 1
        chunk.count -= 1
        if chunk.count == 0:
            if len(self._chunks) > 1:
                del self._chunks[number]
            else:
                del words[:]
                chunk.start = 0
                chunk.soonest_ms = 0
        elif at == chunk.start:
            at += 2
            while words[at + 1] == _GAP:
                at += 2
            chunk.start = at
        else:
            words[at + 1] = _GAP
            rows: i64 = (len(words) - chunk.start) >> 1
            if rows > _SMALL_ROWS and rows > _MOST_GAPS * chunk.count:
                _close_gaps(chunk)
        if self.count == 0:
            self.first = 0
            self.soonest_ms = 0
        else:
            head = self._chunks[0]
            self.first = head.base_index + (i64(head.words[head.start]) >> 32)

    def expired(self, now_ms: i64, most: i64) -> list[int]:
        """The indexes of the first jobs whose lives are over, at most so many. The caller removes them."""
        found: list[int] = []
        soonest_ms: i64 = 0
        for chunk in self._chunks:
            if 0 < chunk.soonest_ms <= now_ms and not self._search_expired(chunk, now_ms, most, found):
                return found
            if chunk.soonest_ms > 0 and (soonest_ms == 0 or chunk.soonest_ms < soonest_ms):
                soonest_ms = chunk.soonest_ms
        self.soonest_ms = soonest_ms
        return found

    def _search_expired(self, chunk: Chunk, now_ms: i64, most: i64, found: list[int]) -> bool:
        """Collect the expired jobs of a chunk and renew its bound; False if there are more of them than wanted."""
        words = chunk.words
        soonest_ms: i64 = 0
        for at in range(chunk.start, i64(len(words)), 2):
            rest: i64 = words[at + 1]
            if rest == _GAP:
                continue
            profile = self._profiles.table[rest >> 32]
            assert profile is not None
            place: i64 = words[at]
            expires_ms: i64 = chunk.base_ms + (place & _LOW) + profile.ttl_s * 1000
            if expires_ms <= now_ms:
                if len(found) == most:
                    return False
                found.append(int(chunk.base_index + (place >> 32)))
            elif soonest_ms == 0 or expires_ms < soonest_ms:
                soonest_ms = expires_ms
        chunk.soonest_ms = soonest_ms
        return True

    def after(self, index: i64, most: i64) -> list[int]:
        """The indexes of the first jobs behind an index, at most so many."""
        found: list[int] = []
        number = max(self._chunk_of(index), 0)
        while number < len(self._chunks) and len(found) < most:
            chunk = self._chunks[number]
            words = chunk.words
            for at in range(chunk.find(index + 1), i64(len(words)), 2):
                if words[at + 1] != _GAP:
                    found.append(int(chunk.base_index) + (words[at] >> 32))
                    if len(found) == most:
                        break
            number += 1
        return found

    def before(self, index: i64, most: i64) -> list[int]:
        """The indexes of the last jobs before an index, at most so many, the last one first."""
        found: list[int] = []
        number = self._chunk_of(index)
        while number >= 0 and len(found) < most:
            chunk = self._chunks[number]
            words = chunk.words
            at = chunk.find(index) - 2
            while at >= chunk.start and len(found) < most:
                if words[at + 1] != _GAP:
                    found.append(int(chunk.base_index) + (words[at] >> 32))
                at -= 2
            number -= 1
        return found

    def write(self, out: Writer) -> None:
        """Append the line to a snapshot, as it is in memory."""
        out.number(self.soonest_ms)
        out.number(len(self._chunks))
        for chunk in self._chunks:
            out.number(chunk.base_index)
            out.number(chunk.base_ms)
            out.number(chunk.start)
            out.number(chunk.count)
            out.number(chunk.soonest_ms)
            out.text(pack_words(chunk.words))

    def read(self, data: Reader) -> None:
        """Restore the line. Raises Malformed."""
        self.soonest_ms = data.number()
        for _ in range(data.count()):
            base_index = data.number()
            chunk = Chunk(base_index, data.number())
            chunk.start = data.number()
            chunk.count = data.number()
            chunk.soonest_ms = data.number()
            chunk.words = unpack_words(data.text())
            if chunk.start > len(chunk.words) or 2 * chunk.count > len(chunk.words) - chunk.start:
                raise Malformed("a chunk has fewer rows than it says")
            self._chunks.append(chunk)
            self.count += chunk.count
        if self.count > 0:
            head = self._chunks[0]
            self.first = head.base_index + (i64(head.words[head.start]) >> 32)


def _is_row(chunk: Chunk, at: i64, index: i64) -> bool:
    """Whether the row at a word has this index, and its job is there."""
    words = chunk.words
    if at >= len(words) or words[at + 1] == _GAP:
        return False
    return chunk.base_index + (i64(words[at]) >> 32) == index


def _close_gaps(chunk: Chunk) -> None:
    """Write the rows of a chunk again without those that are gone."""
    kept = array("q")
    words = chunk.words
    for at in range(chunk.start, i64(len(words)), 2):
        if words[at + 1] != _GAP:
            kept.append(words[at])
            kept.append(words[at + 1])
    chunk.words = kept
    chunk.start = 0
