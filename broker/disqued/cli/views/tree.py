"""`disque tree ID`: draws a job with the jobs that it waits for, and those that wait for it.

All nodes are asked. Each job is drawn once, below the first job that names it, with the other jobs that it waits for
beside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field

from disqued.cli.arguments import Parser, at_least
from disqued.cli.endpoint import endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.units import moment
from disqued.cli.views.columns import Column, body_text, printable
from disqued.cli.views.everynode import STYLES, UNKNOWN, EveryNode, Known
from disqued.cli.views.table import print_rows, table_options
from disqued.client import JobId

LIMIT = 100
SHORT = 18
"""So many characters of an ID name a job beside another one, and of a result are shown."""


@dataclass(slots=True)
class Task:
    """A job of the graph, as the nodes describe it together."""

    id: JobId
    relation: str = "job"
    """`job`, `parent` or `child`: how it is related to the job that was asked for."""
    depth: int = 0
    """How many steps it is away from that job."""
    queue: str = ""
    state: str = UNKNOWN
    after: tuple[JobId, ...] = ()
    waits_for: tuple[JobId, ...] = ()
    children: tuple[JobId, ...] = ()
    ended_ms: int | None = None
    result: bytes | None = None
    below: list[Task] = field(default_factory=list)
    """The jobs that are drawn below it."""
    drawing: str = ""
    """The lines that lead to it."""
    also_after: tuple[str, ...] = ()
    """Beginnings of the IDs of parents that are drawn elsewhere."""

    def learn(self, known: Known) -> None:
        """Take over what the nodes know."""
        self.queue = known.queue
        self.state = known.state
        self.after = known.after
        self.waits_for = known.waits_for
        self.children = tuple(dict.fromkeys(child for job in known.shown for child in job.children))
        if known.fate is not None:
            self.ended_ms = known.fate.ended_ms
            self.result = known.fate.result


COLUMNS: tuple[Column[Task], ...] = (
    Column("queue", lambda task: task.queue, "JOB", lambda task: task.drawing + printable(task.queue or "?")),
    Column("state", lambda task: task.state, "STATE", style=lambda task: STYLES.get(task.state, "")),
    Column("id", lambda task: task.id, "ID"),
    Column("relation", lambda task: task.relation, "RELATION"),
    Column("depth", lambda task: task.depth),
    Column("after", lambda task: task.after),
    Column("waits_for", lambda task: task.waits_for),
    Column("children", lambda task: task.children),
    Column("also_after", lambda task: task.also_after, "ALSO AFTER", sparse=True),
    Column("ended_ms", lambda task: task.ended_ms, "ENDED (UTC)", lambda task: moment(task.ended_ms), sparse=True),
    Column(
        "result",
        lambda task: None if task.result is None else task.result.decode("utf-8", "surrogateescape"),
        "RESULT",
        lambda task: body_text(task.result or b"", SHORT),
        sparse=True,
    ),
)


def run(options: argparse.Namespace) -> Exit:
    """Print the job, its parents and their parents, and its children and their children."""
    parser = Parser("disque tree", None, "Draw a job with its parents and children.", [endpoint_options()])
    parser.add_argument("job", help="ID of the job")
    parser.add_argument(
        "--limit", type=at_least(int, 1), default=LIMIT, help=f"draw at most so many jobs (default {LIMIT})"
    )
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    with ExitStack() as stack:
        nodes = EveryNode(options, stack)
        graph = Graph(nodes, JobId(options.job), options.limit)
    nodes.warn_of_missing()
    if graph.root.state == UNKNOWN:
        sys.stderr.write(f"No node that answered knows {options.job}.\n")
        return Exit.REFUSED
    print_rows(COLUMNS, graph.rows(), options.form, "")
    if graph.left:
        sys.stderr.write(f"{graph.left} more jobs were found; use --limit to draw more.\n")
    unknown = [task.id for task in graph.tasks.values() if task.state == UNKNOWN]
    if unknown:
        sys.stderr.write(f"No node that answered knows {', '.join(unknown)}: it ended without a record, or is lost.\n")
    return Exit.OK


class Graph:
    """A job, and the jobs that are reached from it, by ID; at most `limit`, the nearest ones."""

    def __init__(self, nodes: EveryNode, job_id: JobId, limit: int) -> None:
        self.root = Task(job_id)
        self.tasks: dict[JobId, Task] = {job_id: self.root}
        self._passed: set[JobId] = set()
        self._limit = limit
        self.root.learn(nodes.ask(job_id))
        level = [self.root]
        while level:
            level = [task for above in level for task in self._below(above)]
            for task in level:
                task.learn(nodes.ask(task.id))

    @property
    def left(self) -> int:
        """How many jobs were named that are not part of the graph."""
        return len(self._passed)

    def _below(self, task: Task) -> list[Task]:
        """Add the jobs that lead away from the root; other parents of its children are not added."""
        if task.relation != "child":
            self._add(task, task.after, "parent")
        if task.relation != "parent":
            self._add(task, task.children, "child")
        return task.below

    def _add(self, task: Task, ids: Iterable[JobId], relation: str) -> None:
        for job_id in ids:
            if job_id in self.tasks:
                continue
            if len(self.tasks) >= self._limit:
                self._passed.add(job_id)
                continue
            found = Task(job_id, relation, task.depth + 1)
            self.tasks[job_id] = found
            task.below.append(found)

    def rows(self) -> list[Task]:
        """The jobs in the order in which they are drawn, with their lines."""
        rows: list[Task] = []
        self._draw(self.root, "", rows)
        drawn = {(task.id, below.id) for task in rows for below in task.below}
        for task in rows:
            elsewhere = (parent for parent in task.after if parent in self.tasks)
            task.also_after = tuple(
                parent[:SHORT] for parent in elsewhere if not {(task.id, parent), (parent, task.id)} & drawn
            )
        return rows

    def _draw(self, task: Task, margin: str, rows: list[Task]) -> None:
        rows.append(task)
        for below in task.below:
            is_last = below is task.below[-1]
            below.drawing = margin + ("└─ " if is_last else "├─ ")
            self._draw(below, margin + ("   " if is_last else "│  "), rows)
