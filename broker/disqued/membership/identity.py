"""Identity: which nodes may send frames under an ID, and in this cluster.

Every frame announces the cluster of its sender, and which run of the node it is (`incarnation`). Frames of another
cluster, of a second node under an ID that is in use, and of a node that did not prove the secret of the cluster, are
refused. A restarted node is also another run under the
same ID; it is admitted as soon as the previous run no longer answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus.extension import NOBODY
from disqued.membership import nodes
from disqued.membership.authentication import refuse_unproven, waits_for_proof
from disqued.membership.certified import proves_its_name
from disqued.membership.kept import membership_of
from disqued.membership.nodes import is_node_id
from disqued.membership.ping import send_ping
from disqued.membership.refusing import refuse

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Link, Peer
    from disqued.core.runtime.state import NodeState

PROOF_MS: Final = 1000
"""The time that a node has to answer a PING when another one claims its ID."""


def admits(state: NodeState, link: Link, sender: Peer | None, frame: Frame) -> bool:
    """Whether the sender of a frame is the node that it claims to be; otherwise the link is closed."""
    if link.refused:
        return False
    if not is_node_id(frame.sender):
        return _refuse(state, link, frame, "its ID is not one of 40 hexadecimal digits")
    if state.secrets and not link.proven:
        if waits_for_proof(state, link):
            return False
        if state.config.cluster_secret_required:
            refuse_unproven(state, link, frame)
            return False
    if not proves_its_name(state, link, sender, frame):
        return False
    own = membership_of(state)
    if NOBODY not in {frame.cluster, own.cluster} and frame.cluster != own.cluster:
        return _refuse(state, link, frame, "it belongs to another cluster (cluster-name)")
    if own.cluster != NOBODY and frame.cluster == NOBODY and state.config.cluster_name_required:
        return _refuse(state, link, frame, "it announces no cluster name (cluster-name-required)")
    if frame.sender == state.view.node_id and frame.incarnation != state.incarnation:
        return _refuse(state, link, frame, "it claims the ID of THIS node; was nodes.conf copied?")
    if sender is not None and _is_taken(state, link, sender, frame):
        return _refuse(state, link, frame, "another node that is alive has this ID; was nodes.conf copied?")
    return True


def _is_taken(state: NodeState, link: Link, peer: Peer, frame: Frame) -> bool:
    """Whether another node with the sender's ID is still alive."""
    current = peer.link
    if frame.incarnation == peer.incarnation or current is None or not current.answered:
        return False
    if link is current:
        return True
    asked_ms = peer.ping_sent_ms
    if not asked_ms:
        send_ping(state, peer)
        return True
    if state.now_ms - asked_ms < min(PROOF_MS, state.config.cluster_node_timeout // 2):
        return True
    nodes.drop_link(state, peer)
    nodes.dial_soon(peer)
    return False


def _refuse(state: NodeState, link: Link, frame: Frame, reason: str) -> bool:
    """Close a link, and log why. Always returns False."""
    refuse(state, link, frame, reason)
    return False
