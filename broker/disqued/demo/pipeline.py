"""A pipeline of 1,000 dependent tasks while two of three nodes are killed, one after the other, and lose their jobs.

The workers take tasks with claims and write to a table that refuses lower claims. Some workers stop for longer than
their lease and write late. When a killed node is back, its copies are made again before the next node is killed.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from disqued.client import Client, DisqueError, Job, JobAcknowledged, JobId, NoSuchJob, NotReplicated, StaleClaim
from disqued.demo.cluster import BrokerNode, Cluster
from disqued.demo.source import count_file
from disqued.demo.stalled import describe
from disqued.demo.tasks import COUNTS, LIST, TOTAL, Account, Table, Task, plan
from disqued.demo.waiting import wait_for
from disqued.demo.workers import WorkFailedError

QUEUE = "demo:tasks"
WORKERS = 6
COPIES = 3
CONFIRMED = 2
"""A task is accepted when so many nodes have it, also while the third one is down."""
RETRY_S = 3
LEASE_S = 1
"""The lease of the workers that stop for longer."""
RETAIN_S = 600
STOPS_EACH = 100
"""Of so many counting tasks, one has a worker that stops at its first delivery."""
STOP_S = 10.0
"""The longest time for which a worker waits for the next claim of its task."""
TASK_S = 0.1
"""How long a task takes at least, so that tasks wait for workers while nodes are killed."""
ADDED_PERCENT = (50, 60, 90, 100)
"""The tasks that are added before the first kill, while that node is down, before the second kill, and after it."""
FETCH_TIMEOUT_MS = 200
DOWN_S = 1.0
POLL_S = 0.05
DEADLINE_S = 60.0
"""The scene fails if no task is added or done for this time."""


@dataclass(slots=True)
class Loss:
    """A node that was killed and came back without its jobs. `held` counts its copies of unfinished tasks."""

    node: BrokerNode
    held: int
    whole_s: float
    """Seconds from the kill until all tasks had all copies again."""
    rebuilt: int
    """Copies that were made again."""


@dataclass(slots=True)
class Pipeline:
    """The scene: after `run`, the account of all tasks and the losses."""

    cluster: Cluster
    folder: Path
    account: Account
    groups: list[list[Task]]
    say: Callable[[str], None]
    """Shows a line about what happens."""
    table: Table = field(default_factory=Table)
    losses: list[Loss] = field(default_factory=list)
    total: int = 0
    """The result of the last task."""
    _over: threading.Event = field(default_factory=threading.Event)
    _failures: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, cluster: Cluster, folder: Path, files: list[str], say: Callable[[str], None]) -> Pipeline:
        """Plan the tasks for these files of a folder."""
        groups = plan(files)
        return cls(cluster, folder, Account({task.name: task for group in groups for task in group}), groups, say)

    def run(self) -> None:
        """Add all tasks, work on them, kill two nodes meanwhile, and wait for the result of the last task.

        Raises:
            WorkFailedError: the tasks made no progress, or a request failed.
        """
        nodes = self.cluster.nodes
        threads = [
            threading.Thread(target=self._work, args=(nodes[number % len(nodes)],), daemon=True)
            for number in range(WORKERS)
        ]
        for thread in threads:
            thread.start()
        try:
            with Client((nodes[0].address,)) as client:
                for node, before, during in zip(nodes[1:], *self._parts(), strict=True):
                    self._add(client, before)
                    self._lose(client, node, during)
                self._finish(client)
        except (DisqueError, ValueError) as error:
            raise WorkFailedError(f"the pipeline: {error}") from error
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def count_directly(self) -> int:
        """Count the files without the broker. Each file is read once, although several tasks may count it."""
        files = [task.file for task in self.account.tasks.values() if task.file]
        counts = {name: count_file(self.folder / name).definitions for name in set(files)}
        return sum(counts[name] for name in files)

    def problem(self, expected: int) -> str | None:
        """Return what is wrong with the result, or None. `expected` is the total, counted without the broker."""
        account = self.account
        if not account.is_complete:
            return f"{len(account.tasks) - len(account.done)} tasks were lost"
        if account.early:
            return f"{len(account.early)} tasks were delivered before their parents were done: {account.early[:3]}"
        if account.lower:
            return f"{len(account.lower)} tasks were delivered again without a greater claim: {account.lower[:3]}"
        if account.accepted:
            return f"{account.accepted} of {account.late_writes} writes under an old claim were accepted"
        if self.total != expected:
            return f"the last task says {self.total:,}, the count without the broker is {expected:,}"
        return None

    def _parts(self) -> tuple[list[list[list[Task]]], list[list[list[Task]]]]:
        """Return the groups that are added before each kill, and those that are added while the node is down."""
        ends = [len(self.groups) * percent // 100 for percent in (0, *ADDED_PERCENT)]
        parts = [self.groups[start:end] for start, end in itertools.pairwise(ends)]
        return parts[::2], parts[1::2]

    # --- adding and killing -------------------------------------------------------------------------------------------

    def _add(self, client: Client, groups: list[list[Task]]) -> None:
        for group in groups:
            for task in group:
                job_id = self._add_task(client, task)
                self.account.added(task, job_id, time.monotonic())

    def _add_task(self, client: Client, task: Task) -> JobId:
        """Add a task under an ID of its own, so that it can be repeated when the answer is lost."""
        job_id = client.new_id(retry_s=RETRY_S)
        ids = self.account.ids
        deadline_s = time.monotonic() + DEADLINE_S
        while True:
            try:
                return client.add(
                    QUEUE,
                    task.name,
                    job_id=job_id,
                    after=[ids[name] for name in task.after],
                    priority=task.priority,
                    replicate=COPIES,
                    sync=CONFIRMED,
                    retry_s=RETRY_S,
                    retain_s=RETAIN_S,
                )
            except NotReplicated:  # a node has just been killed, and the others have not noticed yet
                if time.monotonic() > deadline_s:
                    raise

    def _lose(self, client: Client, node: BrokerNode, groups: list[list[Task]]) -> None:
        """Kill a node, add tasks while it is down, start it without its jobs, and wait for its copies."""
        others = [other for other in self.cluster.nodes if other is not node]
        before = _rebuilt(others)
        held = node.jobs()
        node.process.kill()
        killed_s = time.monotonic()
        self.say(f"{self._progress()}: {node.name} is killed, with copies of {held} tasks")
        self._add(client, groups)
        time.sleep(max(0.0, killed_s + DOWN_S - time.monotonic()))
        node.start()
        node.process.wait_loaded()
        self._wait(lambda: self.cluster.is_complete and self._is_whole(), f"the copies of {node.name} are back")
        whole_s = time.monotonic() - killed_s
        self.losses.append(Loss(node, held, whole_s, _rebuilt(others) - before))
        self.say(f"{self._progress()}: {node.name} is back, and all tasks have all copies again")

    def _progress(self) -> str:
        return f"{len(self.account.ids):,} tasks added, {len(self.account.done):,} done"

    def _is_whole(self) -> bool:
        """Whether every node says that no job lacks a copy."""
        return all(node.repair_status().done for node in self.cluster.nodes)

    def _finish(self, client: Client) -> None:
        self._wait(lambda: self.account.is_complete, "all tasks are done")
        self.total = result_of(client, self.account.ids[TOTAL])

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_for(
            condition,
            what,
            progress=lambda: self.account.progress,
            patience_s=DEADLINE_S,
            failures=self._failures,
            describe=lambda: describe(self.cluster, self.account),
        )

    # --- working ------------------------------------------------------------------------------------------------------

    def _work(self, node: BrokerNode) -> None:
        others = [other.address for other in self.cluster.nodes if other is not node]
        try:
            with Client((node.address, *others)) as client:
                while not self._over.is_set():
                    for job in client.get(QUEUE, timeout_ms=FETCH_TIMEOUT_MS, with_claim=True):
                        self._do(client, job)
        except (DisqueError, ValueError) as error:
            self._failures.append(f"a worker of the pipeline failed: {type(error).__name__}: {error}")

    def _do(self, client: Client, job: Job) -> None:
        task = self.account.tasks[job.body.decode()]
        claim = job.claim or 0
        is_first = self.account.delivered(task.name, claim, time.monotonic())
        value = self._value(client, task)
        time.sleep(TASK_S)
        if is_first and _stops(task) and not self._stop(client, job, task):
            return
        if not self.table.write(task.name, claim, value):
            return
        self.account.ends(task.name, time.monotonic())
        try:
            client.ack(job.id, claim=claim, result=str(value))
        except StaleClaim:  # another worker has the task, and will acknowledge it
            return
        self.account.ended(task.name)

    def _value(self, client: Client, task: Task) -> int:
        """Do the work: count a file, or add the results of the parents."""
        if task.file:
            return count_file(self.folder / task.file).definitions
        if task.name == LIST:
            return COUNTS
        return sum(result_of(client, self.account.ids[name]) for name in task.after)

    def _stop(self, client: Client, job: Job, task: Task) -> bool:
        """Stop with a claim until the task was delivered again, and then write. True: it was not, so continue."""
        claim = job.claim or 0
        with suppress(StaleClaim, JobAcknowledged, NoSuchJob):  # on a slow machine, the lease may be over already
            client.working(job.id, claim=claim, lease_s=LEASE_S)
        deadline_s = time.monotonic() + STOP_S
        while self.table.greatest(task.name) <= claim:
            if self._over.is_set() or time.monotonic() > deadline_s:
                return True
            time.sleep(POLL_S)
        self.account.wrote_late(accepted=self.table.write(task.name, claim, -1))
        return False


def result_of(client: Client, job_id: JobId) -> int:
    """Read the result of a task that is done.

    A stale worker may have ended it at a node that did not know of the next claim yet. Nodes that know the claim ignore
    the result, and that of the last worker is still to come.

    Raises:
        ValueError: no result came in time.
    """
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        fate = client.result(job_id)
        if fate is not None and fate.result is not None:
            return int(fate.result)
        if time.monotonic() > deadline_s:
            raise ValueError(f"no node knows the result of {job_id} after {DEADLINE_S:g} s: {fate}")
        time.sleep(POLL_S)


def _stops(task: Task) -> bool:
    return task.file != "" and int(task.name.partition("-")[2]) % STOPS_EACH == STOPS_EACH // 2


def _rebuilt(nodes: list[BrokerNode]) -> int:
    """How many copies these nodes made again since they started."""
    return sum(node.repair_status().copies_rebuilt for node in nodes)
