"""The contents of an append-only file, parsed independently, and the jobs that a node loads from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hiredis

from disqued.core.jobs.codec import Unpacked, unpack

if TYPE_CHECKING:
    from disqued.testing.local import LocalNode


class Content:
    """The jobs and pauses in a file; an incomplete last record is ignored."""

    def __init__(self, data: bytes) -> None:
        self.jobs: dict[bytes, Unpacked] = {}
        self.pauses: dict[bytes, bytes] = {}
        self.records = 0
        reader = hiredis.Reader()
        reader.feed(data)
        while (record := reader.gets()) is not False:
            self.records += 1
            self._take(record)

    def _take(self, record: Any) -> None:
        match record:
            case [b"LOADJOB", blob]:
                found = unpack(blob, 0, len(blob))
                self.jobs.setdefault(found.job.id, found)
            case [b"DELJOB", job_id]:
                self.jobs.pop(job_id, None)
            case [b"PAUSE", queue, b"none"]:
                self.pauses.pop(queue, None)
            case [b"PAUSE", queue, word]:
                self.pauses[queue] = word
            case _:
                raise AssertionError(record)


def job_ids(local: LocalNode) -> set[bytes]:
    """The IDs of the jobs that a node has in memory."""
    return {job.id for job in local.node.state.lifecycle.table.jobs() if not job.is_dummy}


def come_back(local: LocalNode) -> None:
    """Restart the node, and wait until it has loaded its file."""
    local.restart()
    while local.node.state.loading:
        local.run(milliseconds=1)
