"""What the log tells the room that uses it.

Calls come from `flush`, `tick`, `fetch`, `open` and `disk_done`, when the state of the log is complete, so the owner
may call the log again from within them.
"""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disqued.raft.entry import Entry
from disqued.raft.hardstate import HardState


class RecoveredGroup:
    """What the log has of one group after a start.

    Entries above the snapshot have no body here: whether they are committed is learned later, so the owner fetches
    them when it applies them. Entries up to the snapshot are those whose body is still needed.
    """

    def __init__(self, group: i64) -> None:
        self.group: i64 = group
        self.damaged: bool = False
        """Whether records of the group are lost. The owner must remove it (`remove_group`); it may not vote again."""
        self.hard = HardState(0, b"")
        self.snapshot_index: i64 = 0
        """0 if there is no snapshot."""
        self.snapshot_term: i64 = 0
        self.snapshot_members = b""
        self.snapshot_state = b""
        self.last_index: i64 = 0
        self.terms: list[tuple[i64, i64]] = []
        """First index and term of each run of entries of one term, ascending."""
        self.member_entries: list[Entry] = []
        """The entries of kind MEMBERS above the snapshot, ascending."""


@mypyc_attr(allow_interpreted_subclasses=True)
class LogOwner:
    """The room that uses the log."""

    def recovered(self, group: RecoveredGroup) -> None:
        """A group was found at the start; called once per group, ascending, before `opened`."""
        raise NotImplementedError

    def opened(self) -> None:
        """The log can be used."""
        raise NotImplementedError

    def persisted(self, ticket: i64) -> None:
        """Everything up to the flush that returned this ticket is as safe as the policy promises.

        It may be called before that flush returns.
        """
        raise NotImplementedError

    def snapshot_saved(self, group: i64, index: i64) -> None:
        """A snapshot is synced and replaces the entries up to its index."""
        raise NotImplementedError

    def fetched(self, token: object, entries: list[Entry]) -> None:
        """The answer of `fetch`: entries in ascending order, without those that are not in the log."""
        raise NotImplementedError

    def damaged(self, group: i64, why: str) -> None:
        """A record of the group cannot be read any more. The owner must remove the group."""
        raise NotImplementedError

    def wants_snapshot(self, group: i64) -> None:
        """A snapshot of this group would free much of the disk."""
        raise NotImplementedError

    def blocked(self, why: str) -> None:
        """The disk takes no writes (`why`), and the log tries again each second; or it does again (empty)."""
        raise NotImplementedError

    def failed(self, why: str) -> None:
        """The log is out of service until the next start: nothing is persisted any more."""
        raise NotImplementedError
