"""The graph of a job: its parents and theirs, its children and theirs, as this node knows them.

SHOW describes jobs of which this node has a copy. RESULT asks the cluster about the others: their queue is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from disqued.console.calling import Ask
from disqued.console.figures import bytes_of, pairs, text_of
from disqued.console.text import shown
from disqued.httproutes import UNAVAILABLE, Exchange
from disqued.resp.replies import Failure, Reply

MAX_JOBS: Final = 60
"""So many jobs are drawn, the nearest ones."""
MAX_S: Final = 2.0
"""After this time no more jobs are asked about: RESULT may wait for other nodes."""
UNKNOWN: Final = "unknown"
PARENT: Final = -1
CHILD: Final = 1
_SELF: Final = 0


class Node:
    """A job of the graph. Jobs stand in columns from left to right, and parents to the left of their children."""

    def __init__(self, job_id: bytes, side: int, column: int) -> None:
        self.id = job_id
        self.side = side
        """Whether it was reached as a parent or as a child."""
        self.column = column
        self.queue = b""
        self.state = UNKNOWN
        self.is_here = False
        self.parents: list[bytes] = []
        self.children: list[bytes] = []

    def describe(self, show: Reply) -> None:
        """Take over what SHOW replies."""
        if not isinstance(show, list):
            return
        fields = pairs(show)
        self.is_here = True
        self.queue = bytes_of(fields.get("queue"))
        self.parents = _ids(fields.get("after"))
        self.children = _ids(fields.get("children"))
        state = text_of(fields.get("state"))
        if fields.get("waits-for"):
            self.state = "held"
        elif fields.get("dead-since") is not None:
            self.state = "dead"
        else:
            self.state = "done" if state == "acked" else state


Done = Callable[[dict[str, Any]], None]


class Graph:
    """The graph of one job, which is asked for step by step."""

    def __init__(self, exchange: Exchange, ask: Ask, done: Done) -> None:
        self._exchange = exchange
        self._ask = ask
        self._done = done
        self._nodes: dict[bytes, Node] = {}
        self._left: set[bytes] = set()
        """Jobs that are not drawn."""
        self._until_s = exchange.now_s() + MAX_S

    def begin(self, job_id: bytes) -> None:
        """Ask for the job and all that is reached from it."""
        self._nodes[job_id] = Node(job_id, _SELF, 0)
        self._describe(list(self._nodes.values()))

    def _describe(self, level: list[Node]) -> None:
        self._ask([[b"show", node.id] for node in level], lambda replies: self._described(level, replies))

    def _described(self, level: list[Node], replies: list[Reply]) -> None:
        (first, *_) = replies
        if isinstance(first, Failure) and level[0].side == _SELF:
            self._exchange.answer(UNAVAILABLE, first.message)
            return
        below: list[Node] = []
        for node, reply in zip(level, replies, strict=True):
            node.describe(reply)
            if node.side != CHILD:
                below += self._add(node.parents, PARENT, node.column - 1)
            if node.side != PARENT:
                below += self._add(node.children, CHILD, node.column + 1)
        if below:
            self._describe(below)
        else:
            self._ask_ends([node for node in self._nodes.values() if not node.is_here])

    def _add(self, ids: Iterable[bytes], side: int, column: int) -> list[Node]:
        added: list[Node] = []
        for job_id in ids:
            if job_id in self._nodes:
                continue
            if len(self._nodes) >= MAX_JOBS:
                self._left.add(job_id)
                continue
            self._nodes[job_id] = Node(job_id, side, column)
            added.append(self._nodes[job_id])
        return added

    def _ask_ends(self, unknown: list[Node]) -> None:
        """Ask the cluster about jobs that this node does not have, one after the other."""
        if not unknown or self._exchange.now_s() >= self._until_s:
            self._arrange()
            return
        node, *others = unknown

        def answered(replies: list[Reply]) -> None:
            (reply,) = replies
            if isinstance(reply, list):
                node.state = text_of(reply[0])
            self._ask_ends(others)

        self._ask([[b"result", node.id]], answered)

    def _arrange(self) -> None:
        """Move jobs until each parent stands to the left of its children, and send the graph."""
        edges = self._edges()
        for _ in self._nodes:
            wrong = [(parent, child) for parent, child in edges if parent.column >= child.column]
            for parent, child in wrong:
                if child.side == CHILD:
                    child.column = max(child.column, parent.column + 1)
                else:
                    parent.column = min(parent.column, child.column - 1)
            if not wrong:
                break
        self._done(
            {
                "jobs": [_fields(node) for node in self._nodes.values()],
                "edges": [[parent.id.decode(), child.id.decode()] for parent, child in edges],
                "left": len(self._left),
            }
        )

    def _edges(self) -> list[tuple[Node, Node]]:
        """Parents and children, each pair once."""
        nodes = self._nodes
        named = [(parent, node.id) for node in nodes.values() for parent in node.parents]
        named += [(node.id, child) for node in nodes.values() for child in node.children]
        return [(nodes[one], nodes[other]) for one, other in dict.fromkeys(named) if one in nodes and other in nodes]


def _ids(reply: Reply) -> list[bytes]:
    return [bytes_of(item) for item in reply] if isinstance(reply, list) else []


def _fields(node: Node) -> dict[str, Any]:
    return {
        "id": node.id.decode("latin-1"),
        "queue": shown(node.queue),
        "state": node.state,
        "column": node.column,
        "relation": {PARENT: "parent", CHILD: "child"}.get(node.side, "job"),
    }
