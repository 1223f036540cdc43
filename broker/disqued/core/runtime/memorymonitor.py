"""Making room: what is forgotten when memory runs short, and queues that nobody used for long.

Only what is safe to lose goes: acknowledged jobs, at-most-once jobs that were delivered, empty queues. Thresholds are
those of the Disque README ("Memory management", "Queues eviction"). When even that is not enough, greedy clients go
(`core.runtime.clientlimits`).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.memory.accounting import EVICTION, FULL
from disqued.core.queues.queue import Queue
from disqued.core.runtime.clientlimits import ClientLimits
from disqued.core.runtime.counters import JOBS_EVICTED
from disqued.core.runtime.state import NodeState

IDLE_MS: Final = (300_000, 10_000, 2_000, 2_000)
"""How long an empty queue stays, by memory level."""

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
    state.counters.add(JOBS_EVICTED)
    return True


def make_room_for_one(state: NodeState) -> None:
    """Before a mere acknowledgement is kept: when memory is very short, another one has to go for it."""
    if state.lifecycle.memory.level() >= EVICTION:
        _evict(state)


class MemoryMonitor:
    """Looks at the memory of a node ten times per second."""

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self._level = 0
        """What the log says."""
        self._tables_looked_at = 0

    def check(self, state: NodeState) -> None:
        """Count what waits in buffers, ask the system, and do what the memory level asks for."""
        memory = state.lifecycle.memory
        memory.under_way_bytes = 0
        memory.buffer_bytes = state.events.buffered_bytes() + self._limits.buffers_bytes()
        memory.look()
        if memory.level() >= EVICTION:
            make_room(state)
        if memory.level() >= FULL:
            self._limits.close_slowest_reader()
        self._limits.resume_readers()
        for _ in range(_TABLES_PER_LOOK):
            self._tables_looked_at += 1
            state.lifecycle.table.shrink(self._tables_looked_at)
            state.lifecycle.keys.shrink(self._tables_looked_at)
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
