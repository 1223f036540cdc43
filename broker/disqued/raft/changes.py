"""When the members of a group may change, and the leader may change.

Members change by one voter at a time, or by any number of learners. New members are effective when the entry is
appended and are reverted when it is replaced. A change is allowed only when the entry of the change before it is
committed, and an entry of the leader's own term is. Without the second condition, two leaders of different terms could
each make a change that the other does not know, and their quorums could be disjoint.
"""

from __future__ import annotations

from disqued.raft.core import Core
from disqued.raft.entry import MEMBERS
from disqued.raft.leading import Leading
from disqued.raft.members import Members
from disqued.raft.progress import REPLICATE
from disqued.raft.role import LEADER
from disqued.raft.transfer import Transfer


class Changes:
    """Changes of the members and of the leader, requested by the driver. A refusal returns its reason."""

    def __init__(self, core: Core, leading: Leading, transfer: Transfer) -> None:
        self._core = core
        self._leading = leading
        self._transfer = transfer

    def change_members(self, members: Members) -> str:
        """Append an entry with new members. Return an empty text, or the reason why not."""
        core = self._core
        if core.role != LEADER:
            return "not the leader"
        if self._transfer.to:
            return "the leadership is being transferred"
        reason = self.not_ready()
        if reason:
            return reason
        if not members.voters:
            return "a group needs a voter"
        reason = self.too_different(members)
        if reason:
            return reason
        self._leading.append(MEMBERS, members.encode())
        self._leading.arrange()
        return ""

    def not_ready(self) -> str:
        """Return why no change of the members may begin now."""
        core = self._core
        if core.log.members_index > core.committed:
            return "the last change of the members is not committed"
        if not self._leading.is_confirmed:
            return "no entry of this term is committed"
        return ""

    def too_different(self, members: Members) -> str:
        """Return why the change to these members must be divided."""
        if self._core.log.members.differs_by(members) > 1:
            return "more than one voter changes"
        return ""

    def transfer(self, replica: bytes) -> str:
        """Begin to transfer the leadership. Return an empty text, or the reason why not."""
        core = self._core
        if core.role != LEADER:
            return "not the leader"
        if self._transfer.to:
            return "the leadership is being transferred"
        follower = self._leading.progress_of(replica)
        if follower is None or not core.log.members.is_voter(replica):
            return "the successor is not another voter"
        if follower.state != REPLICATE or not core.liveness.heard(replica):
            return "the successor does not follow"
        self._transfer.begin(follower)
        return ""
