"""Dispatches frames of other nodes to the handlers of their messages, and checks who may send them."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.errors import BusError
from disqued.bus.frame import MAX_FRAME_BYTES, MAX_UNKNOWN_BYTES, MAX_UNPROVEN_BYTES, VERSION, Frame
from disqued.core.cluster.peer import Link
from disqued.core.memory.accounting import BIG_BYTES
from disqued.core.runtime.clientlimits import ClientLimits
from disqued.core.runtime.counters import COPIES_REFUSED
from disqued.core.runtime.failures import report_bug
from disqued.core.runtime.message import Message
from disqued.core.runtime.messageentry import MessageEntry
from disqued.core.runtime.state import NodeState
from disqued.core.telemetry.loglimit import LogLimit


class Frames:
    """Handles the frames that one node receives."""

    def __init__(self, state: NodeState, limits: ClientLimits, messages: tuple[Message, ...]) -> None:
        self._state = state
        self._limits = limits
        self._log_limit = LogLimit()
        """Bounds the log lines about closed links, by the other end."""
        self.messages: list[MessageEntry | None] = [None] * kinds.KINDS
        """By number."""
        for message in messages:
            self.messages[message.number] = MessageEntry(message, state.traffic[message.number])

    def take(self, link: Link, data: bytes) -> None:
        """Bytes arrived on a link: handle the complete frames among them."""
        state = self._state
        reader = link.reader
        reader.table = state.message_table
        reader.room_bytes = state.lifecycle.memory.frame_bytes
        passed_over = reader.passed_over
        try:
            reader.feed(data)
            while not link.closed:
                if reader.limit_bytes != MAX_FRAME_BYTES:
                    reader.limit_bytes = self._limit_bytes(link)
                frame = reader.next()
                if frame is None:
                    break
                self._handle(link, frame)
        except BusError as error:
            self._give_up(link, str(error))
        except Exception as bug:  # noqa: BLE001 - no frame of another node may stop this node
            report_bug(state, "a frame could not be handled", bug)
            self._give_up(link, "a frame could not be handled")
        if reader.passed_over != passed_over:
            state.counters.add(COPIES_REFUSED)
        if reader.buffered_bytes > BIG_BYTES:
            self._limits.watch_link(link)

    def _limit_bytes(self, link: Link) -> i64:
        """How long frames may be: any length on a link that a member opened."""
        if link.sender and not link.refused:
            self._look_up(link)
            if link.member is not None:
                return MAX_FRAME_BYTES
        return MAX_UNPROVEN_BYTES if self._lacks_proof(link) else MAX_UNKNOWN_BYTES

    def _lacks_proof(self, link: Link) -> bool:
        """Whether the other end must prove the secret of the cluster first."""
        state = self._state
        return bool(state.secrets) and not link.proven and state.config.cluster_secret_required

    def _look_up(self, link: Link) -> None:
        """Look up the member that a link belongs to."""
        view = self._state.view
        peer = view.peers.get(link.sender)
        admitted = peer is not None and not peer.in_handshake and not self._lacks_proof(link)
        link.member = peer if admitted else None
        link.sender_generation = view.generation

    def _may_send(self, link: Link, sender: bytes) -> bool:
        """Whether a node may send on a link. One that another node opened belongs to that node."""
        if link.peer is None and link.sender and sender != link.sender:
            self._give_up(link, f"it belongs to node {link.sender.decode()}, and another node ID sent a frame on it")
            return False
        self._look_up(link)
        return True

    def _handle(self, link: Link, frame: Frame) -> None:
        """Handle one frame."""
        state = self._state
        message = self.messages[frame.kind] if frame.kind < kinds.KINDS else None
        if message is None or frame.version != VERSION:
            state.host.log("verbose", f"Unknown bus message of type {frame.kind}, version {frame.version}")
            return
        message.traffic.received.value += 1
        sender = frame.sender
        if (sender != link.sender or state.view.generation != link.sender_generation) and not self._may_send(
            link, sender
        ):
            return
        if message.from_anyone is not None:
            message.from_anyone(state, link, state.view.peers.get(sender), frame)
        elif state.ending:
            return  # as if it was lost
        elif message.handler is not None and link.member is not None and not link.refused:
            message.handler(state, link.member, frame)

    def _give_up(self, link: Link, reason: str) -> None:
        """Close a link after a frame that is invalid, unexpected, or could not be handled."""
        state = self._state
        who = link.peer.id if link.peer is not None else link.remote_ip
        if self._log_limit.allows(who, int(state.now_ms)):
            state.host.log("warning", f"Closing the bus link with {who.decode('ascii', 'replace')}: {reason}")
        if link.peer is not None and link.peer.link is link:
            link.peer.link = None
        state.ready.hang_up_link(link)
