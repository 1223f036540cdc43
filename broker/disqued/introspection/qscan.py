"""QSCAN: iterates over the names of the queues, in the order in which they were created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.introspection.scan import Scan
from disqued.resp.integers import require_integer

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.queues.queue import Queue
    from disqued.core.runtime.state import NodeState

_NO_FILTER: Final = -1


class QueueScan(Scan):
    """The options of one QSCAN."""

    def __init__(self) -> None:
        super().__init__()
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
            (self.limits[b"MINLEN"] == _NO_FILTER or queue.length >= self.limits[b"MINLEN"])
            and (self.limits[b"MAXLEN"] == _NO_FILTER or queue.length <= self.limits[b"MAXLEN"])
            and (self.limits[b"IMPORTRATE"] == _NO_FILTER or self.limits[b"IMPORTRATE"] <= import_rate)
        )


def qscan(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the next cursor and the names found."""
    scan = QueueScan()
    scan.read(args[1:])
    queues = state.lifecycle.queues
    cursor = scan.cursor or 0
    names: list[bytes] = []
    looked_at = 0
    while True:
        cursor, page = queues.scan(cursor, scan.page(len(names)))
        names += [queue.name for queue in page if scan.matches(queue, state.now_ms)]
        looked_at += len(page)
        if cursor == 0 or scan.enough(len(names), looked_at):
            break
    session.reply_array(2)
    session.reply_bulk(b"%d" % cursor)
    session.reply_array(len(names))
    for name in names:
        session.reply_bulk(name)


COMMAND: Final[Command] = Command(
    "qscan",
    -1,
    ("readonly",),
    qscan,
    "queues",
    "Iterates over the names of the queues that pass the filters.",
    "[cursor] [COUNT n] [BUSYLOOP] [MINLEN n] [MAXLEN n] [IMPORTRATE n]",
    "O(queues looked at)",
)
