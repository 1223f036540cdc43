"""Moving snapshots to followers whose log is too far behind (RAFTSNAP).

The leader takes the state of its machine as it is now, and the list of the entries whose bodies are still needed. The
follower asks for one part after the other: the state first, then these entries. It hands the complete snapshot to its
core, which decides whether it replaces the log. A job that ends meanwhile has no body any more when its turn comes; the
entry that ended it follows in the log.

One snapshot is sent to a follower at a time, and one received per group. A transfer in which nothing happens is given
up: the leader then finds the follower behind again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.timers.alarm import Alarm
from disqued.ordered.exchange import Exchange, node_of
from disqued.ordered.snapshotpayload import (
    ASK,
    END,
    ENTRIES,
    GONE,
    OFFER,
    STATE,
    Part,
    pack_entries,
    pack_part,
    unpack_entries,
)
from disqued.ordered.storage import Storage
from disqued.raft.entry import Entry
from disqued.raft.message import Message

PART_BYTES: Final = 256 * 1024
ASK_AGAIN_MS: Final = 1000
GIVE_UP_MS: Final = 5000
_ENTRIES_AT_ONCE: Final = 256


class Sending:
    """A snapshot on its way to one follower."""

    def __init__(
        self, exchange: Exchange, storage: Storage, message: Message, number: int, state: bytes, needed: list[int]
    ) -> None:
        self._exchange = exchange
        self._storage = storage
        self.message = message
        self.number = number
        self._group = 0
        self._state = state
        self._needed = needed
        """The indexes of the entries whose bodies are needed, ascending."""
        self.used_ms: i64 = exchange.state.now_ms
        self._wanted: i64 = -1
        """The position of the entries that are being read; -1 for none."""

    def offer(self, group: i64, record: bytes) -> None:
        """Tell the follower that there is a snapshot."""
        self._group = int(group)
        self._put(OFFER, 0, len(self._needed), record)

    def _put(self, what: int, position: int, following: int, data: bytes) -> None:
        part = Part(self._group, self.number, what, position, following, data)
        self._exchange.add(node_of(self.message.to), kinds.RAFTSNAP, pack_part(part))

    def asked(self, position: int) -> tuple[i64, i64]:
        """Send the part at a position. Returns the range of entries that must be read first; (0, 0) for none."""
        self.used_ms = self._exchange.state.now_ms
        size = len(self._state)
        if position < size:
            following = min(position + PART_BYTES, size)
            self._put(STATE, position, following, self._state[position:following])
            return 0, 0
        at = position - size
        if at >= len(self._needed):
            self._put(END, position, position, b"")
            return 0, 0
        return self._entries(position, at)

    def _entries(self, position: int, at: int) -> tuple[i64, i64]:
        """Send entries that are in memory; otherwise say which ones must be read."""
        found: list[Entry] = []
        bytes_found = 0
        while at < len(self._needed) and len(found) < _ENTRIES_AT_ONCE and bytes_found < PART_BYTES:
            entry = self._storage.log.read(self._group, self._needed[at])
            if entry is None:
                break
            found.append(entry)
            bytes_found += len(entry.data)
            at += 1
        if not found:
            self._wanted = position
            last = self._needed[min(at + _ENTRIES_AT_ONCE, len(self._needed)) - 1]
            return self._needed[at], last
        self._put(ENTRIES, position, len(self._state) + at, pack_entries(found))
        return 0, 0

    def read(self, entries: list[Entry]) -> None:
        """Entries were read from the disk. Those that are needed no more were left out."""
        position = int(self._wanted)
        if position < 0:
            return
        self._wanted = -1
        at = position - len(self._state)
        by_index = {int(entry.index): entry for entry in entries}
        last = int(entries[-1].index) if entries else 0
        found: list[Entry] = []
        bytes_found = 0
        while at < len(self._needed) and len(found) < _ENTRIES_AT_ONCE and bytes_found < PART_BYTES:
            index = self._needed[at]
            if index > last and entries:
                break
            entry = by_index.get(index)
            if entry is not None:
                found.append(entry)
                bytes_found += len(entry.data)
            at += 1
            if not entries:
                break
        self._put(ENTRIES, position, len(self._state) + at, pack_entries(found))


class _Repeat(Alarm):
    """Asks again for a part that did not come."""

    def __init__(self, receiving: Receiving) -> None:
        super().__init__()
        self._receiving = receiving

    def ring(self, state: object) -> None:  # noqa: ARG002 - it knows its node
        """Ask again, or give up."""
        self._receiving.ask_again()


class Receiving:
    """A snapshot that is being received."""

    def __init__(
        self, exchange: Exchange, storage: Storage, message: Message, number: int, ended: Callable[[bool], None]
    ) -> None:
        self._exchange = exchange
        self._storage = storage
        self.message = message
        self.number = number
        self._ended = ended
        """Called with whether it is complete."""
        self._group: i64 = 0
        self._parts: list[bytes] = []
        self._position = 0
        self._began_ms: i64 = exchange.state.now_ms
        self._repeat = _Repeat(self)

    @property
    def state(self) -> bytes:
        """The state of the machine."""
        return b"".join(self._parts)

    def begin(self, group: i64) -> None:
        """Ask for the first part."""
        self._group = group
        self._storage.log.abandon_snapshot(group)
        self._ask()

    def _ask(self) -> None:
        part = Part(int(self._group), self.number, ASK, self._position, 0, b"")
        self._exchange.add(node_of(self.message.sender), kinds.RAFTSNAP, pack_part(part))
        state = self._exchange.state
        state.lifecycle.timers.arm(self._repeat, state.now_ms + ASK_AGAIN_MS)

    def ask_again(self) -> None:
        """Nothing came for a while."""
        if self._exchange.state.now_ms - self._began_ms >= GIVE_UP_MS:
            self._end(complete=False)
        else:
            self._ask()

    def take(self, part: Part) -> None:
        """A part arrived."""
        if part.what == GONE:
            self._end(complete=False)
            return
        if part.position != self._position:
            return
        self._began_ms = self._exchange.state.now_ms
        if part.what == END:
            self._end(complete=True)
            return
        if part.what == STATE:
            self._parts.append(part.data)
        elif part.what == ENTRIES and not self._keep(part.data):
            self._end(complete=False)
            return
        if part.following <= part.position:
            self._end(complete=False)
            return
        self._position = part.following
        self._ask()

    def _keep(self, data: bytes) -> bool:
        """Keep entries that the state needs; False if they are not in order."""
        try:
            self._storage.log.receive_entries(self._group, unpack_entries(data))
        except ValueError:
            return False
        self._storage.write_turn()
        return True

    def _end(self, *, complete: bool) -> None:
        self._exchange.state.lifecycle.timers.disarm(self._repeat)
        if not complete:
            self._storage.log.abandon_snapshot(self._group)
        self._ended(complete)

    def stop(self) -> None:
        """Receive no more."""
        self._exchange.state.lifecycle.timers.disarm(self._repeat)
