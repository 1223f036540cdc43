"""HOST: a node announces its host name, so that the others find it again when its address changes.

It is sent to nodes with the feature: once per connection, when the name changes, and again after each PING from the
node, which ignores a name that arrives before its own handshake is complete. The payload is the name; empty for none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime import outbox
from disqued.membership import nodes
from disqued.membership.addresses import is_name

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

FEATURE_HOST: Final = 1
"""Understands HOST."""


def announce(state: NodeState) -> None:
    """Send the host name to the nodes that do not know it yet."""
    host = state.view.host
    for peer in state.view.peers.values():
        link = peer.link
        if link is None or not link.answered or link.told_host == host or not peer.features & FEATURE_HOST:
            continue
        if outbox.send(state, peer, state.bus.other(kinds.HOST, host)):
            link.told_host = host


def repeat(peer: Peer) -> None:
    """Send the host name again to a node that may have ignored it."""
    if peer.link is not None and peer.link.told_host:
        peer.link.told_host = None


def handle_host(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Take in a node's host name. Anything that is not a host name is ignored."""
    host = frame.payload
    if host != sender.host and (not host or is_name(host)):
        sender.host = host
        nodes.changed(state)
