"""The reader of append-only files: records, the extent of damage, and equal results for chunks of any size."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disqued.core.jobs.codec import CorruptJob
from disqued.node import ROOMS
from disqued.persistence.parse import (
    GARBAGE,
    NO_SUM,
    SKIPPED,
    SUM_RIGHT,
    SUM_WRONG,
    TORN,
    Damage,
    Entry,
    checksum_of,
    job_of,
)
from disqued.persistence.reader import EntryReader
from disqued.persistence.records import forget
from persistence.samples import (
    VECTORS,
    cut,
    damages,
    entries,
    items,
    job_id,
    kept,
    make_job,
    make_records,
    paused,
    read,
    starts,
)

CHANCE = random.Random(5)
BEFORE, DAMAGED, AFTER = (kept(make_job(CHANCE, body)) for body in (b"one", b"two" * 50, b"three"))
FORGET = forget(job_id(CHANCE))
PAUSED = paused(b"mail", b"in")
DAMAGED_AT = len(BEFORE)
AFTER_AT = DAMAGED_AT + len(DAMAGED)
AN_AOF = b"".join(make_records(6, 20))
"""Another file, used as the body of a job."""


def flip(data: bytes, at: int, bit: int = 0) -> bytes:
    return data[:at] + bytes((data[at] ^ 1 << bit,)) + data[at + 1 :]


def bodies(*pieces: bytes) -> list[bytes]:
    """Return the bodies of all jobs with a correct checksum."""
    return [job_of(entry).job.body for entry in entries(*pieces) if entry.checksum == SUM_RIGHT]


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.aof")), ids=lambda path: path.stem)
def test_a_file_of_the_original_is_read(path: Path) -> None:
    expected = json.loads(path.with_suffix(".aof.json").read_text())["entries"]
    found = read(path.read_bytes())
    assert [item.offset for item in found] == [entry["offset"] for entry in expected]
    for item, entry in zip(found, expected, strict=True):
        if "error" in entry:
            assert not isinstance(item, Entry)
            assert item.end - item.offset == entry["bytes_left"]
            continue
        assert isinstance(item, Entry)
        assert item.end - item.offset == entry["length"]
        assert item.words[0].decode() == entry["command"]
        assert item.checksum == NO_SUM
        if "job" in entry:
            assert job_of(item).job.id.decode() == entry["job"]["id"]


def test_records_of_all_kinds_round_trip() -> None:
    records = make_records(1, 200)
    found = entries(*records)
    edges = list(itertools.pairwise(starts(records)))
    assert [(entry.offset, entry.end) for entry in found] == edges
    assert {entry.words[0] for entry in found} == {b"LOADJOB", b"DELJOB", b"PAUSE"}
    assert all(entry.checksum == SUM_RIGHT for entry in found if entry.words[0] == b"LOADJOB")


def test_the_name_of_a_record_may_be_in_lower_case() -> None:
    data = DAMAGED.replace(b"LOADJOB", b"loadjob") + FORGET.replace(b"DELJOB", b"deljob")
    assert [entry.words[0] for entry in entries(data)] == [b"LOADJOB", b"DELJOB"]
    assert bodies(data) == [b"two" * 50]


def test_other_commands_are_records_too() -> None:
    assert entries(b"*1\r\n$4\r\nping\r\n")[0].words == [b"PING"]


def test_offsets_count_from_where_reading_begins() -> None:
    reader = EntryReader(ROOMS.record_table, 1000)
    reader.feed(DAMAGED)
    entry = reader.next()
    assert isinstance(entry, Entry)
    assert (entry.offset, entry.end, reader.offset) == (1000, 1000 + len(DAMAGED), 1000 + len(DAMAGED))


def test_an_incomplete_last_record_is_torn() -> None:
    for size in range(1, len(DAMAGED)):
        found = items(BEFORE + DAMAGED[:size])
        assert len(found) == 2
        assert found[1] == (DAMAGED_AT, DAMAGED_AT + size, (TORN, "the end of the file cuts the record off"))


def test_nul_bytes_up_to_the_end_are_a_torn_end() -> None:
    for size in range(len(DAMAGED)):
        for more in (1, len(DAMAGED) - size, 5000):
            found = damages(BEFORE + DAMAGED[:size] + bytes(more))
            assert [(damage.offset, damage.kind) for damage in found] == [(DAMAGED_AT, TORN)]


@pytest.mark.parametrize("tail", [b"garbage\r\n", bytes(20) + b"x", b"*3\r\n$5\r\nPAUSE\r\nx", b"*0\r\n", b"*x"])
def test_invalid_bytes_up_to_the_end_are_garbage(tail: bytes) -> None:
    found = damages(BEFORE + tail)
    assert [(damage.offset, damage.end, damage.kind) for damage in found] == [
        (DAMAGED_AT, DAMAGED_AT + len(tail), GARBAGE)
    ]


def is_sound(item: Entry | Damage) -> bool:
    """Return whether a record can be loaded."""
    if not isinstance(item, Entry) or item.words[0] not in {b"LOADJOB", b"DELJOB", b"PAUSE"}:
        return False
    try:
        return item.words[0] != b"LOADJOB" or bool(job_of(item))
    except CorruptJob:
        return False


def other_letter(at: int, bit: int) -> bool:
    """Return whether the flip only changes a letter of the command's name to lower case, which is no damage."""
    return bit == 5 and 8 <= at < 8 + len(b"LOADJOB") and DAMAGED[at : at + 1].isalpha()


