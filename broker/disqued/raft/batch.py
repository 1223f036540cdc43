"""What a group wants done: one ordered batch per `Group.take`.

The driver works in the order of the fields:

1. Write `hard`, `restore` and `entries`, and sync them. Then call `Group.persisted` with the ticket. Writes of several
   batches and groups may share a sync, but they take effect in the order of the batches. If the batch is `relaxed`, the
   sync may come some milliseconds later: nothing waits for it.
2. Send `messages`. They do not wait for the writes of this batch.
3. Apply the entries up to `committed`. They may be applied before they are synced here, because a quorum has them.
4. Answer `reads` when the entries up to their index are applied.
5. Read `fetches` from the store, and send `snapshots`.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.raft.entry import Entry
from disqued.raft.hardstate import HardState
from disqued.raft.message import Message
from disqued.raft.snapshotmeta import SnapshotMeta


class Batch:
    """The output of a group.

    Attributes:
        ticket: The number of the batch, for `Group.persisted`.
        hard: The hard state to write, if it changed.
        restore: A received snapshot that replaces the log, if any.
        entries: Entries to append after `restore`. The index of the first may be at or below the last index of the
            store; then they replace what follows.
        messages: Messages that may leave now.
        committed: Apply up to this index.
        reads: The token and the index of each confirmed read. Index 0: refused, this replica does not lead any more.
        fetches: The first and the last index of entries wanted from the store, for `Group.fetched`.
        snapshots: SNAPSHOT messages, to send together with the bytes of the snapshot. If the store has a newer one
            by then, the driver replaces `snapshot` of the message. The driver calls `Group.snapshot_sent`.
        relaxed: The entries are those of a leader whose followers commit without it, as they did until now.
        changed: Whether role, leader, term or members differ from the batch before.
        role, leader, term: As of now. No leader is `b""`.
    """

    def __init__(self, ticket: i64, committed: i64, messages: list[Message], entries: list[Entry]) -> None:
        self.ticket: i64 = ticket
        self.hard: HardState | None = None
        self.restore: SnapshotMeta | None = None
        self.entries: list[Entry] = entries
        self.messages: list[Message] = messages
        self.committed: i64 = committed
        self.reads: list[tuple[i64, i64]] = []
        self.fetches: list[tuple[i64, i64]] = []
        self.snapshots: list[Message] = []
        self.relaxed: bool = False
        self.changed: bool = False
        self.role: i64 = 0
        self.leader: bytes = b""
        self.term: i64 = 0

    @property
    def writes(self) -> bool:
        """Whether there is something to write and sync."""
        return self.hard is not None or self.restore is not None or len(self.entries) > 0
