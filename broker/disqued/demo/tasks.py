"""The tasks of the pipeline and their account: what depends on what, and what must never happen.

One task lists the files. Each counting task counts the definitions of one file, after the list. Each summing task adds
the results of its counting tasks, after all of them, and the last task adds the sums. The account does no I/O; threads
share it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from disqued.client import JobId

TASKS = 1000
GROUP = 16
"""How many counting tasks a summing task waits for."""
SUMS = 59
COUNTS = TASKS - SUMS - 2
URGENT_EACH = 4
"""Of so many groups, one is urgent."""
URGENT = 9

LIST = "list"
TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Task:
    """One task. It can be done when those named in `after` are done."""

    name: str
    after: tuple[str, ...] = ()
    file: str = ""
    priority: int = 0


def plan(files: Sequence[str]) -> list[list[Task]]:
    """Return all tasks in groups: the list, the counting tasks of each summing task with it, and the last task.

    Files are used again when there are fewer than counting tasks.
    """
    counts = [
        Task(f"count-{number}", (LIST,), file, URGENT if number // GROUP % URGENT_EACH == 0 else 0)
        for number, file in enumerate(itertools.islice(itertools.cycle(files), COUNTS))
    ]
    groups = [counts[start : start + GROUP] for start in range(0, COUNTS, GROUP)]
    sums = [
        Task(f"sum-{number}", tuple(task.name for task in group), priority=group[0].priority)
        for number, group in enumerate(groups)
    ]
    total = Task(TOTAL, tuple(task.name for task in sums), priority=URGENT)
    return [[Task(LIST)], *([*group, task] for group, task in zip(groups, sums, strict=True)), [total]]


class Table:
    """The resource that workers write to: a row for each task, with the greatest claim that it has seen.

    It refuses a claim that is lower, as the guide to fencing tokens shows for SQL, S3 and Redis.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, tuple[int, int]] = {}
        self.refused = 0

    def write(self, name: str, claim: int, value: int) -> bool:
        """Store the value of a task. False: a worker with a greater claim was here before, and nothing is changed."""
        with self._lock:
            if claim < self._rows.get(name, (0, 0))[0]:
                self.refused += 1
                return False
            self._rows[name] = (claim, value)
            return True

    def greatest(self, name: str) -> int:
        """Return the greatest claim that was seen for a task, 0 for none."""
        with self._lock:
            return self._rows.get(name, (0, 0))[0]


@dataclass(slots=True)
class Account:
    """What happened to each task. Times are those of the monotonic clock."""

    tasks: dict[str, Task]
    ids: dict[str, JobId] = field(default_factory=dict)
    """The jobs of the tasks that were added."""
    done: set[str] = field(default_factory=set)
    """Tasks whose acknowledgement was answered."""
    early: list[str] = field(default_factory=list)
    """Tasks that were delivered before a task that they wait for was acknowledged."""
    lower: list[str] = field(default_factory=list)
    """Tasks that were delivered again with a claim that is not greater than the one before."""
    late_writes: int = 0
    """Writes of workers that woke up after their task was delivered again."""
    accepted: int = 0
    """Such writes that the table did not refuse."""
    deliveries: int = 0
    waits_s: dict[str, float] = field(default_factory=dict)
    """How long each task waited for its first delivery, since it was added and its last parent was acknowledged."""
    _claims: dict[str, int] = field(default_factory=dict)
    """The greatest claim of each task so far."""
    _ending: set[str] = field(default_factory=set)
    """Tasks whose acknowledgement was sent."""
    _added_s: dict[str, float] = field(default_factory=dict)
    _ended_s: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def added(self, task: Task, job_id: JobId, now_s: float) -> None:
        """Record that a task was added."""
        with self._lock:
            self.ids[task.name] = job_id
            self._added_s[task.name] = now_s

    def delivered(self, name: str, claim: int, now_s: float) -> bool:
        """Record that a worker got a task. Return whether it is the first delivery."""
        with self._lock:
            self.deliveries += 1
            is_first = name not in self._claims
            if claim <= self._claims.get(name, 0):
                self.lower.append(name)
            self._claims[name] = max(claim, self._claims.get(name, 0))
            after = self.tasks[name].after
            if not self._ending.issuperset(after):
                self.early.append(name)
            free_s = max([self._added_s.get(name, now_s), *(self._ended_s.get(parent, now_s) for parent in after)])
            self.waits_s.setdefault(name, now_s - free_s)
            return is_first

    def ends(self, name: str, now_s: float) -> None:
        """Record that a worker is about to acknowledge a task."""
        with self._lock:
            self._ending.add(name)
            self._ended_s.setdefault(name, now_s)

    def ended(self, name: str) -> None:
        """Record that the acknowledgement of a task was answered."""
        with self._lock:
            self.done.add(name)

    def wrote_late(self, *, accepted: bool) -> None:
        """Record a write of a worker whose task was delivered again, and whether the table accepted it."""
        with self._lock:
            self.late_writes += 1
            self.accepted += accepted

    @property
    def is_complete(self) -> bool:
        """Whether all tasks are done."""
        return len(self.done) == len(self.tasks)

    @property
    def progress(self) -> int:
        """A number that grows when a task is added and when one is done."""
        return len(self.ids) + len(self.done)

    def stalled(self) -> Iterator[tuple[str, JobId]]:
        """Yield the tasks that are not done although all tasks that they wait for are."""
        for name, job_id in self.ids.items():
            if name not in self.done and self.done.issuperset(self.tasks[name].after):
                yield name, job_id

    def claim(self, name: str) -> int | None:
        """Return the greatest claim under which a task was delivered; None if it was not."""
        return self._claims.get(name)

    def waits_of(self, *, urgent: bool) -> Iterator[float]:
        """Yield the waits of the counting tasks that are urgent, or of those that are not."""
        for name, wait_s in self.waits_s.items():
            task = self.tasks[name]
            if task.file and urgent == (task.priority > 0):
                yield wait_s
