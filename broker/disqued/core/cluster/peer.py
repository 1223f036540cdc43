"""Another node of the cluster as this node knows it, and the connections of the cluster bus between them.

Between two nodes there are two connections, one opened by each. A node writes on the one that it opened, except for
PONG, which returns on the connection that brought the PING. A link has no socket: the driver carries its output
(`Carrier`).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.bus.extension import NOBODY
from disqued.bus.frame import MAX_FRAME_BYTES, MAX_UNKNOWN_BYTES, FrameReader

BUS_PORT_DISTANCE: Final = 10000
"""Of the bus port from the port for clients, where nothing else is said."""
_FAILING: Final = kinds.NODE_PFAIL | kinds.NODE_FAIL
_UNREACHABLE: Final = kinds.NODE_PFAIL | kinds.NODE_FAIL | kinds.NODE_HANDSHAKE | kinds.NODE_NOADDR | kinds.NODE_LEAVING


class Peer:
    """One other node. Flags are those of `bus.kinds`."""

    def __init__(self, node_id: bytes, ip: bytes, port: i64, flags: i64, now_ms: i64, bus_port: i64 = 0) -> None:
        self.id = node_id
        """40 hex digits; a random stand-in while in handshake."""
        self.ip = ip
        """Literal address, empty if unknown."""
        self.port: i64 = port
        """For clients."""
        self.bus_port: i64 = bus_port if bus_port > 0 else port + BUS_PORT_DISTANCE
        self.host = b""
        """Name that the node announced, empty if none."""
        self.flags: i64 = flags
        self.created_ms: i64 = now_ms
        self.ping_sent_ms: i64 = 0
        """When the ping was sent that is not answered yet; 0 for none."""
        self.pong_received_ms: i64 = 0
        self.failed_ms: i64 = 0
        """When it was flagged as failed."""
        self.link: Link | None = None
        """The connection this node opened to it."""
        self.reports: dict[bytes, int] = {}
        """By whom it was reported as failing, and when, unix milliseconds."""
        self.asked: bool = False
        """In handshake because somebody asked for it, not by hearsay."""
        self.dials: i64 = 0
        """Attempts to connect since it last answered."""
        self.next_dial_ms: i64 = 0
        """When to try again."""
        self.features: i64 = 0
        """What it understands beyond the original's protocol (`bus.extension`)."""
        self.incarnation = NOBODY
        self.skew_ms: i64 = 0
        """How far its clock is ahead of ours."""
        self.skew_known: bool = False

    @property
    def in_handshake(self) -> bool:
        """Not a member yet: its ID is not known."""
        return self.flags & kinds.NODE_HANDSHAKE != 0

    @property
    def failing(self) -> bool:
        """Whether it does not answer, as far as this node or the majority knows."""
        return self.flags & _FAILING != 0

    @property
    def connected(self) -> bool:
        """Whether the connection that this node opened works."""
        link = self.link
        return link is not None and link.answered

    @property
    def has_address(self) -> bool:
        """Whether there is anything to connect to."""
        return self.flags & kinds.NODE_NOADDR == 0 or bool(self.host)

    @property
    def target(self) -> bytes:
        """What to connect to, a name or a literal address: its name, alternating with its address when that fails."""
        if not self.host:
            return self.ip
        return self.ip if self.ip and self.dials % 2 == 0 and self.dials > 0 else self.host

    @property
    def reachable(self) -> bool:
        """Whether it can be sent jobs."""
        return self.flags & _UNREACHABLE == 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Carrier:
    """What moves a link's bytes; the shell and the simulator each have their own."""

    def write(self, data: bytes) -> None:
        """Send bytes; they may have to wait until the connection is made."""
        raise NotImplementedError

    def unsent_bytes(self) -> int:
        """Bytes written that the network did not take yet."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection; what was not sent is lost."""
        raise NotImplementedError


class Link:
    """One connection. `peer` is the node it was opened to, None when somebody else opened it."""

    def __init__(self, peer: Peer | None, now_ms: i64, remote_ip: bytes = b"", local_ip: bytes = b"") -> None:
        self.peer = peer
        self.created_ms: i64 = now_ms
        self.remote_ip = remote_ip
        """Address of the other end; empty until connected."""
        self.local_ip = local_ip
        """Address of this end: where the other node sees us."""
        self.reader = FrameReader(MAX_UNKNOWN_BYTES if peer is None else MAX_FRAME_BYTES)
        self.sender = b""
        """The node that the last frame came from."""
        self.out: list[bytes] = []
        self.out_bytes: i64 = 0
        self.flushing: bool = False
        """On the list of links with output."""
        self.congested: bool = False
        """So much waits to be sent that no more should be added that can wait. Kept by the shell, and set as soon as
        one turn brings that much."""
        self.congested_bytes: i64 = 1 << 60
        """How much that is, as the shell says."""
        self.answered: bool = False
        """The peer sent a PONG on it: the connection is made, and to whom it should be."""
        self.told_host: bytes | None = None
        """The name of this node's host that the peer was told on it."""
        self.closed: bool = False
        self.refused: bool = False
        """What comes is not read any more: the other end is not who it should be."""
        self.carrier: Carrier | None = None

    def flush(self) -> int:
        """Hand the output to the carrier; returns the bytes."""
        self.flushing = False
        out = self.out
        carrier = self.carrier
        if not out or carrier is None or self.closed:
            return 0
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        self.out_bytes = 0
        carrier.write(data)
        return len(data)
