"""`disque ordered`: lists the ordered queues of the cluster; `init`, `new` and `drop` found the catalog, make, remove.

Each node knows the leaders and replicas; the node that leads a queue knows its jobs, so all nodes are asked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from disqued.cli.arguments import Parser, UsageError, at_least
from disqued.cli.connection import CommandRefusedError, ConnectionFailedError, ConnectionLostError
from disqued.cli.endpoint import Endpoint, choose_endpoint, endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.views.client import client_for, connected_client
from disqued.cli.views.columns import Column, printable
from disqued.cli.views.purge import confirmed
from disqued.cli.views.table import print_rows, table_options
from disqued.client import Client, NodeInfo, OrderedGroup, OrderedStatus

MOST_FOUNDERS = 5
NO_LEADER = "none"


@dataclass(frozen=True, slots=True)
class OrderedRow:
    """An ordered queue: as the leader describes it, or without numbers if the leader was not found."""

    group: OrderedGroup
    address: str
    """The address of the leader; `none` if nobody leads."""

    @property
    def furthest(self) -> str:
        """The ID of the node whose replica is furthest behind; empty if none is."""
        lags = self.group.lags
        node = max(lags, key=lags.__getitem__, default="")
        return node if lags.get(node) else ""

    @property
    def lag(self) -> int | None:
        """How many entries it has not confirmed."""
        return max(self.group.lags.values(), default=0) if self.group.ready is not None else None


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


COLUMNS: tuple[Column[OrderedRow], ...] = (
    Column("queue", lambda row: row.group.queue, "QUEUE", yields=True),
    Column("leader", lambda row: row.group.leader),
    Column(
        "leader_address",
        lambda row: row.address,
        "LEADER",
        yields=True,
        style=lambda row: "bold red" if row.address == NO_LEADER else "",
    ),
    Column("replicas", lambda row: row.group.replicas, "REPLICAS", lambda row: str(len(row.group.replicas))),
    Column(
        "lag", lambda row: row.lag, "LAG", lambda row: _number(row.lag), style=lambda row: "yellow" if row.lag else ""
    ),
    Column("ready", lambda row: row.group.ready, "READY", lambda row: _number(row.group.ready)),
    Column("leased", lambda row: row.group.leased, "LEASED", lambda row: _number(row.group.leased)),
    Column("delayed", lambda row: row.group.delayed, "DELAYED", lambda row: _number(row.group.delayed)),
    Column(
        "dead",
        lambda row: row.group.dead,
        "DEAD",
        lambda row: _number(row.group.dead),
        style=lambda row: "red" if row.group.dead else "",
    ),
    Column("consumers", lambda row: row.group.consumers, "CONSUMERS", lambda row: _number(row.group.consumers)),
    Column("furthest_behind", lambda row: row.furthest),
    Column("group", lambda row: row.group.group),
)


def run(options: argparse.Namespace) -> Exit:
    """List the queues, or do what the next word says."""
    words: Sequence[str] = options.command[1:]
    actions = {"init": _init, "new": _new, "drop": _drop}
    if words and words[0] in actions:
        return actions[words[0]](options, words[1:])
    parser = Parser(
        "disque ordered",
        "disque ordered [PATTERN] | init [NODE ...] | new QUEUE | drop QUEUE",
        "List the ordered queues of the cluster. 'init' founds their catalog, once; 'new' makes a queue, 'drop' "
        "removes one (see 'disque ordered new --help').",
        [endpoint_options()],
    )
    parser.add_argument("pattern", nargs="?", default="*", help="glob pattern of the names")
    table_options(parser)
    options = parser.parse(words, options)
    rows = [row for row in _rows(options) if fnmatchcase(row.group.queue, options.pattern)]
    rows.sort(key=lambda row: row.group.queue)
    print_rows(
        COLUMNS,
        rows,
        options.form,
        "No ordered queues found." if options.pattern == "*" else "No ordered queue matches the pattern.",
    )
    return Exit.REFUSED if any(row.address == NO_LEADER for row in rows) else Exit.OK


# --- listing ----------------------------------------------------------------------------------------------------------


def _rows(options: argparse.Namespace) -> list[OrderedRow]:
    """Ask the connected node for all queues, and the others for those that they lead."""
    endpoint = choose_endpoint(options)
    with connected_client(endpoint) as client:
        hello = client.hello()
        own = client.ordered_status()
    _warn(own)
    addresses = {node.id: str(endpoint.at(node.host, node.port)) for node in hello.nodes}
    told = [own]
    for node in hello.nodes:
        if node.id != hello.node_id:
            other = _ask(endpoint.at(node.host, node.port))
            if other is None:
                sys.stderr.write(f"{addresses[node.id]} does not answer; what only that node knows is missing.\n")
            elif other.catalog == own.catalog:
                told.append(other)
    best = {group.group: group for status in reversed(told) for group in status.queues if group.ready is not None}
    return [_row(group, best, told, addresses) for group in own.queues]


def _row(
    group: OrderedGroup, best: dict[int, OrderedGroup], told: Iterable[OrderedStatus], addresses: dict[str, str]
) -> OrderedRow:
    """The row of a queue: what its leader said, otherwise what anybody says about the leader."""
    found = best.get(group.group)
    if found is not None:
        return OrderedRow(found, addresses.get(found.leader, found.leader) or NO_LEADER)
    leaders = [other.leader for status in told for other in status.queues if other.group == group.group]
    leader = next((leader for leader in leaders if leader), "")
    return OrderedRow(group, addresses.get(leader, leader) or NO_LEADER)


def _ask(endpoint: Endpoint) -> OrderedStatus | None:
    """What another node knows; None if it cannot be asked."""
    try:
        with connected_client(endpoint) as client:
            return client.ordered_status()
    except (ConnectionFailedError, ConnectionLostError, CommandRefusedError):
        return None


def _warn(status: OrderedStatus) -> None:
    """Say on standard error what is wrong with ordered queues as a whole."""
    if not status.catalog:
        sys.stderr.write("The cluster has no catalog of ordered queues; 'disque ordered init' founds one.\n")
    if status.conflict:
        sys.stderr.write(f"Another member has another catalog of ordered queues: {status.conflict}.\n")
    if status.error:
        sys.stderr.write(f"The node cannot write its log of ordered queues: {printable(status.error)}.\n")


# --- actions ----------------------------------------------------------------------------------------------------------


def _init(options: argparse.Namespace, words: Sequence[str]) -> Exit:
    """Found the catalog."""
    parser = Parser(
        "disque ordered init",
        None,
        "Found the catalog of ordered queues, once in the life of a cluster.",
        [endpoint_options()],
    )
    parser.add_argument(
        "nodes",
        nargs="*",
        metavar="NODE",
        help="address, ID or prefix of the ID of a node that keeps the catalog (default: up to 5, an odd number)",
    )
    options = parser.parse(words, options)
    with client_for(options) as client:
        known = client.hello().nodes
        nodes = [_find(known, word).id for word in options.nodes] or _founders(known)
        client.ordered_init(nodes)
    sys.stdout.write(f"The catalog of ordered queues is kept by {len(nodes)} nodes.\n")
    return Exit.OK


def _founders(nodes: Sequence[NodeInfo]) -> list[str]:
    """The nodes that keep the catalog if nobody says: the largest odd number up to 5."""
    count = min(len(nodes), MOST_FOUNDERS)
    return sorted(node.id for node in nodes)[: count if count % 2 else count - 1]


def _find(nodes: Sequence[NodeInfo], word: str) -> NodeInfo:
    """The node with an address, or whose ID begins so."""
    found = [node for node in nodes if node.id.startswith(word) or f"{node.host}:{node.port}" == word]
    if len(found) != 1:
        raise UsageError(f"'{printable(word)}' is {'no node' if not found else 'more than one node'} of the cluster")
    return found[0]


def _new(options: argparse.Namespace, words: Sequence[str]) -> Exit:
    """Make a queue."""
    parser = Parser("disque ordered new", None, "Make an ordered queue.", [endpoint_options()])
    parser.add_argument("queue", help="name of the queue")
    parser.add_argument("--replicas", type=at_least(int, 1), metavar="N", help="number of replicas (default: 3)")
    parser.add_argument("--single", action="store_true", help="give all jobs to one worker at a time, in order")
    parser.add_argument(
        "--prefetch", type=at_least(int, 1), metavar="N", help="how many jobs a worker may have at a time"
    )
    parser.add_argument(
        "--on", action="append", default=[], metavar="NODE", help="a node with a replica; can be repeated"
    )
    options = parser.parse(words, options)
    with client_for(options) as client:
        nodes = _ids(client, options.on)
        client.qnew(
            options.queue, replicas=options.replicas, single=options.single, prefetch=options.prefetch, nodes=nodes
        )
    sys.stdout.write(f"Ordered queue '{printable(options.queue)}' can be used.\n")
    return Exit.OK


def _ids(client: Client, words: Sequence[str]) -> list[str]:
    """The IDs of nodes that are given by address, ID or prefix."""
    if not words:
        return []
    known = client.hello().nodes
    return [_find(known, word).id for word in words]


def _drop(options: argparse.Namespace, words: Sequence[str]) -> Exit:
    """Remove a queue."""
    parser = Parser("disque ordered drop", None, "Remove an ordered queue.", [endpoint_options()])
    parser.add_argument("queue", help="name of the queue")
    parser.add_argument("--force", action="store_true", help="delete its jobs with it")
    parser.add_argument("--yes", action="store_true", help="do not ask for the name of the queue")
    options = parser.parse(words, options)
    text = f"This removes the ordered queue '{printable(options.queue)}'"
    text += " and deletes its jobs" if options.force else ""
    if not options.yes and sys.stdin.isatty() and not confirmed(options.queue, text):
        sys.stderr.write("That is not the name of the queue; nothing was removed.\n")
        return Exit.USAGE
    with client_for(options) as client:
        client.qdrop(options.queue, force=options.force)
    sys.stdout.write(f"Ordered queue '{printable(options.queue)}' is removed.\n")
    return Exit.OK
