"""A connection of the cluster bus as the node sees it: frames that came in, frames to be written.

Between two nodes there are two connections, one opened by each. A node writes on the one it opened, but for PONG, which
goes back the way the PING came. A link knows no socket: the shell carries its output (`Carrier`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64, mypyc_attr

from disqued.bus.frame import MAX_FRAME_BYTES, MAX_UNKNOWN_BYTES, FrameReader

if TYPE_CHECKING:
    from disqued.core.peer import Peer


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
