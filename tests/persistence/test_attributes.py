"""Attributes and delays in the append-only file: what is loaded, what damage takes, and what older releases see."""

from __future__ import annotations

import random

import pytest

from disqued.core.jobs.job import POSTPONED
from disqued.core.lifecycle.records import sealed
from disqued.persistence.check import Check, fault_of
from disqued.persistence.parse import Entry
from disqued.persistence.records import EXTENDED, forget
from disqued.resp.writer import request
from disqued.testing.local import LocalNode
from persistence.samples import BORN_MS, claimed, kept, make_job, postponed, read, recorded
from persistence.test_load import started
from support.logging_node import info, logging_node, written


def extended_file(seed: int, count: int) -> list[bytes]:
    """Return records of jobs, half of them with attributes, of delays, claims and ends."""
    chance = random.Random(seed)
    records = [EXTENDED]
    for number in range(count):
        job = make_job(chance, with_attributes=number % 2 == 0)
        job.retry_s = 300
        records.append(kept(job))
        if number % 3 == 0:
            records.append(postponed(job, BORN_MS + 60_000))
        if number % 5 == 1:
            records.append(claimed(job, BORN_MS << 16))
        if number % 4 == 3:
            ended = make_job(chance)
            records += [kept(ended), recorded(ended)]
        if number % 8 == 7:
            records.append(request((b"ENDRECORD", sealed(b"ENDRECORD", ended.id))))
    return records


def loaded(records: list[bytes]) -> dict[bytes, tuple[bytes | None, bool]]:
    """Return the attributes of all jobs that a node loads, and whether they wait."""
    node = started(*records)
    while node.node.state.loading:
        node.run(milliseconds=1)
    return attributes_of(node)


def attributes_of(local: LocalNode) -> dict[bytes, tuple[bytes | None, bool]]:
    jobs = local.node.state.lifecycle.table.jobs()
    return {job.id: (None if job.extra is None else job.extra.packed, job.flags & POSTPONED != 0) for job in jobs}


def test_a_file_with_attributes_and_delays_is_loaded_as_it_was_written() -> None:
    found = loaded(extended_file(1, 30))
    assert len(found) == 30
    assert sum(extra is not None for extra, _ in found.values()) == 18
    assert sum(waits for _, waits in found.values()) == 10


@pytest.mark.parametrize("seed", range(40))
def test_damage_takes_only_the_records_that_it_hits(seed: int) -> None:
    chance = random.Random(seed)
    records = extended_file(seed, 12)
    data = bytearray(b"".join(records))
    at = chance.randrange(len(EXTENDED), len(data))
    data[at] ^= 1 << chance.randrange(8)
    sound = set()
    offset = 0
    for record in records:
        if not offset <= at < offset + len(record):
            sound.add((offset, offset + len(record)))
        offset += len(record)
    found = {(int(item.offset), int(item.end)) for item in read(bytes(data)) if isinstance(item, Entry)}
    assert sound <= found


@pytest.mark.parametrize("cut", range(1, 400, 7))
def test_a_file_that_is_cut_off_keeps_all_whole_records(cut: int) -> None:
    records = extended_file(3, 6)
    data = b"".join(records)[:-cut]
    whole = 0
    while sum(map(len, records[: whole + 1])) <= len(data):
        whole += 1
    items = read(data)
    assert sum(isinstance(item, Entry) for item in items) == whole
    assert len(items) - whole <= 1


def test_what_looks_like_a_record_in_a_damaged_job_with_attributes_is_not_one() -> None:
    hidden = kept(make_job(random.Random(7)))
    job = make_job(random.Random(8), b"x" + hidden + b"y", with_attributes=True)
    record = bytearray(kept(job))
    record[-3] ^= 1
    items = read(kept(make_job(random.Random(9))) + bytes(record) + forget(job.id))
    assert [fault_of(item) is not None for item in items] == [False, True, False]


def test_the_file_has_the_first_format_until_a_job_needs_more_and_again_after_a_rewrite() -> None:
    local = logging_node()
    client = local.client()
    plain = client.call("ADDJOB", "mail", "body", 0)
    assert isinstance(plain, bytes)
    assert (b"FORMAT" in written(local), info(client)["aof_format"]) == (False, "1")
    job_id = client.call("ADDJOB", "mail", "body", 0, "PRIORITY", 3)
    assert isinstance(job_id, bytes)
    assert (written(local).count(EXTENDED), info(client)["aof_format"]) == (1, "2")
    local.restart()
    client = local.client()
    assert info(client)["aof_format"] == "2"
    client.call("ACKJOB", job_id)
    client.call("BGREWRITEAOF")
    local.run(seconds=5)
    assert (b"FORMAT" in written(local), info(client)["aof_format"]) == (False, "1")


def test_a_sealed_record_of_an_unknown_kind_stops_the_start_and_changes_nothing() -> None:
    record = request((b"LATER", sealed(b"LATER", b"of a later release")))
    local = started(kept(make_job(random.Random(1))), record)
    assert "it has a record LATER, which this release" in str(local.host.ended)
    check = Check()
    for item in read(record):
        check.take(item)
    assert "LATER" in check.refused


def test_a_record_with_a_wrong_seal_is_damage() -> None:
    job = make_job(random.Random(1))
    record = bytearray(postponed(job, BORN_MS))
    record[-4] ^= 1
    check = Check()
    for item in read(kept(job) + bytes(record)):
        check.take(item)
    assert [fault.why for fault in check.faults] == ["the checksum is wrong"]
