"""QSCAN: iterates over the names of the queues, in the order in which they were created.

On a node that knows ordered queues, these follow (`ordered.listing`).
"""

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
        self.is_local = False
        """Whether only the ordered queues that this node leads are listed. All other queues are those of this node."""

    def flag(self, option: bytes) -> bool:
        """Set an option without a value."""
        if option != b"LOCAL":
            return False
        self.is_local = True
        return True

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
        return self.allows(queue.name, int(queue.length), import_rate)

    def allows(self, name: bytes, length: int | None, import_rate: int) -> bool:
        """Whether a queue with these figures passes the filters; any filter of the length if that is not known."""
        return (
            (self.user is None or self.user.rules.allows_queue(name))
            and (length is None or self.limits[b"MINLEN"] == _NO_FILTER or length >= self.limits[b"MINLEN"])
            and (length is None or self.limits[b"MAXLEN"] == _NO_FILTER or length <= self.limits[b"MAXLEN"])
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
    "[cursor] [COUNT n] [BUSYLOOP] [LOCAL] [MINLEN n] [MAXLEN n] [IMPORTRATE n]",
    "O(queues looked at)",
    categories=("inspect",),
)
