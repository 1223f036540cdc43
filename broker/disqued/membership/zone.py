"""ZONE: a node announces its zone, so that the others keep copies of a job in different zones.

`announcements` sends it. A zone is forgotten when its node starts again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.config.kinds import ZONE_NAME

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

FEATURE_ZONE: Final = 32
"""Understands ZONE."""


def handle_zone(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Take in a node's zone. Anything that is not the name of a zone is ignored."""
    zone = frame.payload
    if not zone or ZONE_NAME.fullmatch(zone.decode("latin-1")):
        learn(state, sender, zone)


def learn(state: NodeState, peer: Peer, zone: bytes) -> None:
    """Note the zone of a node; empty if it is unknown."""
    if zone != peer.zone:
        peer.zone = zone
        state.view.refresh()
