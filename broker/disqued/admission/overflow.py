"""The settings `maxlen`, `maxbytes` and `overflow`: what ADDJOB does when its queue is full on this node.

Jobs that still wait for their copies do not count yet, so a queue may become longer by as many jobs as are being added.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.admission.counters import ADDS_REFUSED, JOBS_DROPPED
from disqued.bus import kinds
from disqued.core.fates.fate import DELETED
from disqued.core.queues.queue import Queue
from disqued.core.queues.settings import QueueSettings
from disqued.core.runtime.outbox import delete_at_holders
from disqued.core.runtime.state import NodeState
from disqued.errors import QueueFull

_MOST_DROPS: Final = 16
"""How many jobs one ADDJOB drops at most: after a lower limit is set, the queue becomes shorter with each ADDJOB."""
_WHAT_TO_DO: Final = "acknowledge jobs, or change the setting with QCONF"


def refuse_if_full(state: NodeState, queue: Queue | None, settings: QueueSettings, body_bytes: i64) -> None:
    """Refuse a job that has no place in its queue. Raises QueueFull."""
    why = ""
    if settings.max_bytes >= 0 and body_bytes > settings.max_bytes:
        why = f"The body has {body_bytes} bytes, and maxbytes of this queue is {settings.max_bytes}"
    elif queue is not None and not settings.drops_oldest and _is_full(queue, settings, body_bytes):
        if settings.max_length >= 0 and queue.length >= settings.max_length:
            why = (
                f"This node has {queue.length} jobs in the queue, and its maxlen is {settings.max_length}: "
                f"{_WHAT_TO_DO}"
            )
        else:
            why = (
                f"This node has {queue.body_bytes} bytes in the queue, and its maxbytes is {settings.max_bytes}: "
                f"{_WHAT_TO_DO}"
            )
    if why:
        state.counters.add(ADDS_REFUSED)
        raise QueueFull(why)


def drop_oldest(state: NodeState, queue: Queue, settings: QueueSettings, body_bytes: i64) -> None:
    """Delete the oldest jobs of a queue from all nodes, as FASTACK does, until a job has a place in it."""
    for _ in range(_MOST_DROPS):
        job = queue.order.oldest()
        if job is None or not _is_full(queue, settings, body_bytes):
            return
        if job.delivered is not None:
            delete_at_holders(state, job, kinds.NOT_DONE)
        state.lifecycle.end(job, DELETED)
        state.counters.add(JOBS_DROPPED)


def _is_full(queue: Queue, settings: QueueSettings, body_bytes: i64) -> bool:
    if settings.max_length >= 0 and queue.length >= settings.max_length:
        return True
    return settings.max_bytes >= 0 and queue.body_bytes + body_bytes > settings.max_bytes


def may_become_full(queue: Queue | None, settings: QueueSettings, under_way: i64) -> bool:
    """Whether a job could be refused once `under_way` earlier jobs of its client are queued.

    The bytes of those are not known; it could while the queue has half of `maxbytes`.
    """
    if settings.drops_oldest:
        return False
    length: i64 = 0
    body_bytes: i64 = 0
    if queue is not None:
        length = queue.length
        body_bytes = queue.body_bytes
    if settings.max_length >= 0 and length + under_way >= settings.max_length:
        return True
    return settings.max_bytes >= 0 and body_bytes * 2 >= settings.max_bytes
