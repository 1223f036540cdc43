"""RUNS: a node wants to start runs of schedules, and other nodes grant them."""

from __future__ import annotations

from typing import Final

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.runtime.message import Message
from disqued.core.runtime.state import NodeState
from disqued.schedule.payload import unpack_items
from disqued.schedule.room import schedule_of


def handle_runs(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Answer, and take answers. A malformed frame has no effect."""
    try:
        items = unpack_items(frame.payload)
    except ValueError:
        return
    schedule_of(state).heard(sender, items)


MESSAGE: Final[Message] = Message(
    kinds.RUNS,
    "RUNS",
    kinds.OF_UNKNOWN,
    "a node on which schedules are due, to all members with the feature, every half second until the majority has "
    "granted the runs to it or to another node; and the answers",
    "the receiver grants each run to one node only, and says to which; the sender starts a run that the majority has "
    "granted to it",
    handle_runs,
    feature=kinds.FEATURE_SCHEDULES,
)
