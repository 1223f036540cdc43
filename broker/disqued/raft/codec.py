"""The bytes of messages: those of one group from one replica to another are one record, and records follow each other.

All replicas of a node have the same identity, so sender and recipient are not part of a record: the frame that carries
the records names them once. All numbers are big-endian.

- record: group (8 bytes), number of messages (2), messages
- message: kind (1), flag (1), term (8), then by kind:
    - PREVOTE, VOTE: index (8), log_term (8)
    - APPEND: index (8), log_term (8), commit (8), number of entries (4), entries
    - APPEND_REPLY: index (8), log_term (8), commit (8), hint (8)
    - SNAPSHOT: index (8), term (8), time (8), commit (8), length of the members (2), `Members.encode()`
    - ROUND, ROUND_REPLY: round (8)
    - others: nothing
- entry: term (8), time (8), kind (1), length of the data (4), data; the index follows from its place

Whatever the bytes are, decoding gives messages that the core can take, or MalformedError. It checks that numbers are
from 0 to 2^62, that the terms of entries and messages do not fall, and that members can be decoded.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disqued.raft.entry import MEMBERS, Entry
from disqued.raft.members import MalformedMembersError, Members
from disqued.raft.message import (
    APPEND,
    APPEND_REPLY,
    PREVOTE,
    ROUND,
    ROUND_REPLY,
    SNAPSHOT,
    VOTE,
    Message,
)
from disqued.raft.snapshotmeta import SnapshotMeta

MOST_MESSAGES: Final = (1 << 16) - 1
_MOST: Final = 1 << 62
_RECORD: Final = struct.Struct(">qH")
_HEAD: Final = struct.Struct(">BBq")
_VOTE: Final = struct.Struct(">qq")
_APPEND: Final = struct.Struct(">qqqI")
_REPLY: Final = struct.Struct(">qqqq")
_SNAPSHOT: Final = struct.Struct(">qqqqH")
_ROUND: Final = struct.Struct(">q")
_ENTRY: Final = struct.Struct(">qqBI")
_ENTRY_SIZE: Final = 21
_FIRST_KIND: Final = PREVOTE
_LAST_KIND: Final = ROUND_REPLY


class MalformedError(ValueError):
    """The bytes are no messages of groups; the text says why."""


# --- encoding ---------------------------------------------------------------------------------------------------------


def encode(group: i64, messages: list[Message]) -> bytes:
    """Return the record of at most MOST_MESSAGES messages of a group, which have the same sender and recipient."""
    parts = [_RECORD.pack(group, len(messages))]
    for message in messages:
        kind = message.kind
        parts.append(_HEAD.pack(kind, 1 if message.flag else 0, message.term))
        if kind == APPEND:
            parts.append(_APPEND.pack(message.index, message.log_term, message.commit, len(message.entries)))
            for entry in message.entries:
                data = entry.data
                parts.append(_ENTRY.pack(entry.term, entry.time_ms, entry.kind, len(data)))
                parts.append(data)
        elif kind == APPEND_REPLY:
            parts.append(_REPLY.pack(message.index, message.log_term, message.commit, message.hint))
        elif kind in (PREVOTE, VOTE):
            parts.append(_VOTE.pack(message.index, message.log_term))
        elif kind == SNAPSHOT:
            meta = message.snapshot
            assert meta is not None
            members = meta.members.encode()
            parts.append(_SNAPSHOT.pack(meta.index, meta.term, meta.time_ms, message.commit, len(members)))
            parts.append(members)
        elif kind in (ROUND, ROUND_REPLY):
            parts.append(_ROUND.pack(message.round))
    return b"".join(parts)


# --- decoding ---------------------------------------------------------------------------------------------------------


def decode(data: bytes, sender: bytes, to: bytes) -> list[tuple[i64, list[Message]]]:
    """Return the groups and messages of all records in bytes. Raises MalformedError."""
    reader = _Reader(data, sender, to)
    found: list[tuple[i64, list[Message]]] = []
    try:
        while reader.at < len(data):
            found.append(reader.record())
    except struct.error as error:
        raise MalformedError("the bytes end within a message") from error
    except MalformedMembersError as error:
        raise MalformedError(str(error)) from error
    return found


class _Reader:
    """Bytes, and how far they have been read."""

    def __init__(self, data: bytes, sender: bytes, to: bytes) -> None:
        self.at: i64 = 0
        self._data = data
        self._sender = sender
        self._to = to

    def record(self) -> tuple[i64, list[Message]]:
        """Read the messages of one group."""
        number, count = _RECORD.unpack_from(self._data, self.at)
        group: i64 = number
        _check(group)
        self.at += _RECORD.size
        messages: list[Message] = []
        for _ in range(count):
            messages.append(self._message())  # noqa: PERF401 - each reads from where the last one ended
        return group, messages

    def _message(self) -> Message:
        kind, flag, term = _HEAD.unpack_from(self._data, self.at)
        if not _FIRST_KIND <= kind <= _LAST_KIND or flag > 1:
            raise MalformedError(f"a message of kind {kind} with the flag {flag}")
        _check(term)
        self.at += _HEAD.size
        message = Message(kind, self._sender, self._to, term)
        message.flag = flag == 1
        if kind == APPEND:
            self._append(message)
        elif kind == APPEND_REPLY:
            message.index, message.log_term, message.commit, message.hint = _REPLY.unpack_from(self._data, self.at)
            _check(message.index)
            _check(message.log_term)
            _check(message.commit)
            _check(message.hint)
            self.at += _REPLY.size
        elif kind in (PREVOTE, VOTE):
            message.index, message.log_term = _VOTE.unpack_from(self._data, self.at)
            _check(message.index)
            _check(message.log_term)
            self.at += _VOTE.size
        elif kind == SNAPSHOT:
            self._snapshot(message)
        elif kind in (ROUND, ROUND_REPLY):
            (message.round,) = _ROUND.unpack_from(self._data, self.at)
            _check(message.round)
            self.at += _ROUND.size
        return message

    def _append(self, message: Message) -> None:
        message.index, message.log_term, message.commit, number = _APPEND.unpack_from(self._data, self.at)
        _check(message.index)
        _check(message.log_term)
        _check(message.commit)
        self.at += _APPEND.size
        count: i64 = number
        data = self._data
        if count * _ENTRY_SIZE > len(data) - self.at:
            raise MalformedError(f"{count} entries in {len(data) - self.at} bytes")
        at: i64 = self.at
        index: i64 = message.index
        last_term: i64 = message.log_term
        entries: list[Entry] = []
        for _ in range(count):
            fields = _ENTRY.unpack_from(data, at)
            term: i64 = fields[0]
            time_ms: i64 = fields[1]
            kind: i64 = fields[2]
            size: i64 = fields[3]
            at += _ENTRY_SIZE
            index += 1
            if term < last_term or time_ms < 0 or time_ms > _MOST or kind > MEMBERS or at + size > len(data):
                raise MalformedError(f"an entry of term {term}, kind {kind} and {size} bytes")
            last_term = term
            content = data[at : at + size]
            if kind == MEMBERS:
                Members.decode(content)
            entries.append(Entry(term, index, time_ms, kind, content))
            at += size
        if last_term > message.term:
            raise MalformedError(f"an entry of term {last_term} from a leader of term {message.term}")
        message.entries = entries
        self.at = at

    def _snapshot(self, message: Message) -> None:
        index, term, time_ms, commit, size = _SNAPSHOT.unpack_from(self._data, self.at)
        _check(index)
        _check(term)
        _check(time_ms)
        _check(commit)
        self.at += _SNAPSHOT.size
        if self.at + size > len(self._data) or term > message.term:
            raise MalformedError(f"a snapshot of term {term} with {size} bytes of members")
        message.commit = commit
        message.snapshot = SnapshotMeta(index, term, time_ms, Members.decode(self._data[self.at : self.at + size]))
        self.at += size


def _check(number: i64) -> None:
    if number < 0 or number > _MOST:
        raise MalformedError(f"the number {number}")
