"""`kubectl disque nodes NAME`: what each node says of itself and of the others.

The nodes are asked, not the operator: this tells the truth when the operator is away, or is what is doubted.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.members import Members
from disque_operator.kubectl.output import form, output_option
from disque_operator.kubectl.resource import status
from disqued.cli.units import human_bytes, human_duration
from disqued.cli.views.columns import Column
from disqued.cli.views.table import print_rows
from disqued.client import Client

SKEW_WORTH_TELLING_MS = 1000
STYLES = {"ok": "green", "leaving": "yellow", "loading": "yellow", "silent": "bold red"}


@dataclass(frozen=True)
class Peer:
    """A line of CLUSTER NODES."""

    node_id: str
    address: str
    flags: frozenset[str]
    connected: bool


@dataclass(frozen=True)
class Answers:
    """What a node said; a node that loads says nothing of the others."""

    info: Mapping[str, str]
    peers: tuple[Peer, ...] = ()

    @property
    def node_id(self) -> str:
        """Its own ID, empty while it loads."""
        return next((peer.node_id for peer in self.peers if "myself" in peer.flags), "")

    @property
    def state(self) -> str:
        """What it is doing, in a word."""
        if self.info.get("loading", "0") != "0":
            return "loading"
        return "leaving" if any({"myself", "leaving"} <= peer.flags for peer in self.peers) else "ok"

    def number(self, name: str) -> int | None:
        """A figure of INFO."""
        value = self.info.get(name)
        return int(value) if value else None


@dataclass(frozen=True)
class Row:
    """A pod and the node in it."""

    pod: str
    machine: str
    answers: Answers | None = None
    remarks: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """`silent`, or what the node says."""
        return self.answers.state if self.answers else "silent"

    def number(self, name: str) -> int | None:
        """A figure of the node's INFO."""
        return self.answers.number(name) if self.answers else None

    def word(self, name: str) -> str | None:
        """A word of the node's INFO."""
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
    Column("node_id", lambda row: _id(row) or None, "NODE", lambda row: _id(row)[:8] or "-"),
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
    Column("uptime_s", lambda row: row.number("uptime_in_seconds"), "UP", _uptime),
    Column("machine", lambda row: row.machine, "MACHINE", yields=True),
    Column("remarks", lambda row: row.remarks, "REMARKS", lambda row: "; ".join(row.remarks), folds=True, sparse=True),
)


def _id(row: Row) -> str:
    return row.answers.node_id if row.answers else ""


def options(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("name", help="the cluster")
    output_option(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Ask all nodes, and print a row for each pod."""
    cluster = kubectl.cluster(chosen.name)
    members = Members(kubectl, cluster)
    answers = members.ask(ask)
    rows = table(members.machines, answers, members.missed, _remembered(cluster))
    print_rows(COLUMNS, rows, form(chosen), f"{chosen.name} has no pods.")
    return Exit.CONNECTION if members.missed else Exit.OK


def ask(client: Client) -> Answers:
    """INFO and, from a node that can answer it, CLUSTER NODES."""
    info = client.info()
    if info.get("loading", "0") != "0":
        return Answers(info)
    listed = client.execute("CLUSTER", "NODES", repeat=True)
    lines = listed.decode().splitlines() if isinstance(listed, bytes) else ()
    return Answers(info, tuple(_peer(line) for line in lines))


def _peer(line: str) -> Peer:
    words = line.split()
    return Peer(words[0], words[1], frozenset(words[2].split(",")), words[5] == "connected")


def _remembered(cluster: Json) -> dict[str, str]:
    """The pod of each node ID, as the status says."""
    members = status(cluster).get("members") or ()
    return {member["nodeId"]: member["pod"] for member in members if member.get("nodeId")}


def table(
    machines: Mapping[str, str],
    answers: Mapping[str, Answers],
    missed: Mapping[str, str],
    remembered: Mapping[str, str],
) -> list[Row]:
    """A row for each pod, with what is wrong about it in words; `remembered` names those that do not answer now."""
    told = {answer.node_id: pod for pod, answer in answers.items() if answer.node_id}
    pods = {node_id: pod for node_id, pod in remembered.items() if pod in machines and pod not in told.values()} | told
    rows = []
    for pod, machine in machines.items():
        answer = answers.get(pod)
        remarks = tuple(_remarks(answer, pods, all_known=not missed)) if answer else (missed.get(pod, "no answer"),)
        rows.append(Row(pod, machine, answer, remarks))
    return rows


def _remarks(answer: Answers, pods: Mapping[str, str], *, all_known: bool) -> Iterator[str]:
    info = answer.info
    if answer.state == "loading":
        yield f"{info.get('loading_loaded_perc', '0')} % of its file is loaded"
    for peer in answer.peers:
        who = pods.get(peer.node_id) or f"{peer.node_id[:8]} at {peer.address}"
        if not peer.connected and "myself" not in peer.flags:
            yield f"does not reach {who}"
        if peer.node_id not in pods and all_known:
            yield f"knows {peer.node_id[:8]} at {peer.address}, which is in no pod"
    if refusing := info.get("aof_refusing"):
        yield f"refuses new jobs: {refusing}"
    if info.get("memory_level", "0") != "0":
        yield f"memory is short (level {info['memory_level']})"
    if (skew := answer.number("cluster_max_skew_ms") or 0) > SKEW_WORTH_TELLING_MS:
        yield f"clocks differ by {skew} ms"
