"""CLUSTER ORDERED: founds the catalog, and shows the ordered queues as this node sees them."""

from __future__ import annotations

from typing import Final

from disqued.core.clients.session import Session
from disqued.core.runtime.state import NodeState
from disqued.errors import ReplyError, shown
from disqued.ordered.catalog import CATALOG_GROUP, OrderedQueue, QueueOptions, pack_recover, pack_replicas
from disqued.ordered.exchange import node_of
from disqued.ordered.figures import numbers_of
from disqued.ordered.qnew import TIMEOUT_MS, require_catalog
from disqued.ordered.queuemachine import QueueMachine
from disqued.ordered.reading import PAUSES
from disqued.ordered.replica import Replica
from disqued.ordered.requests import COMMAND
from disqued.ordered.room import Alternative, OrderedRoom, ordered_of
from disqued.ordered.stopping import heard_voters
from disqued.ordered.waiting import OkRequest, Waiting
from disqued.orderedqueue.machine import Machine

NOT_HERE: Final = -1
"""The jobs of a queue of which this node has no replica."""


def init(state: NodeState, session: Session, words: list[bytes]) -> bool:
    """Found the catalog with replicas of group 0 on the nodes with these IDs."""
    if len(words) < 2:
        return False
    ordered_of(state).foundation.found(session, list(dict.fromkeys(words[1:])))
    return True


def status(state: NodeState, session: Session, words: list[bytes]) -> bool:
    """Reply with the catalog and, for each queue, its group, its leader and its replicas.

    For the groups that this node leads also how many entries each other replica has not confirmed, and the numbers of
    jobs.
    """
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
    founders = room.hosting.founders
    settled = not founders.learners
    _group(session, room, b"", CATALOG_GROUP, founders.all, QueueOptions(), settled=settled)
    session.reply_bulk(b"queues")
    session.reply_array(len(room.catalog.by_group))
    for group, queue in room.catalog.by_group.items():
        _group(session, room, queue.name, group, queue.replicas, queue.options, settled=queue.settled)
    return True


def _group(
    session: Session,
    room: OrderedRoom,
    name: bytes,
    group: int,
    replicas: tuple[bytes, ...],
    options: QueueOptions,
    *,
    settled: bool,
) -> None:
    """Append one group; `settled` says whether it has the replicas that it must have.

    Its pause and its jobs are those of the replica of this node, which may be behind. The
    leader has more: what the other replicas lack, and the numbers of jobs by state.
    """
    machine = _machine(room, group)
    replica = room.exchange.replicas.get(group)
    lags = {} if replica is None else replica.lags()
    numbers = () if replica is None else numbers_of(replica)
    session.reply_map(10 + len(numbers))
    session.reply_bulk(b"queue")
    session.reply_bulk(name)
    session.reply_bulk(b"group")
    session.reply_integer(group)
    session.reply_bulk(b"leader")
    session.reply_bulk(room.exchange.leaders.get(group, b""))
    session.reply_bulk(b"settled")
    session.reply_integer(settled)
    session.reply_bulk(b"replicas")
    session.reply_array(len(replicas))
    for identity in replicas:
        session.reply_bulk(node_of(identity))
    session.reply_bulk(b"single")
    session.reply_bulk(b"yes" if options.single else b"no")
    session.reply_bulk(b"prefetch")
    session.reply_integer(options.prefetch)
    session.reply_bulk(b"pause")
    session.reply_bulk(b"" if machine is None else PAUSES[int(machine.paused)])
    session.reply_bulk(b"jobs")
    session.reply_integer(NOT_HERE if machine is None else int(machine.count))
    session.reply_bulk(b"lags")
    session.reply_map(len(lags))
    for node_id, lag in lags.items():
        session.reply_bulk(node_id)
        session.reply_integer(lag)
    for field, number in numbers:
        session.reply_bulk(field)
        session.reply_integer(number)


def _machine(room: OrderedRoom, group: int) -> Machine | None:
    """The machine of the queue on this node; None if it has no replica."""
    replica = room.exchange.replicas.get(group)
    applier = replica.applier if isinstance(replica, Replica) else None
    return applier.machine if isinstance(applier, QueueMachine) else None


def _change(room: OrderedRoom, session: Session, queue: OrderedQueue, data: bytes) -> None:
    """Have a change written into the catalog."""
    waiting = Waiting(room.state, session)
    waiting.begin()
    deadline_ms = room.state.now_ms + TIMEOUT_MS
    request = OkRequest(room, waiting, queue.name, COMMAND, data, deadline_ms)
    room.clients.client(CATALOG_GROUP).submit(request)


def _known(room: OrderedRoom, name: bytes) -> OrderedQueue:
    queue = room.catalog.by_name.get(name)
    if queue is None:
        raise ReplyError(f"ERR no ordered queue has the name {shown(name)}")
    return queue


