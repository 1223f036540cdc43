"""Records, states and numbers are read as they were written, and junk is refused without a crash."""

from __future__ import annotations

from array import array
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.raftlog import record
from disqued.raftlog.grouplog import GroupLog, Snapshot
from disqued.raftlog.groupstate import decode_state, encode_state
from disqued.raftlog.record import SHORT, SOUND, UNSOUND, RecordReader, data_id_of, encode, segment_record, segment_seed
from disqued.raftlog.scan import ScanHandler, Scanner
from disqued.raftlog.segments import Segment, Segments, name_of, number_of, offset_of, size_of, slot_of
from disqued.raftlog.varints import VarReader, groups_of, groups_payload, put, put_blob

NUMBERS = st.integers(0, (1 << 63) - 1)
SIGNED = st.integers(-(1 << 63), (1 << 63) - 1)
SEED = segment_seed(b"data id.", 1)


class Found(ScanHandler):
    """Writes down what a scanner finds."""

    def __init__(self) -> None:
        super().__init__()
        self.payloads: list[bytes] = []
        self.gaps: list[tuple[int, int, bool]] = []

    def record(self, reader: RecordReader, _offset: int) -> None:
        self.payloads.append(reader.payload())

    def unsound(self, start: int, end: int, *, blank: bool) -> None:
        self.gaps.append((start, end, blank))


def scan(data: bytes, read_bytes: int) -> Found:
    """Read a segment, as many bytes at once as the scanner wants."""
    found = Found()
    scanner = Scanner(SEED, 0, read_bytes, found)
    for _ in range(2 * len(data) + 2):
        scanner.feed(data[scanner.at : scanner.at + scanner.want], len(data))
        if scanner.ended:
            return found
    raise AssertionError("the scanner does not end")


def entry_record(payload: bytes) -> bytes:
    return encode(SEED, record.ENTRY, 0, 1, 1, 1, 1, payload)


@given(
    st.integers(0, 255), st.integers(0, 255), SIGNED, SIGNED, SIGNED, SIGNED, st.binary(max_size=100), st.integers(0, 9)
)
def test_a_record_is_read_as_it_was_written(
    kind: int, sub: int, group: int, term: int, index: int, time_ms: int, payload: bytes, before: int
) -> None:
    data = encode(SEED, kind, sub, group, term, index, time_ms, payload)
    assert len(data) == record.record_bytes(len(payload))
    reader = RecordReader()
    reader.load(b"." * before + data, SEED)
    assert reader.parse(before) == SOUND
    assert (reader.kind, reader.sub, reader.group, reader.term) == (kind, sub, group, term)
    assert (reader.index, reader.time_ms, reader.payload(), reader.size) == (index, time_ms, payload, len(data))


