"""Sending frames to other nodes.

A frame for a node without a link is dropped: a sender that needs an answer repeats it. Frames are
collected per link and written once per turn of the event loop, which is what makes replication cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState


def send(state: NodeState, peer: Peer, frame: bytes) -> bool:
    """Send a frame to a node; False if there is no link to it."""
    link = peer.link
    if link is None or link.closed:
        return False
    state.ready.put(link, frame)
    return True


def send_when_logged(state: NodeState, peer: Peer, frame: bytes) -> None:
    """Send a frame to a node when all changes of this node so far are logged; the frame says that they are."""
    link = peer.link
    if link is None or link.closed:
        return
    if state.lifecycle.journal.on:
        state.ready.put_when_logged(link, frame)
    else:
        state.ready.put(link, frame)


def tell_holders(state: NodeState, job: Job, frame: bytes) -> None:
    """Send a frame to every other node that may hold the job."""
    delivered = job.delivered
    if delivered is None:
        return
    peers = state.view.peers
    for node_id in delivered:
        peer = peers.get(node_id)
        if peer is not None:
            send(state, peer, frame)


def tell_all(state: NodeState, frame: bytes) -> None:
    """Send a frame to every other member of the cluster."""
    for peer in state.view.peers.values():
        if not peer.in_handshake:
            send(state, peer, frame)
