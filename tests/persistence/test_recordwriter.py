"""Records from the template equal those of the plain encoder, whatever the order of the jobs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from disqued.core.cluster.holders import Holders
from disqued.core.jobs.job import ACKED, ACTIVE, DELIVERED, QUEUED, WAIT_REPL, Job
from disqued.core.lifecycle.journal import Journal
from disqued.persistence import records
from disqued.persistence.recordwriter import RecordWriter

NODES = [b"%040x" % number for number in range(1, 4)]
QUEUES = [b"mail", b"print"]

new_jobs = st.tuples(
    st.sampled_from(QUEUES),
    st.sampled_from([b"", b"body", b"other"]),
    st.integers(1, (1 << 63) - 1),  # creation time
    st.sampled_from([1_800_000_000, 1_800_000_001, (1 << 32) - 1, 1 << 33]),  # expiry
    st.sampled_from([0, 5]),  # delay
    st.sampled_from([0, 1, 300]),  # retry
    st.sampled_from([1, 2]),  # copies
    st.sampled_from([None, (), (NODES[0], NODES[1]), tuple(NODES)]),
    st.sampled_from([QUEUED, QUEUED, ACTIVE]),
    st.sampled_from([0, 3, DELIVERED, 255]),  # flags
    st.sampled_from([0, 0, 65535]),  # NACKs
    st.sampled_from([0, 0, 2]),  # further deliveries
)
Spec = tuple[bytes, bytes, int, int, int, int, int, "tuple[bytes, ...] | None", int, int, int, int]


def job_of(number: int, spec: Spec) -> Job:
    queue, body, ctime, expire_at_s, delay_s, retry_s, copies, nodes, state, flags, nacks, deliveries = spec
    job = Job(b"D-%08x-" % number + b"A" * 24 + b"-05a1", queue, body, ctime, expire_at_s, delay_s, retry_s, copies)
    job.delivered, job.state, job.flags = nodes, state, flags
    job.nacks, job.additional_deliveries = nacks, deliveries
    return job


alike = st.lists(
    st.tuples(st.sampled_from([b"body", b"card"]), st.integers(1, (1 << 63) - 1), st.integers(-1, 1 << 33)), max_size=3
)
"""Bodies of equal length, creation times and expiries, for consecutive jobs that are alike in everything else."""


@given(st.lists(st.tuples(new_jobs, alike, st.booleans(), st.sampled_from(NODES[:2])), max_size=12))
def test_a_record_of_shared_parts_equals_the_record_of_the_codec(
    specs: list[tuple[Spec, list[tuple[bytes, int, int]], bool, bytes]],
) -> None:
    holders = Holders()
    writer = RecordWriter(holders)
    for number, (spec, followers, with_sum, node_id) in enumerate(specs):
        jobs = [job_of(number, spec)]
        for place, (body, ctime, expire_at_s) in enumerate(followers):
            jobs.append(job_of(1000 * place + number, (spec[0], body, ctime, expire_at_s, *spec[4:])))
        for job in jobs:
            parts: list[bytes] = []
            writer.keep(parts, job, QUEUED, node_id, with_sum=with_sum)
            assert b"".join(parts) == records.keep(job, holders, node_id, QUEUED, with_sum=with_sum)


@given(st.lists(st.one_of(new_jobs, st.integers(0, 3)), max_size=12))
def test_a_group_has_the_records_of_all_changes_in_order(changes: list[Spec | int]) -> None:
    """A number in the list ends one of the jobs before it."""
    holders, journal = Holders(), Journal()
    journal.on = True
    jobs: list[Job] = []
    expected: list[bytes] = []
    for change in changes:
        if not isinstance(change, int):
            job = job_of(len(jobs), change)
            jobs.append(job)
            journal.keep(job)
            state = records.stored_state(job, controlled=False)
            expected.append(records.keep(job, holders, NODES[0], state, with_sum=True))
        elif change < len(jobs):
            journal.forget(jobs[change])
            expected.append(records.forget(jobs[change].id))
    assert RecordWriter(holders).group(journal, NODES[0], with_sum=True) == b"".join(expected)
    assert journal.changes == []


def test_a_job_that_was_acknowledged_in_the_same_turn_is_only_forgotten() -> None:
    journal = Journal()
    journal.on = True
    job = job_of(0, (b"mail", b"body", 1, 1_800_000_000, 0, 300, 1, None, WAIT_REPL, 0, 0, 0))
    journal.keep(job)
    journal.forget(job)
    job.state = ACKED
    assert RecordWriter(Holders()).group(journal, NODES[0], with_sum=True) == records.forget(job.id)
