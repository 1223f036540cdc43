"""Quarantine: a node whose clock is too far ahead accepts no new jobs and gives no claims (`cluster-max-clock-skew`).

Tokens of claims contain the time, so a clock far ahead would make later claims of other nodes look older. The node
continues to hold, deliver, acknowledge and requeue jobs: the timers of jobs do not depend on the wall clock.

A node compares its clock with the median of the clocks of its peers, as `skew` measured them. Of two medians it takes
the greater one, so those in quarantine are always fewer than half of the nodes: two of three nodes with the same wrong
time stay in service. Nodes of the original do not announce their time and do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.errors import ClockAhead

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

IN_A_ROW: Final = 3
"""So many measurements in a row must agree before the node goes into quarantine or leaves it."""
LEAST_PEERS: Final = 2
"""With fewer clocks to compare with, nobody knows which one is wrong."""


class Quarantine:
    """Decides whether this node is in quarantine."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self.ahead_ms = 0
        """How far the clock was ahead in the last measurement, in milliseconds; negative if it was behind."""
        self._disagreeing = 0
        """How many measurements in a row asked for the other state than the present one."""

    def judge(self) -> None:
        """Compare the clock with those of the peers, if more than half of them were measured since the last time."""
        state = self._state
        known = [peer for peer in state.view.peers.values() if peer.skew_known and not peer.in_handshake]
        if len(known) < LEAST_PEERS:
            self.ahead_ms = 0
            self._accept(f"fewer than {LEAST_PEERS} other nodes announce their time")
            return
        seen = [peer for peer in known if peer.connected and not peer.failing]
        new = len([peer for peer in seen if peer.skew_is_new])
        if new < LEAST_PEERS or 2 * new <= len(seen):
            return
        for peer in seen:
            peer.skew_is_new = False
        self.ahead_ms = _ahead_ms(seen)
        self._count()

    def limit_changed(self) -> None:
        """Leave quarantine at once if there is no limit any more."""
        if self._state.config.cluster_max_clock_skew == 0:
            self._accept("cluster-max-clock-skew is 0")

    def _count(self) -> None:
        """Count a measurement, and change the state after several that ask for it."""
        state = self._state
        limit_ms = state.config.cluster_max_clock_skew
        if limit_ms == 0:
            return
        exceeds = self.ahead_ms > limit_ms
        if exceeds == bool(state.clock_refusal):
            self._disagreeing = 0
            if exceeds:
                state.clock_refusal = ClockAhead(self.ahead_ms, limit_ms).text
            return
        self._disagreeing += 1
        if self._disagreeing < IN_A_ROW:
            return
        if exceeds:
            self._refuse(limit_ms)
        else:
            self._accept(f"ahead_ms={self.ahead_ms} limit_ms={limit_ms}")

    def _refuse(self, limit_ms: int) -> None:
        state = self._state
        self._disagreeing = 0
        state.clock_refusal = ClockAhead(self.ahead_ms, limit_ms).text
        state.host.log(
            "warning",
            "Clock quarantine begins: this node accepts no new jobs and gives no claims until its clock agrees with "
            f"the other nodes. Set it by NTP, then restart the node. ahead_ms={self.ahead_ms} limit_ms={limit_ms}",
        )

    def _accept(self, why: str) -> None:
        state = self._state
        self._disagreeing = 0
        if state.clock_refusal:
            state.clock_refusal = ""
            state.host.log("notice", f"Clock quarantine ends, new jobs are accepted again: {why}")


def _ahead_ms(peers: list[Peer]) -> int:
    """How far the clock of this node is ahead of the median of these; of two medians, the one further ahead counts."""
    skews = sorted([int(peer.skew_ms) for peer in peers])
    return -skews[len(skews) // 2]
