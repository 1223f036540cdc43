"""Metrics of the cluster and of the links to other nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.telemetry.metric import COUNTER, GAUGE, Metric, Sample, gauge
from disqued.membership.authentication import unproven_links

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState
    from disqued.core.runtime.subsystem import NodeMetric

PEER: Final = ("peer", "address")
"""Labels of another node: its ID, which identifies it, and its name or address with the port for clients."""
STATES: Final = ("connected", "suspected", "failed", "leaving", "handshake")


def state_of(peer: Peer) -> str:
    """The state of another node, the worst one that applies."""
    if peer.in_handshake:
        return "handshake"
    if peer.flags & kinds.NODE_FAIL:
        return "failed"
    if peer.flags & kinds.NODE_PFAIL or not peer.connected:
        return "suspected"
    return "leaving" if peer.flags & kinds.NODE_LEAVING else "connected"


def _nodes(state: NodeState) -> Iterator[Sample]:
    counts = dict.fromkeys(STATES, 0)
    for peer in state.view.peers.values():
        counts[state_of(peer)] += 1
    for name, count in counts.items():
        yield ((name,), count)


def _members(state: NodeState) -> list[Peer]:
    return [peer for peer in state.view.peers.values() if not peer.in_handshake]


def _labels(peer: Peer) -> tuple[str, ...]:
    host = (peer.host or peer.ip).decode("ascii", "replace")
    address = f"[{host}]" if ":" in host else host
    return (peer.id.decode("ascii", "replace"), f"{address}:{int(peer.port)}")


def _links(state: NodeState) -> Iterator[Sample]:
    for peer in _members(state):
        yield (_labels(peer), int(peer.connected))


def _link_buffers(state: NodeState) -> Iterator[Sample]:
    for peer in _members(state):
        link = peer.link
        waiting = 0
        if link is not None and not link.closed:
            waiting = int(link.out_bytes) + (link.carrier.unsent_bytes() if link.carrier is not None else 0)
        yield (_labels(peer), waiting)


def _skews(state: NodeState) -> Iterator[Sample]:
    for peer in _members(state):
        if peer.skew_known:
            yield (_labels(peer), abs(int(peer.skew_ms)) / 1000)


def _messages(state: NodeState) -> Iterator[Sample]:
    for kind, name in state.message_table.names.items():
        traffic = state.traffic[kind]
        yield ((name.lower(), "sent"), int(traffic.sent.value))
        yield ((name.lower(), "received"), int(traffic.received.value))


def _message_bytes(state: NodeState) -> Iterator[Sample]:
    for kind, name in state.message_table.names.items():
        yield ((name.lower(),), int(state.traffic[kind].sent_bytes.value))


METRICS: Final[tuple[NodeMetric, ...]] = (
    Metric(
        "disque_cluster_nodes",
        GAUGE,
        "The other nodes by their state as this node sees them; the worst that applies: not a member yet (handshake), "
        "failed according to the majority, not answering (suspected), leaving, or connected.",
        _nodes,
        ("state",),
    ),
    gauge(
        "disque_cluster_size",
        "Members of the cluster, including this node.",
        lambda state: int(state.view.size),
    ),
    Metric(
        "disque_cluster_link_up",
        GAUGE,
        "1 while the connection that this node opened to another node works.",
        _links,
        PEER,
    ),
    gauge(
        "disque_cluster_links_unproven",
        "Members that answer without having proven the cluster secret; 0 if this node has none.",
        unproven_links,
    ),
    Metric(
        "disque_cluster_link_buffer_bytes",
        GAUGE,
        "Bytes that wait to be sent to another node.",
        _link_buffers,
        PEER,
    ),
    Metric(
        "disque_clock_skew_seconds",
        GAUGE,
        "Absolute difference between the clocks of another node and this one; missing until it was measured.",
        _skews,
        PEER,
    ),
    gauge(
        "disque_clock_quarantine",
        "1 while this node accepts no new jobs and gives no claims because its clock is too far ahead "
        "(cluster-max-clock-skew).",
        lambda state: int(bool(state.clock_refusal)),
    ),
    Metric(
        "disque_cluster_messages_total",
        COUNTER,
        "Messages of the cluster bus by their type.",
        _messages,
        ("type", "direction"),
    ),
    Metric(
        "disque_cluster_message_sent_bytes_total",
        COUNTER,
        "Bytes of the messages that were sent, by their type.",
        _message_bytes,
        ("type",),
    ),
)
