"""What a replica asks of the machine of its group."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disqued.raft.entry import Entry


@mypyc_attr(allow_interpreted_subclasses=True)
class Applier:
    """The machine of a group, and what the room does with its effects."""

    eager: bool = False
    """Whether the other replicas must learn at once what is committed, because they have consumers."""
    doubts_nodes: bool = False
    """Whether the leader must look again which nodes are there (`watch_nodes`): it may have looked too early."""
    returning: i64 = 0
    """How many clients were answered that probably propose the next command at once, since the leader looked last."""

    def apply(self, entry: Entry, *, leads: bool, wanted: bool) -> bytes:
        """Apply a command. Returns the result for the node that proposed it, if it is `wanted`."""
        raise NotImplementedError

    def read(self, question: bytes, entries: dict[int, Entry]) -> tuple[bytes, list[int]]:
        """The answer to a question, and the indexes of entries that must be read first. Raises ReplyError.

        `entries` are those that were read for it already. While some are missing, the answer is of no use.
        """
        raise NotImplementedError

    def snapshot(self) -> bytes:
        """The state of the machine."""
        raise NotImplementedError

    def needed(self) -> list[int]:
        """The indexes of the entries whose bodies the state needs, ascending."""
        return []

    def restore(self, state: bytes) -> None:
        """Replace the state of the machine."""
        raise NotImplementedError

    def led(self, *, leads: bool, leader: bytes) -> None:
        """Another node leads the group now (empty: none), or this one does (`leads`)."""

    def members_changed(self, voters: tuple[bytes, ...]) -> None:
        """The group may have other voters now."""

    def lost_replica(self, replica: bytes) -> None:
        """Another replica is out of service, although its node is there."""

    def found_replica(self, replica: bytes) -> None:
        """Another replica is heard again."""

    def end(self) -> None:
        """The replica of the machine stops."""

    def watch_nodes(self) -> list[bytes]:
        """The commands to propose because nodes are gone or have returned, while this node leads."""
        return []

    def deadline_ms(self) -> i64:
        """When `due` wants to be called while this node leads; 0 for never."""
        return 0

    def due(self) -> bytes:
        """The deadline has come: the command to propose."""
        raise NotImplementedError

    def body_read(self, entries: list[Entry]) -> None:
        """Entries that the machine asked for were read from the disk."""
        raise NotImplementedError
