"""A connection of the cluster bus, incoming or outgoing: a link of the core on top of a transport.

Unsent data is bounded by `cluster-link-sendbuf-limit`. From a quarter of the limit on, the link counts as congested:
rooms check that before they send what can wait. Above the limit the link is dropped, logged and counted. A frame is
always accepted when nothing else waits, so a limit below the size of a job does not prevent its replication.
"""

from __future__ import annotations

import socket
from asyncio import Transport
from collections.abc import Callable
from typing import Any, Final

from mypy_extensions import i64

from disqued.core.cluster.peer import Carrier, Link
from disqued.core.runtime.counters import LINKS_OVERFLOWED, LOST_BYTES
from disqued.membership.certified import names_in
from disqued.server.keepalive import keep_alive
from disqued.server.shell import Shell

CONGESTED_PART: Final = 4
"""A link is congested while more than the limit divided by this waits, until half of that is left."""


class PeerLink(Carrier):
    """An asyncio protocol. It has no base class of asyncio: the event loop only looks for the methods.

    `made` is called when the connection is made and returns False to refuse it; `lost` when it is lost.
    """

    def __init__(
        self, shell: Shell, link: Link, made: Callable[[PeerLink], bool], lost: Callable[[PeerLink], None]
    ) -> None:
        self.link = link
        if link.peer is not None:  # one that the other node opens has nothing to send before it is made, if it ever is
            link.carrier = self
        self._shell = shell
        self._made = made
        self._lost = lost
        self._transport: Transport | None = None
        self._waiting: list[bytes] = []
        """Written before the connection was made."""
        self._waiting_bytes: i64 = 0
        self._limit_bytes: i64 = 0
        self._paused: bool = False
        """The transport reports that its buffer is above the high-water mark."""
        self._backlog_bytes: i64 = 0
        """Unsent bytes after the last write; 0 if the network had taken all before it. Kept here because a transport
        no longer knows how much it did not send once its connection breaks."""
        self._set_limit(shell.node.state.config.cluster_link_sendbuf_limit)

    def connection_made(self, transport: Transport) -> None:
        """The connection is made, by this node or the other one."""
        link = self.link
        self._transport = transport
        link.carrier = self
        link.remote_ip = _address(transport.get_extra_info("peername"))
        link.local_ip = _address(transport.get_extra_info("sockname"))
        certificate: dict[str, Any] | None = transport.get_extra_info("peercert")
        if certificate is not None:
            link.names = names_in(certificate.get("subjectAltName", ()))
        if link.closed or not self._made(self):
            self.close()
            return
        sock: socket.socket | None = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if link.peer is None:  # no replies are expected, so the kernel must detect a dead host
                keep_alive(sock, max(self._shell.node.state.config.cluster_node_timeout // 1000, 1))
        self._set_limit(self._limit_bytes)
        if self._waiting:
            data = b"".join(self._waiting)
            self._waiting = []
            self._waiting_bytes = 0
            transport.write(data)
            link.congested = self._paused

    def data_received(self, data: bytes) -> None:
        """The other node sent bytes."""
        shell = self._shell
        link = self.link
        shell.node.link_bytes(link, data, shell.clock.now_ms())
        shell.settle()

    def eof_received(self) -> bool:
        """The other node will send no more: the connection closes."""
        return False

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection is lost. The node is told unless it closed the link itself."""
        self._lost(self)
        if self._transport is not None:
            self._count_lost(self._backlog_bytes)
        self._transport = None
        link = self.link
        link.carrier = None
        if not link.closed:
            self._shell.node.link_closed(link, self._shell.clock.now_ms())
        self._shell.settle()

    def pause_writing(self) -> None:
        """The transport's buffer is above the high-water mark."""
        self._paused = True
        self.link.congested = True

    def resume_writing(self) -> None:
        """The transport's buffer has drained."""
        self._backlog_bytes = 0
        self._paused = False
        self.link.congested = False

    def _set_limit(self, limit_bytes: i64) -> None:
        """Set the limit for unsent data."""
        self._limit_bytes = limit_bytes
        congested_bytes: i64 = limit_bytes // CONGESTED_PART
        self.link.congested_bytes = congested_bytes
        transport = self._transport
        if transport is not None:
            transport.set_write_buffer_limits(congested_bytes, congested_bytes // 2)

    def write(self, data: bytes) -> None:
        """Send bytes as soon as the network takes them; drop the link if too many wait already."""
        transport = self._transport
        size: i64 = len(data)
        waiting: i64 = self.unsent_bytes()
        limit_bytes: i64 = self._shell.node.state.config.cluster_link_sendbuf_limit
        if limit_bytes != self._limit_bytes:  # CONFIG SET
            self._set_limit(limit_bytes)
        if waiting > 0 and waiting + size > limit_bytes:
            self._overflow(size)
        elif transport is not None:
            self._backlog_bytes = waiting + size if waiting > 0 else 0
            transport.write(data)
            self.link.congested = self._paused
        else:
            self._waiting.append(data)
            self._waiting_bytes += size
            self.link.congested = self._waiting_bytes > self.link.congested_bytes

    def unsent_bytes(self) -> int:
        """Bytes that the network has not taken yet."""
        transport = self._transport
        return self._waiting_bytes if transport is None else transport.get_write_buffer_size()

    def _overflow(self, size: i64) -> None:
        """Drop the link: the other end has read too little for too long. A new one starts with nothing waiting."""
        shell = self._shell
        state = shell.node.state
        waiting = self.unsent_bytes() + size
        state.counters.add(LINKS_OVERFLOWED)
        state.counters.add(LOST_BYTES, size)
        state.host.log(
            "warning",
            f"Closing the bus link with {self.name()}: {waiting} bytes wait to be sent, more than "
            "cluster-link-sendbuf-limit allows.",
        )
        shell.node.link_closed(self.link, shell.clock.now_ms())
        self.close()

    def name(self) -> str:
        """The other end as the log shows it."""
        peer = self.link.peer
        return (self.link.remote_ip if peer is None else peer.id).decode("ascii", "replace")

    def _count_lost(self, count: i64) -> None:
        self._shell.node.state.counters.add(LOST_BYTES, count)
        self._waiting = []
        self._waiting_bytes = 0

    def failed(self) -> None:
        """The other node could not be reached."""
        self._count_lost(self._waiting_bytes)
        self.connection_lost(None)

    def close(self) -> None:
        """Close the connection; unsent data is lost and counted."""
        self._count_lost(self.unsent_bytes())
        transport = self._transport
        self._transport = None
        self.link.carrier = None
        if transport is not None:
            transport.abort()

    def finish(self) -> None:
        """Send no more; the connection closes when the other node has read everything."""
        transport = self._transport
        if transport is not None and transport.can_write_eof():
            transport.write_eof()
        elif transport is not None:  # with TLS, where closing sends what waits first
            transport.close()


def _address(name: Any) -> bytes:
    """The literal address of one end; empty if the connection is already closed."""
    return name[0].encode() if name else b""
