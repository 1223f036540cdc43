"""The ordered queues of the cluster: what this node knows of them, and what their leaders say about the jobs.

The node passes QSTAT on to the leader of a queue, so no other member is asked. A queue without leader has no numbers:
the answer would come only when it has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from disqued.console.figures import bytes_of, members, pairs, text_of
from disqued.console.text import key_of, shown
from disqued.resp.replies import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from disqued.console.calling import Ask
    from disqued.resp.replies import Reply

MAX_SHOWN: Final = 200
"""Maximum number of queues; the others are counted."""
STATUS: Final = ((b"cluster", b"ordered", b"status"), (b"cluster", b"nodes"), (b"hello",))
_NUMBERS: Final = {"ready": "len", "leased": "leased", "delayed": "delayed", "dead": "dead", "lag": "lag"}
_MORE: Final = {"consumers": "consumers", "oldest_ms": "oldest-ms"}


class OrderedQueues:
    """One answer to the page: asks for the queues, then for their figures."""

    def __init__(self, ask: Ask, send: Callable[[dict[str, Any]], None], refuse: Callable[[str], None]) -> None:
        self._ask = ask
        self._send = send
        self._refuse = refuse
        """Called with the reason if the user may not see the queues."""
        self._content: dict[str, Any] = {}
        self._rows: list[dict[str, Any]] = []

    def begin(self) -> None:
        """Ask for the queues."""
        self._ask(STATUS, self._told)

    def _told(self, replies: list[Reply]) -> None:
        status, nodes, hello = replies
        if isinstance(status, Failure):
            self._refuse(status.message)
            return
        fields = pairs(status) if isinstance(status, list) else {}
        addresses = {member["id"]: member["address"] for member in members(nodes, hello)}
        queues = fields.get("queues")
        groups = [pairs(row) for row in queues if isinstance(row, list)] if isinstance(queues, list) else []
        groups.sort(key=lambda group: bytes_of(group.get("queue")))
        self._content = {name: text_of(fields.get(name)) for name in ("catalog", "conflict", "error")}
        self._content["count"] = len(groups)
        self._rows = [_row(group, addresses) for group in groups[:MAX_SHOWN]]
        led = [row for row in self._rows if row["leader"]]
        names = [bytes_of(group.get("queue")) for group in groups[:MAX_SHOWN] if text_of(group.get("leader"))]
        if led:
            self._ask([[b"qstat", name] for name in names], lambda told: self._finish(led, told))
        else:
            self._finish([], [])

    def _finish(self, rows: list[dict[str, Any]], replies: list[Reply]) -> None:
        for row, reply in zip(rows, replies, strict=True):
            fields = pairs(reply) if isinstance(reply, list) else {}
            row |= {name: fields.get(field) for name, field in (_NUMBERS | _MORE).items()}
        self._send(self._content | {"queues": self._rows})


def _row(group: dict[str, Reply], addresses: dict[str, str]) -> dict[str, Any]:
    """A queue as this node knows it, without its numbers."""
    name = bytes_of(group.get("queue"))
    nodes = group.get("replicas")
    replicas = [text_of(node) for node in nodes] if isinstance(nodes, list) else []
    leader = text_of(group.get("leader"))
    return {
        "queue": key_of(name),
        "shown": shown(name),
        "leader": leader,
        "leader_address": addresses.get(leader, leader),
        "replicas": [addresses.get(node, node) for node in replicas],
        "settled": group.get("settled") == 1,
        "single": text_of(group.get("single")) == "yes",
        "prefetch": group.get("prefetch"),
        "pause": text_of(group.get("pause")),
    }
