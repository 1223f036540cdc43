"""`kubectl disque nodes NAME`: each node's own view of itself and of the cluster.

The nodes are queried directly, so the output is correct even if the operator is down or wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.members import Members, choose_login
from disque_operator.kubectl.output import form, output_option
from disque_operator.kubectl.resource import status
from disqued.cli.endpoint import add_login_options
from disqued.cli.units import human_bytes, human_duration
from disqued.cli.views.columns import Column
from disqued.cli.views.table import print_rows
from disqued.client import Client

REPORTED_SKEW_MS = 1000
STYLES = {"ok": "green", "leaving": "yellow", "loading": "yellow", "unreachable": "bold red"}


@dataclass(frozen=True)
class Peer:
    """A line of CLUSTER NODES."""

    node_id: str
    address: str
    flags: frozenset[str]
    connected: bool


@dataclass(frozen=True)
class Answers:
    """The replies of a node. `peers` is empty while the node loads its AOF."""

    info: Mapping[str, str]
    peers: tuple[Peer, ...] = ()

    @property
    def node_id(self) -> str:
        """The node's own ID, empty while the node loads its AOF."""
        return next((peer.node_id for peer in self.peers if "myself" in peer.flags), "")

    @property
    def state(self) -> str:
        """One of `ok`, `leaving` and `loading`."""
        if self.info.get("loading", "0") != "0":
            return "loading"
        return "leaving" if any({"myself", "leaving"} <= peer.flags for peer in self.peers) else "ok"

    def number(self, name: str) -> int | None:
        """Return an integer field of INFO, None if it is missing."""
        value = self.info.get(name)
        return int(value) if value else None


@dataclass(frozen=True)
class Row:
    """A pod and the node in it."""

    pod: str
    kubernetes_node: str
    answers: Answers | None = None
    remarks: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """The state that the node reports, or `unreachable`."""
        return self.answers.state if self.answers else "unreachable"

    def number(self, name: str) -> int | None:
        """Return an integer field of the node's INFO, None if it is missing."""
        return self.answers.number(name) if self.answers else None

    def word(self, name: str) -> str | None:
        """Return a field of the node's INFO, None if it is missing."""
        return self.answers.info.get(name) if self.answers else None


def _memory(row: Row) -> str:
    used, most = row.number("used_memory"), row.number("maxmemory")
    return "-" if used is None else f"{human_bytes(used)}/{human_bytes(most)}" if most else human_bytes(used)


def _uptime(row: Row) -> str:
    uptime = row.number("uptime_in_seconds")
    return "-" if uptime is None else human_duration(uptime)


def _links(row: Row) -> str:
    up, known = row.number("cluster_links_up"), _others(row)
    return "-" if up is None or known is None else f"{up}/{known}"


def _others(row: Row) -> int | None:
    return len(row.answers.peers) - 1 if row.answers and row.answers.peers else None


COLUMNS: tuple[Column[Row], ...] = (
    Column("pod", lambda row: row.pod, "POD"),
    Column("node_id", lambda row: _id(row) or None, "NODE ID", lambda row: _id(row)[:8] or "-"),
    Column("state", lambda row: row.state, "STATE", style=lambda row: STYLES[row.state]),
    Column("links_up", lambda row: row.number("cluster_links_up"), "LINKS", _links),
    Column("other_members", _others),
    Column("version", lambda row: row.word("disqued_version"), "VERSION"),
    Column("jobs", lambda row: row.number("registered_jobs"), "JOBS"),
    Column("queues", lambda row: row.number("registered_queues"), "QUEUES"),
    Column("clients", lambda row: row.number("connected_clients"), "CLIENTS"),
    Column("blocked_clients", lambda row: row.number("blocked_clients"), "BLOCKED"),
    Column("used_memory_bytes", lambda row: row.number("used_memory"), "MEMORY", _memory),
    Column("max_memory_bytes", lambda row: row.number("maxmemory")),
    Column("aof_state", lambda row: row.word("aof_state"), "AOF"),
    Column("uptime_s", lambda row: row.number("uptime_in_seconds"), "UPTIME", _uptime),
    Column("zone", lambda row: row.word("cluster_zone") or None, "ZONE", sparse=True),
    Column("kubernetes_node", lambda row: row.kubernetes_node, "KUBERNETES NODE", yields=True),
    Column("remarks", lambda row: row.remarks, "REMARKS", lambda row: "; ".join(row.remarks), folds=True, sparse=True),
)


