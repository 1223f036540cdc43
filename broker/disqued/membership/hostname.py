"""HOST: a node announces its host name, so that the others find it again when its address changes.

`announcements` sends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.membership import nodes
from disqued.membership.addresses import is_name

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

FEATURE_HOST: Final = 1
"""Understands HOST."""


def handle_host(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Take in a node's host name. Anything that is not a host name is ignored."""
    host = frame.payload
    if host != sender.host and (not host or is_name(host)):
        sender.host = host
        nodes.changed(state)
