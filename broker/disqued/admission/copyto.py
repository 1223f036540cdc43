"""The setting `copy-to`: ADDJOB also adds the job to other queues.

Each copy is a job of its own with the options of the first one, but for KEY, ID and MAXLEN. The client does not wait
for copies: they are placed here at once, and the nodes that should also have them are asked until they confirm, as with
SYNC 1. A copy that its queue refuses is counted. Copies are not copied again.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.admission.counters import COPY_TO_REFUSED
from disqued.admission.overflow import drop_oldest, refuse_if_full
from disqued.core.clients.session import Session
from disqued.core.jobs.attributes import NAMED, changed
from disqued.core.jobs.job import NOBODY, Job
from disqued.core.queues.queue import PAUSED_IN
from disqued.core.runtime.counters import JOBS_ADDED
from disqued.core.runtime.state import NodeState
from disqued.errors import QueueFull


def add_copies(state: NodeState, session: Session, targets: tuple[bytes, ...], job: Job, ttl_s: i64) -> None:
    """Add copies of a new job to other queues."""
    out = session.out
    kept = len(out)
    for name in targets:
        if name == job.queue:
            continue
        if _is_refused(state, name, len(job.body)):
            state.counters.add(COPY_TO_REFUSED)
            continue
        copy = Job(
            state.job_ids.make(ttl_s, job.retry_s > 0),
            name,
            job.body,
            state.next_ctime(name),
            job.expire_at_s,
            job.delay_s,
            job.retry_s,
            job.repl,
        )
        copy.extra = changed(job.extra, {NAMED: None}) if job.is_named else job.extra
        if copy.is_held:
            _hold(state, copy)
            continue
        placement = state.lifecycle.queues.type_of(name).placement
        if placement.place(session, copy, 0, state.now_ms, confirmed=1, external=False):
            state.counters.add(JOBS_ADDED)
        del out[kept:]


def _hold(state: NodeState, copy: Job) -> None:
    """Add a copy that waits for the same jobs as the first one, whose client waits until these are known."""
    copy.delivered = state.holders.plus(NOBODY, state.view.node_id)
    state.lifecycle.admit(copy, state.now_ms)
    state.counters.add(JOBS_ADDED)
    if copy.repl > 1:
        state.events.copies_missing(copy, copy.delivered)


def _is_refused(state: NodeState, name: bytes, body_bytes: i64) -> bool:
    """Whether a queue takes no job now; if it drops its oldest jobs instead, they are dropped."""
    queues = state.lifecycle.queues
    queue = queues.get(name)
    settings = queues.settings_of(name) if queue is None else queue.settings
    paused = queue.pause if queue is not None else 0 if settings is None else settings.pause
    if paused & PAUSED_IN:
        return True
    if settings is None or not settings.bounded:
        return False
    try:
        refuse_if_full(state, queue, settings, body_bytes)
    except QueueFull:
        return True
    if queue is not None and settings.drops_oldest:
        drop_oldest(state, queue, settings, body_bytes)
    return False