def _id(row: Row) -> str:
    return row.answers.node_id if row.answers else ""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", help="name of the cluster")
    add_login_options(parser)
    output_option(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Query all nodes, and print a row for each pod."""
    cluster = kubectl.cluster(chosen.name)
    members = Members(kubectl, cluster, choose_login(chosen, kubectl, cluster))
    answers = members.query(query)
    rows = table(members.kubernetes_nodes, answers, members.unreachable, _recorded_ids(cluster))
    print_rows(COLUMNS, rows, form(chosen), f"No pods found for {chosen.name}.")
    return Exit.CONNECTION if members.unreachable else Exit.OK


def query(client: Client) -> Answers:
    """Query INFO and, unless the node is loading its AOF, CLUSTER NODES."""
    info = client.info()
    if info.get("loading", "0") != "0":
        return Answers(info)
    listed = client.execute("CLUSTER", "NODES", repeat=True)
    lines = listed.decode().splitlines() if isinstance(listed, bytes) else ()
    return Answers(info, tuple(_peer(line) for line in lines))


def _peer(line: str) -> Peer:
    words = line.split()
    return Peer(words[0], words[1], frozenset(words[2].split(",")), words[5] == "connected")


def _recorded_ids(cluster: Json) -> dict[str, str]:
    """Return the pod of each node ID, as recorded in the status."""
    members = status(cluster).get("members") or ()
    return {member["nodeId"]: member["pod"] for member in members if member.get("nodeId")}


def table(
    kubernetes_nodes: Mapping[str, str],
    answers: Mapping[str, Answers],
    unreachable: Mapping[str, str],
    recorded: Mapping[str, str],
) -> list[Row]:
    """Return a row for each pod, with remarks on what is wrong; `recorded` has the IDs of nodes that do not reply."""
    current = {answer.node_id: pod for pod, answer in answers.items() if answer.node_id}
    others = {pod for pod in kubernetes_nodes if pod not in current.values()}
    pods = {node_id: pod for node_id, pod in recorded.items() if pod in others} | current
    rows = []
    for pod, kubernetes_node in kubernetes_nodes.items():
        answer = answers.get(pod)
        remarks = (
            tuple(_remarks(answer, pods, all_known=not unreachable)) if answer else (unreachable.get(pod, "no reply"),)
        )
        rows.append(Row(pod, kubernetes_node, answer, remarks))
    return rows


def _remarks(answer: Answers, pods: Mapping[str, str], *, all_known: bool) -> Iterator[str]:
    info = answer.info
    if answer.state == "loading":
        yield f"loading its AOF ({info.get('loading_loaded_perc', '0')} %)"
    for peer in answer.peers:
        name = pods.get(peer.node_id) or f"{peer.node_id[:8]} at {peer.address}"
        if not peer.connected and "myself" not in peer.flags:
            yield f"cannot reach {name}"
        if peer.node_id not in pods and all_known:
            yield f"unknown member {peer.node_id[:8]} at {peer.address}: no pod has this ID"
    if refusing := info.get("aof_refusing"):
        yield f"refuses new jobs: {refusing}"
    if info.get("cluster_clock_quarantine", "0") != "0":
        yield f"refuses new jobs: its clock is {info.get('cluster_clock_ahead_ms', '?')} ms ahead"
    if info.get("memory_level", "0") != "0":
        yield f"low on memory (level {info['memory_level']})"
    if (skew := answer.number("cluster_max_skew_ms") or 0) > REPORTED_SKEW_MS:
        yield f"clock skew of {skew} ms"
