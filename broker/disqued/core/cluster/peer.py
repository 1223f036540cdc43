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
from disqued.bus.frame import MAX_UNKNOWN_BYTES, FrameReader
from disqued.core.cluster.copies import Copies

BUS_PORT_DISTANCE: Final = 10000
"""The default distance of the bus port from the port for clients."""
_FAILING: Final = kinds.NODE_PFAIL | kinds.NODE_FAIL
_UNREACHABLE: Final = kinds.NODE_PFAIL | kinds.NODE_FAIL | kinds.NODE_HANDSHAKE | kinds.NODE_NOADDR | kinds.NODE_LEAVING


class Peer:
    """One other node. Flags are those of `bus.kinds`."""

    def __init__(self, node_id: bytes, ip: bytes, port: i64, flags: i64, now_ms: i64, bus_port: i64 = 0) -> None:
        self.id = node_id
        """40 hex digits; a random placeholder while in handshake."""
        self.ip = ip
        """Its literal address; empty if unknown."""
        self.port: i64 = port
        """Its port for clients; `tls_port` if it has no port without TLS."""
        self.tls_port: i64 = 0
        """Its port for clients with TLS; 0 for none."""
        self.bus_port: i64 = bus_port if bus_port > 0 else port + BUS_PORT_DISTANCE
        self.host = b""
        """The host name that it announced; empty if none."""
        self.zone = b""
        """The zone that it announced; empty if unknown."""
        self.external = b""
        """The address for clients outside that it announced, as `host:port` or `host:port@tls-port`; empty if none."""
        self.claim_number: i64 = -1
        """Its number in claims that it announced; -1 for the one that its ID gives."""
        self.flags: i64 = flags
        self.created_ms: i64 = now_ms
        self.ping_sent_ms: i64 = 0
        """When the ping was sent that it has not answered; 0 if there is none."""
        self.pong_received_ms: i64 = 0
        self.failed_ms: i64 = 0
        """When it was flagged as failed."""
        self.link: Link | None = None
        """The connection this node opened to it."""
        self.reports: dict[bytes, int] = {}
        """The nodes that reported it as failing, with the times in unix milliseconds."""
        self.asked: bool = False
        """In handshake because of CLUSTER MEET or a seed, not because of gossip."""
        self.dials: i64 = 0
        """Attempts to connect since it last answered."""
        self.next_dial_ms: i64 = 0
        """When to try again."""
        self.called_back_ms: i64 = 0
        """When this node connected to it because it had sent a PING."""
        self.features: i64 = 0
        """The extensions of the original's protocol that it understands (`bus.extension`)."""
        self.incarnation = NOBODY
        self.data_id = b""
        """The data ID that it announced last; empty if none. It lost its jobs when this changes."""
        self.data_known: bool = False
        """Whether it announced its data ID since it started."""
        self.free_bytes: i64 = 0
        """Its free memory, as it announced it; 0 if unknown."""
        self.settings_of = NOBODY
        """The incarnation in which it had the same settings of queues as this node, and is told all changes since."""
        self.skew_ms: i64 = 0
        """How far its clock is ahead of the clock of this node."""
        self.skew_known: bool = False
        self.skew_is_new: bool = False
        """Whether it was measured since the clock of this node was last compared with those of all nodes."""

    @property
    def in_handshake(self) -> bool:
        """Whether it is not a member yet: its ID is not known."""
        return self.flags & kinds.NODE_HANDSHAKE != 0

    @property
    def failing(self) -> bool:
        """Whether this node or the majority finds that it does not answer."""
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
        """The name or the literal address to connect to: its name, alternating with its address while that fails."""
        if not self.host:
            return self.ip
        return self.ip if self.ip and self.dials % 2 == 0 and self.dials > 0 else self.host

    @property
    def reachable(self) -> bool:
        """Whether it can be sent jobs."""
        return self.flags & _UNREACHABLE == 0

    @property
    def keeps_limits(self) -> bool:
        """Whether it delivers jobs of queues with limits only with tokens: it knows tokens, and the settings."""
        return self.features & kinds.FEATURE_TOKENS != 0 and self.settings_of == self.incarnation

    @property
    def only_suspected(self) -> bool:
        """Whether it cannot be sent jobs for no other reason than that it does not answer this node."""
        return self.flags & _UNREACHABLE == kinds.NODE_PFAIL


