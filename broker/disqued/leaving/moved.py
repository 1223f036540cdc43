"""Where the jobs went whose workers are still connected here: what these workers say is passed on.

A worker may take minutes over a job, and goes on talking to the node it got it from. An acknowledgement of a job that
is not here any more is told to everybody (see the acks room). WORKING and NACK concern one node, so it is remembered.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

MAX_KEPT: Final = 100_000
"""Jobs in the hands of workers of one node. The oldest are forgotten: their workers finish or the retry time comes."""


class Address:
    """Where a job is now."""

    def __init__(self, node_id: bytes, retry_s: i64) -> None:
        self.node_id = node_id
        self.retry_s: i64 = retry_s


class Moved:
    """The new addresses of jobs that were handed over while a worker had them."""

    def __init__(self) -> None:
        self._addresses: dict[bytes, Address] = {}

    def note(self, job_id: bytes, node_id: bytes, retry_s: i64) -> None:
        """The job is at that node now."""
        addresses = self._addresses
        if len(addresses) >= MAX_KEPT:
            for oldest in addresses:
                del addresses[oldest]
                break
        addresses[job_id] = Address(node_id, retry_s)

    def find(self, job_id: bytes) -> Address | None:
        """Where the job is, if that is known."""
        return self._addresses.get(job_id)
