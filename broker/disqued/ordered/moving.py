"""Jobs on their way from ordered queues to others: dead letters, MOVEJOB and REDRIVE.

The machine parks a job that must move. The leader makes its successor: it reads the job from the log, adds the
successor to the target queue, repeats that until it is confirmed, and then ends the old job (DEADSENT). A new leader
does the same for all jobs that its machine has parked. Repetitions meet: in a queue of jobs by the derived ID, in an
ordered queue by the key, which is that ID.

An ordered queue knows keys for an hour. If it is not known for that time whether the successor was added, the job
stays parked, because it could be added twice, until ENQUEUE returns it to its queue. An at-most-once job must never be
delivered twice, so it ends before its successor is added; it is lost if this node dies in between.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.admission.moved import add_moved
from disqued.core.clients.session import Session
from disqued.core.jobs.job import Job
from disqued.core.runtime.state import NodeState
from disqued.core.timers.alarm import Alarm
from disqued.errors import ReplyError
from disqued.moves.counters import DEAD_BY
from disqued.moves.counters import MOVED as JOBS_MOVED
from disqued.ordered.catalog import Catalog, OrderedQueue
from disqued.ordered.clients import Clients
from disqued.ordered.counters import MOVES_PARKED
from disqued.ordered.exchange import Exchange
from disqued.ordered.reading import pack_question
from disqued.ordered.requests import COMMAND, DONE, READ, REFUSED, Request
from disqued.ordered.results import unpack
from disqued.ordered.successors import KEY_WINDOW_S, WHY, add_for, job_of, successor_of
from disqued.orderedqueue import effects
from disqued.orderedqueue.commands import DeadSent
from disqued.orderedqueue.effects import Move
from disqued.orderedqueue.machine import Machine

MOST_UNDER_WAY: Final = 64
"""How many moves of a group are made at a time; the others wait in the order in which they began."""
ANSWER_MS: Final = 10_000
"""How long a request waits for the leader of a group."""
_LOOK_MS: Final = 20
"""How often is looked for the replies to jobs that are added to queues of jobs."""
_RETRY_MS: Final = 50
_MOST_RETRY_MS: Final = 10_000
_MOST_DOUBLINGS: Final = 8

_NEW: Final = 0
_READING: Final = 1
_READY: Final = 2
"""The successor is known and must be added."""
_ADDING: Final = 3
_ADDED: Final = 4
"""The successor is there, and the old job must be ended."""
_ENDING: Final = 5
_PARKED: Final = 6
"""Nothing is done any more."""


class Moving:
    """One move that the leader makes."""

    def __init__(self, move: Move, now_ms: i64) -> None:
        self.move = move
        self.stage: i64 = _NEW
        self.successor: Job | None = None
        self.successor_id = b""
        """What is confirmed to be in the target queue; the derived ID until then."""
        self.session: Session | None = None
        """Gets the reply of a queue of jobs."""
        self.next_ms: i64 = 0
        self.attempts: i64 = 0
        self.doubt_ms: i64 = now_ms
        """Since when the successor may be there without this node knowing."""
        self.warn_ms: i64 = move.since_ms + KEY_WINDOW_S * 1000
        """When the next warning is logged."""
        self.ended: bool = False
        """An at-most-once job, which ended before its successor is added."""


class _Answer(Request):
    """A request for a move; the answer continues it."""

    def __init__(self, group: GroupMoves, moving: Moving, kind: i64, data: bytes) -> None:
        super().__init__(kind, data, group.exchange.state.now_ms + ANSWER_MS, repeated=True)
        self._group = group
        self._moving = moving

    def answered(self, status: i64, data: bytes) -> None:
        """Continue."""
        self._group.answered(self._moving, status, data)


class _Wake(Alarm):
    """Wakes the moves of a group."""

    def __init__(self, group: GroupMoves) -> None:
        super().__init__()
        self._group = group

    def ring(self, state: NodeState) -> None:
        """Continue."""
        del state
        self._group.look()


class GroupMoves:
    """The moves of one group, while this node leads it."""

    def __init__(
        self, exchange: Exchange, clients: Clients, catalog: Catalog, queue: OrderedQueue, machine: Machine
    ) -> None:
        self.exchange = exchange
        self._clients = clients
        self._catalog = catalog
        self._queue = queue
        self.machine = machine
        self.moves: dict[int, Moving] = {}
        """By the index of the job, in the order in which they began."""
        self.leads: bool = True
        self._wake = _Wake(self)

    def begin(self, move: Move, *, inherited: bool) -> None:
        """Make a move; `inherited`: an earlier leader may have made a part of it."""
        known = self.moves.get(int(move.index))
        if known is not None and known.move is move:
            return
        self.moves[int(move.index)] = Moving(move, move.since_ms if inherited else self._now_ms)
        self._arm(self._now_ms)

    def follow(self) -> None:
        """This node leads no more. At-most-once jobs that have ended are still added."""
        self.leads = False
        self.moves = {index: moving for index, moving in self.moves.items() if moving.ended}

    def job_ended(self, index: i64) -> None:
        """A job has ended: by DEADSENT, or by a client."""
        moving = self.moves.get(int(index))
        if moving is not None and not moving.ended and moving.stage != _ENDING:
            del self.moves[int(index)]

    @property
    def _now_ms(self) -> i64:
        return self.exchange.state.now_ms

    def _arm(self, at_ms: i64) -> None:
        timers = self.exchange.state.lifecycle.timers
        if self._wake.awake_ms == 0 or at_ms < self._wake.awake_ms:
            timers.arm(self._wake, max(at_ms, 1))

    # --- the steps ----------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Do what can be done now."""
        now_ms = self._now_ms
        soonest_ms: i64 = 0
        places: i64 = MOST_UNDER_WAY
        for index, moving in list(self.moves.items()):
            if places == 0:
                break
            if not moving.ended and not self._is_wanted(moving):
                self.moves.pop(index, None)
                continue
            if moving.stage == _PARKED:
                continue
            places -= 1
            if moving.session is not None:
                self._take_reply(moving)
            elif moving.next_ms <= now_ms:
                self._step(moving)
            wait_ms: i64 = now_ms + _LOOK_MS if moving.session is not None else moving.next_ms
            if wait_ms > 0 and (soonest_ms == 0 or wait_ms < soonest_ms):
                soonest_ms = wait_ms
        if soonest_ms > 0:
            self._arm(max(soonest_ms, now_ms + 1))

    def _is_wanted(self, moving: Moving) -> bool:
        """Whether the machine still has the job on its way: MOVEJOB can be cancelled, and jobs deleted."""
        job = self.machine.job(moving.move.index)
        return job is not None and job.move is moving.move

    def _step(self, moving: Moving) -> None:
        """Begin the next step, unless the answer to the last one is awaited."""
        if moving.stage == _NEW:
            moving.stage = _READING
            self._ask(moving, READ, pack_question([b"entry", b"%d" % moving.move.index]))
        elif moving.stage == _READY:
            self._add(moving)
        elif moving.stage == _ADDED:
            moving.stage = _ENDING
            self._ask(moving, COMMAND, DeadSent(moving.move.index, moving.successor_id).encode())

    def _ask(self, moving: Moving, kind: i64, data: bytes, group: i64 = 0) -> None:
        """Send a request to the group of the old job, or to another one."""
        moving.next_ms = 0
        self._clients.client(group if group > 0 else self._queue.group).submit(_Answer(self, moving, kind, data))

    def answered(self, moving: Moving, status: i64, data: bytes) -> None:
        """A request was answered."""
        if self.moves.get(int(moving.move.index)) is not moving:
            return
        if moving.stage == _READING:
            self._read(moving, status, data)
        elif moving.stage == _ADDING:
            self._take_answer(moving, status, data)
        elif moving.stage == _ENDING:
            self._take_end(moving, status, data)
        self._arm(max(moving.next_ms, self._now_ms))

    def _read(self, moving: Moving, status: i64, data: bytes) -> None:
        """Make the successor of what was read."""
        move = moving.move
        job = self.machine.job(move.index)
        if status != DONE or not data or job is None:
            moving.stage = _NEW
            self._try_later(moving)
            return
        state = self.exchange.state
        old = job_of(self._queue, move.index, job.created_ms, data, move)
        moving.successor = successor_of(old, move, state.now_ms, state.next_named_ctime(move.target))
        moving.successor_id = moving.successor.id
        moving.stage = _READY if old.retry_s > 0 else _ADDED
        moving.next_ms = self._now_ms

    # --- the successor ------------------------------------------------------------------------------------------------

    def _add(self, moving: Moving) -> None:
        """Add the successor to the target queue."""
        successor = moving.successor
        assert successor is not None
        target = self._catalog.by_name.get(moving.move.target)
        if self._now_ms >= moving.warn_ms:
            self._warn(moving)
        if target is not None and not moving.ended and self._is_late(moving):
            moving.stage = _PARKED
            return
        moving.stage = _ADDING
        if target is not None:
            self._ask(moving, COMMAND, add_for(successor, successor.id, self._now_ms), target.group)
            return
        state = self.exchange.state
        session = Session(b"", state.now_ms)
        session.flushing = True  # no driver has its connection
        moving.session = session
        try:
            add_moved(state, session, successor)
        except ReplyError as error:
            session.out.append(error.encode())
        self._take_reply(moving)

    def _take_reply(self, moving: Moving) -> None:
        """Look for the reply of a queue of jobs. A repetition is safe at any time, because it has the same ID."""
        session = moving.session
        if session is None or not session.out:
            return
        moving.session = None
        reply = session.out[0]
        if reply.startswith(b"+"):
            self._added(moving, reply[1:-2])
        else:
            moving.stage = _READY
            self._try_later(moving)

    def _take_answer(self, moving: Moving, status: i64, data: bytes) -> None:
        """An ordered queue has answered."""
        moving.stage = _READY
        result = unpack(data)
        target = self._catalog.by_name.get(moving.move.target)
        successor = moving.successor
        if status == DONE and result.code == effects.OK and target is not None and successor is not None:
            ttl_s: i64 = max(successor.expire_at_s - self._now_ms // 1000, 1)
            retry_s = successor.retry_s
            if result.known:
                ttl_s, retry_s = result.ttl_s, result.retry_s
            self._added(moving, target.job_id(result.value, ttl_s, retry_s > 0))
        elif status == DONE:  # the machine looks for the key before it refuses: the successor is not there
            moving.doubt_ms = self._now_ms
            self._try_later(moving)
        elif moving.ended and status != REFUSED:
            del self.moves[int(moving.move.index)]
        else:
            self._try_later(moving)

    def _is_late(self, moving: Moving) -> bool:
        """Whether the target queue may not know the key any more."""
        return self._now_ms - moving.doubt_ms >= KEY_WINDOW_S * 1000

    def _warn(self, moving: Moving) -> None:
        """Log that a move takes more than an hour."""
        state = self.exchange.state
        state.counters.add(MOVES_PARKED)
        moving.warn_ms = self._now_ms + KEY_WINDOW_S * 1000
        queue = self._queue.name.decode("utf-8", "replace")
        target = moving.move.target.decode("utf-8", "replace")
        state.host.log(
            "warning",
            f"A job could not be moved from an ordered queue for an hour; ENQUEUE takes it back: queue={queue} "
            f"index={moving.move.index} target={target}",
        )

    def _added(self, moving: Moving, successor_id: bytes) -> None:
        """The successor is in the target queue."""
        moving.successor_id = successor_id
        moving.stage = _ADDED
        moving.attempts = 0
        moving.next_ms = self._now_ms
        if moving.ended:
            self._count(moving)
            del self.moves[int(moving.move.index)]

    def _take_end(self, moving: Moving, status: i64, data: bytes) -> None:
        """DEADSENT was answered. If the job had ended before, an earlier DEADSENT or a client ended it."""
        moving.stage = _ADDED
        if status != DONE:
            self._try_later(moving)
            return
        at_most_once = moving.successor is not None and moving.successor.retry_s == 0
        if unpack(data).code == effects.OK and at_most_once:
            moving.ended = True
            moving.stage = _READY
            moving.next_ms = self._now_ms
            return
        if unpack(data).code == effects.OK:
            self._count(moving)
        del self.moves[int(moving.move.index)]

    def _count(self, moving: Moving) -> None:
        why = WHY.get(int(moving.move.why))
        self.exchange.state.counters.add(JOBS_MOVED if why is None else DEAD_BY[why])

    def _try_later(self, moving: Moving) -> None:
        pause_ms: i64 = _RETRY_MS << min(moving.attempts, _MOST_DOUBLINGS)
        moving.attempts += 1
        moving.next_ms = self._now_ms + min(pause_ms, _MOST_RETRY_MS)
