"""The payload of RUNS: a list of items, each about one run of one schedule."""

from __future__ import annotations

from struct import Struct
from typing import Final

from mypy_extensions import i64

MOST_NAME_BYTES: Final = 256
"""The longest name of a schedule."""
ASK: Final = 1
"""The sender wants to start the run."""
WITHDRAW: Final = 2
"""The sender does not any more, and has not started it."""
GRANTED: Final = 3
"""The node that is named may start it, as far as the sender is concerned."""
OVER: Final = 4
"""The sender knows that this time, or a later one, is dealt with."""
_HEAD: Final = Struct(">BQ40sH")
_MOST_MS: Final = 1 << 62


class Item:
    """One item: what the item means for a run, and which node may start it."""

    def __init__(self, what: i64, due_ms: i64, node_id: bytes, name: bytes) -> None:
        self.what: i64 = what
        self.due_ms: i64 = due_ms
        self.node_id = node_id
        self.name = name

    def packed(self) -> bytes:
        """Its bytes."""
        return _HEAD.pack(self.what, self.due_ms, self.node_id, len(self.name)) + self.name


def unpack_items(data: bytes) -> list[Item]:
    """The items of a payload. Raises ValueError if it has anything else."""
    items: list[Item] = []
    at = 0
    while at < len(data):
        if len(data) - at < _HEAD.size:
            raise ValueError("an incomplete item")
        what, due_ms, node_id, name_bytes = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if not ASK <= what <= OVER or due_ms >= _MOST_MS or not 1 <= name_bytes <= min(MOST_NAME_BYTES, len(data) - at):
            raise ValueError("an invalid item")
        items.append(Item(what, due_ms, node_id, data[at : at + name_bytes]))
        at += name_bytes
    return items
