"""A node with a damaged file never crashes, never has a job that was not added, and loses only what was hit.

A node under load writes the files. The tests truncate them at every byte of their end, flip bits, blank or replace runs
of bytes, and copy or swap blocks, thousands of times from fixed seeds. They check what the reader finds in each file. A
node starts with some of the files and must find the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from disqued.config import load
from disqued.core.host import disk
from disqued.persistence.check import fault_of
from disqued.persistence.parse import TORN, Damage, Entry, job_of
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalNode, no_include
from persistence.samples import kept, make_job, read

NAME = "disque.aof"
TAIL_BYTES = 4096
BLOCK_BYTES = 512
REPORT = re.compile(r"Damage in the append only file disque\.aof from byte (\d+) to (\d+): .")
NOT_THERE = b"D-5ca1ab1e-" + b"x" * 24 + b"-05a1"

Range = tuple[int, int]
Jobs = dict[bytes, bytes]
"""Jobs in their stored form, by ID."""


def started(data: bytes, *directives: str, held: tuple[int, ...] = (), failing: tuple[int, ...] = ()) -> LocalNode:
    """Return a node that started with this file, on a disk that holds back or fails some verbs."""
    host = FakeHost()
    host.disk.put(NAME, data)
    if held:
        host.disk.hold(*held)
    if failing:
        host.disk.fail(*failing)
    return LocalNode(load("\n".join(("appendonly yes", *directives)), (), no_include), host)


def reported(node: LocalNode) -> list[Range]:
    """Return the damaged ranges that the node logged."""
    found = (REPORT.match(text) for _, text in node.host.log_lines)
    return [(int(match[1]), int(match[2])) for match in found if match]


def replayed(items: Iterable[Entry | Damage]) -> Jobs:
    """Return the jobs that exist after all sound records were loaded."""
    left: Jobs = {}
    for item in items:
        if isinstance(item, Entry) and fault_of(item) is None:
            if item.words[0] == b"LOADJOB":
                left.setdefault(job_id(item), item.words[1])
            elif item.words[0] == b"DELJOB":
                left.pop(job_id(item), None)
    return left


def job_id(record: Entry) -> bytes:
    """Return the ID of the job in a LOADJOB or DELJOB record."""
    return record.words[1] if record.words[0] == b"DELJOB" else record.words[1][4:44]


@dataclass(frozen=True)
class Written:
    """A file that a node wrote, its records, and the jobs that loading it restores."""

    data: bytes
    records: tuple[Entry, ...]

    @property
    def left(self) -> Jobs:
        return replayed(self.records)

    @property
    def ever(self) -> Jobs:
        """Return all jobs that the file ever contained, deleted ones included."""
        return replayed(record for record in self.records if record.words[0] == b"LOADJOB")

    def at(self, place: int) -> Entry:
        """Return the record that contains this byte."""
        return next(record for record in self.records if record.offset <= place < record.end)

    def hit(self, *ranges: Range) -> set[bytes]:
        """Return the IDs of the jobs whose records overlap these ranges."""
        return {
            job_id(record)
            for record in self.records
            if record.words[0] == b"LOADJOB"
            and any(record.offset < end and begin < record.end for begin, end in ranges)
        }


@cache
def written(least_bytes: int, *directives: str) -> Written:
    """Return the file of a busy node."""
    chance = random.Random(f"{least_bytes} {directives}")
    node = LocalNode(load("\n".join(("appendonly yes", *directives)), (), no_include), FakeHost(least_bytes))
    client = node.client()
    files = node.host.disk.files
    while len(files[NAME]) < least_bytes:
        queue = chance.choice(("mail", "images", "a\r\nb"))
        match chance.randrange(8):
            case 0:
                client.call("ACKJOB", *(client.take(queue, count=2) or [NOT_THERE]))
            case 1:
                client.call("NACK", *(client.take(queue) or [NOT_THERE]))
            case 2:
                client.call("PAUSE", queue, chance.choice(("in", "out", "none")))
                client.call("PAUSE", queue, "none")
            case _:
                options = chance.choice(((), ("RETRY", 0), ("DELAY", 5), ("TTL", 7200, "RETRY", 60), ("ASYNC",)))
                client.add(queue, chance.randbytes(chance.choice((1, 20, 60, 300))), *options)
        node.run(milliseconds=7)
    data = bytes(files[NAME])
    return Written(data, tuple(item for item in read(data) if isinstance(item, Entry)))


# --- damage to a file -------------------------------------------------------------------------------------------------

Damaged = tuple[bytes, list[Range]]
"""The damaged file, and the damaged ranges as offsets in the sound file."""


def flipped(data: bytes, chance: random.Random) -> Damaged:
    at = chance.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << chance.randrange(8),)) + data[at + 1 :], [(at, at + 1)]


def run_replaced(data: bytes, chance: random.Random) -> Damaged:
    length = chance.choice((2, 8, 40, 64, 128, BLOCK_BYTES))
    at = chance.randrange(len(data) - length)
    new = chance.choice((bytes(length), b"\xff" * length, chance.randbytes(length)))
    return data[:at] + new + data[at + length :], [(at, at + length)]


def many_damaged(data: bytes, chance: random.Random) -> Damaged:
    changed = bytearray(data)
    places = [chance.randrange(len(data)) for _ in range(chance.randrange(2, 12))]
    for at in places:
        changed[at] = chance.randrange(256)
    return bytes(changed), [(at, at + 1) for at in places]


def blocks(data: bytes, chance: random.Random) -> tuple[int, int, int]:
    """Return the offsets of two random blocks, and their length."""
    length = chance.choice((64, 128, BLOCK_BYTES))
    one, other = (chance.randrange(len(data) // length) * length for _ in range(2))
    return one, other, length


def block_in_the_wrong_place(data: bytes, chance: random.Random) -> Damaged:
    one, other, length = blocks(data, chance)
    return data[:one] + data[other : other + length] + data[one + length :], [(one, one + length)]


def blocks_swapped(data: bytes, chance: random.Random) -> Damaged:
    one, other, length = blocks(data, chance)
    changed = bytearray(data)
    changed[one : one + length] = data[other : other + length]
    changed[other : other + length] = data[one : one + length]
    return bytes(changed), [(one, one + length), (other, other + length)]


def block_doubled(data: bytes, chance: random.Random) -> Damaged:
    one, other, length = blocks(data, chance)
    return data[:one] + data[other : other + length] + data[one:], [(one, one + 1)]


def block_missing(data: bytes, chance: random.Random) -> Damaged:
    one, _, length = blocks(data, chance)
    return data[:one] + data[one + length :], [(one, one + length)]


DAMAGE_KINDS = (
    flipped,
    run_replaced,
    many_damaged,
    block_in_the_wrong_place,
    blocks_swapped,
    block_doubled,
    block_missing,
)


def damaged_files(file: Written, kind: int, count: int) -> Iterator[Damaged]:
    chance = random.Random(f"{len(file.data)} {kind}")
    for _ in range(count):
        yield DAMAGE_KINDS[kind](file.data, chance)


# --- the results ------------------------------------------------------------------------------------------------------


def test_the_sample_file_has_all_kinds_of_records() -> None:
    file = written(3 * TAIL_BYTES)
    kinds = [record.words[0] for record in file.records]
    assert {kind: kinds.count(kind) > 3 for kind in set(kinds)} == {b"LOADJOB": True, b"DELJOB": True, b"PAUSE": True}
    assert len(file.left) < len(file.ever)
    assert stored(started(file.data)) == fields(file.left)


@pytest.mark.parametrize("kind", range(len(DAMAGE_KINDS)), ids=[kind.__name__ for kind in DAMAGE_KINDS])
def test_damage_loses_only_the_records_that_it_hit(kind: int) -> None:
    for least_bytes in (TAIL_BYTES, 3 * TAIL_BYTES):
        file = written(least_bytes)
        left, ever = file.left, file.ever
        for data, ranges in damaged_files(file, kind, 1000):
            items = read(data)
            found = replayed(items)
            assert all(ever.get(job_id) == job for job_id, job in found.items()), "a job that was not written"
            assert left.keys() - found.keys() <= file.hit(*ranges), "a job is lost that was not hit"


def test_a_flipped_bit_is_reported_where_the_record_begins() -> None:
    file = written(TAIL_BYTES)
    found = 0
    for data, [(at, _)] in damaged_files(file, 0, 3000):
        record = file.at(at)
        faults = [(item.offset, item.end) for item in map(fault_of, read(data)) if item is not None]
        assert faults in ([], [(record.offset, record.end)])
        if not faults and record.words[0] == b"LOADJOB":
            assert data[record.offset : record.end].upper().startswith(b"*2\r\n$7\r\nLOADJOB\r\n"), "no harm was done"
            assert data[record.offset + 16 : record.end] == file.data[record.offset + 16 : record.end]
        found += len(faults)
    assert found > 2000


# --- nodes that start with such a file --------------------------------------------------------------------------------


def stored(node: LocalNode) -> dict[bytes, tuple[object, ...]]:
    """Return the stored fields of all jobs of a node, by ID."""
    return {
        job.id: (
            (job.queue, job.body, job.ctime, job.expire_at_s, job.delay_s, job.retry_s, job.repl),
            (job.nacks, job.additional_deliveries),
        )
        for job in node.node.state.lifecycle.table.jobs()
    }


def fields(jobs: Jobs) -> dict[bytes, tuple[object, ...]]:
    """Return the same fields of jobs in their stored form."""
    found: dict[bytes, tuple[object, ...]] = {}
    for name, packed in jobs.items():
        job = job_of(Entry(0, 0, [b"LOADJOB", packed], 0)).job
        found[name] = (
            (job.queue, job.body, job.ctime, job.expire_at_s, job.delay_s, job.retry_s, job.repl),
            (job.nacks, job.additional_deliveries),
        )
    return found


def info(node: LocalNode) -> str:
    reply = node.client().call("INFO", "persistence")
    assert isinstance(reply, bytes)
    return reply.decode()


@pytest.mark.parametrize("kind", range(len(DAMAGE_KINDS)), ids=[kind.__name__ for kind in DAMAGE_KINDS])
def test_a_node_starts_with_the_sound_records(kind: int) -> None:
    file = written(TAIL_BYTES)
    for data, _ in damaged_files(file, kind, 100):
        node = started(data)
        assert node.host.ended is None, node.host.log_lines
        items = read(data)
        assert stored(node) == fields(replayed(items))
        all_faults = [fault for fault in map(fault_of, items) if fault is not None]
        faults = [fault for fault in all_faults if fault.kind != TORN]
        whole = next((fault.offset for fault in all_faults if fault.kind == TORN), len(data))
        assert reported(node) == [(fault.offset, fault.end) for fault in faults]
        assert f"aof_damaged_records:{len(faults)}\r\n" in info(node)
        beside = [bytes(text) for name, text in node.host.disk.files.items() if name.startswith(f"{NAME}.damaged-")]
        assert beside == [data[:whole]] * bool(faults)


@pytest.mark.parametrize("directive", ["aof-checksums yes", "aof-checksums no"])
def test_a_file_truncated_anywhere_loads_its_complete_records(directive: str) -> None:
    file = written(TAIL_BYTES + 100, directive)
    edges = [0, *(record.end for record in file.records)]
    expected = {edge: fields(replayed(record for record in file.records if record.end <= edge)) for edge in edges}
    node = started(b"")
    client = node.client()
    for size in range(len(file.data) - TAIL_BYTES, len(file.data) + 1):
        whole = max(edge for edge in edges if edge <= size)
        node.host.disk.put(NAME, file.data[:size])
        node.host.log_lines.clear()
        assert client.call("DEBUG", "LOADAOF") == b"OK"
        assert stored(node) == expected[whole]
        assert reported(node) == []
        assert node.host.disk.files[NAME] == file.data[:whole]
        told = [text for _, text in node.host.log_lines if "was cut off" in text]
        assert len(told) == (size != whole)
        assert all(f"{size - whole} bytes from {whole} on" in text for text in told)


def test_every_truncation_leaves_the_records_before_it() -> None:
    for directive in ("aof-checksums yes", "aof-checksums no"):
        file = written(TAIL_BYTES + 100, directive)
        for size in range(len(file.data) - TAIL_BYTES, len(file.data) + 1):
            for data in (file.data[:size], file.data[:size] + bytes(len(file.data) - size)):
                items = read(data)
                whole = [record for record in file.records if record.end <= size]
                assert [(item.offset, item.end) for item in items[: len(whole)]] == [
                    (record.offset, record.end) for record in whole
                ]
                torn = items[len(whole) :]
                assert all(isinstance(item, Damage) and item.kind == TORN for item in torn)
                assert len(torn) == (len(data) > sum(record.end - record.offset for record in whole))


def test_a_torn_end_is_refused_if_aof_load_truncated_is_no() -> None:
    file = written(TAIL_BYTES + 100)
    edges = {0, *(record.end for record in file.records)}
    for size in range(len(file.data) - 500, len(file.data), 7):
        node = started(file.data[:size], "aof-load-truncated no")
        assert (node.host.ended is None) == (size in edges)
        assert node.host.disk.files[NAME] == file.data[:size]


def test_damage_in_a_file_without_checksums_is_refused_with_its_offset() -> None:
    file = written(TAIL_BYTES, "aof-checksums no")
    refused = 0
    for data, [(at, _)] in damaged_files(file, 0, 200):
        node = started(data)
        if node.host.ended is not None:
            refused += 1
            assert f"at byte {file.at(at).offset}: " in node.host.ended
            assert "disque-check-aof" in node.host.ended
            assert node.host.disk.files == {NAME: data}
    assert refused > 20


def test_node_continues_with_a_repaired_file() -> None:
    file = written(TAIL_BYTES)
    damaged = next(record for record in file.records if record.words[0] == b"LOADJOB" and job_id(record) in file.left)
    at = damaged.offset + 100
    node = started(file.data[:at] + b"?" + file.data[at + 1 :])
    before = stored(node).keys()
    assert before == file.left.keys() - {job_id(damaged)}
    added = node.client().add("more")
    node.run(seconds=3)
    node.host.log_lines.clear()
    node.restart()
    assert stored(node).keys() == before | {added}
    assert reported(node) == []


HIDING_HEAD = kept(make_job(random.Random(8), bytes(5000)))[:128]
"""The beginning of a record with a large length: a reader that trusts it skips everything that is written after it."""


def test_nothing_is_confirmed_after_a_bad_end_until_the_file_is_rewritten() -> None:
    file = written(TAIL_BYTES)
    data = file.data + HIDING_HEAD + kept(make_job(random.Random(9)))
    node = started(data, held=(disk.REPLACE,))
    assert stored(node) == fields(file.left)
    client = node.client()
    client.send("ADDJOB", "more", "body", 0)
    node.run(seconds=1)
    assert client.silent
    assert bytes(node.host.disk.files[NAME]).startswith(data)
    node.host.disk.repair()
    node.host.disk.finish()
    node.run(milliseconds=100)
    added = client.next_reply()
    assert isinstance(added, bytes)
    node.restart()
    assert stored(node).keys() == file.left.keys() | {added}
    assert reported(node)[1:] == []


def test_file_with_a_bad_end_that_cannot_be_kept_is_not_written_to() -> None:
    data = written(TAIL_BYTES).data + HIDING_HEAD + kept(make_job(random.Random(9)))
    node = started(data, failing=(disk.KEEP,))
    assert node.host.ended is not None
    assert "Can't keep the damaged file" in node.host.ended
    assert node.host.disk.files == {NAME: data}
