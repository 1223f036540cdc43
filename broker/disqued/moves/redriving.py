"""REDRIVE: moves the jobs of a queue to where they come from, on all nodes, at a rate that holds for the cluster.

The node that takes the command runs the task. It grants the nodes some jobs several times per second, in proportion to
what they have, and they report what they did. A node does nothing without grants, so a task ends with the node that
runs it, and CANCEL takes effect at once. Grants that a node did not use count for nothing: the rate and COUNT are about
jobs that moved.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.attributes import ORIGIN_ID
from disqued.core.jobs.job import Job
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.core.timers.alarm import Alarm
from disqued.moves.move import Moving
from disqued.moves.redrivetask import CANCEL, GRANT, REPORT, RedriveMessage, Task
from disqued.moves.request import begin_move

FEATURE_REDRIVE: Final = 2048
"""Understands REDRIVE."""
TICK_MS: Final = 200
"""How often jobs are granted."""
DEFAULT_RATE: Final = 500
"""Jobs per second in all."""
SILENT_MS: Final = 10_000
"""A node that has not reported for this long takes part no more; one without grants for as long forgets the task."""
_LOOKS: Final = 2048
"""Jobs that a node looks at per grant, so that a filter that few jobs pass does not hold the loop."""
_QUIET: Final = 3
"""A task is done when no node had anything left for so many ticks."""
MOST_TASKS: Final = 256
"""Tasks that a node remembers, running or ended."""

RUNNING: Final = b"running"
DONE: Final = b"done"
CANCELLED: Final = b"cancelled"


@mypyc_attr(acyclic=True)
class Share:
    """What this node does for a task."""

    def __init__(self, task: Task, now_ms: i64) -> None:
        self.task = task
        self.began_ms: i64 = max(task.started_ms, now_ms)
        """Jobs that arrive later are left alone, so the task ends also if jobs fail again at once. The clock of this
        node may be ahead of that of the node that runs the task, and with it the jobs that this node created."""
        self._ahead: set[bytes] = set()
        """The first IDs of jobs from the future that were moved."""
        self.heard_ms: i64 = 0
        """When jobs were last granted."""
        self.granted: i64 = 0
        """How many jobs were granted in all."""
        self.moved: i64 = 0
        self.failed: i64 = 0
        self.left: i64 = 0
        """How many jobs may be left to move; 0 when the end of the queue was reached and no move is under way."""
        self._at_end: bool = False
        """Whether the end of the queue was reached."""
        self._after: Job | None = None
        """The last job that was looked at and stays."""
        self._under_way: list[bytes] = []

    def work(self, state: NodeState, moving: Moving, granted: i64) -> None:
        """Move up to this many jobs."""
        task = self.task
        self.granted += granted
        self._under_way = [job_id for job_id in self._under_way if job_id in moving]
        queue = state.lifecycle.queues.get(task.queue)
        looks: i64 = 0
        if queue is None or queue.length == 0:
            self._at_end = True
        while queue is not None and granted > 0 and looks < _LOOKS and not self._at_end:
            jobs = queue.order.peek(min(granted, _LOOKS - looks), self._after)
            self._at_end = len(jobs) == 0
            for job in jobs:
                looks += 1
                if self._move(state, moving, job):
                    granted -= 1
                else:
                    self._after = job
        self.left = i64(len(self._under_way))
        if queue is not None and not self._at_end:
            self.left += queue.length

    def _was_there(self, job: Job, now_ms: i64) -> bool:
        """Whether a job was there when the task began although it seems to be newer.

        Another node with a fast clock may have created it, or this node loaded it from its file and started before its
        clock was set. If it fails again it comes back from the future as well, so each is moved once.
        """
        if job.created_ms <= now_ms:
            return False
        first_id = job.id if job.extra is None else job.extra.get(ORIGIN_ID) or job.id
        if first_id in self._ahead:
            return False
        self._ahead.add(first_id)
        return True

    def _move(self, state: NodeState, moving: Moving, job: Job) -> bool:
        """Begin to move a job; False if it stays."""
        task = self.task
        if not task.takes(job):
            return False
        if job.created_ms > self.began_ms and not self._was_there(job, state.now_ms):
            return False
        target = task.target_of(job)
        if not target:
            self.failed += 1
            return False
        if not begin_move(state, moving, job, target, keep_counters=False):
            return False
        self.moved += 1
        if job.id in moving:
            self._under_way.append(job.id)
        return True


@mypyc_attr(acyclic=True)
class Run(Alarm):
    """A task that this node runs."""

    def __init__(self, redrives: Redrives, task: Task, rate: i64, count: i64) -> None:
        super().__init__()
        self._redrives = redrives
        self.task = task
        self.rate: i64 = rate
        self.count: i64 = count
        """How many jobs may be moved."""
        self.state = RUNNING
        self.reports: dict[bytes, RedriveMessage] = {}
        """What each node reported last, by node ID."""
        self.asked_ms: dict[bytes, int] = {}
        """When each node was first asked, by node ID."""
        self.granted: dict[bytes, int] = {}
        """How many jobs each node was granted, by node ID."""
        self.earned: i64 = 0
        """Thousandths of a job that the rate allowed so far."""
        self.quiet: i64 = 0
        """How many times in a row no node had anything left."""

    def ring(self, state: NodeState) -> None:
        """Grant more jobs."""
        del state
        self._redrives.tick(self)

    def total(self, name: str) -> int:
        """The sum of a field of all reports."""
        return sum(int(getattr(report, name)) for report in self.reports.values())


class Redrives:
    """The tasks of one node: those that it runs, and those in which it takes part."""

    def __init__(self, state: NodeState, moving: Moving) -> None:
        self._state = state
        self._moving = moving
        self.runs: dict[bytes, Run] = {}
        """By queue: the tasks that this node runs or ran last."""
        self.shares: dict[bytes, Share] = {}
        """By queue."""
        self.told: dict[bytes, RedriveMessage] = {}
        """By queue: the last grant of another node, which has the totals."""

    def is_running(self, queue: bytes) -> bool:
        """Whether a task about a queue runs on this node, or on another one that granted jobs lately."""
        run = self.runs.get(queue)
        if run is not None and run.state == RUNNING:
            return True
        share = self.shares.get(queue)
        return queue in self.told and share is not None and self._state.now_ms - share.heard_ms < SILENT_MS

    @property
    def running(self) -> int:
        """The number of tasks that run on this node."""
        return sum(run.state == RUNNING for run in self.runs.values())

    def start(self, task: Task, rate: i64, count: i64) -> None:
        """Run a task on this node."""
        ended = [queue for queue, run in self.runs.items() if run.state != RUNNING]
        for queue in ended[: max(len(self.runs) - MOST_TASKS + 1, 0)]:
            del self.runs[queue]
        run = Run(self, task, rate, count)
        self.runs[task.queue] = run
        self.tick(run)

    def _make_room(self) -> None:
        for remembered in (self.shares, self.told):
            while len(remembered) >= MOST_TASKS:
                del remembered[next(iter(remembered))]

    def tick(self, run: Run) -> None:
        """Grant the nodes what the rate allows, and end the task when nothing is left."""
        if run.state != RUNNING:
            return
        state = self._state
        nodes = self._nodes(run)
        spent: i64 = run.total("moved") + self._outstanding(run, nodes)
        run.earned = min(run.earned + run.rate * TICK_MS, (spent + max(run.rate, 1)) * 1000)
        spare: i64 = min(run.earned // 1000, run.count) - spent
        weights = [self._left(run, node_id) for node_id in nodes]
        total: i64 = max(sum(weights), 1)
        for index, node_id in enumerate(nodes):
            granted: i64 = min((spare * i64(weights[index]) + total - 1) // total, spare) if spare > 0 else 0
            spare -= granted
            total = max(total - weights[index], 1)
            self._grant(run, node_id, granted)
        waits = any(node_id not in run.reports for node_id in nodes)
        run.quiet = 0 if waits or run.total("left") > 0 else run.quiet + 1
        if run.quiet >= _QUIET or run.total("moved") >= run.count:
            run.state = DONE
            return
        state.lifecycle.timers.arm(run, state.now_ms + TICK_MS)

    def _outstanding(self, run: Run, nodes: list[bytes]) -> int:
        """How many jobs were granted to nodes that have not reported what they did with them."""
        outstanding = 0
        for node_id in nodes:
            report = run.reports.get(node_id)
            outstanding += run.granted.get(node_id, 0) - (0 if report is None else int(report.granted))
        return max(outstanding, 0)

    def _nodes(self, run: Run) -> list[bytes]:
        """The nodes that take part: this one, and those that can be reached and have reported lately."""
        state = self._state
        nodes = [state.view.node_id]
        for peer in state.view.reachable:
            if not peer.features & FEATURE_REDRIVE:
                continue
            asked_ms = run.asked_ms.setdefault(peer.id, int(state.now_ms))
            if peer.id in run.reports or state.now_ms - asked_ms < SILENT_MS:
                nodes.append(peer.id)
        return nodes

    def _left(self, run: Run, node_id: bytes) -> int:
        """The part of a node in what is granted: what it has left, as far as it reported."""
        report = run.reports.get(node_id)
        if report is not None:
            return int(report.left)
        if node_id != self._state.view.node_id:
            return 0
        queue = self._state.lifecycle.queues.get(run.task.queue)
        return 0 if queue is None else int(queue.length)

    def _grant(self, run: Run, node_id: bytes, granted: i64) -> None:
        """Grant jobs to a node, and ask it for a report."""
        run.granted[node_id] = run.granted.get(node_id, 0) + int(granted)
        if node_id == self._state.view.node_id:
            share = self._share(run.task)
            share.work(self._state, self._moving, granted)
            run.reports[node_id] = self._report(share)
            return
        peer = self._state.view.peers.get(node_id)
        if peer is not None:
            totals = (run.total("moved"), run.total("left"), run.total("failed"))
            self._send(peer, RedriveMessage(GRANT, run.task, granted, *totals))

    def _share(self, task: Task) -> Share:
        """This node's part in a task."""
        share = self.shares.get(task.queue)
        if share is None or share.task.started_ms != task.started_ms:
            share = Share(task, self._state.now_ms)
            self._make_room()
            self.shares[task.queue] = share
        share.heard_ms = self._state.now_ms
        return share

    def _report(self, share: Share) -> RedriveMessage:
        return RedriveMessage(REPORT, share.task, share.granted, share.moved, share.left, share.failed)

    def _send(self, peer: Peer, message: RedriveMessage) -> None:
        send(self._state, peer, self._state.bus.other(kinds.REDRIVE, message.pack()))

    def hear(self, peer: Peer, message: RedriveMessage) -> None:
        """Do what another node grants, take its report, or end a task."""
        queue = message.task.queue
        if message.kind == GRANT:
            share = self._share(message.task)
            self.told[queue] = message
            share.work(self._state, self._moving, message.granted)
            self._send(peer, self._report(share))
            return
        run = self.runs.get(queue)
        if message.kind == REPORT:
            if run is not None and run.task.started_ms == message.task.started_ms:
                run.reports[peer.id] = message
        elif run is not None:
            self._cancel(run)

    def _cancel(self, run: Run) -> None:
        if run.state == RUNNING:
            run.state = CANCELLED
            self._state.lifecycle.timers.disarm(run)

    def cancel(self, queue: bytes) -> bool:
        """End a task, on whatever node it runs; False if none is known."""
        if not self.is_running(queue):
            return False
        run = self.runs.get(queue)
        if run is not None and run.state == RUNNING:
            self._cancel(run)
            return True
        message = RedriveMessage(CANCEL, self.told.pop(queue).task)
        for peer in self._state.view.reachable:
            if peer.features & FEATURE_REDRIVE:
                self._send(peer, message)
        return True

    def clear(self) -> None:
        """All jobs were dropped."""
        for run in self.runs.values():
            self._cancel(run)
        self.shares.clear()
        self.told.clear()
