"""Messages of groups that the catalog of this node does not have yet.

All nodes of a new queue learn of it within milliseconds, but not at once. The first one asks the others for their votes
when it does. A vote that is asked for too early would be given an election later, which is a second or two. So the last
messages of each such group are kept until the catalog here has the group, for a second at most.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.raft.message import Message

MOST_GROUPS: Final = 1000
KEPT_MS: Final = 1000


class EarlyMessages:
    """The last messages of up to 1,000 groups."""

    def __init__(self) -> None:
        self._by_group: dict[int, list[Message]] = {}
        self._began_ms: i64 = 0
        """When the first of them came."""

    def keep(self, group: i64, messages: list[Message], now_ms: i64) -> None:
        """Keep messages, in place of earlier ones of the group."""
        if not self._by_group:
            self._began_ms = now_ms
        if len(self._by_group) < MOST_GROUPS:
            self._by_group[int(group)] = messages

    def take(self, group: i64) -> list[Message]:
        """The messages of a group, which is known now."""
        return self._by_group.pop(int(group), [])

    def forget(self, now_ms: i64) -> None:
        """Forget messages that are too old. Called regularly."""
        if self._by_group and now_ms - self._began_ms >= KEPT_MS:
            self._by_group.clear()
