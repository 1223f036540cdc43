"""HOST, ZONE, EXTERNAL, DATAID, TOKENBITS: what a node tells the others of itself in a message of its own.

The message is sent to nodes with its feature: once per connection, when the value changes, and again after each PING
from the node, which ignores what arrives before its own handshake is complete. The payload is the value; empty if none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime import outbox
from disqued.membership.external import FEATURE_EXTERNAL
from disqued.membership.hostname import FEATURE_HOST
from disqued.membership.tokenbits import announced
from disqued.membership.zone import FEATURE_ZONE

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.cluster.view import ClusterView
    from disqued.membership.kept import Membership


@dataclass(frozen=True)
class Announcement:
    """A value that this node announces."""

    kind: int
    feature: int
    value: Callable[[ClusterView], bytes]
    is_forgotten: bool = True
    """Whether the others forget the value when this node starts again. Then nothing is sent before there is a value."""


_ANNOUNCEMENTS: Final = (
    Announcement(kinds.HOST, FEATURE_HOST, lambda view: view.host, is_forgotten=False),
    Announcement(kinds.ZONE, FEATURE_ZONE, lambda view: view.zone),
    Announcement(kinds.EXTERNAL, FEATURE_EXTERNAL, lambda view: view.external),
    Announcement(kinds.DATAID, kinds.FEATURE_REPAIR, lambda view: view.data),
    Announcement(kinds.TOKENBITS, kinds.FEATURE_CLAIMS, announced),
)


def announce(own: Membership) -> None:
    """Send each value to the nodes that do not know it yet."""
    state = own.state
    for about in _ANNOUNCEMENTS:
        kind, value = about.kind, about.value(state.view)
        if value:
            own.announced.add(kind)
        elif about.is_forgotten and kind not in own.announced:
            continue
        for peer in state.view.peers.values():
            link = peer.link
            if link is None or not link.answered or link.told.get(kind) == value or not peer.features & about.feature:
                continue
            if outbox.send(state, peer, state.bus.other(kind, value)):
                link.told[kind] = value


def repeat(peer: Peer) -> None:
    """Send the values again to a node that may have ignored them."""
    if peer.link is not None:
        peer.link.told = {kind: value for kind, value in peer.link.told.items() if not value}
