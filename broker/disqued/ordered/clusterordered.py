"""CLUSTER ORDERED: founds the catalog, and shows the ordered queues as this node sees them."""

from __future__ import annotations

from typing import Final

from disqued.core.clients.session import Session
from disqued.core.runtime.state import NodeState
from disqued.ordered.catalog import CATALOG_GROUP
from disqued.ordered.exchange import node_of
from disqued.ordered.room import Alternative, OrderedRoom, ordered_of


def init(state: NodeState, session: Session, words: list[bytes]) -> bool:
    """Found the catalog with replicas of group 0 on the nodes with these IDs."""
    if len(words) < 2:
        return False
    ordered_of(state).foundation.found(session, list(dict.fromkeys(words[1:])))
    return True


def status(state: NodeState, session: Session, words: list[bytes]) -> bool:
    """Reply with the catalog and, for each queue, its group, its leader and its replicas."""
    if len(words) != 1:
        return False
    room = ordered_of(state)
    session.reply_map(6)
    session.reply_bulk(b"catalog")
    session.reply_bulk(room.catalog.identity.hex().encode() if room.has_catalog else b"")
    session.reply_bulk(b"version")
    session.reply_integer(room.catalog.version)
    session.reply_bulk(b"conflict")
    session.reply_bulk(room.conflict.hex().encode())
    session.reply_bulk(b"error")
    session.reply_bulk(room.hosting.why_stopped.encode())
    session.reply_bulk(b"members")
    _group(session, room, b"", CATALOG_GROUP, room.hosting.founders.all)
    session.reply_bulk(b"queues")
    session.reply_array(len(room.catalog.by_group))
    for group, queue in room.catalog.by_group.items():
        _group(session, room, queue.name, group, queue.replicas)
    return True


def _group(session: Session, room: OrderedRoom, name: bytes, group: int, replicas: tuple[bytes, ...]) -> None:
    """Append one group."""
    session.reply_map(4)
    session.reply_bulk(b"queue")
    session.reply_bulk(name)
    session.reply_bulk(b"group")
    session.reply_integer(group)
    session.reply_bulk(b"leader")
    session.reply_bulk(room.exchange.leaders.get(group, b""))
    session.reply_bulk(b"replicas")
    session.reply_array(len(replicas))
    for replica in replicas:
        session.reply_bulk(node_of(replica))


SUBCOMMANDS: Final[dict[bytes, Alternative]] = {b"INIT": init, b"STATUS": status}
