"""Memory monitoring: evicts jobs when memory is short, and removes idle queues.

Only what is safe to lose is evicted: acknowledged jobs, delivered at-most-once jobs, and empty queues. The thresholds
are those of the Disque README ("Memory management", "Queues eviction"). If eviction is not enough, the client limits
disconnect clients (`core.runtime.clientlimits`).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.memory.accounting import COPIES, EVICTION, FULL
from disqued.core.queues.queue import Queue
from disqued.core.runtime.clientlimits import ClientLimits
from disqued.core.runtime.counters import JOBS_EVICTED
from disqued.core.runtime.state import NodeState

IDLE_MS: Final = (300_000, 10_000, 2_000, 2_000)
"""How long an idle queue is kept, by memory level."""

_LEVELS: Final = (
    "Memory is no longer short",
    "Memory is short, only other nodes store new jobs",
    "Memory is very short, evicting jobs",
    "Memory is used up, refusing commands that need more",
)
_DROPS_PER_CALL: Final = 1000
_TABLES_PER_CHECK: Final = 4
_VISITS_PER_ROUND: Final = 20
_ROUNDS_PER_CALL: Final = 50
"""Limits the work of one call when many queues become idle at the same time."""


def make_room(state: NodeState) -> bool:
    """Evict jobs until memory suffices; False if memory is used up nevertheless.

    The work of one call is bounded. The next call continues.
    """
    memory = state.lifecycle.memory
    for _ in range(_DROPS_PER_CALL):
        if memory.level() < EVICTION or not _evict(state):
            break
    return memory.level() < FULL


def make_room_for(state: NodeState, size: i64) -> bool:
    """Evict jobs until `size` more bytes fit; False if they do not."""
    memory = state.lifecycle.memory
    for _ in range(_DROPS_PER_CALL):
        if memory.fits(size) or size > memory.maximum_bytes or not _evict(state):
            break
    return memory.fits(size)


def _evict(state: NodeState) -> bool:
    """Evict the oldest job that may be evicted; False if there is none."""
    job = state.lifecycle.memory.oldest_evictable()
    if job is None or state.config.maxmemory_policy != "acks":
        return False
    state.lifecycle.drop(job)
    state.counters.add(JOBS_EVICTED)
    return True


def make_room_for_one(state: NodeState) -> None:
    """Evict one job, if memory is very short, for an acknowledgement of an unknown job that is about to be stored."""
    if state.lifecycle.memory.level() >= EVICTION:
        _evict(state)


class MemoryMonitor:
    """Checks the memory of a node ten times per second."""

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self._level = 0
        """The level that was logged last."""
        self._tables_checked = 0

    def check(self, state: NodeState) -> None:
        """Measure buffers and resident memory, and do what the memory level requires."""
        memory = state.lifecycle.memory
        memory.under_way_bytes = 0
        memory.buffer_bytes = state.events.buffered_bytes() + self._limits.buffers_bytes()
        memory.look()
        if memory.level() >= EVICTION:
            make_room(state)
        if memory.level() >= COPIES:
            self._limits.close_slow_reader()
            self._limits.close_incomplete()
        self._limits.resume_readers()
        for _ in range(_TABLES_PER_CHECK):
            self._tables_checked += 1
            state.lifecycle.table.shrink(self._tables_checked)
            state.lifecycle.keys.shrink(self._tables_checked)
        if memory.is_wasteful:
            state.host.release_memory()
            memory.gave_back()
        self._report(state)

    def _report(self, state: NodeState) -> None:
        """Log a change of the level."""
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
    """Remove a queue that is empty, not paused, without waiting clients, and unused for `idle_ms`."""
    if not queue.is_unused or state.now_ms - queue.used_ms < idle_ms:
        return False
    state.lifecycle.remove_queue(queue)
    return True


class IdleQueues:
    """Iterates over all queues, a few per call, and removes idle ones."""

    def __init__(self) -> None:
        self._cursor = 0

    def visit(self, state: NodeState) -> None:
        """Check the next few queues; continue at once while more than a tenth of them were idle."""
        idle_ms = IDLE_MS[state.lifecycle.memory.level()]
        for _ in range(_ROUNDS_PER_CALL):
            self._cursor, queues = state.lifecycle.queues.scan(self._cursor, _VISITS_PER_ROUND)
            removed = sum([remove_if_idle(state, queue, idle_ms) for queue in queues])
            if removed * 10 <= len(queues) or self._cursor == 0:
                return
