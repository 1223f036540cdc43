"""Every frame recorded from the original is read as recorded, and encoded to the same bytes."""

from __future__ import annotations

import copy

import pytest

from bus.recorded import Fields, Recorded, cut, decoded, encoded, frames, jobs_of
from disqued.bus import kinds
from disqued.bus.errors import BusError
from disqued.bus.frame import VERSION
from disqued.core.jobs.codec import CorruptJob, unpack

WRONG_SIGNATURE = "begin like a frame"
CUT_SHORT = "143 bytes long"
BROKEN = {
    "bad-count": "which is impossible",
    "bad-signature": WRONG_SIGNATURE,
    "short-length": CUT_SHORT,
}
"""Steps of fake-peer whose frame closes a link, and what the log says."""
CORRUPT_JOB = b"D-f00dfeed-FakePeerJobFakePeerJob0m-05a1"
TWO_JOBS = b"D-f00dfeed-FakePeerJobFakePeerJob0c-05a1"

GOOD = [frame for frame in frames() if frame.fields is not None and frame.fields["sig"] == "DbuZ"]
BAD = [frame for frame in frames() if frame not in GOOD]


def shortened(fields: Fields, recorded: Fields) -> Fields:
    """Our fields, with bodies shortened as by the recorder."""
    fields = copy.deepcopy(fields)
    for job, other in zip(fields.get("jobs", []), recorded.get("jobs", []), strict=True):
        if job["body_len"] == other["body_len"] and len(other["body"]) != other["body_len"]:
            kept = other["body"].partition("...")[0]
            assert job["body"].startswith(kept)
            job["body"] = other["body"]
    return fields


def is_corrupt(recorded: Recorded) -> bool:
    return CORRUPT_JOB in recorded.data


def test_there_are_frames_of_every_type_of_the_original() -> None:
    assert {recorded.fields["type"] for recorded in GOOD if recorded.fields} >= set(range(kinds.PAUSE + 1))
    assert len(frames()) == 706


@pytest.mark.parametrize("recorded", GOOD, ids=lambda recorded: recorded.name)
def test_a_recorded_frame_is_read_as_recorded(recorded: Recorded) -> None:
    assert recorded.fields is not None
    (frame,) = cut(recorded.data)
    if is_corrupt(recorded):
        with pytest.raises(CorruptJob):
            unpack(frame.data, frame.jobs_at, frame.end)
        return

    assert shortened(decoded(frame), recorded.fields) == recorded.fields


@pytest.mark.parametrize("recorded", GOOD, ids=lambda recorded: recorded.name)
def test_a_recorded_frame_is_written_from_its_fields_byte_for_byte(recorded: Recorded) -> None:
    assert recorded.fields is not None
    (frame,) = cut(recorded.data)
    if frame.version != VERSION or is_corrupt(recorded) or TWO_JOBS in recorded.data:
        assert recorded.name.startswith("fake-peer:")  # lies that our writer cannot tell
        return

    bodies = [job.job.body for job in jobs_of(frame)] if "jobs" in recorded.fields else []

    assert encoded(recorded.fields, bodies) == recorded.data


@pytest.mark.parametrize("recorded", BAD, ids=lambda recorded: recorded.name)
def test_a_broken_recorded_frame_is_refused_with_a_reason(recorded: Recorded) -> None:
    with pytest.raises(BusError) as refusal:
        cut(recorded.data)

    assert any(reason in str(refusal.value) for reason in BROKEN.values())


def test_there_is_a_broken_frame_for_each_reason() -> None:
    assert len(BAD) == len(BROKEN)


def test_all_recorded_frames_are_found_in_one_stream_that_comes_in_any_pieces() -> None:
    stream = b"".join(recorded.data for recorded in GOOD)

    assert [frame.data[frame.start : frame.end] for frame in cut(stream)] == [recorded.data for recorded in GOOD]
