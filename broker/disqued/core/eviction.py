"""Making room: what is forgotten when memory runs short, and queues that nobody used for long.

Only what is safe to lose goes: acknowledged jobs, at-most-once jobs that were delivered, empty queues. Thresholds are
those of the Disque README ("Memory management", "Queues eviction"). When even that is not enough, clients go that hold
a lot of memory by not reading their replies, or by sending on and on while they wait.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.memory import BIG_BYTES, BUCKET_BYTES, EVICTION, FULL
from disqued.core.queue import Queue
from disqued.core.session import Session
from disqued.core.state import NodeState

IDLE_MS: Final = (300_000, 10_000, 2_000, 2_000)
"""How long an empty queue stays, by memory level."""

GREEDY_BYTES: Final = 1 << 20
"""A client may hold so much however short memory is,"""
STALLED_MS: Final = 500
"""and more while it reads: this long it may pause."""

_LEVELS: Final = (
    "Memory is no longer short",
    "Memory is short, new jobs are kept by other nodes only",
    "Memory is very short, what may be forgotten is",
    "Memory is used up, commands that need more are refused",
)
_DROPS_PER_CALL: Final = 1000
_TABLES_PER_LOOK: Final = 4
_VISITS_PER_ROUND: Final = 20
_ROUNDS_PER_CALL: Final = 50
"""So that many queues that grow idle together leave in many small steps, not in one long one."""


def make_room(state: NodeState) -> bool:
    """Forget what may be forgotten until memory suffices; False when it is used up nevertheless.

    The work of one call is bounded. The next one goes on.
    """
    memory = state.lifecycle.memory
    for _ in range(_DROPS_PER_CALL):
        if memory.level() < EVICTION or not _evict(state):
            break
    return memory.level() < FULL


def make_room_for(state: NodeState, size: i64) -> bool:
    """Forget what may be forgotten until so many bytes more fit; False when they do not."""
    memory = state.lifecycle.memory
    for _ in range(_DROPS_PER_CALL):
        if memory.fits(size) or size > memory.maximum_bytes or not _evict(state):
            break
    return memory.fits(size)


def _evict(state: NodeState) -> bool:
    """Forget the job that may go first; False when there is none."""
    job = state.lifecycle.memory.oldest_evictable()
    if job is None or state.config.maxmemory_policy != "acks":
        return False
    state.lifecycle.drop(job)
    state.stats.evicted_jobs += 1
    return True


def make_room_for_one(state: NodeState) -> None:
    """Before a mere acknowledgement is kept: when memory is very short, another one has to go for it."""
    if state.lifecycle.memory.level() >= EVICTION:
        _evict(state)


class Watch:
    """Looks at the memory of a node ten times per second."""

    def __init__(self) -> None:
        self._level = 0
        """What the log says."""
        self._tables_looked_at = 0

    def look(self, state: NodeState, unwritten_bytes: i64) -> None:
        """Count what waits in buffers, ask the system, and do what the level asks for.

        `unwritten_bytes` of records wait for the disk.
        """
        memory = state.lifecycle.memory
        memory.under_way_bytes = 0
        memory.buffer_bytes = unwritten_bytes + _buffers_bytes(state)
        memory.look()
        if memory.level() >= EVICTION:
            make_room(state)
        if memory.level() >= FULL:
            _close_greediest(state)
        for _ in range(_TABLES_PER_LOOK):
            self._tables_looked_at += 1
            state.lifecycle.table.shrink(self._tables_looked_at)
        if memory.is_wasteful:
            state.host.release_memory()
            memory.gave_back()
        self._report(state)

    def _report(self, state: NodeState) -> None:
        """A line in the log when the level changed."""
        memory = state.lifecycle.memory
        level = int(memory.level())
        if level == self._level:
            return
        eased = level < self._level
        self._level = level
        mib = 1 << 20
        state.host.log(
            "notice" if eased else "warning",
            f"{_LEVELS[level]}: {memory.counted_bytes // mib} MB are used, {memory.maximum_bytes // mib} MB allowed "
            f"(maxmemory); the process takes {memory.resident_bytes // mib} MB more than at its start.",
        )


def _buffers_bytes(state: NodeState) -> int:
    """What waits to be sent or written, and the buckets of wake times."""
    waiting = int(state.lifecycle.agenda.buckets) * BUCKET_BYTES + int(state.ready.unwritten_bytes)
    for session in list(state.slow.values()):
        output: i64 = session.output_bytes()
        waiting += output
        if output < session.unread_bytes or session.unread_bytes == 0:
            session.unread_since_ms = state.now_ms
        session.unread_bytes = output
        if output == 0:
            del state.slow[int(session.number)]
    for peer in state.view.peers.values():
        link = peer.link
        if link is not None and not link.closed:
            waiting += int(link.out_bytes)
            if link.carrier is not None:
                waiting += link.carrier.unsent_bytes()
    for link in list(state.filling):
        buffered = link.reader.buffered_bytes
        waiting += buffered
        if link.closed or buffered <= BIG_BYTES:
            del state.filling[link]
    return waiting


def _close_greediest(state: NodeState) -> None:
    """Hang up on the client that lets most output wait and reads none of it."""
    greediest: Session | None = None
    most_bytes: i64 = GREEDY_BYTES
    for session in state.slow.values():
        stalled = state.now_ms - session.unread_since_ms >= STALLED_MS
        if stalled and session.unread_bytes > most_bytes and not session.closed:
            greediest = session
            most_bytes = session.unread_bytes
    if greediest is not None:
        hang_up_greedy(state, greediest, f"{most_bytes} bytes of replies wait to be read")


def hang_up_greedy(state: NodeState, session: Session, why: str) -> None:
    """Close a client's connection because memory is used up."""
    who = session.address.decode("utf-8", "replace")
    state.host.log("warning", f"Closing the connection of client {who}, memory is used up: {why}.")
    state.stats.clients_closed_for_memory += 1
    state.ready.hang_up(session)


def remove_if_idle(state: NodeState, queue: Queue, idle_ms: int = IDLE_MS[0]) -> bool:
    """Forget a queue that is empty, not paused, that nobody waits for and nobody used for `idle_ms`."""
    if not queue.deserted or state.now_ms - queue.used_ms < idle_ms:
        return False
    state.lifecycle.remove_queue(queue)
    return True


class IdleQueues:
    """Walks over all queues, a few per call, and forgets the idle ones."""

    def __init__(self) -> None:
        self._cursor = 0

    def visit(self, state: NodeState) -> None:
        """Look at the next few queues; go on at once while more than a tenth of them had to go."""
        idle_ms = IDLE_MS[state.lifecycle.memory.level()]
        for _ in range(_ROUNDS_PER_CALL):
            self._cursor, queues = state.lifecycle.queues.scan(self._cursor, _VISITS_PER_ROUND)
            removed = sum([remove_if_idle(state, queue, idle_ms) for queue in queues])
            if removed * 10 <= len(queues) or self._cursor == 0:
                return
