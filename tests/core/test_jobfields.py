"""The fields of a job that share 32 bits keep all values that the wire allows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from disqued.core.jobs.job import MAX_COUNTER, Job


@given(st.integers(0, (1 << 32) - 1), st.lists(st.tuples(st.booleans(), st.integers(0, MAX_COUNTER)), max_size=8))
def test_counters_and_delay_do_not_disturb_each_other(delay_s: int, counts: list[tuple[bool, int]]) -> None:
    job = Job(b"D" * 40, b"queue", b"", 0, 0, delay_s, 0, 1)
    nacks = deliveries = 0
    for is_nack, count in counts:
        if is_nack:
            job.nacks = nacks = count
        else:
            job.additional_deliveries = deliveries = count
        assert (job.delay_s, job.nacks, job.additional_deliveries) == (delay_s, nacks, deliveries)
