"""Pipelines of tasks under faults: chains, diamonds and fans of jobs that wait for each other (ADDJOB AFTER).

Clients add parents and children at different nodes. Workers finish some jobs, make some dead letters, delete some, and
lose others; dead letters are redriven by MOVEJOB or discarded. Each delivery is checked when it leaves its node: the
parents of the job must have been acknowledged before, or its ELSE must apply. Not all seeds have tasks, so that the
others repeat runs from before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from disqued.testing.workload import RECONNECT_MS, Caller

if TYPE_CHECKING:
    from disqued.testing.local import Reply
    from disqued.testing.workload import Answer, World

SHARE: Final = 0.25
"""The part of the seeds that have tasks."""
QUEUE: Final = "tasks"
DEAD: Final = "tasks.dead"
_PAUSE_MS: Final = 400
_LIVES_S: Final = (5, 60, 60)
_LETTERS_MS: Final = 3000
"""How long dead letters wait, about."""
_SLACK_MS: Final = 5000
"""By how much the life of a job may seem shorter: clocks of nodes that differ by more are a fault of their own."""


def has_tasks(seed: int) -> bool:
    """Whether the runs of a seed have tasks."""
    return Random(f"has tasks {seed}").random() < SHARE  # noqa: S311 - repeatable chance is the point


@dataclass(eq=False)
class Task:
    """One job, and what clients did with it."""

    number: int
    at_ms: int
    ttl_s: int
    parents: list[Task]
    otherwise: str
    job_id: bytes | None = None
    acked_ms: int = 0
    """When an ACKJOB or FASTACK was last sent for it, or for a successor of it that is no dead letter; 0 for never."""
    ended: bool = False
    """A DELJOB was sent for it, or its dead letter was discarded."""
    was_dead: bool = False
    """A dead letter of it was delivered: what is redriven from there waits no longer."""
    delivered: int = 0

    @property
    def must_be_delivered(self) -> bool:
        """Whether it was not delivered, although its parents were done early enough in its life."""
        if self.delivered or self.was_dead or self.ended:
            return False
        done_ms = [parent.acked_ms for parent in self.parents]
        return all(done_ms) and max([self.at_ms, *done_ms]) + _SLACK_MS < self.at_ms + self.ttl_s * 1000

    def can_be_over(self, now_ms: int) -> bool:
        """Whether it may be that it can no longer be done."""
        if self.ended or now_ms >= self.at_ms + self.ttl_s * 1000 - _SLACK_MS:
            return True
        return self.otherwise == "drop" and any(parent.can_be_over(now_ms) for parent in self.parents)


@dataclass
class Graph:
    """Tasks that are added one after the other: the numbers of the parents of each, in the graph."""

    shape: tuple[tuple[int, ...], ...]
    tasks: list[Task] = field(default_factory=list)


SHAPES: Final = (
    ((), (0,), (1,), (2,)),
    ((), (0,), (0,), (1, 2)),
    ((), (0,), (0,), (0,), (0,)),
    ((), (), (), (0, 1, 2)),
)
"""A chain, a diamond, a fan, and a task that collects others."""


class TaskClients:
    """Clients that add graphs, and workers on all nodes."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._chance = Random(f"tasks {seed}")  # noqa: S311 - repeatable chance is the point
        count = len(world.cluster.members)
        self._adders = [Caller(world, home, self._chance) for home in range(1, count + 1)]
        self._workers = [Caller(world, home, self._chance) for home in range(1, count + 1)]
        self._letters = Caller(world, self._chance.randint(1, count), self._chance)
        self._tasks: list[Task] = []

    def start(self) -> None:
        """Start to work."""
        self._world.later(200 + self._chance.random() * _PAUSE_MS, self._begin)
        for worker in self._workers:
            self._get(worker)
        self._world.later(_LETTERS_MS, self._get_letters)

    def _begin(self) -> None:
        if self._world.producing:
            self._world.later(300 + self._chance.random() * _PAUSE_MS, self._begin)
            self._add(Graph(self._chance.choice(SHAPES)))

    def _add(self, graph: Graph) -> None:
        """Add the next task of a graph at some node, with what it waits for."""
        chance = self._chance
        parents = [graph.tasks[at] for at in graph.shape[len(graph.tasks)]]
        task = Task(
            len(self._tasks),
            self._world.now_ms,
            chance.choice(_LIVES_S),
            parents,
            chance.choice(("dead", "run", "drop")) if parents else "dead",
        )
        self._tasks.append(task)
        words: list[bytes | str | int] = ["ADDJOB", QUEUE, b"task %d" % task.number, chance.choice((300, 1000))]
        words += ["REPLICATE", chance.choice((1, 2, 3)), "RETRY", chance.choice((1, 2)), "TTL", task.ttl_s]
        words += ["RETAIN", chance.choice((0, 600))]
        for parent in parents:
            assert parent.job_id is not None
            words += ["AFTER", parent.job_id]
        if parents:
            words += ["ELSE", task.otherwise]
        chance.choice(self._adders).call(lambda answer: self._added(graph, task, answer), *words)

    def _added(self, graph: Graph, task: Task, answer: Answer) -> None:
        """Continue with the next task, unless this one was refused."""
        if not isinstance(answer, bytes):
            return
        task.job_id = answer
        graph.tasks.append(task)
        if len(graph.tasks) < len(graph.shape):
            self._world.later(self._chance.choice((1, 300)), lambda: self._add(graph))

    # --- workers ------------------------------------------------------------------------------------------------------

    def _get(self, worker: Caller) -> None:
        worker.call(
            lambda answer: self._got(worker, answer),
            *("GETJOB", "TIMEOUT", 1500, "COUNT", 2, "FROM", QUEUE),
            on_sent=self._delivered,
        )

    def _get_letters(self) -> None:
        """Look at dead letters from time to time: their children wait meanwhile."""
        words = ("GETJOB", "TIMEOUT", 500, "COUNT", 9, "FROM", DEAD)
        worker = self._letters
        worker.call(lambda answer: self._got_letters(worker, answer), *words, on_sent=self._delivered)

    def _got_letters(self, worker: Caller, answer: Answer) -> None:
        for _, job_id, task in self._rows(answer):
            self._treat_letter(worker, job_id, task)
        self._world.later(100 if self._world.always_acks else _LETTERS_MS, self._get_letters)

    def _delivered(self, reply: Reply) -> None:
        for queue, _, task in self._rows(reply):
            if queue == DEAD:
                task.was_dead = True
                continue
            task.delivered += 1
            self._world.history.rare["task with parents delivered"] += bool(task.parents)
            if not task.was_dead:
                self._check_parents(task)

    def _check_parents(self, task: Task) -> None:
        for parent in task.parents:
            if parent.acked_ms or (task.otherwise == "run" and parent.can_be_over(self._world.now_ms)):
                continue
            text = f"task {task.number} ({task.job_id!r}) was delivered before its parent {parent.number} was done"
            self._world.history.violate(self._world.now_ms, text)

    def _rows(self, reply: Reply | Answer) -> list[tuple[str, bytes, Task]]:
        rows: list[tuple[str, bytes, Task]] = []
        for row in reply if isinstance(reply, list) else ():
            assert isinstance(row, list)
            queue, job_id, body = row[:3]
            assert isinstance(queue, bytes)
            assert isinstance(job_id, bytes)
            assert isinstance(body, bytes)
            rows.append((queue.decode(), job_id, self._tasks[int(body.split()[1])]))
        return rows

    def _got(self, worker: Caller, answer: Answer) -> None:
        for _, job_id, task in self._rows(answer):
            self._treat(worker, job_id, task)
        self._world.later(1 if isinstance(answer, list) else RECONNECT_MS, lambda: self._get(worker))

    def _treat(self, worker: Caller, job_id: bytes, task: Task) -> None:
        draw = 0.0 if self._world.always_acks else self._chance.random()
        if draw < 0.75:
            task.acked_ms = self._world.now_ms
            worker.call(_ignored, "ACKJOB" if draw < 0.7 else "FASTACK", job_id)
        elif draw < 0.87:
            worker.call(_ignored, "NACK", job_id, "DEAD")
        elif draw < 0.92:
            task.ended = True
            worker.call(_ignored, "DELJOB", job_id)
        elif draw < 0.95:
            worker.call(_ignored, "NACK", job_id)

    def _treat_letter(self, worker: Caller, job_id: bytes, task: Task) -> None:
        """Redrive a dead letter, or discard it."""
        if not self._world.always_acks and self._chance.random() < 0.5:
            worker.call(_ignored, "NACK", job_id)
            worker.call(_ignored, "MOVEJOB", job_id, "TO", QUEUE)
        else:
            task.ended = True
            worker.call(_ignored, "ACKJOB", job_id)

    # --- the end ------------------------------------------------------------------------------------------------------

    def check_end(self) -> None:
        """Check that no job waits forever, and that without faults each task whose parents are done was delivered."""
        history = self._world.history
        for member in self._world.cluster.members:
            if member.serving and member.node.state.lifecycle.held.jobs:
                waiting = list(member.node.state.lifecycle.held.jobs)
                history.violate(self._world.now_ms, f"member {member.number} still holds {waiting}")
        if history.faulty or history.distance_ms:
            return
        for task in self._tasks:
            if task.job_id is not None and task.must_be_delivered:
                history.violate(self._world.now_ms, f"task {task.number} ({task.job_id!r}) was never delivered")


def _ignored(answer: Answer) -> None:
    """No reply matters: what was sent may have been done."""
    del answer