@given(st.binary(max_size=60), st.integers(0, 10_000))
def test_a_record_with_a_flipped_bit_or_another_seed_is_not_sound(payload: bytes, bit: int) -> None:
    data = bytearray(entry_record(payload))
    reader = RecordReader()
    reader.load(bytes(data), SEED + 1)
    assert reader.parse(0) == UNSOUND
    bit %= (48 + len(payload)) * 8
    data[bit // 8] ^= 1 << bit % 8
    reader.load(bytes(data), SEED)
    assert reader.parse(0) != SOUND


@given(st.binary(max_size=200))
def test_junk_is_no_record(junk: bytes) -> None:
    reader = RecordReader()
    reader.load(junk, SEED)
    assert reader.parse(0) in {SHORT, UNSOUND}
    assert data_id_of(junk, 1) == b""


def test_the_first_record_of_a_segment_has_the_data_id_and_the_number() -> None:
    data = segment_record(b"8 bytes.", 12)
    assert len(data) == record.SEGMENT_BYTES
    assert data_id_of(data + b"more", 12) == b"8 bytes."
    assert data_id_of(data, 13) == b""
    assert data_id_of(data[:-1], 12) == b""


@given(st.lists(NUMBERS), st.binary())
def test_numbers_of_variable_length_are_read_as_they_were_written(numbers: list[int], blob: bytes) -> None:
    out = bytearray()
    for number in numbers:
        put(out, number)
    put_blob(out, blob)
    reader = VarReader(bytes(out))
    assert [reader.take() for _ in numbers] == numbers
    assert reader.blob() == blob
    assert reader.ended


@given(st.lists(st.integers(0, 1 << 40), unique=True).map(sorted), st.binary(max_size=30))
def test_group_numbers_are_read_as_they_were_written(groups: list[int], junk: bytes) -> None:
    assert groups_of(groups_payload(groups)) == groups
    with suppress(ValueError):
        groups_of(junk)


@given(
    st.booleans(),
    NUMBERS,
    st.binary(max_size=20),
    st.integers(0, 1 << 40),
    st.integers(0, 200),
    st.sets(st.integers(1, 500)),
    st.lists(st.tuples(st.integers(1, 300), NUMBERS), max_size=5),
)
def test_the_state_of_a_group_is_read_as_it_was_written(
    damaged: bool,
    term: int,
    vote: bytes,
    stamp: int,
    above: int,
    live: set[int],
    runs: list[tuple[int, int]],
) -> None:
    group = GroupLog(3, 1, Segments())
    group.damaged = damaged
    group.hard_term = term
    group.vote = vote
    group.snapshot = Snapshot(max(live, default=0), 5, b"members", stamp, 1000, 3)
    group.places = array("q", [0] * above)
    group.old_indexes = array("q", sorted(live))
    group.old_places = array("q", [0] * len(live))
    start = 0
    for gap, number in runs:
        start += gap
        group.starts.append(start)
        group.terms.append(number)
    other = GroupLog(3, 1, Segments())
    payload = encode_state(group)
    decode_state(other, payload)
    assert encode_state(other) == payload
    for name in ("damaged", "hard_term", "vote", "last", "old_indexes", "starts", "terms"):
        assert getattr(other, name) == getattr(group, name)
    assert other.missing() == above + len(live) + 3


def test_released_entries_are_not_in_the_state() -> None:
    group = GroupLog(3, 1, Segments())
    group.snapshot = Snapshot(9, 1, b"", 0, 0, 0)
    group.old_indexes = array("q", [1, 2, 3, 7, 8])
    group.old_places = array("q", [5, -6, 7, -8, 9])
    other = GroupLog(3, 1, Segments())
    decode_state(other, encode_state(group))
    assert list(other.old_indexes) == [1, 3, 8]


@given(st.binary(max_size=60))
def test_a_malformed_state_is_refused(junk: bytes) -> None:
    group = GroupLog(3, 1, Segments())
    try:
        decode_state(group, junk)
    except (ValueError, MemoryError):
        assert group.last == 0


@given(st.lists(st.binary(max_size=150), max_size=12), st.integers(50, 300))
def test_a_scanner_finds_all_records_however_much_it_reads_at_once(payloads: list[bytes], read_bytes: int) -> None:
    found = scan(b"".join(map(entry_record, payloads)), read_bytes)
    assert found.payloads == payloads
    assert found.gaps == []


@given(st.data())
def test_a_scanner_finds_the_sound_records_around_damage(data: st.DataObject) -> None:
    payloads = data.draw(st.lists(st.binary(max_size=150), min_size=1, max_size=8))
    records = [entry_record(payload) for payload in payloads]
    victim = data.draw(st.integers(0, len(payloads) - 1))
    start = sum(map(len, records[:victim]))
    bit = data.draw(st.integers(0, (48 + len(payloads[victim])) * 8 - 1))
    content = bytearray(b"".join(records))
    content[start + bit // 8] ^= 1 << bit % 8
    found = scan(bytes(content), data.draw(st.integers(50, 300)))
    assert found.payloads == payloads[:victim] + payloads[victim + 1 :]
    assert [gap[:2] for gap in found.gaps] == [(start, start + len(records[victim]))]


@given(st.binary(max_size=2000), st.integers(50, 300))
def test_a_scanner_ends_with_every_junk(junk: bytes, read_bytes: int) -> None:
    found = scan(junk, read_bytes)
    assert found.payloads == []
    end = (len(junk.rstrip(b"\0")) + 7) & ~7
    assert [gap[:2] for gap in found.gaps] == ([(0, min(len(junk), end))] if end else [])


@pytest.mark.parametrize(("start", "end", "blank"), [(64, 128, True), (64, 75, False), (70, 128, False)])
def test_a_gap_is_blank_if_it_has_zeros_from_a_page_boundary_on(start: int, end: int, *, blank: bool) -> None:
    content = bytearray(entry_record(b"x" * 200) + entry_record(b""))
    content[start:end] = bytes(end - start)
    assert scan(bytes(content), 4096).gaps == [(0, 248, blank)]


@pytest.mark.parametrize("read_bytes", [50, 4096])
@pytest.mark.parametrize("zeros", [0, 8, 64, 5000])
def test_a_segment_ends_where_the_last_zeros_begin(zeros: int, read_bytes: int) -> None:
    content = entry_record(b"x" * 200)
    assert scan(content + bytes(zeros), read_bytes).gaps == []
    assert scan(content + content[:-20] + bytes(zeros), read_bytes).gaps == [(248, 480 if zeros else 476, False)]
    assert scan(content + content[:100] + bytes(zeros), read_bytes).gaps == [(248, 352 if zeros else 348, False)]


@given(st.integers(1, (1 << 15) - 1), st.integers(0, (1 << 24) - 1), st.integers(0, (1 << 24) - 1))
def test_a_place_has_slot_offset_and_size(slot: int, offset: int, size: int) -> None:
    place = Segment(1, slot, b"").place(offset * 8, size * 8)
    assert 0 < place < 1 << 63
    assert (slot_of(place), offset_of(place), size_of(place)) == (slot, offset * 8, size * 8)


@pytest.mark.parametrize(
    "name", ["ordered-1.log", "ordered-00000000001.log", "ordered-000000000x.log", "ordered-0000000001.tmp", "ordered-"]
)
def test_other_files_are_no_segments(name: str) -> None:
    assert number_of(name) == 0
    assert number_of(name_of(17)) == 17
