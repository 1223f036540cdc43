"""CLUSTER: shows and changes the nodes of the cluster as this node knows them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.commands.command import Command
from disqued.core.commands.subcommand import Subcommand, choose
from disqued.core.runtime.audit import always
from disqued.core.runtime.flush import flush_all
from disqued.errors import CommandSyntaxError, ReplyError, shown
from disqued.membership import authentication, forget, handshake, nodes, skew
from disqued.membership.addresses import MAX_PORT, bus_port_of, literal
from disqued.membership.announcing import change_id
from disqued.membership.kept import membership_of
from disqued.membership.leave import tell
from disqued.membership.nodesconf import describe
from disqued.membership.saving import save_or_refuse
from disqued.resp.integers import parse_integer

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.cluster.view import ClusterView
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields

_LEAVING: Final = {b"YES": True, b"NO": False}


def cluster(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Run the subcommand."""
    handler = choose(_SUBCOMMANDS, args)
    if handler is None:
        raise ReplyError("ERR Wrong CLUSTER subcommand or number of arguments")
    handler(state, session, args)


def _meet(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Start a handshake with the node at an address; the bus port is optional."""
    host, port_word = (shown(word) for word in args[2:4])
    port = parse_integer(args[3])
    bus_port = parse_integer(args[4]) if len(args) > 4 else 0
    if port is None or bus_port is None:
        raise ReplyError(f"ERR Invalid TCP port specified: {port_word if port is None else shown(args[4])}")
    ip = literal(args[2])
    highest = 65535 if bus_port else MAX_PORT
    if not ip or not 0 < port <= highest or not 0 <= bus_port <= 65535:
        raise ReplyError(f"ERR Invalid node address specified: {host}:{port_word}")
    if not handshake.begin(state, ip, port, bus_port_of(port, bus_port), asked=True):
        raise ReplyError("ERR Too many handshakes are running, try again in a moment")
    session.reply_ok()


def _nodes(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reply with a line for each node."""
    session.reply_bulk(describe(state.view, handshakes=True, leaving=state.view.leaving).encode())


def _myid(state: NodeState, session: Session, _args: list[bytes]) -> None:
    session.reply_bulk(state.view.node_id)


def _info(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reply with fields about the cluster."""
    view = state.view
    fields = (
        (b"cluster_state", b"ok"),
        (b"cluster_known_nodes", b"%d" % (len(view.peers) + 1)),
        (b"cluster_reachable_nodes", b"%d" % len(view.reachable)),
        (b"cluster_size", b"%d" % view.size),
        (b"cluster_stats_messages_sent", b"%d" % sum(traffic.sent.value for traffic in state.traffic)),
        (b"cluster_stats_messages_received", b"%d" % sum(traffic.received.value for traffic in state.traffic)),
    )
    more = "".join([f"{name}:{value}\r\n" for name, value in figures(state)])
    session.reply_bulk(b"".join([b"%b:%b\r\n" % field for field in fields]) + more.encode())


def figures(state: NodeState) -> Fields:
    """The fields that CLUSTER INFO has beyond the original's, which INFO shows too."""
    members = [peer for peer in state.view.peers.values() if not peer.in_handshake]
    return [
        ("cluster_links_up", len([peer for peer in members if peer.connected])),
        ("cluster_nodes_pfail", len([peer for peer in members if peer.flags & kinds.NODE_PFAIL])),
        ("cluster_nodes_fail", len([peer for peer in members if peer.flags & kinds.NODE_FAIL])),
        ("cluster_nodes_leaving", len([peer for peer in members if peer.flags & kinds.NODE_LEAVING])),
        ("cluster_links_unproven", authentication.unproven_links(state)),
        ("cluster_max_skew_ms", skew.worst_ms(state)),
        ("cluster_clock_ahead_ms", membership_of(state).quarantine.ahead_ms),
        ("cluster_clock_quarantine", int(bool(state.clock_refusal))),
        *_zones(state.view),
    ]


def _zones(view: ClusterView) -> Fields:
    """The zone of this node, and how many nodes each zone has, with this node and those that can be sent jobs."""
    zones = Counter(zone.decode() for zone in (view.zone, *(peer.zone for peer in view.reachable)) if zone)
    if not zones:
        return []
    counts = ",".join(f"{zone}={count}" for zone, count in sorted(zones.items()))
    return [("cluster_zone", view.zone.decode()), ("cluster_zones", counts)]


def _saveconfig(state: NodeState, session: Session, _args: list[bytes]) -> None:
    save_or_refuse(state, sync=True)
    session.reply_ok()


def _forget(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Remove a node from the list of this node."""
    view = state.view
    if len(args[2]) != nodes.NODE_ID_BYTES:
        raise ReplyError("ERR Invalid node identifier")
    if args[2] == view.node_id:
        raise ReplyError("ERR I tried hard but I can't forget myself...")
    peer = view.peers.get(args[2])
    if peer is None:
        raise ReplyError(f"ERR Unknown node {shown(args[2])}")
    forget.forget(state, peer)
    save_or_refuse(state, sync=True)
    session.reply_ok()


def _reset(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Forget all nodes, jobs and queues; HARD also changes the node ID. A leaving node continues to leave."""
    kind = args[2].upper() if len(args) == 3 else b"SOFT"
    if kind not in {b"SOFT", b"HARD"}:
        raise CommandSyntaxError
    flush_all(state)
    for peer in list(state.view.peers.values()):
        nodes.remove(state, peer)
    state.events.cluster_reset()
    if kind == b"HARD":
        change_id(membership_of(state), nodes.random_id(state))
    save_or_refuse(state, sync=True)
    session.reply_ok()


def _leaving(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply whether this node is leaving, or change that. A leaving node keeps no client waiting for jobs."""
    view = state.view
    if len(args) == 2:
        session.reply_status(b"yes" if view.leaving else b"no")
        return
    word = args[2].upper()
    if word == b"STATUS":
        _leaving_status(state, session)
        return
    wanted = _LEAVING.get(word)
    if wanted is None:
        raise ReplyError("ERR Wrong argument for CLUSTER LEAVING. Use 'yes' or 'no'")
    before, before_end = view.leaving, view.leaves_to_end
    if wanted and not before and not view.reachable:
        raise ReplyError(
            "ERR This node cannot leave: no other node could take its jobs. Let another node join first, "
            "cancel CLUSTER LEAVING on another node, or wait until a node that seems to have failed answers again"
        )
    view.leaving = wanted
    view.leaves_to_end = False
    try:
        save_or_refuse(state, sync=False)
    except ReplyError:
        view.leaving, view.leaves_to_end = before, before_end
        raise
    session.reply_ok()
    if wanted != before:
        tell(state)


def _leaving_status(state: NodeState, session: Session) -> None:
    """Reply with the progress of the drain."""
    _reply_map(session, state.events.leaving_status())


def _repair(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the progress of the repair of lost copies, or begin to look for some."""
    word = args[2].upper()
    if word == b"NOW":
        state.events.repair_status(now=True)
        session.reply_ok()
    elif word == b"STATUS":
        _reply_map(session, state.events.repair_status(now=False))
    else:
        raise ReplyError("ERR Wrong argument for CLUSTER REPAIR. Use 'status' or 'now'")


def _ordered(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Show the ordered queues, or change where they are."""
    state.events.ordered_queues(session, args[2:])


def _changes_ordered(args: list[bytes]) -> bool:
    """Whether a CLUSTER ORDERED does more than to show something."""
    return len(args) > 2 and args[2].upper() != b"STATUS"


def _reply_map(session: Session, fields: Fields) -> None:
    """Reply with names and values."""
    session.reply_map(len(fields))
    for name, value in fields:
        session.reply_bulk(name.encode())
        if isinstance(value, int):
            session.reply_integer(value)
        else:
            session.reply_bulk(str(value).encode())


def _changes_repair(args: list[bytes]) -> bool:
    """Whether a CLUSTER REPAIR does more than to show something."""
    return len(args) > 2 and args[2].upper() != b"STATUS"


def _changes_leaving(args: list[bytes]) -> bool:
    """Whether a CLUSTER LEAVING does more than to show something."""
    return len(args) > 2 and args[2].upper() != b"STATUS"


_SUBCOMMANDS: Final = {
    b"MEET": Subcommand(_meet, 4, 5, audited=always),
    b"NODES": Subcommand(_nodes, categories=("inspect", "clusteradmin")),
    b"MYID": Subcommand(_myid, categories=("inspect", "clusteradmin")),
    b"INFO": Subcommand(_info, categories=("inspect", "clusteradmin")),
    b"SAVECONFIG": Subcommand(_saveconfig, audited=always),
    b"FORGET": Subcommand(_forget, 3, 3, audited=always),
    b"RESET": Subcommand(_reset, 2, 3, audited=always),
    b"LEAVING": Subcommand(_leaving, 2, 3, audited=_changes_leaving),
    b"REPAIR": Subcommand(_repair, 3, 3, audited=_changes_repair),
    b"ORDERED": Subcommand(_ordered, 3, 12, audited=_changes_ordered),
}

COMMAND: Final[Command] = Command(
    "cluster",
    -2,
    ("readonly", "admin"),
    cluster,
    "cluster",
    "Shows and changes this node's place in the cluster.",
    "MEET ip port [bus-port] | NODES | MYID | INFO | SAVECONFIG | FORGET node-id | RESET [SOFT|HARD] | "
    "LEAVING [yes|no|status] | REPAIR status|now | ORDERED INIT node-id [node-id ...] | "
    "ORDERED STATUS | ORDERED MOVE queue FROM node-id TO node-id | ORDERED LEAD queue node-id | ORDERED BALANCE | "
    "ORDERED RECOVER queue KEEP node-id FORCE | ORDERED RECOVER CATALOG FORCE",
    "O(nodes)",
    categories=("clusteradmin", "admin", "dangerous"),
    subcommands=_SUBCOMMANDS,
)
