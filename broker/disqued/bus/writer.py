"""Writing frames: the headers of one node differ in only a few bytes, so most of each header is cached.

A `FrameWriter` is a value made from the identity of a node and what it announces; when that changes, a new one is made.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.bigendian import u16, u32
from disqued.bus.extension import CLOCK_AT, EXTENSION_BYTES
from disqued.bus.frame import COUNTED_BYTES, HEADER_BYTES, IP_BYTES, JOB_ID_FRAME_BYTES, SIGNATURE, VERSION

NO_EXTENSION: Final = bytes(EXTENSION_BYTES)
_ONE: Final = u32(1)
_HEADS: Final = 32
"""Combinations of message flags."""


_NUMBERS: Final = tuple([u32(value) for value in range(16)])
"""The most frequent numbers behind a job ID."""


def number(value: i64) -> bytes:
    """The number behind a job ID."""
    return _NUMBERS[value] if value < 16 else u32(value)


class FrameWriter:
    """Writes the frames of one node.

    `port` is for clients; `extension` has 34 bytes; `announced_ip` is empty if the node announces no address.
    """

    def __init__(
        self,
        node_id: bytes,
        port: i64,
        *,
        leaving: bool = False,
        extension: bytes = NO_EXTENSION,
        announced_ip: bytes = b"",
    ) -> None:
        self._sender = node_id + announced_ip.ljust(IP_BYTES, b"\0")
        self._extension = extension
        flags = kinds.NODE_MYSELF | (kinds.NODE_LEAVING if leaving else 0)
        self._tail = u16(port) + u16(flags) + b"\0"
        self._rests: list[bytes] = [b""] * (kinds.KINDS * _HEADS)
        """Headers from the version on, by type and message flags, made on first use."""
        self._job_id_heads: list[bytes] = [b""] * (kinds.KINDS * _HEADS)
        """Whole headers of messages about one job, made on first use."""

    def _rest(self, kind: i64, count: i64, message_flags: i64, extension: bytes | None = None) -> bytes:
        """A header from the version on."""
        said = self._extension if extension is None else extension
        begin = u16(VERSION) + b"\0\0" + u16(kind) + u16(count)
        return begin + self._sender + said + self._tail + bytes((int(message_flags), 0, 0))

    def _head(self, kind: i64, length: i64, message_flags: i64) -> bytes:
        """A header; `length` is the length of the whole frame."""
        rest = self._rests[kind * _HEADS + message_flags]
        if not rest:
            rest = self._rest(kind, 0, message_flags)
            self._rests[kind * _HEADS + message_flags] = rest
        return SIGNATURE + u32(length) + rest

    def gossip(self, kind: i64, entries: list[bytes], clock_ms: int) -> bytes:
        """PING, PONG or MEET with gossip entries (see `gossip`) and the time."""
        said = self._extension
        if said[0] != 0:
            said = said[:CLOCK_AT] + clock_ms.to_bytes(8, "big") + said[CLOCK_AT + 8 :]
        data = b"".join(entries)
        return SIGNATURE + u32(HEADER_BYTES + len(data)) + self._rest(kind, len(entries), 0, said) + data

    def fail(self, node_id: bytes) -> bytes:
        """FAIL: the node is down."""
        return self._head(kinds.FAIL, HEADER_BYTES + len(node_id), 0) + node_id

    def about_job(self, kind: i64, job_id: bytes, aux: i64 = 0, message_flags: i64 = 0) -> bytes:
        """A message about one job by its ID."""
        return self._job_id_head(kind, message_flags) + job_id + number(aux)

    def _job_id_head(self, kind: i64, message_flags: i64) -> bytes:
        """The header of a message about one job."""
        head = self._job_id_heads[kind * _HEADS + message_flags]
        if not head:
            head = self._head(kind, JOB_ID_FRAME_BYTES, message_flags)
            self._job_id_heads[kind * _HEADS + message_flags] = head
        return head

    def about_jobs(self, kind: i64, parts: list[bytes]) -> bytes:
        """A message about one or many jobs; `parts` are IDs, each followed by its number (`number`).

        `kind` is that of the message about one job. A list of many jobs has the type that `kinds.LISTS` says.
        """
        if len(parts) == 2:
            return self._job_id_head(kind, 0) + parts[0] + parts[1]
        data = b"".join(parts)
        size: i64 = len(data)
        return self._head(kinds.LISTS[kind], COUNTED_BYTES + size, 0) + u32(len(parts) // 2) + u32(size) + data

    def jobs(self, kind: i64, jobs: list[bytes], message_flags: i64 = 0) -> bytes:
        """REPLJOB or YOURJOBS with serialised jobs."""
        data = jobs[0] if len(jobs) == 1 else b"".join(jobs)
        size: i64 = len(data)
        return (
            self._head(kind, COUNTED_BYTES + size, message_flags)
            + (_ONE if len(jobs) == 1 else u32(len(jobs)))
            + u32(size)
            + data
        )

    def about_queue(self, kind: i64, name: bytes, aux: i64) -> bytes:
        """NEEDJOBS, PAUSE or ENOUGH for a queue."""
        size: i64 = len(name)
        return self._head(kind, COUNTED_BYTES + size, 0) + u32(aux) + u32(size) + name

    def other(self, kind: i64, payload: bytes) -> bytes:
        """A message of our own."""
        return SIGNATURE + u32(HEADER_BYTES + len(payload)) + self._rest(kind, 0, 0) + payload
