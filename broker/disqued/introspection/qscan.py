"""QSCAN: iterates over the names of the queues, in the order in which they were created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.commands.longreply import LongReply
from disqued.core.runtime.slices import run_long
from disqued.introspection.scan import Scan
from disqued.resp.integers import require_integer
from disqued.resp.writer import bulk

if TYPE_CHECKING:
    from disqued.core.access.user import User
    from disqued.core.clients.session import Session
    from disqued.core.queues.queue import Queue
    from disqued.core.runtime.state import NodeState

_NO_FILTER: Final = -1


class QueueScan(Scan):
    """The options of one QSCAN."""

    def __init__(self) -> None:
        super().__init__()
        self.user: User | None = None
        """The user, who sees only the queues that its rules allow."""
        self.limits = {b"MINLEN": _NO_FILTER, b"MAXLEN": _NO_FILTER, b"IMPORTRATE": _NO_FILTER}

    def take(self, option: bytes, value: bytes) -> bool:
        """Set an option."""
        if option not in self.limits:
            return super().take(option, value)
        self.limits[option] = require_integer(value)
        return True

    def matches(self, queue: Queue, now_ms: int) -> bool:
        """Whether a queue passes the filters."""
        watcher = queue.watcher
        import_rate = watcher.import_rate(now_ms) if watcher is not None else 0
        return (
            (self.user is None or self.user.rules.allows_queue(queue.name))
            and (self.limits[b"MINLEN"] == _NO_FILTER or queue.length >= self.limits[b"MINLEN"])
            and (self.limits[b"MAXLEN"] == _NO_FILTER or queue.length <= self.limits[b"MAXLEN"])
            and (self.limits[b"IMPORTRATE"] == _NO_FILTER or self.limits[b"IMPORTRATE"] <= import_rate)
        )


class QueueScanReply(LongReply):
    """A QSCAN in progress."""

    def __init__(self, scan: QueueScan) -> None:
        super().__init__()
        self._scan = scan
        self._cursor = scan.cursor or 0
        self._looked_at = 0

    def begin(self, session: Session) -> None:
        """Append the next cursor and the number of names."""
        session.reply_array(2)
        session.reply_bulk(b"%d" % self._cursor)
        super().begin(session)

    def look(self, state: NodeState, _session: Session) -> bool:
        """Look at the next queues."""
        scan = self._scan
        self._cursor, page = state.lifecycle.queues.scan(self._cursor, scan.page(self.count))
        names = [bulk(queue.name) for queue in page if scan.matches(queue, state.now_ms)]
        self.add(len(names), names)
        self._looked_at += len(page)
        return self._cursor != 0 and not scan.enough(self.count, self._looked_at)


def qscan(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the next cursor and the names found."""
    scan = QueueScan()
    scan.read(args[1:])
    scan.user = session.user
    run_long(state, session, QueueScanReply(scan))


COMMAND: Final[Command] = Command(
    "qscan",
    -1,
    ("readonly",),
    qscan,
    "queues",
    "Iterates over the names of the queues that pass the filters.",
    "[cursor] [COUNT n] [BUSYLOOP] [MINLEN n] [MAXLEN n] [IMPORTRATE n]",
    "O(queues looked at)",
    categories=("inspect",),
)
