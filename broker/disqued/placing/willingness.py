"""Which nodes take the jobs that they are sent.

A node that is short of memory refuses copies without an answer. A node that confirms nothing for a while is therefore
considered unwilling, and is only asked now and then, less often each time, until it confirms a job again.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.cluster.peer import Peer

CONFIRM_TIMEOUT_MS: Final = 1000
"""The least time that a confirmation may take before other nodes are asked."""
MAX_CONFIRM_TIMEOUT_MS: Final = 15_000
_SHORTEST_REST_MS: Final = 2000
_LONGEST_REST_MS: Final = 30_000


class _Record:
    """When a node last took a job, and when it is asked again."""

    def __init__(self) -> None:
        self.confirmed_ms: i64 = 0
        """When it last confirmed a job."""
        self.rests_until_ms: i64 = 0
        """It is not asked before this time."""
        self.rest_ms: i64 = _SHORTEST_REST_MS


class Willingness:
    """What one node knows about the willingness of the others."""

    def __init__(self) -> None:
        self.confirm_timeout_ms: i64 = CONFIRM_TIMEOUT_MS
        self._records: dict[bytes, _Record] = {}

    def rests(self, peer: Peer, now_ms: i64) -> bool:
        """Whether the node has not confirmed jobs lately, so that it is not asked for a while."""
        record = self._records.get(peer.id)
        return record is not None and record.rests_until_ms > now_ms

    def confirmed(self, peer: Peer, now_ms: i64, took_ms: i64) -> None:
        """Note that a node took a job, `took_ms` after it was asked."""
        record = self._record(peer)
        record.confirmed_ms = now_ms
        record.rests_until_ms = 0
        record.rest_ms = _SHORTEST_REST_MS
        self.confirm_timeout_ms = min(CONFIRM_TIMEOUT_MS + 2 * took_ms, MAX_CONFIRM_TIMEOUT_MS)

    def silent(self, peer: Peer, now_ms: i64, asked_ms: i64) -> None:
        """Note that a node has not confirmed a job that it was asked to take at `asked_ms`."""
        record = self._record(peer)
        if record.confirmed_ms >= asked_ms or record.rests_until_ms > now_ms:
            return
        record.rests_until_ms = now_ms + record.rest_ms
        record.rest_ms = min(record.rest_ms * 2, _LONGEST_REST_MS)

    def _record(self, peer: Peer) -> _Record:
        record = self._records.get(peer.id)
        if record is None:
            record = _Record()
            self._records[peer.id] = record
        return record
