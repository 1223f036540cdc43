"""A frame with a copy for which there is no memory is skipped; later frames are read."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.frame import FrameReader
from disqued.bus.writer import FrameWriter
from disqued.node import ROOMS

SENDER = FrameWriter(b"a" * 40, 7711)
SMALL = SENDER.jobs(kinds.REPLJOB, [b"x" * 100], 0)
BIG = SENDER.jobs(kinds.REPLJOB, [b"y" * 200_000], 0)
MOVED = SENDER.jobs(kinds.YOURJOBS, [b"z" * 200_000], 0)


def lengths(data: bytes, step: int, room_bytes: int) -> tuple[list[int], int]:
    """The lengths of the frames that are read, and how many were skipped; `step` bytes arrive at a time."""
    reader = FrameReader(table=ROOMS.message_table)
    reader.room_bytes = room_bytes
    found = []
    for at in range(0, len(data), step):
        reader.feed(data[at : at + step])
        while (frame := reader.next()) is not None:
            found.append(int(frame.length))
        if room_bytes < len(BIG):
            assert reader.buffered_bytes <= room_bytes + len(MOVED)
    assert reader.buffered_bytes == 0
    return found, int(reader.passed_over)


@pytest.mark.parametrize("step", [1000, 16_384, 199_999])
def test_copy_without_room_is_dropped_while_it_arrives(step: int) -> None:
    assert lengths(SMALL + BIG + SMALL, step, 65536) == ([len(SMALL), len(SMALL)], 1)
    assert lengths(BIG + BIG + SMALL, step, 65536) == ([len(SMALL)], 2)


@pytest.mark.parametrize("step", [1000, 16_384, 199_999])
def test_copies_that_fit_and_frames_that_move_jobs_are_read(step: int) -> None:
    assert lengths(BIG + SMALL, step, 1 << 20) == ([len(BIG), len(SMALL)], 0)
    assert lengths(MOVED + SMALL, step, 65536) == ([len(MOVED), len(SMALL)], 0), "its sender keeps no copy"
