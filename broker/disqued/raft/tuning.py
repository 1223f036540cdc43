"""Times and bounds of a group. All groups of a node share one `Tuning`."""

from __future__ import annotations

from mypy_extensions import i64


class Tuning:
    """Times in milliseconds, sizes in bytes.

    Attributes:
        election_ms: How long a replica without a leader waits before it asks for votes, and how long a transfer of the
            leadership may take.
        jitter_ms: The most that is added to a wait for an election, drawn per group, term and attempt.
        repeat_ms: After how long a message is repeated that was not answered.
        commit_delay_ms: How long followers wait for the news of a commit if no append takes it along.
        message_bytes: The most data in one append, except that it has at least one entry.
        window_messages: The most appends that a follower has not confirmed.
        window_bytes: The most data in them, except that there is at least one.
        gather_entries: While a follower has not confirmed an append, the next one waits until there are so many
            entries for it, so that entries that come one by one share appends and syncs; 0 to send at once. It also
            waits for other voters that are not behind, so that all get the same entries and confirm them together,
            and for a turn of the driver (`Group.held`), in which those whose entries were committed propose again.
        fetch_entries: The most entries in one request to the store.
        memory_bytes: Older entries leave memory above this.
    """

    def __init__(
        self,
        election_ms: i64 = 1000,
        jitter_ms: i64 = 1000,
        repeat_ms: i64 = 500,
        commit_delay_ms: i64 = 20,
        message_bytes: i64 = 256 * 1024,
        window_messages: i64 = 128,
        window_bytes: i64 = 4 * 1024 * 1024,
        gather_entries: i64 = 0,
        fetch_entries: i64 = 512,
        memory_bytes: i64 = 1024 * 1024,
    ) -> None:
        self.election_ms: i64 = election_ms
        self.jitter_ms: i64 = jitter_ms
        self.repeat_ms: i64 = repeat_ms
        self.commit_delay_ms: i64 = commit_delay_ms
        self.message_bytes: i64 = message_bytes
        self.window_messages: i64 = window_messages
        self.window_bytes: i64 = window_bytes
        self.gather_entries: i64 = gather_entries
        self.fetch_entries: i64 = fetch_entries
        self.memory_bytes: i64 = memory_bytes
