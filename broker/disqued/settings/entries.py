"""The replicated set of entries: what is set for a name or pattern, on all nodes.

An entry has a kind, a name and a key, which together identify it, and a value. Of two entries for the same, the one
with the greater (version, node ID) is kept everywhere, in whatever order they arrive (last writer wins). A removal is
an entry too, and is kept for REMOVAL_MS, so that a node that was away does not bring the value back.

Entries of a kind, or settings, that this release does not know are kept and passed on, so that nodes of different
releases agree on the whole set.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

from disqued.core.cluster.entrykinds import LAST_RUN, MOST_SCHEDULE_BYTES, PURGE, SCHEDULE, SETTING
from disqued.core.queues.settings import MOST_NAME_BYTES, MOST_VALUE_BYTES

MOST_ENTRIES: Final = 10_000
"""A client can set no more. Sets that were changed on two sides of a partition may add up to twice as many."""
MOST_KEPT: Final = 4 * MOST_ENTRIES
"""Entries of other nodes beyond this number are refused, removals included."""
MOST_MARKS: Final = 10_000
"""So many entries can be marks of purges."""
REMOVAL_MS: Final = 7 * 86_400_000
LEAST_MARK_MS: Final = 86_400_000
MOST_MARK_MS: Final = 30 * 86_400_000
"""The bounds of the time for which a mark of a purge is kept: until all jobs of its time have expired."""
MOST_AHEAD_MS: Final = 366 * 86_400_000
"""Versions further in the future are refused: no later change could win."""
NOTHING: Final = bytes(8)
"""The digest of the empty set."""
_DIGEST_SPAN: Final = 1 << 64
_MOST_KEY_BYTES: Final = 255
_SHORT: Final = (SETTING, PURGE)
"""The kinds whose values have at most MOST_VALUE_BYTES. Those of others are bounded by MOST_SCHEDULE_BYTES."""
_OF_SCHEDULES: Final = (SCHEDULE, LAST_RUN)
_FORGOTTEN: Final = re.compile(rb"(\d{1,18}) ")
"""How the value of an entry of a schedule begins: with the time at which it is forgotten, 0 for never."""
_HEAD: Final = struct.Struct(">BBQ40sHHH")
_REMOVED: Final = 1
_MARK: Final = re.compile(rb"([1-9]\d{0,17}|[1-8]\d{18}) (\d{1,10})")
_NODE_ID: Final = re.compile(rb"[0-9a-f]{40}")

Key: TypeAlias = tuple[int, bytes, bytes]
"""The kind, the name and the key of an entry."""


class Entry(NamedTuple):
    """One entry. `version` is in unix milliseconds, greater if the clock was behind; `value` is empty if removed."""

    kind: int
    name: bytes
    key: bytes
    value: bytes
    version: int
    node_id: bytes
    removed: bool
    wire: bytes
    """Its bytes in a frame, which also decide between two entries of one version and node."""

    @property
    def identity(self) -> Key:
        """What no two entries of a set have in common."""
        return self.kind, self.name, self.key

    @property
    def is_mark(self) -> bool:
        """Whether it is a mark of a purge."""
        return self.kind == PURGE and not self.removed

    @property
    def is_scheduled(self) -> bool:
        """Whether it belongs to a schedule."""
        return self.kind in _OF_SCHEDULES and not self.removed

    def wins(self, other: Entry) -> bool:
        """Whether it replaces another entry for the same."""
        return (self.version, self.node_id, self.wire) > (other.version, other.node_id, other.wire)

    def expires_ms(self) -> int:
        """When it is forgotten; 0 for never."""
        if self.removed:
            return self.version + REMOVAL_MS
        if self.kind == PURGE:
            mark = mark_of(self.value)
            return self.version if mark is None else self.version + mark[1]
        if self.kind not in _OF_SCHEDULES:
            return 0
        found = _FORGOTTEN.match(self.value)
        return 0 if found is None else int(found[1])


def mark_value(before: int, kept_ms: int) -> bytes:
    """The value of a mark of a purge: which jobs it covers, and for how long it is kept, the same on all nodes."""
    return b"%d %d" % (before, kept_ms)


def mark_of(value: bytes) -> tuple[int, int] | None:
    """The two numbers in the value of a mark; None if it is malformed."""
    found = _MARK.fullmatch(value)
    if found is None or int(found[2]) > MOST_MARK_MS:
        return None
    return int(found[1]), int(found[2])


def make(
    kind: int, name: bytes, key: bytes, value: bytes, version: int, node_id: bytes, *, removed: bool = False
) -> Entry:
    """An entry."""
    head = _HEAD.pack(kind, _REMOVED if removed else 0, version, node_id, len(name), len(key), len(value))
    return Entry(kind, name, key, value, version, node_id, removed, head + name + key + value)


def fault_of(entry: Entry, now_ms: int) -> str:
    """What makes an entry of another node unacceptable; empty if nothing does."""
    if entry.kind == 0:
        return "an entry of kind 0"
    if not 1 <= len(entry.name) <= MOST_NAME_BYTES:
        return f"a name of {len(entry.name)} bytes"
    most = MOST_VALUE_BYTES if entry.kind in _SHORT else MOST_SCHEDULE_BYTES
    if not 1 <= len(entry.key) <= _MOST_KEY_BYTES or len(entry.value) > most:
        return f"a key of {len(entry.key)} bytes with a value of {len(entry.value)} bytes"
    if not _NODE_ID.fullmatch(entry.node_id):
        return "an invalid node ID"
    if entry.kind == PURGE and not entry.removed and mark_of(entry.value) is None:
        return "a malformed mark of a purge"
    if entry.version > now_ms + MOST_AHEAD_MS:
        return f"a version {entry.version - now_ms} ms in the future: set the clock of node {entry.node_id.decode()}"
    return ""


def decode(data: bytes) -> list[Entry]:
    """The entries in the payload of a frame. Raises ValueError if it has anything else."""
    found: list[Entry] = []
    at = 0
    while at < len(data):
        if len(data) - at < _HEAD.size:
            raise ValueError("an incomplete entry")
        kind, flags, version, node_id, name_bytes, key_bytes, value_bytes = _HEAD.unpack_from(data, at)
        name_at = at + _HEAD.size
        key_at = name_at + name_bytes
        value_at = key_at + key_bytes
        end = value_at + value_bytes
        if end > len(data):
            raise ValueError("an incomplete entry")
        if flags > _REMOVED or (flags and value_bytes):
            raise ValueError(f"an entry with the flags {flags}")
        name, key, value = data[name_at:key_at], data[key_at:value_at], data[value_at:end]
        found.append(Entry(kind, name, key, value, version, node_id, bool(flags), data[at:end]))
        at = end
    return found


def payloads(entries: Sequence[Entry], most_bytes: int) -> Iterator[bytes]:
    """The entries as payloads of frames of at most `most_bytes`."""
    parts: list[bytes] = []
    size = 0
    for entry in entries:
        if parts and size + len(entry.wire) > most_bytes:
            yield b"".join(parts)
            parts, size = [], 0
        parts.append(entry.wire)
        size += len(entry.wire)
    if parts:
        yield b"".join(parts)


class Entries:
    """The set of one node."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self._sum = 0
        self.newest_version = 0
        self.marks = 0
        """How many of them are marks of purges."""
        self.scheduled = 0
        """How many of them belong to schedules and are no removals."""
        self.removed = 0
        """How many of them are removals."""
        self.wire_bytes = 0
        self.expires_ms = 0
        """When the first one expires; 0 if none does."""

    def __len__(self) -> int:
        """Number of entries, removals included."""
        return len(self._entries)

    @property
    def set_count(self) -> int:
        """The number of settings that are not removed, and of entries of unknown kinds."""
        return len(self._entries) - self.removed - self.marks - self.scheduled

    @property
    def digest(self) -> bytes:
        """Eight bytes that are equal on two nodes if their sets are."""
        return self._sum.to_bytes(8, "big")

    def all(self) -> list[Entry]:
        """All entries, by kind, name and key."""
        return [self._entries[identity] for identity in sorted(self._entries)]

    def get(self, kind: int, name: bytes, key: bytes) -> Entry | None:
        """The entry for that, which may be a removal."""
        return self._entries.get((kind, name, key))

    def keys_of(self, kind: int, name: bytes) -> list[bytes]:
        """The keys that are set for a name."""
        return [
            entry.key
            for entry in self._entries.values()
            if entry.kind == kind and entry.name == name and not entry.removed
        ]

    def next_version(self, now_ms: int) -> int:
        """The version of a new entry, which wins over all known ones."""
        return max(now_ms, self.newest_version + 1)

    def put(self, entry: Entry) -> bool:
        """Take an entry unless the present one wins; returns whether it was taken."""
        before = self._entries.get(entry.identity)
        if before is not None:
            if not entry.wins(before):
                return False
            self._forget(before)
        self._entries[entry.identity] = entry
        self._sum = (self._sum + _hash(entry)) % _DIGEST_SPAN
        self.removed += entry.removed
        self.marks += entry.is_mark
        self.scheduled += entry.is_scheduled
        self.wire_bytes += len(entry.wire)
        self.newest_version = max(self.newest_version, entry.version)
        expires_ms = entry.expires_ms()
        if expires_ms and (not self.expires_ms or expires_ms < self.expires_ms):
            self.expires_ms = expires_ms
        return True

    def clear(self) -> None:
        """Forget all entries, without removals."""
        for entry in list(self._entries.values()):
            self._forget(entry)
        self.expires_ms = 0

    def expire(self, now_ms: int) -> list[Entry]:
        """Forget what has expired, and return it."""
        left_ms: list[int] = []
        expired: list[Entry] = []
        for entry in list(self._entries.values()):
            expires_ms = entry.expires_ms()
            if 0 < expires_ms <= now_ms:
                self._forget(entry)
                expired.append(entry)
            elif expires_ms:
                left_ms.append(expires_ms)
        self.expires_ms = min(left_ms, default=0)
        return expired

    def _forget(self, entry: Entry) -> None:
        del self._entries[entry.identity]
        self._sum = (self._sum - _hash(entry)) % _DIGEST_SPAN
        self.removed -= entry.removed
        self.marks -= entry.is_mark
        self.scheduled -= entry.is_scheduled
        self.wire_bytes -= len(entry.wire)


def _hash(entry: Entry) -> int:
    return int.from_bytes(blake2b(entry.wire, digest_size=8).digest(), "big")
