"""The forwarding table of a leaving node: the new nodes of jobs whose workers are still connected to it.

A worker may take minutes to process a job, and keeps sending commands to the node that delivered it. If that node no
longer has the job it tells all nodes about an acknowledgement (see the acks room). WORKING and NACK concern a single
node, so this table remembers it.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

MAX_ENTRIES: Final = 100_000
"""When the table is full, the oldest entry is removed: its worker finishes the job, or the job's retry time ends."""


class ForwardingEntry:
    """The node that a job was transferred to."""

    def __init__(self, node_id: bytes, retry_s: i64) -> None:
        self.node_id = node_id
        self.retry_s: i64 = retry_s


class ForwardingTable:
    """The jobs that were transferred while a worker of this node was processing them."""

    def __init__(self) -> None:
        self._entries: dict[bytes, ForwardingEntry] = {}

    def add(self, job_id: bytes, node_id: bytes, retry_s: i64) -> None:
        """Note that the job was transferred to that node."""
        entries = self._entries
        if len(entries) >= MAX_ENTRIES:
            for oldest in entries:
                del entries[oldest]
                break
        entries[job_id] = ForwardingEntry(node_id, retry_s)

    def find(self, job_id: bytes) -> ForwardingEntry | None:
        """Look up a job; None if it was not transferred while a worker had it."""
        return self._entries.get(job_id)
