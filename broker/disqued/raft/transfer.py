"""The transfer of the leadership to a chosen voter.

The leader refuses proposals, waits until the successor has the whole log, and tells it to campaign at once
(TIMEOUT_NOW). The votes for it are not refused because of the living leader. If the successor does not win within the
election timeout, the leader accepts proposals again.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.raft.core import Core
from disqued.raft.message import TIMEOUT_NOW
from disqued.raft.progress import REPLICATE, Progress


class Transfer:
    """The transfer in progress of a leader, if any."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.to: bytes = b""
        """The successor; empty without a transfer."""
        self.due_ms: i64 = 0
        """When to give up; 0 without a transfer."""

    def begin(self, follower: Progress) -> None:
        """Transfer the leadership to a follower, now or when it has the whole log."""
        self.to = follower.replica
        self.due_ms = self._core.now_ms + self._core.tuning.election_ms
        self.look(follower)

    def look(self, follower: Progress) -> None:
        """Let a follower campaign if it is the successor and has confirmed the whole log."""
        core = self._core
        if follower.replica == self.to and follower.state == REPLICATE and follower.match == core.log.last:
            core.send(core.message(TIMEOUT_NOW, self.to))

    def end(self) -> None:
        """End the transfer, whether it worked or not."""
        self.to = b""
        self.due_ms = 0
