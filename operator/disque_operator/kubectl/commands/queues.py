"""`kubectl disque queues NAME [PATTERN]`: one row for each queue, summed over all nodes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from disque_operator.kubectl.api import Kubectl
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.members import Members, choose_login
from disque_operator.kubectl.output import form, output_option
from disqued.cli.endpoint import add_login_options
from disqued.cli.units import human_duration
from disqued.cli.views.columns import Column
from disqued.cli.views.queues import matching
from disqued.cli.views.table import print_rows
from disqued.client import QueueStats


@dataclass(frozen=True)
class Row:
    """A queue of the cluster: the statistics of each node that has it, by pod."""

    name: str
    parts: Mapping[str, QueueStats]

    def total(self, figure: Callable[[QueueStats], int]) -> int:
        """Return the sum of a figure over all nodes."""
        return sum(map(figure, self.parts.values()))

    @property
    def length(self) -> int:
        """The number of queued jobs."""
        return self.total(lambda part: part.length)

    @property
    def idle_s(self) -> int:
        """Seconds since a client last used the queue on any node."""
        return min(part.idle_s for part in self.parts.values())

    @property
    def where(self) -> tuple[str, ...]:
        """The number of queued jobs on each node that has any."""
        return tuple(f"{pod}={part.length}" for pod, part in self.parts.items() if part.length)

    @property
    def pause(self) -> str:
        """The pause state, listed by pod if it is not the same on all nodes."""
        states = {pod: part.pause for pod, part in self.parts.items()}
        if len(set(states.values())) == 1:
            return next(iter(states.values()))
        return " ".join(f"{pod}:{state}" for pod, state in states.items() if state != "none")


COLUMNS: tuple[Column[Row], ...] = (
    Column("queue", lambda row: row.name, "QUEUE", yields=True),
    Column("length", lambda row: row.length, "LENGTH", style=lambda row: "bold" if row.length else "dim"),
    Column("jobs_in", lambda row: row.total(lambda part: part.jobs_in), "IN"),
    Column("jobs_out", lambda row: row.total(lambda part: part.jobs_out), "OUT"),
    Column("blocked_clients", lambda row: row.total(lambda part: part.blocked_clients), "BLOCKED"),
    Column(
        "pause",
        lambda row: row.pause,
        "PAUSE",
        style=lambda row: "dim" if row.pause == "none" else "yellow",
        yields=True,
    ),
    Column("idle_s", lambda row: row.idle_s, "IDLE", lambda row: human_duration(row.idle_s)),
    Column("where", lambda row: row.where, "WHERE", lambda row: " ".join(row.where), folds=True),
)

SORTS: dict[str, Callable[[Row], tuple[int, str]]] = {
    "name": lambda row: (0, row.name),
    "length": lambda row: (-row.length, row.name),
    "in": lambda row: (-row.total(lambda part: part.jobs_in), row.name),
    "out": lambda row: (-row.total(lambda part: part.jobs_out), row.name),
    "blocked": lambda row: (-row.total(lambda part: part.blocked_clients), row.name),
    "idle": lambda row: (-row.idle_s, row.name),
}
"""Sort keys: numbers in descending order, ties by name."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", help="name of the cluster")
    parser.add_argument("pattern", nargs="?", default="*", help="glob pattern of queue names, for example 'mail-*'")
    parser.add_argument("--sort", choices=SORTS, default="length", help="sort order (default: length)")
    add_login_options(parser)
    output_option(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Query all nodes for their queues, and print the sums."""
    cluster = kubectl.cluster(chosen.name)
    members = Members(kubectl, cluster, choose_login(chosen, kubectl, cluster))
    answers = members.query(lambda client: matching(client, chosen.pattern))
    rows = sorted(merged(answers), key=SORTS[chosen.sort])
    print_rows(COLUMNS, rows, form(chosen), "No queues found." if chosen.pattern == "*" else "No matching queues.")
    return members.warn_unreachable()


def merged(answers: Mapping[str, list[QueueStats]]) -> list[Row]:
    """Combine the replies of the nodes, by pod, into one row for each queue."""
    parts: dict[str, dict[str, QueueStats]] = {}
    for pod, queues in answers.items():
        for queue in queues:
            if queue.kind == "ordered":  # every node tells the figures of the whole queue
                parts[queue.name] = {"ordered": queue}
            else:
                parts.setdefault(queue.name, {})[pod] = queue
    return [Row(name, of_pods) for name, of_pods in parts.items()]
