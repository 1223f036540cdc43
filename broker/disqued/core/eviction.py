"""Making room: what is forgotten when memory runs short, and queues that nobody used for long.

Only what is safe to lose goes: acknowledged jobs, at-most-once jobs that were delivered, empty queues. Thresholds are
those of the Disque README ("Memory management", "Queues eviction").
"""

from __future__ import annotations

from typing import Final

from disqued.core.queue import Queue
from disqued.core.state import NodeState

IDLE_MS: Final = (300_000, 10_000, 2_000)
"""How long an empty queue stays, by memory level."""

_DROPS_PER_CALL: Final = 1000
_VISITS_PER_ROUND: Final = 20
_ROUNDS_PER_CALL: Final = 50
"""So that many queues that grow idle together leave in many small steps, not in one long one."""


def make_room(state: NodeState) -> bool:
    """Forget what may be forgotten until memory suffices; False when it does not.

    The work of one call is bounded. The next one goes on.
    """
    lifecycle = state.lifecycle
    memory = lifecycle.memory
    if state.config.maxmemory_policy == "acks":
        for _ in range(_DROPS_PER_CALL):
            if memory.level() < 2:
                break
            job = memory.oldest_evictable()
            if job is None:
                break
            lifecycle.drop(job)
            state.stats.evicted_jobs += 1
    return memory.level() < 2


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
