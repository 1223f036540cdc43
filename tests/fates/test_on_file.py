"""Records of finished jobs in the append-only file."""

from __future__ import annotations

import random

import pytest

from disqued.core.fates.fate import DEAD, DELETED, DONE, EXPIRED, MOVED, Fate, pack_fate
from disqued.core.fates.stored import fault_of, store, stored
from disqued.core.jobs.claims import MOST
from disqued.core.lifecycle.records import sealed
from disqued.persistence.check import Check
from disqued.persistence.records import EXTENDED
from disqued.resp.writer import request
from disqued.testing.local import LocalClient, LocalNode
from persistence.samples import kept, make_job, read, recorded
from persistence.test_load import started
from support.logging_node import info, logging_node, written

JOB = b"D-0011aabb-aaaaaaaaaaaaaaaaaaaaaaaa-05a1"
OTHER = b"D-0011aabb-bbbbbbbbbbbbbbbbbbbbbbbb-05a1"


def loaded(local: LocalNode) -> LocalNode:
    """The node when it has read its file."""
    while local.node.state.loading:
        local.run(milliseconds=1)
    return local


def outcome(local: LocalNode, job_id: bytes) -> tuple[int, bytes | None]:
    """What the node knows about a job."""
    fate = local.node.state.events.fate_of(job_id)
    return int(fate.outcome), fate.result


def finished(client: LocalClient, *options: str | int) -> bytes:
    """A job with a record, with these options of ACKJOB."""
    job = client.add("q", "body", "RETAIN", 60)
    client.call("ACKJOB", job, *options)
    return job


@pytest.mark.parametrize("rewritten", [False, True])
def test_a_record_survives_a_crash(*, rewritten: bool) -> None:
    local = logging_node("always")
    client = local.client()
    done = finished(client, "RESULT", "42")
    dropped = client.add("q", "body", "RETAIN", 60)
    client.call("DELJOB", dropped)
    moved = client.add("q")
    client.call("MOVEJOB", moved, "TO", "r")
    local.run(seconds=1)
    if rewritten:
        client.call("BGREWRITEAOF")
        local.run(seconds=2)
    local.crash()
    local.restart()
    loaded(local)
    assert outcome(local, done) == (DONE, b"42")
    assert outcome(local, dropped) == (DELETED, None)
    record = local.node.state.records.get(moved)
    assert record is not None
    assert record.fate.outcome == MOVED
    local.run(seconds=60)
    assert outcome(local, done)[0] == 0


@pytest.mark.parametrize("claim", [1, 2**61, MOST])
def test_a_record_with_any_claim_survives_a_crash(claim: int) -> None:
    """The results of Celery have claims of 19 digits."""
    local = logging_node("always")
    job = finished(local.client(), "CLAIM", claim, "RESULT", "42")
    local.run(seconds=1)
    local.crash()
    local.restart()
    loaded(local)
    record = local.node.state.records.get(job)
    assert record is not None
    assert (record.fate.claim, record.fate.result) == (claim, b"42")


def test_a_record_whose_time_is_over_is_not_loaded() -> None:
    local = logging_node("always")
    finished(local.client())
    local.run(seconds=1)
    local.crash()
    local.run(seconds=70)
    local.restart()
    assert loaded(local).node.state.records.count == 0


def test_a_record_that_was_forgotten_for_others_is_not_loaded() -> None:
    local = logging_node("always")
    client = local.client()
    client.call("CONFIG", "SET", "maxmemory", "20mb")
    client.call("CONFIG", "SET", "records-max", 1)
    first, *_, last = [finished(client) for _ in range(1000)]
    assert local.node.state.records.get(first) is None
    count = local.node.state.records.count
    assert b"ENDRECORD" in written(local)
    local.run(seconds=1)
    local.crash()
    local.restart()
    records = loaded(local).node.state.records
    assert (records.get(first), records.count) == (None, count)
    assert records.get(last) is not None


def test_a_file_without_records_stays_in_the_first_format() -> None:
    local = logging_node("always")
    client = local.client()
    client.call("ACKJOB", client.add("q"))
    local.run(seconds=1)
    assert (b"RECORD" in written(local), info(client)["aof_format"]) == (False, "1")
    finished(client)
    local.run(seconds=1)
    assert info(client)["aof_format"] == "2"


def test_a_record_ends_the_job_with_its_id_unless_it_was_not_acknowledged() -> None:
    chance = random.Random(1)
    jobs = [make_job(chance) for _ in range(5)]
    for job in jobs:
        job.retry_s = 300
    outcomes = (DONE, DEAD, MOVED, EXPIRED, DELETED)
    records = [kept(job) + recorded(job, ended) for job, ended in zip(jobs, outcomes, strict=True)]
    table = loaded(started(EXTENDED, *records)).node.state.lifecycle.table
    assert [table.get(job.id) is not None for job in jobs] == [False, False, False, True, True]


def test_a_job_that_is_added_again_behind_its_record_is_kept() -> None:
    job = make_job(random.Random(1))
    job.retry_s = 300
    table = loaded(started(EXTENDED, recorded(job), kept(job))).node.state.lifecycle.table
    assert table.get(job.id) is not None


@pytest.mark.parametrize(
    "fate",
    [
        Fate(DONE, 5, 7, 3, None, b""),
        Fate(DONE, 5, 7, 0, None, b"\r\n" * 20),
        Fate(DEAD, 5, 0, 0, OTHER),
        Fate(EXPIRED, 0),
    ],
    ids=range(4),
)
@pytest.mark.parametrize("queue", [b"", b"a queue\n"])
def test_the_content_comes_back(fate: Fate, queue: bytes) -> None:
    found = stored(store(JOB, queue, OTHER, fate, 99, 0))
    assert found is not None
    assert (found.job_id, found.queue, found.origin, found.until_ms) == (JOB, queue, OTHER, 99)
    assert pack_fate(found.fate) == pack_fate(fate)


def test_times_are_those_of_the_wall_clock() -> None:
    found = stored(store(JOB, b"q", JOB, Fate(DONE, 5), 99, 1000))
    assert found is not None
    assert (found.fate.ended_ms, found.until_ms) == (1005, 1099)


GOOD = store(JOB, b"q", JOB, Fate(DONE, 5, 0, 0, None, b"42"), 99, 0)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        GOOD[:-1],
        GOOD + b"x",
        GOOD.replace(b" done ", b" waiting "),
        GOOD.replace(JOB, b"X" * 40, 1),
        GOOD.replace(b" - ", b" " + b"X" * 40 + b" "),
        store(JOB, b"q", JOB, Fate(DONE, 5, 0, 0, None, b"x" * 65537), 99, 0),
    ],
    ids=range(7),
)
def test_a_malformed_record_is_damage(content: bytes) -> None:
    assert fault_of(content)
    check = Check()
    for item in read(EXTENDED + request((b"RECORD", sealed(b"RECORD", content)))):
        check.take(item)
    assert [fault.why[:11] for fault in check.faults] == ["RECORD with"]


def test_an_end_of_a_record_is_about_a_job() -> None:
    check = Check()
    for item in read(EXTENDED + request((b"ENDRECORD", sealed(b"ENDRECORD", b"X" * 40)))):
        check.take(item)
    assert [fault.why[:14] for fault in check.faults] == ["ENDRECORD with"]
