"""A connection of the cluster bus: a link of the core with a transport below it, whoever opened it.

What waits to be sent is bounded. From a quarter of `cluster-link-sendbuf-limit` on the link counts as congested, which
the rooms look at before they send what can wait; beyond the limit it is dropped, which is logged and counted. A frame
that finds nothing waiting is always taken, so that a limit below the size of a job is no way to lose all jobs.
"""

from __future__ import annotations

import socket
from asyncio import Transport
from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import i64

from disqued.core.cluster.peer import Carrier, Link
from disqued.core.runtime.counters import LINKS_OVERFLOWED, LOST_BYTES
from disqued.server.keepalive import keep_alive

if TYPE_CHECKING:
    from disqued.server.shell import Shell

CONGESTED_PART: Final = 4
"""A link is congested when more than the limit divided by this waits, and no more when it is half of that."""


class PeerLink(Carrier):
    """An asyncio protocol. It derives from no base class of asyncio: the event loop only looks for the methods."""

    def __init__(self, shell: Shell, link: Link) -> None:
        self.link = link
        link.carrier = self
        self._shell = shell
        self._transport: Transport | None = None
        self._waiting: list[bytes] = []
        """Written before the connection was made."""
        self._waiting_bytes: i64 = 0
        self._limit_bytes: i64 = 0
        self._paused: bool = False
        """The transport says that more waits than should."""
        self._backlog_bytes: i64 = 0
        """What waited at the last write, that one included; 0 when the network took all before it. When a connection
        breaks the transport has forgotten how much it did not send."""
        self._received_bytes: i64 = 0
        self.heard: bool = False
        """A frame came: the other end knows the protocol."""
        self._set_limit(shell.node.state.config.cluster_link_sendbuf_limit)

    def connection_made(self, transport: Transport) -> None:
        """The other node was reached, or reached us."""
        link = self.link
        self._transport = transport
        if link.closed or not self._shell.bus.made(self):
            self.close()
            return
        link.remote_ip = _address(transport.get_extra_info("peername"))
        link.local_ip = _address(transport.get_extra_info("sockname"))
        sock: socket.socket | None = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if link.peer is None:  # nobody expects answers on it, so the kernel has to notice when its host is gone
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
        if not self.heard:
            self._received_bytes += len(data)
            self.heard = not link.closed and self._received_bytes > link.reader.buffered_bytes
        shell.settle()

    def eof_received(self) -> bool:
        """The other node will send no more: the connection closes."""
        return False

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection is gone; whoever hung up on it needs to hear nothing."""
        self._shell.bus.lost(self)
        if self._transport is not None:
            self._count_lost(self._backlog_bytes)
        self._transport = None
        link = self.link
        link.carrier = None
        if not link.closed:
            self._shell.node.link_closed(link, self._shell.clock.now_ms())
        self._shell.settle()

    def pause_writing(self) -> None:
        """More waits than the other end takes at once."""
        self._paused = True
        self.link.congested = True

    def resume_writing(self) -> None:
        """Most of it was taken."""
        self._backlog_bytes = 0
        self._paused = False
        self.link.congested = False

    def _set_limit(self, limit_bytes: i64) -> None:
        """Bound what waits from now on."""
        self._limit_bytes = limit_bytes
        congested_bytes: i64 = limit_bytes // CONGESTED_PART
        self.link.congested_bytes = congested_bytes
        transport = self._transport
        if transport is not None:
            transport.set_write_buffer_limits(congested_bytes, congested_bytes // 2)

    def write(self, data: bytes) -> None:
        """Send bytes as soon as the network takes them; hang up when too many wait already."""
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
        """Bytes that the network did not take yet."""
        transport = self._transport
        return self._waiting_bytes if transport is None else transport.get_write_buffer_size()

    def _overflow(self, size: i64) -> None:
        """The other end takes too little for too long: begin anew, with nothing waiting."""
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
        """The other end, for the log."""
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
        """Hang up; what was not sent is lost, and counted."""
        self._count_lost(self.unsent_bytes())
        transport = self._transport
        self._transport = None
        self.link.carrier = None
        if transport is not None:
            transport.abort()

    def finish(self) -> None:
        """Say no more: the connection ends when the other node took what was written."""
        if self._transport is not None:
            self._transport.write_eof()


def _address(name: Any) -> bytes:
    """The literal address of one end, empty when the connection is gone already."""
    return name[0].encode() if name else b""
