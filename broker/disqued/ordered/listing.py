"""QSCAN on a node that knows ordered queues: the queues of jobs, then the ordered queues in the order of their groups.

The cursor of an ordered queue is the number of its group behind FIRST, which is above all numbers of queues of jobs.
Groups are numbered in the order in which they are made, so each queue that stays is returned exactly once. A name that
stands for both types is returned as that of the ordered queue.

Every node lists all ordered queues. With LOCAL it lists those that it leads, so that the lists of all nodes together
have each of them once. The length that MINLEN and MAXLEN compare is that of the replica of this node; where there is
none, the queue passes.
"""

from __future__ import annotations

from typing import Final

from disqued.core.clients.session import Session
from disqued.core.commands.longreply import LongReply
from disqued.core.runtime.slices import run_long
from disqued.core.runtime.state import NodeState
from disqued.introspection.qscan import QueueScan
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.queuemachine import QueueMachine
from disqued.ordered.replica import Replica
from disqued.ordered.room import OrderedRoom, ordered_of
from disqued.resp.writer import bulk

FIRST: Final = 1 << 62
"""The cursor at which the ordered queues begin."""


class ListReply(LongReply):
    """A QSCAN in progress."""

    def __init__(self, room: OrderedRoom, scan: QueueScan) -> None:
        super().__init__()
        self._room = room
        self._scan = scan
        self._cursor = scan.cursor or 0
        self._seen = 0
        """How many queues were looked at."""

    def begin(self, session: Session) -> None:
        """Append the next cursor and the number of names."""
        session.reply_array(2)
        session.reply_bulk(b"%d" % self._cursor)
        super().begin(session)

    def look(self, state: NodeState, session: Session) -> bool:  # noqa: ARG002 - a base
        """Look at the next queues."""
        scan = self._scan
        limit = scan.page(self.count)
        names: list[bytes] = []
        if self._cursor < FIRST:
            self._cursor, page = state.lifecycle.queues.scan(self._cursor, limit)
            self._cursor = self._cursor or FIRST
            by_name = self._room.catalog.by_name
            names = [one.name for one in page if one.name not in by_name and scan.matches(one, state.now_ms)]
            self._seen += len(page)
        else:
            names = self._ordered(limit)
        self.add(len(names), [bulk(name) for name in names])
        return self._cursor != 0 and not scan.enough(self.count, self._seen)

    def _ordered(self, limit: int) -> list[bytes]:
        """The names of the next ordered queues that pass the filters."""
        by_group = self._room.catalog.by_group
        after = self._cursor - FIRST
        groups = [group for group in by_group if group > after]
        page = groups[:limit]
        self._cursor = FIRST + page[-1] if len(page) < len(groups) else 0
        self._seen += len(page)
        return [by_group[group].name for group in page if self._passes(by_group[group])]

    def _passes(self, queue: OrderedQueue) -> bool:
        replica = self._room.exchange.replicas.get(int(queue.group))
        length: int | None = None
        leads = False
        if isinstance(replica, Replica) and isinstance(replica.applier, QueueMachine):
            length = int(replica.applier.machine.length)
            leads = bool(replica.raft.is_leader)
        return (leads or not self._scan.is_local) and self._scan.allows(queue.name, length, 0)


def qscan(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Reply with the next cursor and the names found."""
    scan = QueueScan()
    scan.read(args[1:])
    scan.user = session.user
    run_long(state, session, ListReply(ordered_of(state), scan))
    return True
