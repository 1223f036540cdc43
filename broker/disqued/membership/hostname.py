"""HOST: a node tells the others the name of its host, so that they find it again when its address changes.

It goes to nodes that announce that they understand it: once per connection, when the name changes, and again after each
PING of theirs, since a node passes over a name that comes before its own handshake is complete. The payload is the
name, empty to take it back.
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


def tell(state: NodeState) -> None:
    """Tell those who do not know this node's name, or a former one."""
    host = state.view.host
    for peer in state.view.peers.values():
        link = peer.link
        if link is None or not link.answered or link.told_host == host or not peer.features & FEATURE_HOST:
            continue
        if outbox.send(state, peer, state.bus.other(kinds.HOST, host)):
            link.told_host = host


def repeat(peer: Peer) -> None:
    """Tell a node once more, which may know this one only since it was told."""
    if peer.link is not None and peer.link.told_host:
        peer.link.told_host = None


def hear(state: NodeState, sender: Peer, frame: Frame) -> None:
    """A node's name; what is no name is passed over."""
    host = frame.payload
    if host != sender.host and (not host or is_name(host)):
        sender.host = host
        nodes.changed(state)
