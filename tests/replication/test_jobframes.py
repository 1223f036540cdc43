"""REPLJOB frames that are built fast equal the frames that the codec builds, in any sequence of jobs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from disqued.bus import kinds
from disqued.bus.writer import FrameWriter
from disqued.core.cluster.holders import Holders
from disqued.core.jobs.codec import pack_for_bus
from disqued.core.jobs.job import Job
from disqued.placing.jobframes import JobFrames

NOW_MS = 1_800_000_000_000
NODES = [b"%040x" % number for number in range(1, 4)]
WRITERS = [FrameWriter(NODES[0], 7711), FrameWriter(NODES[0], 7711, leaving=True)]
QUEUES = [b"mail", b"print"]

new_jobs = st.tuples(
    st.sampled_from(QUEUES),
    st.sampled_from([b"", b"body", b"other"]),
    st.integers(1, 1 << 62),  # creation time
    st.sampled_from([60, 61]),  # seconds to live
    st.sampled_from([0, 5]),  # delay
    st.sampled_from([1, 300]),  # retry
    st.sampled_from([2, 3]),  # copies
    st.sampled_from([(NODES[0], NODES[1]), (NODES[0], NODES[2]), tuple(NODES)]),
    st.sampled_from([0, kinds.NOREPLY]),
    st.sampled_from([0, 0, 0, 999]),  # milliseconds since the job before
    st.sampled_from(WRITERS),
    st.sampled_from([0, 0, 3]),  # NACKs of other nodes
)


Spec = tuple[bytes, bytes, int, int, int, int, int, tuple[bytes, ...], int, int, FrameWriter, int]

alike = st.lists(st.tuples(st.sampled_from([b"mail", b"post"]), st.integers(1, 1 << 62)), max_size=3)
"""Bodies of one length, and creation times, of jobs that follow one and share the rest with it."""


@given(st.lists(st.tuples(new_jobs, alike), max_size=12))
def test_a_frame_of_shared_parts_equals_the_frame_of_the_codec(
    specs: list[tuple[Spec, list[tuple[bytes, int]]]],
) -> None:
    frames, holders, now_ms = JobFrames(), Holders(), NOW_MS
    for number, (spec, followers) in enumerate(specs):
        queue, body, ctime, ttl_s, delay_s, retry_s, copies, nodes, flags, elapsed_ms, bus, nacks = spec
        now_ms += elapsed_ms
        for place, (text, created) in enumerate([(body, ctime), *followers]):
            job_id = b"D-%08x-" % (1000 * place + number) + b"A" * 24 + b"-05a1"
            job = Job(job_id, queue, text, created, now_ms // 1000 + ttl_s - 30 * place, delay_s, retry_s, copies)
            job.delivered = holders.keep(nodes)
            job.nacks = nacks
            expected = bus.jobs(kinds.REPLJOB, [pack_for_bus(job, now_ms, holders.pack(nodes))], flags)
            assert frames.repljob(bus, job, now_ms, holders, flags) == expected
