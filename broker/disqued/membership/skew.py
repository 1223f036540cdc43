"""Clock skew: the difference between the clocks of other nodes and this one's, measured with PING and PONG.

Jobs carry durations, not times, so a wrong clock changes their order, what is displayed, and the tokens of claims. It
is reported, and a node that is too far ahead can go into quarantine (`quarantine`). The measurement assumes that a PONG
takes half of the round trip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

WARN_MS: Final = 1000
_LONGEST_TRIP_MS: Final = 1000
"""A slower answer would say too little about the clock."""


def measure(state: NodeState, peer: Peer, asked_ms: int, frame: Frame) -> None:
    """Measure with the answer to a PING that was sent at `asked_ms`, 0 for none."""
    trip_ms = int(state.now_ms) - asked_ms
    clock_ms = frame.clock_ms
    if not clock_ms or not asked_ms or trip_ms > _LONGEST_TRIP_MS or clock_ms >= 1 << 62:
        return
    before_ms = int(peer.skew_ms) if peer.skew_known else 0
    skew_ms = clock_ms - (asked_ms + trip_ms // 2)
    peer.skew_ms = skew_ms
    peer.skew_known = True
    peer.skew_is_new = True
    if abs(skew_ms) > WARN_MS >= abs(before_ms):
        way = "ahead of" if skew_ms > 0 else "behind"
        state.host.log(
            "warning", f"The clock of node {peer.id.decode()} is {abs(skew_ms)} ms {way} this one's: set both by NTP"
        )


def worst_ms(state: NodeState) -> int:
    """The largest clock skew of a member, in milliseconds."""
    return max([abs(int(peer.skew_ms)) for peer in state.view.peers.values() if peer.skew_known], default=0)
