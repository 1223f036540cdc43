"""`disque repair`: shows for each node whether its jobs have lost copies, or has all nodes look for them."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

from disqued.cli.arguments import Parser
from disqued.cli.connection import CommandRefusedError, ConnectionFailedError, ConnectionLostError
from disqued.cli.endpoint import Endpoint, choose_endpoint, endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.views.client import connected_client
from disqued.cli.views.columns import Column
from disqued.cli.views.table import print_rows, table_options
from disqued.client import Client, RepairStatus


@dataclass(frozen=True, slots=True)
class NodeRepair:
    """A node, and what it says about the copies of its jobs."""

    id: str
    address: str
    status: RepairStatus


COLUMNS: tuple[Column[NodeRepair], ...] = (
    Column("id", lambda row: row.id, "NODE", lambda row: row.id[:8]),
    Column("address", lambda row: row.address, "ADDRESS", yields=True),
    Column(
        "done",
        lambda row: "yes" if row.status.done else "no",
        "DONE",
        style=lambda row: "green" if row.status.done else "bold red",
    ),
    Column("under_replicated", lambda row: row.status.jobs_under_replicated, "UNDER-REPLICATED"),
    Column("in_flight", lambda row: row.status.jobs_in_flight, "IN FLIGHT"),
    Column("without_node", lambda row: row.status.jobs_without_node, "WITHOUT NODE"),
    Column("rebuilt", lambda row: row.status.copies_rebuilt, "REBUILT"),
    Column("stuck_s", lambda row: row.status.seconds_without_progress),
    Column("enabled", lambda row: "yes" if row.status.enabled else "no"),
    Column("waits_for", lambda row: row.status.waits_for, "WAITS FOR", folds=True, sparse=True),
)


def run(options: argparse.Namespace) -> Exit:
    """Print the nodes, the connected one first. REFUSED if one does not answer or its jobs lack copies."""
    parser = Parser("disque repair", None, "Show lost copies of jobs on all nodes.", [endpoint_options()])
    parser.add_argument("--now", action="store_true", help="first have all nodes look for lost copies")
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    endpoint = choose_endpoint(options)
    with connected_client(endpoint) as client:
        hello = client.hello()
        own = _ask(client, now=options.now)
    rows: list[NodeRepair] = []
    missing: list[str] = []
    for node in hello.nodes:
        at = endpoint.at(node.host, node.port)
        status = own if node.id == hello.node_id else _ask_at(at, now=options.now)
        if status is None:
            missing.append(str(at))
        else:
            rows.append(NodeRepair(node.id, str(at), status))
    rows.sort(key=lambda row: (row.id != hello.node_id, row.address, row.id))
    print_rows(COLUMNS, rows, options.form, "No nodes found.")
    for address in missing:
        sys.stderr.write(f"{address} does not answer; the copies of its jobs are not known.\n")
    return Exit.REFUSED if missing or not all(row.status.done for row in rows) else Exit.OK


def _ask(client: Client, *, now: bool) -> RepairStatus:
    """Return the status of a node, after it began to look for lost copies if it must do so `now`."""
    if now:
        client.repair_now()
    return client.repair_status()


def _ask_at(endpoint: Endpoint, *, now: bool) -> RepairStatus | None:
    """Return the status of another node; None if it cannot be reached."""
    try:
        with connected_client(endpoint) as client:
            return _ask(client, now=now)
    except (ConnectionFailedError, ConnectionLostError, CommandRefusedError):
        return None
