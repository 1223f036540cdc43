"""Authentication of connections between nodes with a secret of the cluster (`cluster-secret-file`).

The node that opens a connection sends CHALLENGE with a nonce. The other one answers RESPONSE with its own nonce and a
proof for each of its secrets. If one proof was made with a secret of the first node, that node sends PROOF, and then
everything that waits. Before that it sends nothing else, and the other node takes nothing else. Neither tells an
unknown node more than its own ID. The original ignores these messages.

With `cluster-secret-required no`, a node also accepts nodes without a secret: it sends its PING or MEET together with
CHALLENGE, and the rest as soon as there is a RESPONSE without a proof, or a PONG. It refuses a node that answers with
another secret in any case.

This proves who set up a connection. It does not protect what is sent on it later from those who can change packets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.bus.bigendian import read_u32, u32
from disqued.core.runtime.closinglink import close_soon
from disqued.membership.certified import proves_its_name
from disqued.membership.nodes import is_node_id
from disqued.membership.ping import greeting
from disqued.membership.refusing import log, log_node, refuse
from disqued.membership.secrets import ACCEPTOR, DIALLER, MOST, NONCE_BYTES, PROOF_BYTES, prove, proven_with

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Link, Peer
    from disqued.core.runtime.state import NodeState

VERSION: Final = 1
NEEDED: Final = 0xFFFFFFFF
"""The number of proofs in a RESPONSE to a node that sent no CHALLENGE and needs to."""
_NO_NONCE: Final = bytes(NONCE_BYTES)


def begin(state: NodeState, peer: Peer, link: Link) -> None:
    """Send the first frames on a new connection to a node."""
    if not state.secrets:
        state.ready.put(link, greeting(state, peer))
        return
    link.nonces = state.host.random_bytes(NONCE_BYTES)
    link.holding = True
    state.ready.put_opening(link, state.bus.other(kinds.CHALLENGE, u32(VERSION) + link.nonces))
    first = greeting(state, peer)  # the time in which the node must answer begins, even if this is sent later
    if not state.config.cluster_secret_required:
        state.ready.put_opening(link, first)


def waits_for_proof(state: NodeState, link: Link) -> bool:
    """Whether the other end may still prove the secret, so that its other frames do not count yet."""
    return bool(link.nonces) and (link.peer is None or state.config.cluster_secret_required)


def handle_challenge(state: NodeState, link: Link, _sender: Peer | None, frame: Frame) -> None:
    """Answer the node that opened a connection, before anything else."""
    payload = frame.payload
    if link.peer is not None or link.nonces or link.sender or link.refused:
        return
    if len(payload) != 4 + NONCE_BYTES or read_u32(payload, 0) != VERSION or not is_node_id(frame.sender):
        refuse(state, link, frame, "its CHALLENGE is not valid")
        return
    if not state.secrets:
        log(state, link, frame, "asks for the cluster secret, and this node has none (cluster-secret-file)")
        state.ready.put(link, state.bus.other(kinds.RESPONSE, u32(0) + _NO_NONCE))
        return
    nonce = state.host.random_bytes(NONCE_BYTES)
    link.nonces = payload[4:] + nonce
    own_id = state.view.node_id
    proofs = [prove(secret, ACCEPTOR, link.nonces, frame.sender, own_id) for secret in state.secrets]
    state.ready.put(link, state.bus.other(kinds.RESPONSE, u32(len(proofs)) + nonce + b"".join(proofs)))


def handle_response(state: NodeState, link: Link, _sender: Peer | None, frame: Frame) -> None:
    """Check the proof of the node at the other end of a connection that this node opened."""
    peer = link.peer
    payload = frame.payload
    if peer is None or link.refused or link.proven:
        return
    proofs_at = 4 + NONCE_BYTES
    count = read_u32(payload, 0) if len(payload) >= proofs_at else MOST + 1
    if count == NEEDED:
        has = "the connection is opened again" if state.secrets else "this node has none (cluster-secret-file)"
        refuse(state, link, frame, f"it requires the cluster secret, and {has}")
        return
    if not link.nonces:
        return
    if count > MOST or len(payload) != proofs_at + count * PROOF_BYTES or not is_node_id(frame.sender):
        refuse(state, link, frame, "its RESPONSE is not valid")
    elif count == 0 and state.config.cluster_secret_required:
        refuse(state, link, frame, "it has no cluster secret (cluster-secret-file)")
    elif count == 0 and link.holding:
        accept_unproven(state, link, frame)
    elif count:
        proofs = [payload[at : at + PROOF_BYTES] for at in range(proofs_at, len(payload), PROOF_BYTES)]
        _check(state, peer, link, frame, payload[4:proofs_at], proofs)


def _check(state: NodeState, peer: Peer, link: Link, frame: Frame, nonce: bytes, proofs: list[bytes]) -> None:
    """Send PROOF, and what waits, if one of the proofs holds."""
    nonces = link.nonces + nonce
    own_id = state.view.node_id
    secret = proven_with(state.secrets, proofs, ACCEPTOR, nonces, own_id, frame.sender)
    if not secret:
        refuse(state, link, frame, "it has another cluster secret (cluster-secret-file)")
        return
    link.proven = True
    link.nonces = nonces
    proof = prove(secret, DIALLER, nonces, own_id, frame.sender)
    state.ready.put_opening(link, state.bus.other(kinds.PROOF, proof))
    state.ready.put_opening(link, greeting(state, peer))
    state.ready.release(link)


def handle_proof(state: NodeState, link: Link, sender: Peer | None, frame: Frame) -> None:
    """Check the proof of the node that opened a connection: from now on the connection belongs to that node."""
    if link.peer is not None or not link.nonces or link.proven or link.refused:
        return
    own_id = state.view.node_id
    if is_node_id(frame.sender) and proven_with(
        state.secrets, [frame.payload], DIALLER, link.nonces, frame.sender, own_id
    ):
        if proves_its_name(state, link, sender, frame):
            link.proven = True
            link.bind(frame.sender)
    else:
        refuse(state, link, frame, "it has another cluster secret (cluster-secret-file)")


def refuse_unproven(state: NodeState, link: Link, frame: Frame) -> None:
    """Refuse a node that sent something else instead of proving the secret. Nodes of ours are told why."""
    if link.peer is None and frame.extended:
        link.refused = True
        log(state, link, frame, "is refused: it did not prove the cluster secret (cluster-secret-file)")
        state.ready.put(link, state.bus.other(kinds.RESPONSE, u32(NEEDED) + _NO_NONCE))
        close_soon(state, link)
    else:
        refuse(state, link, frame, "it did not prove the cluster secret (cluster-secret-file)")


def accept_unproven(state: NodeState, link: Link, frame: Frame) -> None:
    """Send what waits to a node without a secret, with `cluster-secret-required no`."""
    log(state, link, frame, "did not prove the cluster secret and is accepted (cluster-secret-required no)")
    state.ready.release(link)


def log_silence(state: NodeState, peer: Peer) -> None:
    """Log that a node did not answer CHALLENGE, as nodes of the original do not, if a connection was made."""
    link = peer.link
    if link is None or not link.holding or not link.remote_ip:
        return
    where = f"{peer.ip.decode()}:{peer.port}"
    log_node(state, "The node", where, "did not prove the cluster secret in time (cluster-secret-file)")


def unproven_links(state: NodeState) -> int:
    """The number of members that answer without having proven the secret, 0 if this node has none."""
    if not state.secrets:
        return 0
    peers = [peer for peer in state.view.peers.values() if not peer.in_handshake]
    return len([peer for peer in peers if peer.connected and peer.link is not None and not peer.link.proven])
