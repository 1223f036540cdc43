"""ADD: whether a job is added, and where it waits.

The checks run in the order of ADDJOB: the key, MAXLEN of the command, the pause, the settings `maxlen` and `maxbytes`.
A job that comes by a move is not refused for the length of the queue.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.fates.fate import DELETED
from disqued.orderedqueue import effects as codes
from disqued.orderedqueue.add import Add, add_head
from disqued.orderedqueue.effects import Effects, Known
from disqued.orderedqueue.job import Job
from disqued.orderedqueue.options import PAUSED_IN
from disqued.orderedqueue.state import State

_MOST_DROPS: Final = 16
"""How many jobs one ADD drops at most (`overflow drop-oldest`)."""


def add(state: State, data: bytes, effects: Effects) -> None:
    """Add the job of a command, or say why not. Raises Malformed, before anything has changed."""
    command = add_head(data)
    if command.key:
        known = _known(state, command)
        if known is not None:
            effects.known = known
            effects.value = known.index
            return
    code = _refusal(state, command)
    if code != codes.OK:
        effects.code = code
        return
    if state.settings.drops_oldest and command.moves == 0:
        _drop_oldest(state, command.size, effects)
    index = state.index
    dead = command.dead_since_ms > 0
    waiting = state.waiting
    profile = waiting.profiles.find(command.retry_s, command.ttl_s, command.retain_s, dead, command.group)
    profile.jobs += 1
    if command.delay_ms > 0 or command.claim > 0 or command.nacks > 0 or command.additional > 0:
        job = Job(index, state.now_ms, profile, command.size)
        job.claim = command.claim
        job.nacks = command.nacks
        job.additional = command.additional
        waiting.jobs[int(index)] = job
        if command.delay_ms > 0:
            state.delay(job, command.delay_ms)
        else:
            waiting.insert(job)
            state.timers.arm(job)
    else:
        waiting.append(index, state.now_ms, profile, command.size)
    if command.key:
        first = Known(index, command.ttl_s, command.retry_s)
        state.keys.add(command.key, first, state.now_ms, command.window_s, until_done=command.until_done)
    state.added += 1
    effects.value = index


def _known(state: State, command: Add) -> Known | None:
    """The job that was added under the same key, if the command counts as a repetition."""
    entry = state.keys.by_key.get(command.key)
    if entry is None:
        return None
    known = entry.known
    if command.until_done:
        if state.waiting.find(known.index) is None:
            return None
        if entry.until_ms > 0:
            state.keys.keep_until_done(command.key, entry)
        return known
    if entry.until_ms == 0 or state.now_ms < entry.added_ms + command.window_s * 1000:
        return known
    return None


def _refusal(state: State, command: Add) -> i64:
    """Why a job is not added; OK if it is."""
    if command.max_length > 0 and state.waiting.count >= command.max_length:
        return codes.MAXLEN
    settings = state.settings
    if (state.paused | settings.pause) & PAUSED_IN:
        return codes.PAUSED
    if command.moves > 0:
        return codes.OK
    if settings.max_bytes > 0 and command.size > settings.max_bytes:
        return codes.MAXLEN
    if not settings.drops_oldest and _is_full(state, command.size):
        return codes.MAXLEN
    return codes.OK


def _is_full(state: State, size: i64) -> bool:
    settings = state.settings
    waiting = state.waiting
    if settings.max_length > 0 and waiting.count >= settings.max_length:
        return True
    return settings.max_bytes > 0 and waiting.body_bytes + size > settings.max_bytes


def _drop_oldest(state: State, size: i64, effects: Effects) -> None:
    """Delete the oldest waiting jobs until there is room for one more."""
    for _ in range(_MOST_DROPS):
        oldest = state.waiting.oldest()
        if oldest == 0 or not _is_full(state, size):
            return
        job = state.waiting.find(oldest)
        assert job is not None
        state.end(job, DELETED, effects)