def move(state: NodeState, session: Session, words: list[bytes]) -> bool:
    """Move the replica of a queue from one node to another. The reply comes at once; STATUS shows when it is done."""
    if len(words) != 6 or words[2].upper() != b"FROM" or words[4].upper() != b"TO":
        return False
    room = ordered_of(state)
    queue = _known(room, words[1])
    nodes = [node_of(replica) for replica in queue.replicas]
    if words[3] not in nodes:
        raise ReplyError(f"ERR node {shown(words[3])} has no replica of this queue")
    if words[5] in nodes:
        raise ReplyError(f"ERR node {shown(words[5])} has a replica of this queue already")
    found = [candidate for candidate in room.candidates() if node_of(candidate.replica) == words[5]]
    if not found:
        raise ReplyError(f"ERR node {shown(words[5])} cannot have a replica now: it is away, leaves, or has no catalog")
    if not queue.settled:
        raise ReplyError("ERR the replicas of this queue are changing; see CLUSTER ORDERED STATUS")
    _change(room, session, queue, room.steering.move(queue, words[3], found[0]))
    return True


def lead(state: NodeState, session: Session, words: list[bytes]) -> bool:
    """Say which node should lead a queue. It takes over within half a minute, when it has all entries."""
    if len(words) != 3:
        return False
    room = ordered_of(state)
    queue = _known(room, words[1])
    if words[2] not in [node_of(replica) for replica in queue.replicas]:
        raise ReplyError(f"ERR node {shown(words[2])} has no replica of this queue")
    _change(room, session, queue, pack_replicas(queue, queue.replicas, words[2]))
    return True


def balance(state: NodeState, session: Session, words: list[bytes]) -> bool:
    """Reply how many changes are under way and follow, as this node sees it; the leader of group 0 looks at once.

    The leader of group 0 looks every two seconds in any case, and makes a few changes at a time.
    """
    if len(words) != 1:
        return False
    room = ordered_of(state)
    require_catalog(room)
    plan = room.steering.plan(room.beats, room.candidates())
    session.reply_map(3)
    for name, count in ((b"under-way", plan.under_way), (b"replicas", plan.replicas), (b"leaders", plan.leaders)):
        session.reply_bulk(name)
        session.reply_integer(count)
    return True


def _recover_catalog(room: OrderedRoom, session: Session, *, force: bool) -> None:
    """Make the replica of group 0 of this node the only one."""
    require_catalog(room)
    if not force:
        raise ReplyError(
            "ERR the newest queues may be lost; add FORCE if the other members of the catalog will not return"
        )
    replica = room.exchange.replicas.get(CATALOG_GROUP)
    if not isinstance(replica, Replica) or not replica.raft.members.is_voter(room.hosting.identity):
        raise ReplyError("ERR this node does not keep the catalog; run this command on one of its members")
    heard = heard_voters(replica, room.presence.liveness)
    members = replica.raft.members
    if heard >= members.quorum:
        raise ReplyError(f"ERR {heard} of {len(members.voters)} members can be reached, which is a majority")
    room.hosting.recover_catalog()
    session.reply_ok()


def recover(state: NodeState, session: Session, words: list[bytes]) -> bool:
    """Make the replica of this node the only one of a queue that has lost its majority."""
    room = ordered_of(state)
    if len(words) in {2, 3} and words[1].upper() == b"CATALOG":
        _recover_catalog(room, session, force=words[-1].upper() == b"FORCE")
        return True
    if len(words) not in {4, 5} or words[2].upper() != b"KEEP":
        return False
    queue = _known(room, words[1])
    if len(words) == 4 or words[4].upper() != b"FORCE":
        raise ReplyError(
            "ERR jobs may be lost, and acknowledged jobs may be delivered again; add FORCE if the other replicas will "
            "not return"
        )
    if words[3] != state.view.node_id:
        raise ReplyError(f"ERR run this command on the node whose replica is kept: {shown(words[3])}")
    replica = room.exchange.replicas.get(int(queue.group))
    if not isinstance(replica, Replica) or not replica.raft.members.is_voter(room.hosting.identity):
        raise ReplyError("ERR this node has no replica of this queue that could vote")
    heard = heard_voters(replica, room.presence.liveness)
    members = replica.raft.members
    if heard >= members.quorum:
        raise ReplyError(f"ERR {heard} of {len(members.voters)} replicas can be reached, which is a majority")
    founders = room.hosting.founders
    if room.count_heard(founders.voters) < founders.quorum:
        raise ReplyError("ERR the catalog of ordered queues has no majority: recover it first")
    _change(room, session, queue, pack_recover(queue, room.hosting.identity, state.view.node_id))
    return True


SUBCOMMANDS: Final[dict[bytes, Alternative]] = {
    b"INIT": init,
    b"STATUS": status,
    b"MOVE": move,
    b"LEAD": lead,
    b"BALANCE": balance,
    b"RECOVER": recover,
}
