"""`disque nodes`: lists the nodes of the cluster, with statistics from each reachable node."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from disqued.cli.arguments import Parser
from disqued.cli.connection import CommandRefusedError, ConnectionFailedError, ConnectionLostError
from disqued.cli.endpoint import Endpoint, choose_endpoint, endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.units import human_bytes, human_duration
from disqued.cli.views.client import connected_client
from disqued.cli.views.columns import Column
from disqued.cli.views.table import print_rows, table_options

_UNREMARKABLE = {"myself", "noflags"}


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node: its state as the connected node sees it, and its own statistics; None if it does not reply."""

    id: str
    address: str
    state: str
    link: str
    jobs: int | None = None
    queues: int | None = None
    clients: int | None = None
    blocked_clients: int | None = None
    used_memory_bytes: int | None = None
    uptime_s: int | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether the connected node sees no fault."""
        return self.state == "ok" and self.link == "connected"


def _shown(value: int | None) -> str:
    return "-" if value is None else str(value)


COLUMNS: tuple[Column[NodeRow], ...] = (
    Column("id", lambda row: row.id, "NODE", lambda row: row.id[:8]),
    Column("address", lambda row: row.address, "ADDRESS", yields=True),
    Column("state", lambda row: row.state, "STATE", style=lambda row: "green" if row.is_healthy else "bold red"),
    Column("link", lambda row: row.link, "LINK", style=lambda row: "" if row.link == "connected" else "bold red"),
    Column("jobs", lambda row: row.jobs, "JOBS", lambda row: _shown(row.jobs)),
    Column("queues", lambda row: row.queues, "QUEUES", lambda row: _shown(row.queues)),
    Column("clients", lambda row: row.clients, "CLIENTS", lambda row: _shown(row.clients)),
    Column("blocked_clients", lambda row: row.blocked_clients, "BLOCKED", lambda row: _shown(row.blocked_clients)),
    Column(
        "used_memory_bytes",
        lambda row: row.used_memory_bytes,
        "MEMORY",
        lambda row: "-" if row.used_memory_bytes is None else human_bytes(row.used_memory_bytes),
    ),
    Column(
        "uptime_s",
        lambda row: row.uptime_s,
        "UP",
        lambda row: "-" if row.uptime_s is None else human_duration(row.uptime_s),
    ),
)


def run(options: argparse.Namespace) -> Exit:
    """Print the nodes, the connected one first."""
    parser = Parser("disque nodes", None, "List the nodes of the cluster.", [endpoint_options()])
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    endpoint = choose_endpoint(options)
    with connected_client(endpoint) as client:
        hello = client.hello()
        listed = client.execute("CLUSTER", "NODES", repeat=True)
        own_figures = client.info()
    states = dict(map(_state, listed.decode().splitlines() if isinstance(listed, bytes) else ()))
    rows = []
    for node in hello.nodes:
        at = endpoint.at(node.host, node.port)
        state, link = states.get(node.id, ("unknown", "disconnected"))
        figures = own_figures if node.id == hello.node_id else _ask(at)
        rows.append(_with_figures(NodeRow(node.id, str(at), state, link), figures))
    rows.sort(key=lambda row: (row.id != hello.node_id, row.address, row.id))
    print_rows(COLUMNS, rows, options.form, "No nodes found.")
    return Exit.OK


def _state(line: str) -> tuple[str, tuple[str, str]]:
    """Parse ID, state and link from a line of CLUSTER NODES."""
    words = line.split()
    flags = [flag for flag in words[2].split(",") if flag not in _UNREMARKABLE]
    return words[0], (",".join(flags) or "ok", words[5])


def _ask(endpoint: Endpoint) -> dict[str, str]:
    """Return the INFO of another node; empty if it cannot be reached."""
    try:
        with connected_client(endpoint) as client:
            return client.info()
    except (ConnectionFailedError, ConnectionLostError, CommandRefusedError):
        return {}


def _with_figures(row: NodeRow, figures: dict[str, str]) -> NodeRow:
    """Add the statistics of the node to its row."""
    if not figures:
        return row
    return replace(
        row,
        jobs=int(figures["registered_jobs"]),
        queues=int(figures["registered_queues"]),
        clients=int(figures["connected_clients"]),
        blocked_clients=int(figures["blocked_clients"]),
        used_memory_bytes=int(figures["used_memory"]),
        uptime_s=int(figures["uptime_in_seconds"]),
    )
