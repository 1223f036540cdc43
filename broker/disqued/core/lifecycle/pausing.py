"""What pauses a queue: PAUSE on this node, and the setting `pause`. What either of them stops is stopped."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.lifecycle.lifecycle import Lifecycle
from disqued.core.queues.queue import PAUSED_OUT, Queue


def set_local_pause(lifecycle: Lifecycle, name: bytes, wanted: i64, now_ms: i64) -> bool:
    """Set the flags of PAUSE and return whether that changes them. Do not create a queue for flags of 0."""
    queue = lifecycle.queues.get(name)
    if queue is None:
        if wanted == 0:
            return False
        queue = lifecycle.make_queue(name, now_ms)
    changed = queue.local_pause != wanted
    queue.local_pause = wanted
    _apply(lifecycle, queue, now_ms)
    return changed


def follow_settings(lifecycle: Lifecycle, queue: Queue, now_ms: i64) -> None:
    """Have a queue follow the settings as they are now."""
    settings = lifecycle.queues.settings_of(queue.name)
    if settings is not queue.settings:
        queue.settings = settings
        if queue.limiter is not None or (settings is not None and settings.limited):
            lifecycle.events.queue_limits(queue)
        _apply(lifecycle, queue, now_ms)


def _apply(lifecycle: Lifecycle, queue: Queue, now_ms: i64) -> None:
    """Stop what is paused. If the output is not, serve the clients and the nodes that wait for jobs."""
    settings = queue.settings
    queue.pause = queue.local_pause if settings is None else queue.local_pause | settings.pause
    if not queue.pause & PAUSED_OUT:
        serve_again(lifecycle, queue, now_ms)


def serve_again(lifecycle: Lifecycle, queue: Queue, now_ms: i64) -> None:
    """Serve the clients and the nodes that wait for jobs of a queue: what held them back is over."""
    if queue.waiting > 0:
        lifecycle.offer(queue)
    if queue.patterns is not None and queue.length > 0 and lifecycle.patterns.note(queue, now_ms):
        lifecycle.offer(queue)
    watcher = queue.watcher
    if watcher is not None and watcher.wanted and queue.length > 0 and not watcher.listed:
        watcher.listed = True
        lifecycle.wanted.append(queue)
