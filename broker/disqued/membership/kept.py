"""What the membership room keeps for one node; all rooms may read `ClusterView`, and only this room reads this."""

from __future__ import annotations

from typing import Final

from disqued.bus.extension import NOBODY
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.core.telemetry.loglimit import LogLimit
from disqued.membership.quarantine import Quarantine
from disqued.membership.seedbook import SeedBook

NAME: Final = "membership"


class Membership(Room):
    """The state of the membership room, which `membership.room` completes with the events that it hears."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.cluster = NOBODY
        """The digest of `cluster-name`."""
        self.announced: set[int] = set()
        """The kinds of `announcements` that have had a value since this node started."""
        self.announced_ip = b""
        """The address in the configuration; empty if none."""
        self.ip_is_old = False
        """The address of this node was read from a file; the node may have moved since then."""
        self.announcement_changed = False
        """What frames say about this node changed, and other nodes must be told."""
        self.forgotten: dict[bytes, int] = {}
        """Forgotten nodes, and until when (unix milliseconds) gossip cannot bring them back."""
        self.seeds = SeedBook()
        self.quarantine = Quarantine(state)
        self.refusal_log = LogLimit(1)
        """Bounds the log lines about refused nodes, by address and reason."""
        self.rounds = 0
        """The number of rounds of the bus cron."""
        self.round_ms = 0
        """When the last round was done."""
        self.numbers_checked = -1
        """The generation of the view in which the numbers of the members in claims were compared (`tokenbits`)."""
        self.unsaved = False
        """Something changed that is not in the cluster configuration file yet."""
        self.save_failed = False
        """Writing the cluster configuration file failed."""
        self.save_round = 0
        """The round in which writing is tried again."""


def membership_of(state: NodeState) -> Membership:
    """The membership room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, Membership)
    return room
