"""Failure detection: a node that does not answer is suspected (fail?), and has failed once the majority agrees.

Each node suspects for itself, and gossip carries its suspicion as a vote. The majority is one of all members, including
failing ones, so the smaller part of a partitioned cluster cannot declare a node failed. A PONG ends both states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime import outbox
from disqued.membership import nodes

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

_VOTES_LAST_TIMEOUTS: Final = 2
"""A vote counts for this many node timeouts."""


def suspect(state: NodeState, peer: Peer) -> None:
    """Suspect a node, because it did not answer in time."""
    peer.flags |= kinds.NODE_PFAIL
    state.view.refresh()
    _log(state, peer, "does not answer, marking it as possibly failing")


def handle_report(state: NodeState, peer: Peer, reporter: Peer, *, failing: bool) -> None:
    """Record whether a member considers a node failing, and count the votes."""
    if not failing:
        peer.reports.pop(reporter.id, None)
        return
    peer.reports[reporter.id] = int(state.now_ms)
    if peer.flags & kinds.NODE_PFAIL == 0:
        return
    oldest_ms = state.now_ms - state.config.cluster_node_timeout * _VOTES_LAST_TIMEOUTS
    peer.reports = {node_id: at_ms for node_id, at_ms in peer.reports.items() if at_ms >= oldest_ms}
    if len(peer.reports) + 1 >= state.view.size // 2 + 1:
        _fail(state, peer)
        outbox.tell_all(state, state.bus.fail(peer.id))
        _log(state, peer, "failed, says the majority")


def handle_fail(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Handle FAIL: the sender found that the majority suspects a node. This node believes its own link to it first."""
    peer = state.view.peers.get(frame.about)
    if peer is None or peer.in_handshake or (peer is not sender and _answers(state, peer)):
        return
    if peer.flags & kinds.NODE_FAIL == 0:
        _fail(state, peer)
        _log(state, peer, f"failed, says {sender.id.decode()}")


def _answers(state: NodeState, peer: Peer) -> bool:
    """Whether a node answered this one lately. A node that answers is pinged at least every half timeout."""
    silent_ms = state.now_ms - peer.pong_received_ms
    return peer.connected and not peer.failing and silent_ms < state.config.cluster_node_timeout * 3 // 4


def _fail(state: NodeState, peer: Peer) -> None:
    peer.flags = peer.flags & ~kinds.NODE_PFAIL | kinds.NODE_FAIL
    peer.failed_ms = state.now_ms
    nodes.changed(state)


def clear(state: NodeState, peer: Peer) -> None:
    """A node answered: it no longer counts as failing."""
    if peer.failing:
        peer.flags &= ~(kinds.NODE_PFAIL | kinds.NODE_FAIL)
        nodes.changed(state)
        _log(state, peer, "is reachable again")


def _log(state: NodeState, peer: Peer, text: str) -> None:
    state.host.log("notice", f"Node {peer.id.decode()} ({peer.ip.decode()}:{peer.port}) {text}")
