"""Drops everything at once: all jobs, queues and keys of jobs, and the waits of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.memory.accounting import BASE_BYTES, CLIENT_BYTES
from disqued.core.runtime.waiting import release_all

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

_SLICE_NS: Final = 1_000_000
"""How long the memory of dropped jobs is freed at a time, apart from the last step. Short, because a slice of a load or
of another long command runs in the same turn."""


def flush_all(state: NodeState) -> None:
    """Drop all jobs, keys and queues of this node. Waiting clients get the same reply as after their timeout.

    What was dropped is gone at once and no longer counts; `free_dropped` frees its memory within seconds. A record for
    each of millions of jobs would be long, so there is none, and the event `all_dropped` follows.
    """
    release_all(state)
    state.lifecycle.drop_all()
    state.lifecycle.memory.used_bytes = BASE_BYTES + len(state.sessions) * CLIENT_BYTES
    state.events.all_dropped()


def free_dropped(state: NodeState) -> None:
    """Free the memory of some of the jobs, keys and queues that were dropped at once."""
    lifecycle = state.lifecycle
    stopwatch_ns = state.host.stopwatch_ns
    until_ns: i64 = i64(stopwatch_ns()) + _SLICE_NS
    while lifecycle.dropped:
        if not lifecycle.dropped[0].free_part(lifecycle.timers, lifecycle.events):
            lifecycle.dropped.pop(0)
        if i64(stopwatch_ns()) >= until_ns:
            return