def test_a_flipped_bit_damages_one_job_at_its_offset() -> None:
    for at, bit in itertools.product(range(len(DAMAGED)), range(8)):
        if other_letter(at, bit):
            continue
        for behind in (AFTER, FORGET + AFTER, b""):
            data = BEFORE + flip(DAMAGED, at, bit) + behind
            found = read(data)
            assert [item.offset for item in found if not is_sound(item)] == [DAMAGED_AT]
            assert found[1].end == AFTER_AT
            assert bodies(data) == [b"one", b"three"] if behind else [b"one"]


def test_a_flipped_bit_in_a_deljob_is_found_or_names_another_job() -> None:
    for at, bit in itertools.product(range(len(FORGET)), range(8)):
        if other_letter(at, bit):
            continue
        found = read(BEFORE + flip(FORGET, at, bit) + AFTER)
        assert [item.offset for item in found] == [0, DAMAGED_AT, DAMAGED_AT + len(FORGET)]
        hit = found[1]
        assert not is_sound(hit) or (isinstance(hit, Entry) and hit.words[1] not in FORGET)


@pytest.mark.parametrize("length", [b"0", b"7", b"83", b"999999999", b"9999999999", b"99999999999", b"-5", b"", b"1e3"])
def test_an_invalid_length_does_not_wait_for_more_bytes(length: bytes) -> None:
    start = DAMAGED.index(b"$", 10) + 1
    data = BEFORE + DAMAGED[:start] + length + DAMAGED[DAMAGED.index(b"\r", start) :] + AFTER
    reader = EntryReader(ROOMS.record_table)
    reader.feed(data + BEFORE)
    found = [reader.next() for _ in range(3)]
    assert found[1] is not None
    assert not isinstance(found[1], Entry)
    assert (found[1].offset, found[1].end) == (DAMAGED_AT, len(data) - len(AFTER))
    assert isinstance(found[2], Entry)


@pytest.mark.parametrize("head", [b"*2\r\n$6\r\nDELJOB\r\n$999999999\r\n", b"*999999999\r\n", b"*2\r\n$9999999999\r\n"])
def test_other_invalid_lengths_do_not_wait_for_more_bytes(head: bytes) -> None:
    reader = EntryReader(ROOMS.record_table)
    reader.feed(BEFORE + head + DAMAGED + AFTER)
    found = [reader.next() for _ in range(3)]
    assert [isinstance(item, Entry) for item in found] == [True, False, True]


def test_an_argument_longer_than_the_file_does_not_hide_later_records() -> None:
    data = BEFORE + b"*2\r\n$7\r\nUNKNOWN\r\n$999999\r\n" + DAMAGED + AFTER
    assert bodies(data) == [b"one", b"two" * 50, b"three"]
    assert [damage.kind for damage in damages(data)] == [SKIPPED]


@pytest.mark.parametrize("count", [b"*1", b"*2", b"*3", b"*4"])
def test_records_with_too_few_or_too_many_words_are_damage(count: bytes) -> None:
    for record in (DAMAGED, FORGET, PAUSED):
        data = BEFORE + count + record[2:] + AFTER
        found = [(item.offset, item.end) for item in damages(data)]
        assert found == [(DAMAGED_AT, len(data) - len(AFTER))] * (count != record[:2])


@pytest.mark.parametrize("sure", [DAMAGED, FORGET, PAUSED])
def test_a_search_ends_at_a_certain_record(sure: bytes) -> None:
    data = BEFORE + b"some garbage" + sure + AFTER
    assert [damage.end - damage.offset for damage in damages(data)] == [len(b"some garbage")]


@pytest.mark.parametrize(
    "unsure",
    [
        kept(make_job(random.Random(3)), with_sum=False),
        flip(DAMAGED, len(DAMAGED) - 6),
        FORGET.replace(b"D-", b"X-"),
        paused(b"mail", b"now"),
        b"*1\r\n$4\r\nPING\r\n",
    ],
)
def test_a_search_skips_uncertain_records(unsure: bytes) -> None:
    data = BEFORE + b"garbage" + unsure + AFTER
    assert [(item.offset, item.end) for item in damages(data)] == [(DAMAGED_AT, len(data) - len(AFTER))]
    assert bodies(data) == [b"one", b"three"]


