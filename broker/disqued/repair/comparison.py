"""The messages of a comparison: DIGEST and CELL."""

from __future__ import annotations

from typing import Final

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.runtime.message import Message
from disqued.core.runtime.state import NodeState
from disqued.repair.digest import read_cell, read_digest
from disqued.repair.room import repair_of


def handle_digest(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Compare the cells with those of this node."""
    found = read_digest(frame.payload)
    if found is not None:
        repair_of(state).comparing.take_digest(sender, found[0], found[1])


def handle_cell(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Compare the jobs of a cell with those of this node."""
    cell = read_cell(frame.payload)
    if cell is not None:
        repair_of(state).comparing.take_cell(sender, cell)


DIGEST: Final[Message] = Message(
    kinds.DIGEST,
    "DIGEST",
    kinds.OF_UNKNOWN,
    "a node, to each other node with the feature, every `repair-interval` seconds",
    "the receiver computes its own digest, and sends CELL for each cell that differs",
    handle_digest,
    feature=kinds.FEATURE_REPAIR,
)

CELL: Final[Message] = Message(
    kinds.CELL,
    "CELL",
    kinds.OF_UNKNOWN,
    "the receiver of a DIGEST, for a cell that differs; the receiver of a CELL that is no answer",
    "the receiver makes copies that the sender lacks, sends SETACK for jobs that are done, and answers with a CELL",
    handle_cell,
    feature=kinds.FEATURE_REPAIR,
)
