"""Seeds: names and addresses by which a node finds its cluster without CLUSTER MEET (`cluster-seeds`).

While this node has no connection to a seed, it resolves the seeds' names every second, later every five seconds;
otherwise every 30 seconds, to find new nodes. It meets every address that it does not know yet. A cluster therefore
forms again even if all members return with other addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.config import Endpoint, parse_endpoint
from disqued.core.cluster.peer import BUS_PORT_DISTANCE
from disqued.membership import handshake
from disqued.membership.addresses import literal
from disqued.membership.kept import membership_of

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

SHORTEST_MS: Final = 1000
LONGEST_MS: Final = 5000
COMPLETE_MS: Final = 30_000


def look(state: NodeState) -> None:
    """Resolve the names of the seeds if that is due."""
    config = state.config
    if not config.cluster_seeds or _may_be_introduced(state):
        return
    book = membership_of(state).seeds
    complete = all(_is_complete(state, seed) for seed in _seeds(state))
    due_ms = book.looked_ms + (COMPLETE_MS if complete else max(book.pause_ms, SHORTEST_MS))
    if complete:
        book.pause_ms = 0
    if state.now_ms < due_ms:
        return
    book.looked_ms = state.now_ms
    book.pause_ms = min(book.pause_ms + SHORTEST_MS, LONGEST_MS)
    for name in dict.fromkeys(seed.host.encode() for seed in _seeds(state)):
        address = literal(name)
        if address:
            found(state, name, [address])
        else:
            state.ready.lookups.append(name)


def _may_be_introduced(state: NodeState) -> bool:
    """Whether this node is new and waits for a CLUSTER MEET; members that know each other do not wait."""
    return not state.view.peers and state.now_ms < state.started_ms + 1000 * state.config.cluster_seeds_delay


def found(state: NodeState, name: bytes, addresses: list[bytes]) -> None:
    """A name was resolved: meet the nodes at its addresses."""
    ips = list(dict.fromkeys(ip for ip in map(literal, addresses) if ip))
    membership_of(state).seeds.addresses[name] = ips
    for seed in _seeds(state):
        if seed.host.encode() == name:
            for ip in ips:
                port, bus_port = _ports(state, seed)
                if not _is_known(state, ip, bus_port):
                    handshake.begin(state, ip, port, bus_port)


def _seeds(state: NodeState) -> list[Endpoint]:
    return [seed for seed in map(parse_endpoint, state.config.cluster_seeds) if seed is not None]


def _ports(state: NodeState, seed: Endpoint) -> tuple[int, int]:
    """The ports of a seed; those that are not given are the same as on this node."""
    config = state.config
    port = seed.port or config.port
    own = port == config.port and config.cluster_port
    return port, seed.bus_port or own or port + BUS_PORT_DISTANCE


def _is_complete(state: NodeState, seed: Endpoint) -> bool:
    """Whether this node is connected to all nodes behind a seed."""
    ips = membership_of(state).seeds.addresses.get(seed.host.encode())
    bus_port = _ports(state, seed)[1]
    return bool(ips) and all(_is_connected(state, ip, bus_port) for ip in ips or ())


def _is_connected(state: NodeState, ip: bytes, bus_port: int) -> bool:
    """Whether an address belongs to this node, or to a member that it is connected to."""
    view = state.view
    node_id = membership_of(state).seeds.who(ip, bus_port, state.now_ms)
    if node_id == view.node_id or (ip, bus_port) == (view.ip, view.bus_port):
        return True
    for peer in view.peers.values():
        if peer.id == node_id or (peer.ip, peer.bus_port) == (ip, bus_port):
            return not peer.in_handshake and peer.connected
    return False


def _is_known(state: NodeState, ip: bytes, bus_port: int) -> bool:
    """Whether an address needs no handshake: it belongs to this node, or to a member, to which the cron connects."""
    return _is_connected(state, ip, bus_port) or any(
        (peer.ip, peer.bus_port) == (ip, bus_port) for peer in state.view.peers.values()
    )
