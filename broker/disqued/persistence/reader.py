"""Reads the bytes of an append-only file, in chunks of any size, and finds the next record after damage.

`feed` takes bytes, `end` says that there are no more, and `next` returns what comes next: a record (`Entry`), or a
range that is none (`Damage`). Two lengths say where a job ends, that of the argument and its own. If they differ the
bytes are not a record, so the reader does not wait for the bytes of a damaged length. The search after damage accepts
as the next record only what is certain to be one: a job with a right checksum, or a well-formed DELJOB or record of a
room. It skips the bodies of damaged jobs, which may contain anything. The cost is linear in the bytes.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.attributes import block_bytes
from disqued.core.jobs.codec import ID_AT, LEAST_BYTES
from disqued.core.jobs.jobid import JOB_ID_BYTES, is_job_id
from disqued.core.jobs.littleendian import read_u32
from disqued.core.lifecycle.records import SUM_BYTES, RecordTable
from disqued.persistence.parse import (
    GARBAGE,
    GREATEST_BYTES,
    LENGTH_BYTES,
    LOAD_HEAD,
    LOAD_HEAD_BYTES,
    LOADJOB,
    MAX_DIGITS,
    MORE,
    NO_SUM,
    SKIPPED,
    SUM_RIGHT,
    SUM_WRONG,
    TORN,
    Damage,
    Entry,
    checksum_of,
    end_of_job,
    explain,
    fits_together,
    parse,
)

_DELETE_HEAD: Final = b"*2\r\n$6\r\nDELJOB\r\n$40\r\nD-"
_ID_HEAD: Final = b"D-"
_LEAST_TAIL_BYTES: Final = 46
"""The minimal size of a record after the body of its job: a list of one node, and the end of the line."""
_PROBE_BYTES: Final = 16
"""How much of a head identifies the kind of record."""
_LONGEST_SEARCHED_BYTES: Final = 1 << 20
"""The search behind damage does not wait for a record of a room that is longer."""
_CUT_OFF: Final = "the end of the file cuts the record off"
_HIDING: Final = "the end of the file cuts the record off, or it has wrong lengths that hide the records behind it"
_YES: Final = 0
_NO: Final = -1


class EntryReader:
    """Reads one file, from `offset` on. Kinds of records that `table` lacks are read, but not searched for."""

    def __init__(self, table: RecordTable, offset: i64 = 0) -> None:
        self._table = table
        self._heads = [known.head for known in table.formats]
        self._longest_head: i64 = max(map(len, (*self._heads, _DELETE_HEAD)))
        self._buffer = b""
        self._base: i64 = offset
        """Where in the file the buffer begins."""
        self._at: i64 = 0
        """Where in the buffer the next record begins, or the search continues."""
        self._pieces: list[bytes] = []
        """Input after `_buffer`."""
        self._wanted: i64 = 0
        """How many bytes must arrive before anything can be done."""
        self._ended: bool = False
        self._bad_from: i64 = -1
        """Where in the file the damage began after which a record is searched; -1 if there is none."""
        self._why = ""
        self._torn: bool = False
        """Whether only NUL bytes follow the beginning of a record so far."""
        self._text: i64 = -1
        """Where the NUL bytes begin that the buffer ends with; -1 if unknown."""
        self._hides: bool = False
        """Whether the search is inside a record that is cut off."""
        self._next_load: i64 = -1
        self._next_delete: i64 = -1
        self._next_id: i64 = -1
        self._next_others: list[int] = []
        """Where these heads, and those of `_heads`, come next in the buffer; -1 if unknown."""
        self._sound_at: i64 = -1
        self._sound_end: i64 = -1
        """Where in the buffer a sound job is that contradicts the bytes before it."""
        self.sums: i64 = 0
        """The number of jobs with a right checksum so far."""

    @property
    def offset(self) -> i64:
        """The position up to which `next` has returned the file."""
        return self._bad_from if self._bad_from >= 0 else self._base + self._at

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file."""
        self._pieces.append(data)
        self._wanted -= len(data)
        if self._torn and data.strip(b"\0"):
            self._torn = False

    def end(self) -> None:
        """There are no more bytes."""
        self._ended = True

    def next(self) -> Entry | Damage | None:
        """Return the next part of the file; None if more bytes are needed or the file is at its end."""
        if self._wanted > 0 and not self._ended:
            return None
        if self._pieces:
            self._join()
        if self._bad_from >= 0:
            return self._search()
        if self._at == len(self._buffer):
            return None
        return self._take()

    def _join(self) -> None:
        """Append the input that arrived to the rest of the buffer."""
        if self._at < len(self._buffer):
            self._pieces.insert(0, self._buffer[self._at :])
        self._base += self._at
        self._at = 0
        self._buffer = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        self._text = -1
        self._forget_heads()

    def _forget_heads(self) -> None:
        self._next_load = self._next_delete = self._next_id = -1
        self._next_others = [-1] * len(self._heads)
        self._sound_at = self._sound_end = -1

    def _wait_for(self, position: i64) -> None:
        """Wait until the buffer reaches up to `position`."""
        self._wanted = max(position - len(self._buffer), 1)

    def _take(self) -> Entry | Damage | None:
        """Return what is at `_at`, where a record should begin."""
        data = self._buffer
        at = self._at
        size: i64 = len(data)
        words: list[bytes] = []
        end = parse(data, at, size, words, self._table)
        if end > 0:
            checksum: i64 = NO_SUM
            if words[0] == LOADJOB:
                checksum = checksum_of(words[1])
                if checksum == SUM_RIGHT:
                    self.sums += 1
                elif checksum == SUM_WRONG:
                    needed = self._leads_on(at, end)
                    if needed > 0:
                        self._wait_for(needed)
                        return None
                    if needed == _NO:
                        return self._lost(at, cut=False)
            self._at = end
            entry = Entry(self._base + at, self._base + end, words, checksum)
            if words[0] != LOADJOB:
                entry.format = self._table.get(words[0])
            return entry
        if end < 0:
            if not self._ended:
                self._wait_for(at - end)
                return None
            if data[at : at + LOAD_HEAD_BYTES] == LOAD_HEAD and fits_together(data, at):
                return self._cut_off(at)
        return self._lost(at, cut=end < 0)

    def _cut_off(self, at: i64) -> Damage | None:
        """The file ends in the middle of the job at `at`, and what is there of it fits together.

        Its body may hold anything, so no record is taken from there. But its beginning may be that of another job, in a
        block that was written to the wrong place; then the records behind it must not be cut off.
        """
        size: i64 = len(self._buffer)
        if self.sums == 0:
            self._at = size
            return Damage(self._base + at, self._base + size, TORN, _CUT_OFF)
        self._bad_from = self._base + at
        self._why = _CUT_OFF
        self._torn = True
        self._hides = True
        self._at = min(at + LOAD_HEAD_BYTES + MAX_DIGITS + LEAST_BYTES, size)
        self._forget_heads()
        return self._search()

    def _lost(self, at: i64, *, cut: bool) -> Damage | None:
        """Find the next record, since there is none at `at`."""
        data = self._buffer
        torn = cut or parse(data, at, self._text_end(), [], self._table) < 0
        end = self._likely_end(at, torn)
        if end == MORE:
            return None
        why = _CUT_OFF if cut else explain(data, at)
        if end > 0:
            self._at = end
            return Damage(self._base + at, self._base + end, SKIPPED, why)
        self._bad_from = self._base + at
        self._why = why
        self._torn = torn
        self._at = at + 1
        self._forget_heads()
        return self._search()

    def _text_end(self) -> i64:
        """Where the NUL bytes begin that the buffer ends with."""
        if self._text < 0:
            self._text = len(self._buffer.rstrip(b"\0"))
        return self._text

    def _likely_end(self, at: i64, torn: bool) -> i64:
        """Where a damaged LOADJOB ends if one of its lengths still leads to the next record.

        0 if none does, MORE if more of the file must be seen.
        """
        data = self._buffer
        size: i64 = len(data)
        first: i64 = at + LOAD_HEAD_BYTES + 4 + ID_AT
        if first + MAX_DIGITS + JOB_ID_BYTES > size and not self._ended:
            self._wait_for(first + MAX_DIGITS + JOB_ID_BYTES)
            return MORE
        id_at: i64 = data.find(_ID_HEAD, first, first + MAX_DIGITS)
        if id_at < 0 or not is_job_id(data[id_at : id_at + JOB_ID_BYTES]):
            return 0
        start: i64 = id_at - ID_AT
        job_end: i64 = start + LENGTH_BYTES + read_u32(data, start)
        argument: i64 = 0
        for here in range(at + LOAD_HEAD_BYTES, start - 2):
            digit: i64 = data[here] - 48
            if digit < 0 or digit > 9:
                argument = 0
                break
            argument = argument * 10 + digit
        ends = [start + argument + 2, job_end + 2, job_end + SUM_BYTES + 2]
        block = block_bytes(data, job_end, size)
        if block > 0:
            ends.append(job_end + block + SUM_BYTES + 2)
        ends.sort()
        for end in ends:
            if end <= id_at or end - start > GREATEST_BYTES:
                continue
            needed = self._leads_on(at, end)
            if needed > 0:
                self._wait_for(needed)
                return MORE
            if needed == _YES and not (torn and end == size):
                return end
        return 0

    def _leads_on(self, at: i64, end: i64) -> i64:
        """Whether the damaged LOADJOB at `at` may end at `end`. Returns as `_sure`.

        A record must begin there, or the file end; and no sound job may reach into its list of nodes: the lengths of a
        block that was written to the wrong place may lead anywhere.
        """
        data = self._buffer
        if end + _PROBE_BYTES > len(data) and not self._ended:
            return end + _PROBE_BYTES
        if end > len(data):
            return _NO
        probe = data[end : end + _PROBE_BYTES]
        if not self._may_begin(probe):
            return _NO
        needed = self._reaches_into(at + 1, end - _LEAST_TAIL_BYTES)
        if needed > 0:
            return needed if not self._ended else _YES
        return _NO if needed == _YES else _YES

    def _may_begin(self, probe: bytes) -> bool:
        """Whether a record of a known kind may begin with these bytes."""
        if LOAD_HEAD.startswith(probe) or _DELETE_HEAD.startswith(probe):
            return True
        return any(head.startswith(probe) or probe.startswith(head) for head in self._heads)

    def _search(self) -> Damage | None:
        """Search for something that is certain to be a record."""
        data = self._buffer
        size: i64 = len(data)
        while True:
            here = self._next_head()
            if here >= size:
                break
            needed: i64 = self._sure(here) if here != self._next_id else self._pass_over(here)
            if needed == _YES and self._hides:
                self._torn = False
                self._why = _HIDING
                break
            if needed == _YES:
                damage = Damage(self._bad_from, self._base + here, SKIPPED, self._why)
                self._at = here
                self._bad_from = -1
                self._torn = False
                return damage
            if needed > 0 and not self._ended:
                self._at = here
                self._wait_for(needed)
                return None
            self._at = max(self._at, here + 1)
        if not self._ended:
            self._at = max(self._at, size - self._longest_head)
            self._wait_for(size + 1)
            return None
        damage = Damage(self._bad_from, self._base + size, TORN if self._torn else GARBAGE, self._why)
        self._at = size
        self._bad_from = -1
        return damage

    def _next_head(self) -> i64:
        """Where the next head begins from `_at` on; the end of the buffer if there is none."""
        data = self._buffer
        at = self._at
        if self._next_load < at:
            self._next_load = _find(data, LOAD_HEAD, at)
        if self._next_delete < at:
            self._next_delete = _find(data, _DELETE_HEAD, at)
        if self._next_id < at:
            self._next_id = _find(data, _ID_HEAD, at)
        first: i64 = min(self._next_load, self._next_delete, self._next_id)
        others = self._next_others
        for number, head in enumerate(self._heads):
            if others[number] < at:
                others[number] = _find(data, head, at)
            first = min(first, others[number])
        return first

    def _sure(self, at: i64) -> i64:
        """_YES if a record certainly begins at `at`, _NO if not; the position needed if the buffer ends before."""
        data = self._buffer
        words: list[bytes] = []
        end = parse(data, at, len(data), words, self._table)
        if end < 0:
            is_own = at == self._next_load or at == self._next_delete
            return at - end if is_own or -end <= _LONGEST_SEARCHED_BYTES else _NO
        if end == 0:
            return _NO
        if words[0] == LOADJOB:
            return _YES if checksum_of(words[1]) == SUM_RIGHT else _NO
        known = self._table.get(words[0])
        return _NO if known is not None and known.fault(words) else _YES

    def _pass_over(self, at: i64) -> i64:
        """Continue after the job whose ID is at `at`, if it is a job. Returns as `_sure`."""
        data = self._buffer
        if at + JOB_ID_BYTES > len(data):
            return at + JOB_ID_BYTES
        if not is_job_id(data[at : at + JOB_ID_BYTES]):
            return _NO
        end, body_end = end_of_job(data, at - ID_AT)
        if end < 0:
            return -end
        if end == 0:
            return _NO
        needed = self._reaches_into(at, body_end)
        if needed > 0 and not self._ended:
            return needed
        if needed != _YES:
            self._at = end
        return _NO

    def _reaches_into(self, at: i64, body_end: i64) -> i64:
        """Whether a sound job begins from `at` on, and ends behind `body_end`, where then no body ends; as `_sure`."""
        data = self._buffer
        if self._sound_at >= at and self._sound_at < body_end and self._sound_end > body_end:
            return _YES
        last: i64 = data.rfind(LOAD_HEAD, at, body_end)
        if last < 0:
            return _NO
        words: list[bytes] = []
        end = parse(data, last, len(data), words, self._table)
        if end < 0:
            return last - end
        if end <= body_end or checksum_of(words[1]) != SUM_RIGHT:
            return _NO
        self._sound_at = last
        self._sound_end = end
        return _YES


def _find(data: bytes, head: bytes, at: i64) -> i64:
    found: i64 = data.find(head, at)
    return found if found >= 0 else len(data)
