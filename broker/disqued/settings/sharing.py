"""SETTINGS and SETTINGSDIGEST: how the nodes of a cluster come to have the same settings.

A change is sent at once, as SETTINGS, to the members that know the message. Each node tells them the digest of its set
(SETTINGSDIGEST) once per connection and when it changes, as announcements are told (`membership.announcements`). Two
nodes whose digests differ for DIFFERENT_MS send each other their sets, in frames of bounded size. While that does not
help, the time doubles. A node without any gets the set at once: until then it knows no limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime import outbox
from disqued.core.telemetry.loglimit import LogLimit
from disqued.settings.counters import EXCHANGED, REFUSED
from disqued.settings.entries import NOTHING, Entries, Entry, payloads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from disqued.core.cluster.peer import Link, Peer
    from disqued.core.runtime.state import NodeState

FEATURE_SETTINGS: Final = 256
"""Understands SETTINGS and SETTINGSDIGEST."""
FRAME_BYTES: Final = 64 << 10
"""The size of the payload of a SETTINGS, more only for a single entry."""
DIFFERENT_MS: Final = 2000
LONGEST_MS: Final = 64_000
DIGEST_BYTES: Final = 8


class _Told:
    """What another node said about its set, and what was done about it."""

    def __init__(self, digest: bytes, incarnation: bytes) -> None:
        self.digest = digest
        self.incarnation = incarnation
        self.since_ms = 0
        """Since when it differs, or when this node sent its set; 0 if it does not."""
        self.wait_ms = DIFFERENT_MS
        self.own = NOTHING
        """The digest of this node when it last sent its set."""


class Peers:
    """The digests of the other nodes."""

    def __init__(self, state: NodeState, entries: Entries) -> None:
        self._state = state
        self._entries = entries
        self._told: dict[bytes, _Told] = {}
        """By node ID."""
        self._log = LogLimit(3)
        self.differing = 0
        """How many connected nodes have another set."""

    def send(self, entries: Sequence[Entry]) -> None:
        """Send changes to all members that know the message."""
        state = self._state
        frames = [state.bus.other(kinds.SETTINGS, payload) for payload in payloads(entries, FRAME_BYTES)]
        for peer in state.view.peers.values():
            if peer.features & FEATURE_SETTINGS and not peer.in_handshake:
                for frame in frames:
                    outbox.send(state, peer, frame)

    def hear(self, sender: Peer, digest: bytes) -> None:
        """Another node told its digest."""
        known = self._told.get(sender.id)
        if known is None or known.incarnation != sender.incarnation:
            self._told[sender.id] = _Told(digest, sender.incarnation)
        elif known.digest != digest:
            known.digest = digest
            known.wait_ms = DIFFERENT_MS

    def forget(self, peer: Peer) -> None:
        """A node is no longer a member."""
        self._told.pop(peer.id, None)

    def visit(self) -> None:
        """Tell the digest to the nodes that do not know it, and send the set to those whose set differs for long."""
        own = self._entries.digest
        if own == NOTHING and not self._told:
            self.differing = 0
            return
        differing = 0
        for peer in self._state.view.peers.values():
            known = self._told.get(peer.id)
            link = peer.link
            if link is None or not link.answered or peer.in_handshake or not peer.features & FEATURE_SETTINGS:
                if known is not None:
                    known.since_ms = 0
                    known.wait_ms = DIFFERENT_MS
                continue
            if known is not None and known.incarnation != peer.incarnation:
                known = None
            if own != NOTHING or known is not None:
                self._tell(peer, link, own)
            if known is not None:
                differing += known.digest != own
                self._compare(peer, link, known, own)
        self.differing = differing

    def _tell(self, peer: Peer, link: Link, own: bytes) -> None:
        state = self._state
        if link.told.get(kinds.SETTINGSDIGEST) == own:
            return
        if outbox.send(state, peer, state.bus.other(kinds.SETTINGSDIGEST, own)):
            link.told[kinds.SETTINGSDIGEST] = own

    def _compare(self, peer: Peer, link: Link, known: _Told, own: bytes) -> None:
        """Send the whole set if it differs from that of the other node for long enough."""
        now_ms = int(self._state.now_ms)
        if known.digest == own:
            peer.settings_of = known.incarnation
            known.since_ms = 0
            known.wait_ms = DIFFERENT_MS
            return
        if not known.since_ms:
            known.since_ms = now_ms if known.digest != NOTHING else now_ms - known.wait_ms
        elif own != known.own:
            known.wait_ms = DIFFERENT_MS
        if now_ms - known.since_ms < known.wait_ms or link.congested or not len(self._entries):
            return
        known.since_ms = now_ms
        known.wait_ms = min(known.wait_ms * 2, LONGEST_MS)
        known.own = own
        state = self._state
        state.counters.add(EXCHANGED)
        for payload in payloads(self._entries.all(), FRAME_BYTES):
            outbox.send(state, peer, state.bus.other(kinds.SETTINGS, payload))

    def refuse(self, sender: Peer, why: str) -> None:
        """Count and log what another node sent and what is not acceptable."""
        state = self._state
        state.counters.add(REFUSED)
        if self._log.allows(sender.id, int(state.now_ms)):
            state.host.log("warning", f"Settings of node {sender.id.decode()} refused: {why}")
