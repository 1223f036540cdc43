"""Opens connections to other nodes: when the bus cron finds that one is due, or at once when a member calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.cluster.peer import Link
from disqued.membership import authentication, nodes

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

DIAL_MS: Final = 100
"""The delay before the second attempt to connect. It doubles with each attempt, up to a second."""
LONGEST_DIAL_MS: Final = 1000
CALL_BACK_MS: Final = 1000
"""A node that calls is called back at most once in this time: anyone can send PINGs in the name of a member."""


def dial(state: NodeState, peer: Peer) -> None:
    """Open a connection; the first frames on it are those of `authentication`, and a PING or a MEET."""
    delay_ms = DIAL_MS << min(int(peer.dials), 10)
    peer.next_dial_ms = state.now_ms + min(delay_ms, LONGEST_DIAL_MS)
    peer.dials += 1
    link = Link(peer, state.now_ms)
    peer.link = link
    state.ready.dials.append(link)
    authentication.begin(state, peer, link)


def call_back(state: NodeState, peer: Peer) -> None:
    """A member has sent a PING, so it is up: connect to it now if there is no connection.

    An attempt that was made while the member was down, and has no answer yet, is replaced.
    """
    if not peer.has_address or state.now_ms < peer.called_back_ms + CALL_BACK_MS:
        return
    link = peer.link
    if link is not None:
        if link.answered or state.now_ms < link.created_ms + CALL_BACK_MS:
            return
        nodes.drop_link(state, peer)
    peer.called_back_ms = state.now_ms
    dial(state, peer)
