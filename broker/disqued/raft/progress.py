"""What a leader knows about one follower, and how it sends the log to it.

- PROBE: where the logs part is not known. One append at a time, and the next one after its answer.
- REPLICATE: it is known. Appends follow each other without waiting, up to the bounds of the window.
- SNAPSHOT: the entries that the follower needs are gone. The driver sends a snapshot; nothing else is sent meanwhile.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

PROBE: Final = 0
REPLICATE: Final = 1
SNAPSHOT: Final = 2

NAMES: Final = ("probe", "replicate", "snapshot")


class Progress:
    """One follower or learner."""

    def __init__(self, replica: bytes, following: i64) -> None:
        self.replica: bytes = replica
        self.state: i64 = PROBE
        self.match: i64 = 0
        """The last index that the follower has confirmed: equal there, and synced."""
        self.next: i64 = following
        """The next index to send."""
        self.commit: i64 = 0
        """The commit index that it reported last."""
        self.commit_sent: i64 = 0
        """The commit index that it knows if it has received everything."""
        self.waiting: bool = False
        """In PROBE: an append has not been answered."""
        self.poke: bool = False
        """Send an append even if there is nothing to send: the follower does not know its leader, or it was away."""
        self.fetching: bool = False
        """The entries from `next` on are being read from the store."""
        self.sent_ms: i64 = 0
        """When something was sent to it."""
        self.since_ms: i64 = 0
        """When it confirmed something last, or was sent something after it had confirmed everything."""
        self.window_bytes: i64 = 0
        self._lasts: list[i64] = []
        self._sizes: list[i64] = []
        """Of each append that is not confirmed: its last index and its bytes."""

    def probe(self, following: i64) -> None:
        """Look for the place where the logs part, from an index on."""
        self.state = PROBE
        self.next = following
        self._reset()

    def replicate(self) -> None:
        """Send everything after the last confirmed index."""
        self.state = REPLICATE
        self.next = self.match + 1
        self._reset()

    def wait_for_snapshot(self) -> None:
        """Send nothing until the driver has sent a snapshot."""
        self.state = SNAPSHOT
        self._reset()

    def _reset(self) -> None:
        self.waiting = False
        self.fetching = False
        self.window_bytes = 0
        self._lasts = []
        self._sizes = []

    def sent(self, last: i64, size: i64, now_ms: i64) -> None:
        """Note an append with entries up to an index."""
        if self.state == PROBE:
            self.waiting = True
            return
        if not self._lasts:
            self.since_ms = now_ms
        self.next = last + 1
        self._lasts.append(last)
        self._sizes.append(size)
        self.window_bytes += size

    def confirm(self, index: i64, now_ms: i64) -> None:
        """Take appends up to an index out of the window."""
        done: i64 = 0
        while done < len(self._lasts) and self._lasts[done] <= index:
            self.window_bytes -= self._sizes[done]
            done += 1
        if done > 0:
            self.since_ms = now_ms
            del self._lasts[:done]
            del self._sizes[:done]

    @property
    def has_sent(self) -> bool:
        """Whether an append with entries is not confirmed."""
        return len(self._lasts) > 0

    def is_full(self, messages: i64, size: i64) -> bool:
        """Whether so many appends or so many bytes are not confirmed that the next one has to wait."""
        return len(self._lasts) >= messages or (self.window_bytes >= size and len(self._lasts) > 0)
