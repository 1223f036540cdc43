"""Gossip: what nodes tell each other about other nodes, in the entries of PING, PONG and MEET.

104 bytes each: ID, times of the last ping and pong, address, flags. disqued nodes send the bus port where the original
has zeros, unless it is the client port + 10000.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.bus.bigendian import read_u16, read_u32, u16, u32
from disqued.bus.frame import GOSSIP_ENTRY_BYTES, HEADER_BYTES, IP_BYTES, NODE_ID_BYTES, Frame

_LOW_32: i64 = 0xFFFFFFFF


class GossipEntry:
    """One node as another one sees it. Times are the low 32 bits of unix milliseconds, 0 for none."""

    def __init__(
        self, node_id: bytes, ping_sent: i64, pong_received: i64, ip: bytes, port: i64, flags: i64, bus_port: i64 = 0
    ) -> None:
        self.node_id = node_id
        self.ping_sent: i64 = ping_sent
        self.pong_received: i64 = pong_received
        self.ip = ip
        self.port: i64 = port
        self.flags: i64 = flags
        self.bus_port: i64 = bus_port
        """0 if it is the client port + 10000."""

    def encode(self) -> bytes:
        """The entry on the wire."""
        return (
            self.node_id
            + u32(self.ping_sent & _LOW_32)
            + u32(self.pong_received & _LOW_32)
            + self.ip.ljust(IP_BYTES, b"\0")
            + u16(self.port)
            + u16(self.flags)
            + u16(self.bus_port)
            + b"\0\0\0\0"
        )


def gossip_of(frame: Frame) -> list[GossipEntry]:
    """The entries of a PING, PONG or MEET."""
    entries: list[GossipEntry] = []
    data = frame.data
    at: i64 = frame.start + HEADER_BYTES
    for _ in range(frame.count):
        ip_at = at + NODE_ID_BYTES + 8
        port_at = ip_at + IP_BYTES
        entries.append(
            GossipEntry(
                data[at : at + NODE_ID_BYTES],
                read_u32(data, at + NODE_ID_BYTES),
                read_u32(data, at + NODE_ID_BYTES + 4),
                data[ip_at:port_at].partition(b"\0")[0],
                read_u16(data, port_at),
                read_u16(data, port_at + 2),
                read_u16(data, port_at + 4),
            )
        )
        at += GOSSIP_ENTRY_BYTES
    return entries
