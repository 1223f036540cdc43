"""SETTINGSDIGEST: the digest of the settings of another node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.settings.room import settings_of
from disqued.settings.sharing import DIGEST_BYTES, FEATURE_SETTINGS

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


def handle_digest(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Remember the digest; `Peers.visit` compares it."""
    digest = frame.payload
    peers = settings_of(state).peers
    if len(digest) != DIGEST_BYTES:
        peers.refuse(sender, f"a digest of {len(digest)} bytes")
        return
    peers.hear(sender, digest)


MESSAGE: Final[Message] = Message(
    kinds.SETTINGSDIGEST,
    "SETTINGSDIGEST",
    kinds.OF_UNKNOWN,
    "a node with settings of queues, or that was told a digest, to nodes with the feature: once per connection, when "
    "the set changes, and again after each PING",
    "SETTINGS with the whole set if the sets differ for two seconds",
    handle_digest,
    feature=FEATURE_SETTINGS,
)
