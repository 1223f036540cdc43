"""ZONE: a node announces its zone, so that the others keep copies of a job in different zones.

It is sent to nodes with the feature: once per connection, when the zone changes, and again after each PING from the
node, like HOST. The payload is the zone; empty for none. A node that never had a zone sends nothing, and a zone is
forgotten when its node starts again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.config.kinds import ZONE_NAME
from disqued.core.runtime import outbox

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState
    from disqued.membership.kept import Membership

FEATURE_ZONE: Final = 32
"""Understands ZONE."""


def announce(own: Membership) -> None:
    """Send the zone to the nodes that do not know it yet."""
    if not own.had_zone:
        return
    state = own.state
    zone = state.view.zone
    for peer in state.view.peers.values():
        link = peer.link
        if link is None or not link.answered or link.told_zone == zone or not peer.features & FEATURE_ZONE:
            continue
        if outbox.send(state, peer, state.bus.other(kinds.ZONE, zone)):
            link.told_zone = zone


def repeat(peer: Peer) -> None:
    """Send the zone again to a node that may have ignored it."""
    if peer.link is not None and peer.link.told_zone:
        peer.link.told_zone = None


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
