"""Patterns of queues that clients wait for (GETJOB FROMPATTERN), here and on other nodes.

A pattern knows which matching queues have jobs, so a client that names it looks at no other queue. A queue points to
the patterns that match it; without any, that costs the queue one test for each job. Queues with the same patterns share
one tuple. A new pattern is matched with the queues that exist in parts, and with a new queue when that is made.

The queues that a user may not touch do not match its patterns, so each user has patterns of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from mypy_extensions import i64

from disqued.config.glob import Glob
from disqued.core.queues.queue import Queue
from disqued.core.queues.queues import Queues

MOST_LOCAL: Final = 64
"""How many patterns the clients of one node may wait for: it announces them to the other nodes."""
MOST_PATTERNS: Final = 1024
"""How many patterns a node knows, those of other nodes included."""
MOST_BYTES: Final = 256
"""The size of a pattern."""
MOST_ELSEWHERE: Final = 1024
"""How many names of queues on other nodes are remembered for a pattern."""
KEPT_MS: Final = 60_000
"""How long a pattern is kept that nobody waits for."""
TELL_AFTER_MS: Final = 10
"""How soon a queue with jobs is named to other nodes: jobs that clients here take at once are not worth a message."""
_PART: Final = 1000
"""How many queues are matched at a time."""
_MOST_SHARED: Final = 4096

Matching = tuple["QueuePattern", ...]


class QueuePattern:
    """One pattern, for one user."""

    def __init__(self, text: bytes, rules: Any, now_ms: i64) -> None:
        self.text = text
        self.rules = rules
        """The rules of the user, which say what queues it may touch; None for all queues."""
        self._glob = Glob(text)
        self.ready: OrderedDict[bytes, Queue] = OrderedDict()
        """The matching queues with jobs, the next one first; some of them may be empty or paused meanwhile."""
        self.waiters: OrderedDict[int, Any] = OrderedDict()
        """The clients that wait, as `WaitForJob` by the number of their session, in order of arrival."""
        self.peers: dict[bytes, int] = {}
        """The nodes with clients that wait for the pattern, and when they last said so."""
        self.fresh: OrderedDict[bytes, Queue] = OrderedDict()
        """The matching queues that must still be named to these nodes."""
        self.elsewhere: OrderedDict[bytes, None] = OrderedDict()
        """The names of matching queues of which other nodes have jobs, as they said."""
        self.asked: bool = False
        """A client began to wait since the pattern was announced."""
        self.local_ms: i64 = 0
        """When a client last asked for the pattern or waited for it; 0 for never."""
        self.used_ms: i64 = now_ms
        """When it was last of use to a client or to another node."""
        self.cursor: i64 = 0
        """Where in the queues to continue to match; 0 when all were."""
        self.ended: bool = False
        """No longer in use: queues that point to it forget it."""

    def matches(self, name: bytes) -> bool:
        """Whether a queue matches that the user may touch."""
        return self._glob.matches(name) and (self.rules is None or self.rules.allows_queue(name))

    def next_queue(self) -> Queue | None:
        """Remove the next queue from `ready`; the caller puts it back if it has more jobs."""
        if not self.ready:
            return None
        _, queue = self.ready.popitem(last=False)
        return queue

    def put_back(self, queue: Queue) -> None:
        """Put a queue behind the other ones with jobs."""
        self.ready[queue.name] = queue


class Patterns:
    """The patterns of one node."""

    def __init__(self) -> None:
        self.live: list[QueuePattern] = []
        self._by_key: dict[tuple[bytes, bytes], QueuePattern] = {}
        """By text and name of the user, which is empty if it may touch all queues."""
        self._shared: dict[Matching, Matching] = {}
        self.due_ms: i64 = 0
        """When there is something to tell to other nodes or to match; 0 for nothing."""

    def wake(self, at_ms: i64) -> None:
        """Have the room of the patterns act at this time at the latest."""
        if self.due_ms == 0 or at_ms < self.due_ms:
            self.due_ms = at_ms

    def find(self, queues: Queues, text: bytes, user: bytes, rules: Any, now_ms: i64) -> QueuePattern | None:
        """The pattern for a user; it is made if needed. None if there are too many that are in use."""
        key = (text, user)
        pattern = self._by_key.get(key)
        if pattern is not None and pattern.rules is rules:
            return pattern
        if len(self.live) >= MOST_PATTERNS and not self._end_one():
            return None
        pattern = QueuePattern(text, rules, now_ms)
        self._by_key[key] = pattern
        self.live.append(pattern)
        self.match_part(pattern, queues, now_ms)
        return pattern

    def local(self) -> int:
        """How many patterns clients of this node wait for."""
        return sum(1 for pattern in self.live if pattern.waiters)

    def _end_one(self) -> bool:
        """End the pattern that was of no use for longest; False if all are in use."""
        oldest: QueuePattern | None = None
        for pattern in self.live:
            unused = not pattern.waiters and not pattern.peers
            if unused and (oldest is None or pattern.used_ms < oldest.used_ms):
                oldest = pattern
        if oldest is None:
            return False
        self._end(oldest)
        return True

    def _end(self, pattern: QueuePattern) -> None:
        pattern.ended = True
        pattern.ready.clear()
        pattern.fresh.clear()
        self.live.remove(pattern)
        for key, kept in list(self._by_key.items()):
            if kept is pattern:
                del self._by_key[key]
        if not self.live:
            self._shared.clear()

    def end_unused(self, now_ms: i64) -> None:
        """End the patterns that nobody has used for long."""
        for pattern in list(self.live):
            if not pattern.waiters and not pattern.peers and now_ms - pattern.used_ms >= KEPT_MS:
                self._end(pattern)

    def match_part(self, pattern: QueuePattern, queues: Queues, now_ms: i64) -> list[Queue]:
        """Match the pattern with some more queues; returns those that match and have jobs."""
        cursor, part = queues.scan(int(pattern.cursor), _PART)
        pattern.cursor = cursor
        if cursor != 0:
            self.wake(now_ms)
        found: list[Queue] = []
        for queue in part:
            if pattern.matches(queue.name):
                self._point(queue, pattern)
                if queue.length > 0:
                    self.note_for(pattern, queue, now_ms)
                    found.append(queue)
        return found

    def match_new(self, queue: Queue) -> None:
        """Match a new queue with all patterns. A pattern that is still being matched comes to it later."""
        matching = tuple([pattern for pattern in self.live if pattern.matches(queue.name)])
        queue.patterns = self._share(matching)

    def _point(self, queue: Queue, pattern: QueuePattern) -> None:
        """Have a queue point to a pattern, and no longer to those that have ended."""
        before: Matching = queue.patterns or ()
        if pattern not in before:
            queue.patterns = self._share((*[one for one in before if not one.ended], pattern))

    def _share(self, matching: Matching) -> Matching | None:
        if not matching:
            return None
        if len(self._shared) >= _MOST_SHARED:
            self._shared.clear()
        return self._shared.setdefault(matching, matching)

    def note(self, queue: Queue, now_ms: i64) -> bool:
        """A queue that points to patterns has a job; returns whether clients wait for one of the patterns."""
        waited = False
        ended = False
        matching: Matching = queue.patterns or ()
        for pattern in matching:
            if pattern.ended:
                ended = True
            elif self.note_for(pattern, queue, now_ms):
                waited = True
        if ended:
            queue.patterns = self._share(tuple([pattern for pattern in matching if not pattern.ended]))
        return waited

    def note_for(self, pattern: QueuePattern, queue: Queue, now_ms: i64) -> bool:
        """A queue that matches a pattern has a job; returns whether clients wait for the pattern."""
        pattern.ready[queue.name] = queue
        if pattern.peers:
            pattern.fresh[queue.name] = queue
            self.wake(now_ms + TELL_AFTER_MS)
        return len(pattern.waiters) > 0

    def forget_queue(self, queue: Queue) -> None:
        """A queue is removed."""
        for pattern in queue.patterns or ():
            pattern.ready.pop(queue.name, None)
            pattern.fresh.pop(queue.name, None)
        queue.patterns = None

    def forget_queues(self) -> None:
        """All queues are removed at once."""
        for pattern in self.live:
            pattern.ready.clear()
            pattern.fresh.clear()
            pattern.cursor = 0


def is_waited_for(queue: Queue) -> bool:
    """Whether a client waits for a pattern that matches the queue."""
    for pattern in queue.patterns or ():  # noqa: SIM110 - a generator costs more than the loop
        if pattern.waiters:
            return True
    return False
