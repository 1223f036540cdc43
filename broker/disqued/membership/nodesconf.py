"""The cluster configuration file (nodes.conf): the nodes as text, in the format of the original.

Each node has one line of six words, `id ip:port flags ping-sent pong-received link`, as CLUSTER NODES shows them. What
the original does not store follows in lines that begin with `vars`, which the original ignores: `vars node ID`, then
pairs, `host NAME`, `bus-port NUMBER`, `tls-port NUMBER`, `claim-number NUMBER`. Unknown flags and variables are
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.cluster.peer import BUS_PORT_DISTANCE, Peer
from disqued.membership.addresses import MAX_PORT, is_name, literal
from disqued.membership.announcing import announce
from disqued.membership.kept import membership_of
from disqued.membership.tokenbits import announced, parse

if TYPE_CHECKING:
    from disqued.core.cluster.view import ClusterView
    from disqued.core.runtime.state import NodeState

_FLAGS: Final = {
    "myself": kinds.NODE_MYSELF,
    "fail?": kinds.NODE_PFAIL,
    "fail": kinds.NODE_FAIL,
    "handshake": kinds.NODE_HANDSHAKE,
    "noaddr": kinds.NODE_NOADDR,
    "leaving": kinds.NODE_LEAVING,
}
"""In the order in which they are written."""
_NO_FLAGS: Final = "noflags"
_WORDS: Final = 6
_NODE_ID: Final = re.compile(r"[0-9a-f]{40}")
_VARIABLES: Final = "vars"


@dataclass
class SavedNode:
    """One node of the file."""

    id: bytes
    ip: bytes
    port: int
    flags: int
    pinged: bool
    ponged: bool
    host: bytes = b""
    bus_port: int = 0
    tls_port: int = 0
    claim_number: int = -1


@dataclass
class Saved:
    """The contents of the file: this node and the others."""

    node_id: bytes
    leaving: bool
    ip: bytes = b""
    claim_number: int = -1
    peers: list[SavedNode] = field(default_factory=list)


def describe(view: ClusterView, *, handshakes: bool, leaving: bool) -> str:
    """The lines of all nodes, with those in handshake if `handshakes`. `leaving` is what this node's line says."""
    flags = kinds.NODE_MYSELF | (kinds.NODE_LEAVING if leaving else 0)
    lines = [_line(view.node_id, view.ip, int(view.port), flags, 0, 0, connected=True)]
    lines += [
        _line(
            peer.id,
            peer.ip,
            int(peer.port),
            int(peer.flags),
            int(peer.ping_sent_ms),
            int(peer.pong_received_ms),
            connected=peer.connected,
        )
        for peer in view.peers.values()
        if handshakes or not peer.in_handshake
    ]
    return "".join(lines)


def _line(node_id: bytes, ip: bytes, port: int, flags: int, pinged_ms: int, ponged_ms: int, *, connected: bool) -> str:
    words = ",".join([name for name, flag in _FLAGS.items() if flags & flag]) or _NO_FLAGS
    link = "connected" if connected else "disconnected"
    return f"{node_id.decode()} {ip.decode()}:{port} {words} {pinged_ms} {ponged_ms} {link}\n"


def encode(view: ClusterView) -> str:
    """The text of the file."""
    leaving = view.leaving and not view.leaves_to_end
    return describe(view, handshakes=False, leaving=leaving) + "".join(_variables(view))


def _variables(view: ClusterView) -> Iterator[str]:
    """A line for each node with a host name, an unusual bus port, a port for TLS or an unusual number in claims."""
    number = announced(view).decode()
    if number:
        yield f"{_VARIABLES} node {view.node_id.decode()} claim-number {number}\n"
    for peer in view.peers.values():
        said = f" host {peer.host.decode()}" if peer.host else ""
        if peer.bus_port != peer.port + BUS_PORT_DISTANCE:
            said += f" bus-port {peer.bus_port}"
        if peer.tls_port:
            said += f" tls-port {peer.tls_port}"
        if peer.claim_number >= 0:
            said += f" claim-number {peer.claim_number}"
        if said and not peer.in_handshake:
            yield f"{_VARIABLES} node {peer.id.decode()}{said}\n"


