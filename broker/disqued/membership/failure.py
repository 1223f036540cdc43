"""Failure: a node that does not answer is suspected (fail?), and failed once the majority agrees.

Suspicion is each node's own; gossip carries it as votes. The majority counts all members, failing ones too, so that the
smaller part of a divided cluster declares nobody failed. Any PONG undoes both.
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
"""For so many node timeouts a vote counts."""


def suspect(state: NodeState, peer: Peer) -> None:
    """A node did not answer in time."""
    peer.flags |= kinds.NODE_PFAIL
    state.view.refresh()
    _log(state, peer, "does not answer, marking it as possibly failing")


def hear_report(state: NodeState, peer: Peer, reporter: Peer, *, failing: bool) -> None:
    """A member says whether a node fails: note its vote and count."""
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


def hear_fail(state: NodeState, sender: Peer, frame: Frame) -> None:
    """FAIL: the majority agreed elsewhere."""
    peer = state.view.peers.get(frame.about)
    if peer is not None and not peer.in_handshake and peer.flags & kinds.NODE_FAIL == 0:
        _fail(state, peer)
        _log(state, peer, f"failed, says {sender.id.decode()}")


def _fail(state: NodeState, peer: Peer) -> None:
    peer.flags = peer.flags & ~kinds.NODE_PFAIL | kinds.NODE_FAIL
    peer.failed_ms = state.now_ms
    nodes.changed(state)


def clear(state: NodeState, peer: Peer) -> None:
    """A node answered."""
    if peer.failing:
        peer.flags &= ~(kinds.NODE_PFAIL | kinds.NODE_FAIL)
        nodes.changed(state)
        _log(state, peer, "is reachable again")


def _log(state: NodeState, peer: Peer, text: str) -> None:
    state.host.log("notice", f"Node {peer.id.decode()} ({peer.ip.decode()}:{peer.port}) {text}")
