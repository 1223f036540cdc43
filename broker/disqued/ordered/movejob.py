"""MOVEJOB of jobs of ordered queues: the machines park them, and the leaders move them.

The reply is the number of jobs that were moved: when all are, or after a while; moves that take longer continue. Jobs
that consumers have are not moved.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.core.runtime.state import NodeState
from disqued.core.timers.alarm import Alarm
from disqued.errors import ReplyError
from disqued.moves.movejob import MOST_JOBS, WAIT_MS, parse_movejob
from disqued.ordered.ackjob import TIMEOUT_MS, split_jobs
from disqued.ordered.reading import pack_question
from disqued.ordered.requests import COMMAND, READ
from disqued.ordered.results import unpack
from disqued.ordered.room import OrderedRoom, ordered_of
from disqued.ordered.waiting import ClientRequest, Waiting
from disqued.orderedqueue.commands import MoveJobs
from disqued.orderedqueue.effects import OK, SAME_QUEUE
from disqued.resp.writer import integer

_LOOK_MS: Final = 20
_MOST_LOOK_MS: Final = 500
"""How often the leaders are asked whether the moves are over: at first, and at most."""


class _Wait(Alarm):
    """A client that waits for the moves of its jobs."""

    def __init__(self, room: OrderedRoom, waiting: Waiting, jobs: dict[bytes, list[int]]) -> None:
        super().__init__()
        self._room = room
        self._waiting = waiting
        self._jobs = jobs
        """The indexes by queue."""
        self._unanswered: i64 = 0
        self._begun: i64 = 0
        """How many moves have begun."""
        self._left: i64 = 0
        """How many of them are not over, as far as leaders have answered in this round."""
        self._until_ms: i64 = room.state.now_ms + WAIT_MS
        self._pause_ms: i64 = _LOOK_MS

    def begin(self, target: bytes, *, keeps_counters: bool, alone: bool) -> None:
        """Park the jobs."""
        self._unanswered = len(self._jobs)
        for name, indexes in self._jobs.items():
            command = MoveJobs(indexes, target, keeps_counters=keeps_counters).encode()
            self._submit(_MoveRequest(self, self._room, self._waiting, name, command, alone=alone), name)

    def _submit(self, request: ClientRequest, name: bytes) -> None:
        queue = self._room.catalog.by_name.get(name)
        if queue is not None:
            self._room.clients.client(queue.group).submit(request)

    def moved(self, count: i64) -> None:
        """A group has begun so many moves."""
        self._begun += count
        self._left += count
        self._answered()

    def told(self, left: i64) -> None:
        """A leader said how many moves are not over."""
        self._left += left
        self._answered()

    def _answered(self) -> None:
        self._unanswered -= 1
        if self._unanswered > 0:
            return
        now_ms = self._room.state.now_ms
        if self._left == 0 or now_ms >= self._until_ms:
            self._waiting.finish(integer(int(max(self._begun - self._left, 0))))
            return
        self._room.state.lifecycle.timers.arm(self, now_ms + self._pause_ms)
        self._pause_ms = min(2 * self._pause_ms, _MOST_LOOK_MS)

    def ring(self, state: NodeState) -> None:
        """Ask how many moves are not over."""
        del state
        self._unanswered = len(self._jobs)
        self._left = 0
        for name, indexes in self._jobs.items():
            question = pack_question([b"moving", *[b"%d" % index for index in indexes]])
            self._submit(_LeftRequest(self, self._room, self._waiting, name, question), name)


class _MoveRequest(ClientRequest):
    """The part of the request that one group does. Repeated, it moves nothing twice, and may count less."""

    def __init__(
        self, wait: _Wait, room: OrderedRoom, waiting: Waiting, queue: bytes, data: bytes, *, alone: bool
    ) -> None:
        super().__init__(room, waiting, queue, COMMAND, data, room.state.now_ms + TIMEOUT_MS, repeated=True)
        self._wait = wait
        self._alone = alone

    def done(self, result: bytes) -> None:
        """Wait for the moves."""
        told = unpack(result)
        if self._alone and told.code == SAME_QUEUE:
            self.waiting.finish(ReplyError("ERR The job is in that queue already").encode())
            return
        self._wait.moved(told.value if told.code == OK else 0)


class _LeftRequest(ClientRequest):
    """Asks how many moves are not over."""

    def __init__(self, wait: _Wait, room: OrderedRoom, waiting: Waiting, queue: bytes, question: bytes) -> None:
        super().__init__(room, waiting, queue, READ, question, room.state.now_ms + TIMEOUT_MS, repeated=True)
        self._wait = wait

    def done(self, result: bytes) -> None:
        """Count."""
        self._wait.told(int(result[1:-2]))


def movejob(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Move jobs; False if none of them is of an ordered queue."""
    room = ordered_of(state)
    end, target, keeps_counters = parse_movejob(args)
    parts = split_jobs(room, args, end)
    if parts is None:
        return False
    if end - 1 > MOST_JOBS:
        raise ReplyError(f"ERR MOVEJOB takes at most {MOST_JOBS} jobs, not {end - 1}; use several requests")
    jobs, others = parts
    if others:
        raise ReplyError(
            "ERR MOVEJOB takes jobs of ordered queues or jobs of other queues, not both; use several requests"
        )
    waiting = Waiting(state, session)
    waiting.begin()
    _Wait(room, waiting, jobs).begin(target, keeps_counters=keeps_counters, alone=end == 2)
    return True