def decode(text: str) -> Saved:
    """Parse the file. Raises ValueError with the line that is wrong and the reason."""
    found: dict[bytes, SavedNode] = {}
    variables: list[dict[str, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        if words[0] == _VARIABLES:
            variables.append(dict(zip(words[1::2], words[2::2], strict=False)))
            continue
        try:
            node = _decode_node(words)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        found[node.id] = node
    for pairs in variables:
        _decode_variables(found, pairs)
    myself = [node for node in found.values() if node.flags & kinds.NODE_MYSELF]
    if not myself:
        raise ValueError("no line has the flag 'myself': the file does not say which node this is")
    own = myself[-1]
    peers = [node for node in found.values() if not node.flags & (kinds.NODE_MYSELF | kinds.NODE_HANDSHAKE)]
    return Saved(own.id, own.flags & kinds.NODE_LEAVING != 0, own.ip, own.claim_number, peers)


def _decode_node(words: list[str]) -> SavedNode:
    """Parse the line of one node."""
    if len(words) != _WORDS:
        raise ValueError(f"expected {_WORDS} words for a node, found {len(words)}")
    node_id, address, flag_words, pinged, ponged, _ = words
    if not _NODE_ID.fullmatch(node_id):
        raise ValueError(f"'{node_id}' is no node ID: 40 hexadecimal digits in lower case are expected")
    host, colon, port = address.rpartition(":")
    if not colon:
        raise ValueError(f"'{address}' is no address: ip:port is expected")
    flags = 0
    for word in flag_words.lower().split(","):
        flags |= _FLAGS.get(word, 0)
    ip = literal(host.strip("[]").encode("utf-8", "replace"))
    return SavedNode(node_id.encode(), ip, _port(port), flags, pinged != "0", ponged != "0")


def _port(word: str) -> int:
    """A port; 0 if the word is not one."""
    return int(word) if word.isascii() and word.isdigit() and len(word) < 6 and int(word) < 65536 else 0


def _decode_variables(found: dict[bytes, SavedNode], pairs: dict[str, str]) -> None:
    """Apply a line of variables to its node."""
    node = found.get(pairs.get("node", "").encode("utf-8", "replace"))
    if node is None:
        return
    host = pairs.get("host", "").encode("utf-8", "replace")
    if is_name(host):
        node.host = host
    node.bus_port = _port(pairs.get("bus-port", ""))
    node.tls_port = _port(pairs.get("tls-port", ""))
    node.claim_number = parse(pairs.get("claim-number", "").encode("utf-8", "replace"))


def restore(state: NodeState, saved: Saved) -> None:
    """Start with the nodes of the file. `state` has the saved ID already."""
    view = state.view
    view.leaving = saved.leaving
    if saved.claim_number >= 0:
        view.claim_number = saved.claim_number
    own = membership_of(state)
    if not own.announced_ip:
        view.ip = saved.ip
        own.ip_is_old = True
    for node in saved.peers:
        peer = Peer(node.id, node.ip, node.port, node.flags, state.now_ms, node.bus_port)
        peer.host = node.host
        peer.tls_port = node.tls_port
        peer.claim_number = node.claim_number
        peer.ping_sent_ms = state.now_ms if node.pinged else 0
        peer.pong_received_ms = state.now_ms if node.ponged else 0
        if not node.ip or not (node.bus_port or 0 < node.port <= MAX_PORT):
            peer.flags |= kinds.NODE_NOADDR
        if node.flags & kinds.NODE_FAIL:
            peer.failed_ms = state.now_ms
        view.peers[peer.id] = peer
    view.refresh()
    announce(own)
