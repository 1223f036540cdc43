"""The limits and the sync policy of the log. Tests make segments small."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

LARGEST_DATA: Final = 40 << 20
"""The largest data of one entry in bytes."""
_LARGEST_FRAME: Final = 8 << 20


class LogTuning:
    """Values that the room sets from the configuration.

    `segment_bytes`: a segment that has reached this size is followed by a new one. `cache_bytes`: how much memory
    recent entries may use. `sync_always`: False syncs once a second instead, and a loss of power then loses entries and
    votes that counted as persisted. `slice_bytes`: how much is copied per frame for snapshots and for rewriting.
    `read_bytes`: how much recovery and rewriting read at once. `near_bytes`, `far_bytes`, `shared_bytes`: how much a
    fetch reads, for one entry, for entries in sequence, and when many fetches wait for what is there.
    """

    def __init__(
        self,
        *,
        segment_bytes: i64 = 64 << 20,
        cache_bytes: i64 = 32 << 20,
        sync_always: bool = True,
        slice_bytes: i64 = 1 << 20,
        read_bytes: i64 = 512 << 10,
        near_bytes: i64 = 64 << 10,
        far_bytes: i64 = 512 << 10,
        shared_bytes: i64 = 4 << 20,
    ) -> None:
        self.segment_bytes: i64 = segment_bytes
        self.cache_bytes: i64 = cache_bytes
        self.sync_always: bool = sync_always
        self.slice_bytes: i64 = slice_bytes
        self.read_bytes: i64 = read_bytes
        self.near_bytes: i64 = near_bytes
        self.far_bytes: i64 = far_bytes
        self.shared_bytes: i64 = shared_bytes
        self.chunk_bytes: i64 = min(256 << 10, slice_bytes)
        """The size of the parts in which the state of a snapshot is stored."""
        self.frame_bytes: i64 = min(_LARGEST_FRAME, max(segment_bytes // 8, 4096))
        """A frame of this size is closed; it is also how much may be written without a sync."""