@pytest.mark.parametrize("edge", [b"", b"some bytes"])
@pytest.mark.parametrize("blanked_bytes", range(1, 60, 5))
def test_records_in_the_body_of_a_damaged_job_are_no_records(edge: bytes, blanked_bytes: int) -> None:
    outer = kept(make_job(random.Random(8), edge + AN_AOF + edge))
    id_at = outer.index(b"D-")
    for at in range(id_at - blanked_bytes):
        data = BEFORE + outer[:at] + b"\x07" * blanked_bytes + outer[at + blanked_bytes :] + AFTER
        assert bodies(data) == [b"one", b"three"], at
        found = [(item.offset, item.end) for item in read(data) if not is_sound(item)]
        assert found == [(DAMAGED_AT, DAMAGED_AT + len(outer))]


def test_records_in_the_body_of_a_torn_job_are_no_records() -> None:
    outer = kept(make_job(random.Random(8), AN_AOF))
    for size in range(len(outer) - len(AN_AOF) - 60, len(outer), 7):
        assert bodies(BEFORE + outer[:size]) == [b"one"]
        assert [damage.offset for damage in damages(BEFORE + outer[:size])] == [DAMAGED_AT]
        assert [damage.kind for damage in damages(outer[:size])] == [TORN], (
            "without checksums it is as for the original"
        )


def test_the_wrong_beginning_of_a_job_before_the_end_is_not_taken_for_a_torn_end() -> None:
    foreign = kept(make_job(random.Random(8), bytes(5000)))[:128]
    found = damages(BEFORE + foreign + AFTER + FORGET)
    assert [(damage.offset, damage.kind) for damage in found] == [(DAMAGED_AT, GARBAGE)]
    assert "hide the records behind it" in found[0].why
    assert [damage.kind for damage in damages(BEFORE + foreign + bytes(1000))] == [TORN]


def test_checksums_are_checked() -> None:
    packed = entries(DAMAGED)[0].words[1]
    assert checksum_of(packed) == SUM_RIGHT
    assert checksum_of(packed[:-8]) == NO_SUM
    assert checksum_of(packed[:-1]) == SUM_WRONG
    assert checksum_of(packed[:-8] + b"12345678") == SUM_WRONG
    assert checksum_of(packed + b"1") == SUM_WRONG
    assert checksum_of(packed[:50]) == SUM_WRONG
    assert all(checksum_of(flip(packed, at)) == SUM_WRONG for at in range(len(packed)))


def test_a_damaged_job_is_corrupt() -> None:
    entry = entries(flip(DAMAGED, len(DAMAGED) - 30))[0]
    with pytest.raises(CorruptJob, match="checksum of the job is wrong"):
        job_of(entry)


def test_correct_checksums_are_counted() -> None:
    reader = EntryReader(ROOMS.record_table)
    reader.feed(BEFORE + kept(make_job(CHANCE), with_sum=False) + flip(DAMAGED, 90) + FORGET + AFTER)
    while reader.next():
        pass
    assert reader.sums == 2


pieces_of_files = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([BEFORE, DAMAGED, AFTER, FORGET, PAUSED, kept(make_job(random.Random(3)), with_sum=False)]),
    st.sampled_from([b"*2\r\n$7\r\nLOADJOB\r\n$", b"\r\n", b"*3\r\n$5\r\nPAUSE\r\n$", b"D-", b"CRC#", bytes(30)]),
    st.tuples(st.sampled_from([DAMAGED, FORGET, PAUSED]), st.integers(0, 10**4), st.integers(0, 10**4)).map(
        lambda drawn: drawn[0][drawn[1] % len(drawn[0]) :][: drawn[2] % len(drawn[0])]
    ),
    st.tuples(st.sampled_from([DAMAGED, FORGET, PAUSED]), st.integers(0, 10**4), st.integers(0, 7)).map(
        lambda drawn: flip(drawn[0], drawn[1] % len(drawn[0]), drawn[2])
    ),
)
files = st.lists(pieces_of_files, max_size=8).map(b"".join)


@given(files, st.lists(st.integers(0, 2000), max_size=12))
@example(b"*2\r\n$7\r\nLOADJOB\r\n$", [])
@example(DAMAGED[:100] + bytes(100), [50, 150])
@example(bytes(8) + b"+" + DAMAGED[1:], [8 + len(DAMAGED) - 5])
@example(DAMAGED.replace(b"D-", b"E-"), [76])
def test_chunk_boundaries_do_not_change_the_result(data: bytes, places: list[int]) -> None:
    whole = items(data)
    assert items(*cut(data, places)) == whole
    assert items(*(data[at : at + 1] for at in range(len(data)))) == whole


@given(files)
def test_every_byte_is_in_one_stretch_and_no_job_is_another(data: bytes) -> None:
    found = read(data)
    assert [item.offset for item in found] == [0, *(item.end for item in found)][: len(found)]
    assert sum(item.end - item.offset for item in found) == len(data)
    written = {entries(record)[0].words[1] for record in (BEFORE, DAMAGED, AFTER)}
    for item in found:
        if isinstance(item, Entry) and item.words[0] == b"LOADJOB":
            if item.checksum == SUM_RIGHT:
                assert item.words[1] in written
            try:
                job_of(item)
            except CorruptJob:
                assert item.checksum != SUM_RIGHT
