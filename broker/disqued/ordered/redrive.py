"""REDRIVE of ordered queues: moves the jobs of a queue to where they come from, in order, at a rate.

The node that takes the command runs the task. In each round it asks the leader for the next jobs that match and their
targets, and has the machine move them. Jobs that are added while the task runs are left alone. STATUS and CANCEL are
answered by the node that runs the task.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.core.runtime.state import NodeState
from disqued.core.timers.alarm import Alarm
from disqued.errors import ReplyError
from disqued.moves.redrive import Redrive, parse_redrive
from disqued.moves.redriving import CANCELLED, MOST_TASKS, RUNNING
from disqued.moves.redriving import DONE as TASK_DONE
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.reading import pack_question, unpack_question
from disqued.ordered.requests import COMMAND, DONE, READ, Request
from disqued.ordered.results import unpack
from disqued.ordered.room import OrderedRoom, ordered_of
from disqued.ordered.waiting import ClientRequest, Waiting
from disqued.orderedqueue.commands import MoveJobs
from disqued.orderedqueue.effects import OK as DID
from disqued.resp.writer import OK, array_header, bulk, integer

TICK_MS: Final = 200
"""How often jobs are moved."""
MOST_PER_ROUND: Final = 500
ANSWER_MS: Final = 10_000
STARTED: Final = b"+started\r\n"


class RedriveTask(Alarm):
    """One REDRIVE of an ordered queue."""

    def __init__(self, room: OrderedRoom, queue: OrderedQueue, options: Redrive, last: int) -> None:
        super().__init__()
        self._room = room
        self._queue = queue
        self._options = options
        self._last = last
        """The index of the last entry when the task began."""
        self.state = RUNNING
        self.started_ms: i64 = room.state.now_ms
        self.rate = options.rate
        self.moved = 0
        self.failed = 0
        """Jobs that do not say where they come from, or that are in that queue already."""
        self._after = 0
        """The index of the last job that was looked at."""
        self._earned = 0
        """Thousandths of a job that the rate allows."""
        self._unanswered = 0
        self._at_end = False

    @property
    def left(self) -> int:
        """Whether jobs may be left to move, as a number."""
        return 0 if self._at_end else 1

    def ring(self, state: NodeState) -> None:
        """Begin a round."""
        if self.state != RUNNING:
            return
        self._earned = min(self._earned + self.rate * TICK_MS, max(self.rate, 1) * 1000)
        wanted = min(self._earned // 1000, self._options.count - self.moved, MOST_PER_ROUND)
        if wanted <= 0:
            self.arm(state)
            return
        options = self._options
        before_ms = int(self.started_ms) - options.older_s * 1000 if options.older_s > 0 else 0
        numbers = (self._after, self._last, wanted, before_ms)
        words = [b"redrive", *[b"%d" % number for number in numbers], options.target, options.reason]
        self._submit(_ListRequest(self, pack_question(words), state.now_ms + ANSWER_MS))

    def arm(self, state: NodeState) -> None:
        """Begin the next round soon."""
        state.lifecycle.timers.arm(self, state.now_ms + TICK_MS)

    def _submit(self, request: Request) -> None:
        if self._queue.name in self._room.catalog.by_name:
            self._room.clients.client(self._queue.group).submit(request)
        else:
            self.state = CANCELLED

    def listed(self, words: list[bytes]) -> None:
        """The leader listed jobs: where it stopped, how many have no target, then the indexes and targets."""
        if self.state != RUNNING:
            return
        after = int(words[0])
        self.failed += int(words[1])
        by_target: dict[bytes, list[int]] = {}
        for at in range(2, len(words), 2):
            by_target.setdefault(words[at + 1], []).append(int(words[at]))
        self._at_end = after == 0
        self._after = after
        self._unanswered = len(by_target)
        deadline_ms = self._room.state.now_ms + ANSWER_MS
        for target, indexes in by_target.items():
            self._earned -= 1000 * len(indexes)
            command = MoveJobs(indexes, target, redrives=True).encode()
            self._submit(_MoveRequest(self, command, deadline_ms))
        if not by_target:
            self._end_round()

    def answered(self, count: int) -> None:
        """Moves of jobs with one target have begun."""
        self.moved += count
        self._unanswered -= 1
        if self._unanswered == 0:
            self._end_round()

    def _end_round(self) -> None:
        if self.state != RUNNING:
            return
        if self._at_end or self.moved >= self._options.count:
            self.state = TASK_DONE
        else:
            self.arm(self._room.state)

    def again(self) -> None:
        """The leader did not answer."""
        if self.state == RUNNING:
            self.arm(self._room.state)

    def status(self) -> bytes:
        """The reply to STATUS."""
        numbers = {
            b"moved": self.moved,
            b"left": self.left,
            b"failed": self.failed,
            b"started": int(self.started_ms),
            b"rate": self.rate,
        }
        parts = [bulk(name) + integer(value) for name, value in numbers.items()]
        return array_header(2 + 2 * len(parts)) + bulk(b"state") + bulk(self.state) + b"".join(parts)


class _TaskRequest(Request):
    """A request of a task."""

    def __init__(self, task: RedriveTask, kind: i64, data: bytes, deadline_ms: i64, *, repeated: bool) -> None:
        super().__init__(kind, data, deadline_ms, repeated=repeated)
        self.task = task


class _ListRequest(_TaskRequest):
    """Asks which jobs are next."""

    def __init__(self, task: RedriveTask, question: bytes, deadline_ms: i64) -> None:
        # Without its own `__init__`, an instance of a compiled class never leaves the memory if the class inherits one.
        super().__init__(task, READ, question, deadline_ms, repeated=True)

    def answered(self, status: i64, data: bytes) -> None:
        """Move them."""
        words = unpack_question(data) if status == DONE else []
        if len(words) >= 2:
            self.task.listed(words)
        else:
            self.task.again()


class _MoveRequest(_TaskRequest):
    """Moves some of them."""

    def __init__(self, task: RedriveTask, command: bytes, deadline_ms: i64) -> None:
        # Without its own `__init__`, an instance of a compiled class never leaves the memory if the class inherits one.
        super().__init__(task, COMMAND, command, deadline_ms, repeated=True)

    def answered(self, status: i64, data: bytes) -> None:
        """Count."""
        told = unpack(data)
        self.task.answered(int(told.value) if status == DONE and told.code == DID else 0)


class _BeginRequest(ClientRequest):
    """Asks for the index of the last entry, and begins the task."""

    def __init__(self, room: OrderedRoom, waiting: Waiting, queue: OrderedQueue, options: Redrive) -> None:
        deadline_ms = room.state.now_ms + ANSWER_MS
        super().__init__(room, waiting, queue.name, READ, pack_question([b"index"]), deadline_ms, repeated=True)
        self._queue = queue
        self._options = options

    def done(self, result: bytes) -> None:
        """Begin."""
        task = RedriveTask(self.room, self._queue, self._options, int(result[1:-2]))
        tasks = self.room.redrives
        tasks.pop(self.queue, None)
        while len(tasks) >= MOST_TASKS:
            del tasks[next(iter(tasks))]
        tasks[self.queue] = task
        task.ring(self.room.state)
        self.waiting.finish(STARTED)


def redrive(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Start a task about an ordered queue, end it, or tell how far it is; False if the queue is none."""
    room = ordered_of(state)
    queue = room.catalog.by_name.get(args[1])
    if queue is None:
        return False
    task = room.redrives.get(queue.name)
    runs = isinstance(task, RedriveTask) and task.state == RUNNING
    what = args[2].upper() if len(args) == 3 else b""
    if what == b"STATUS":
        session.out.append(task.status() if isinstance(task, RedriveTask) else session.null_array())
    elif what == b"CANCEL":
        if not isinstance(task, RedriveTask) or not runs:
            raise ReplyError("ERR no REDRIVE of that queue is running on this node")
        task.state = CANCELLED
        session.out.append(OK)
    else:
        options = parse_redrive(args)
        if options.target == queue.name:
            raise ReplyError("ERR The jobs are in that queue already")
        if runs:
            raise ReplyError("ERR a REDRIVE of that queue is running; wait for it, or send REDRIVE with CANCEL first")
        waiting = Waiting(state, session)
        waiting.begin()
        room.clients.client(queue.group).submit(_BeginRequest(room, waiting, queue, options))
    return True