@mypyc_attr(allow_interpreted_subclasses=True)
class Carrier:
    """Moves the bytes of a link; the server and the simulator each have their own."""

    def write(self, data: bytes) -> None:
        """Send bytes; they wait until the connection is established."""
        raise NotImplementedError

    def unsent_bytes(self) -> int:
        """Bytes that were written and that the network has not accepted."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection; unsent bytes are lost."""
        raise NotImplementedError


class Link:
    """One connection. `peer` is the node to which it was opened; None if the other node opened it."""

    def __init__(self, peer: Peer | None, now_ms: i64, remote_ip: bytes = b"", local_ip: bytes = b"") -> None:
        self.peer = peer
        self.created_ms: i64 = now_ms
        self.remote_ip = remote_ip
        """Address of the other end; empty until connected."""
        self.local_ip = local_ip
        """Address of this end, as the other node sees it."""
        self.reader = FrameReader(MAX_UNKNOWN_BYTES)
        self.names: tuple[bytes, ...] | None = None
        """The names in the certificate of the other end until they are verified; None if there is nothing to verify."""
        self.sender = b""
        """The only node that may send on a connection which it opened, since its first PING or MEET was admitted; empty
        before that."""
        self.member: Peer | None = None
        """That node if it is a member, whose messages about jobs are handled; as of `sender_generation`."""
        self.sender_generation: i64 = -1
        """The generation of the view (`ClusterView`) in which it was looked up."""
        self.out: list[bytes] = []
        self.out_bytes: i64 = 0
        self.copies = Copies()
        """Joins REPLJOBs in `out`."""
        self.gathered: dict[int, list[bytes]] = {}
        """Parts of messages about jobs that this turn sends as lists, by type (`FrameWriter.about_jobs`)."""
        self.gathering: bool = False
        """On the list of links with such parts."""
        self.gathered_waits: bool = True
        """All of them can wait for other output."""
        self.flushing: bool = False
        """On the list of links with output."""
        self.congested: bool = False
        """So much output waits that nothing should be added that can wait. Set by the driver, and as soon as one turn
        adds that much."""
        self.congested_bytes: i64 = 1 << 60
        """The amount of output from which the link is congested; set by the driver."""
        self.acks_skipped: bool = False
        """Acknowledgements were not sent because it was congested."""
        self.answered: bool = False
        """The other end sent a PONG on it, or a PING if it opened it: it is established, and to the right node."""
        self.told: dict[int, bytes] = {}
        """What this node announced to the peer on this connection, by the kind of the message."""
        self.closed: bool = False
        self.refused: bool = False
        """Input is no longer read: the other end is not the expected node."""
        self.carrier: Carrier | None = None

        # authentication with the secret of the cluster (`membership.authentication`)
        self.nonces = b""
        """The random numbers of both ends, the one that opened the connection first; empty if none was sent."""
        self.proven: bool = False
        """The other end has proven that it knows the secret."""
        self.holding: bool = False
        """Output waits until that is so; only `opening` is sent."""
        self.opening: list[bytes] = []
        """Frames that are sent before the other output."""

    def bind(self, sender: bytes) -> None:
        """Take frames of this node only, on a connection that it opened."""
        self.sender = sender
        self.sender_generation = -1

    def flush(self) -> int:
        """Hand the output to the carrier; returns the number of bytes."""
        self.flushing = False
        out = self.out
        carrier = self.carrier
        if carrier is not None and (self.opening or self.holding):
            self._open(carrier)
        if not out or carrier is None or self.closed or self.holding:
            return 0
        self.copies.finish(out)
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        self.out_bytes = 0
        carrier.write(data)
        return len(data)

    def _open(self, carrier: Carrier) -> None:
        """Send the frames that may be sent already. If too many others wait, they are lost."""
        if self.opening and not self.closed:
            carrier.write(b"".join(self.opening))
            self.opening.clear()
        if self.holding and self.out_bytes > self.congested_bytes:
            self.copies.finish(self.out)
            self.out.clear()
            self.out_bytes = 0
