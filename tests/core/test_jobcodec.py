"""Serialised jobs: a job is read as it was written, and bytes that are no job are refused."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disqued.core.cluster.holders import Holders
from disqued.core.jobs.codec import LEAST_BYTES, MAX_HOLDERS, CorruptJob, pack, pack_for_bus, unpack
from disqued.core.jobs.job import ACTIVE, BCAST_QUEUED, DELIVERED, Job

JOB_ID = b"D-5ca1ab1e-FakePeerJobFakePeerJob0a-05a1"
NOW_MS = 1_800_000_000_500
U16, U32 = (1 << 16) - 1, (1 << 32) - 1

u16s = st.integers(0, U16)
u32s = st.integers(0, U32)
holder_lists = st.lists(st.binary(min_size=40, max_size=40), max_size=4, unique=True).map(tuple)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    random_part = draw(st.from_regex(rb"[A-Za-z0-9+/]{24}", fullmatch=True))
    job = Job(
        b"D-5ca1ab1e-" + random_part + b"-05a1",
        draw(st.binary(max_size=50)),
        draw(st.binary(max_size=50)),
        draw(st.integers(0, (1 << 63) - 1)),
        draw(u32s),
        draw(u32s),
        draw(u32s),
        draw(u16s),
    )
    job.nacks = draw(u16s)
    job.additional_deliveries = draw(u16s)
    job.flags = draw(st.integers(0, 255))
    return job


def sample() -> Job:
    job = Job(JOB_ID, b"queue", b"body", 1_800_000_000_000_000_000, NOW_MS // 1000 + 3600, 5, 300, 2)
    job.flags = BCAST_QUEUED | DELIVERED
    return job


HOLDERS = (b"a" * 40, b"b" * 40)
PACKED = pack(sample(), ACTIVE, BCAST_QUEUED, 3601, Holders().pack(HOLDERS))


def values(job: Job) -> tuple[object, ...]:
    return (
        job.id,
        job.queue,
        job.body,
        job.ctime,
        job.delay_s,
        job.retry_s,
        job.repl,
        job.nacks,
        job.additional_deliveries,
    )


def is_refused_or_within_bounds(data: bytes) -> bool:
    try:
        found = unpack(data, 0, len(data))
    except CorruptJob:
        return True
    job = found.job
    return (
        len(job.id) == 40
        and 0 <= job.ctime < 1 << 63
        and all(0 <= value <= U32 for value in (job.expire_at_s, job.delay_s, job.retry_s))
        and all(0 <= value <= U16 for value in (job.repl, job.nacks, job.additional_deliveries))
        and 0 <= job.flags <= 255
        and 0 <= found.state <= 15
        and len(found.holders) % 40 == 0
        and found.end == LEAST_BYTES + len(job.queue) + len(job.body) + len(found.holders)
        and found.end <= len(data)
    )


@given(jobs(), st.integers(0, 255), u32s, holder_lists, st.binary(max_size=9), st.binary(max_size=9))
def test_a_job_is_read_as_it_was_written(
    job: Job, state: int, expire: int, holders: tuple[bytes, ...], before: bytes, behind: bytes
) -> None:
    packed = pack(job, state, int(job.flags), expire, Holders().pack(holders))
    data = before + packed + behind

    found = unpack(data, len(before), len(data))

    assert values(found.job) == values(job)
    assert (found.job.flags, found.job.expire_at_s, found.state) == (job.flags, expire, state & 15)
    assert found.holders == b"".join(holders)
    assert found.end == len(before) + len(packed)


@given(jobs(), st.integers(0, (1 << 33) * 1000))
def test_any_job_can_be_sent(job: Job, now_ms: int) -> None:
    found = unpack(data := pack_for_bus(job, now_ms, Holders().pack(HOLDERS)), 0, len(data))

    assert found.job.expire_at_s == min(max(job.expire_at_s - now_ms // 1000, 0) + 1, U32)


def test_on_the_bus_the_seconds_left_plus_one_are_sent_without_the_delivered_flag() -> None:
    data = pack_for_bus(sample(), NOW_MS, Holders().pack(HOLDERS))

    found = unpack(data, 0, len(data))

    assert found.job.expire_at_s == 3601
    assert found.job.flags == BCAST_QUEUED


def test_an_expired_job_has_one_second_left_on_the_bus() -> None:
    data = pack_for_bus(sample(), NOW_MS + 5_000_000, Holders().pack(HOLDERS))

    assert unpack(data, 0, len(data)).job.expire_at_s == 1


@pytest.mark.parametrize("expire", [-1, -(1 << 62), 1 << 32, 1 << 62])
def test_an_expiry_out_of_range_is_clamped(expire: int) -> None:
    data = pack(sample(), ACTIVE, 0, expire, Holders().pack(()))

    assert unpack(data, 0, len(data)).job.expire_at_s == (0 if expire < 0 else U32)


@pytest.mark.parametrize("size", range(len(PACKED)))
def test_a_truncated_job_is_refused(size: int) -> None:
    with pytest.raises(CorruptJob):
        unpack(PACKED[:size], 0, size)


@pytest.mark.parametrize("at", range(len(PACKED)))
def test_a_job_with_one_changed_byte_is_refused_or_within_bounds(at: int) -> None:
    for value in range(256):
        data = PACKED[:at] + bytes((value,)) + PACKED[at + 1 :]
        assert is_refused_or_within_bounds(data)


@given(st.binary(max_size=200), st.booleans())
@example(b"\xff" * 200, False)
def test_random_bytes_are_refused_or_a_job_within_bounds(data: bytes, with_length: bool) -> None:
    if with_length:
        data = len(data).to_bytes(4, "little") + data
    assert is_refused_or_within_bounds(data)


def test_a_list_with_too_many_holders_is_refused() -> None:
    most, more = (
        pack(sample(), ACTIVE, 0, 1, Holders().pack(tuple(b"%040d" % number for number in range(count))))
        for count in (MAX_HOLDERS, MAX_HOLDERS + 1)
    )

    assert len(unpack(most, 0, len(most)).holders) == 40 * MAX_HOLDERS
    with pytest.raises(CorruptJob, match="4097 holders"):
        unpack(more, 0, len(more))
