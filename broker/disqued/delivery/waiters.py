"""Serving the clients that wait in GETJOB, in the order in which they came, one job each."""

from __future__ import annotations

from disqued.core.clients.blocked import CLAIM, JobWait, WaitForJob
from disqued.core.jobs.job import Job
from disqued.core.queues.limited import take_limited
from disqued.core.queues.queue import Queue
from disqued.core.runtime.claiming import claims_refused
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import release, unblock, wants_reply
from disqued.delivery.claim import grant, is_claimed
from disqued.delivery.counters import DELIVERY_AGE, JOBS_DELIVERED
from disqued.delivery.getjob import append_job
from disqued.errors import ReplyError


def serve(state: NodeState) -> None:
    """Hand the jobs of all ready queues to the clients that wait for them, queues in the order they became ready.

    A client that is being disconnected is skipped: a job delivered to it would be requeued late, or never. A client
    that wants a claim gets an error if this node must not give one any more.
    """
    lifecycle = state.lifecycle
    ready = lifecycle.ready
    now_ms = state.now_ms
    federated = len(state.view.peers) > 0
    for queue in ready:
        queue.ready = False
        wait = queue.first_wait
        while wait is not None:
            assert isinstance(wait, JobWait)  # no other kind stands in the line of a queue
            blocked = wait.blocked
            session = blocked.session
            if not session.closed:
                if blocked.fields & CLAIM and claims_refused(state):
                    release(state, blocked, ReplyError(claims_refused(state)).encode())
                    wait = queue.first_wait
                    continue
                job = queue.type.release.take(queue, now_ms) if queue.limiter is None else take_limited(queue, now_ms)
                if job is None:
                    break
                _deliver(state, queue, job, blocked)
            unblock(state, blocked)
            wait = queue.first_wait
        if queue.patterns is not None and queue.length > 0:
            _serve_patterns(state, queue)
        if federated:
            queue.visited_ms = now_ms
            if queue.length == 0:
                state.events.queue_visited(queue, drained=True)
    ready.clear()


def _serve_patterns(state: NodeState, queue: Queue) -> None:
    """Hand the jobs that are left to the clients that wait for a pattern which matches the queue.

    A client whose user may no longer touch the queue is left alone, and so are those behind it: all clients of a
    pattern have the same user.
    """
    for pattern in queue.patterns or ():
        while pattern.waiters and queue.length > 0:
            blocked = next(iter(pattern.waiters.values()))
            assert isinstance(blocked, WaitForJob)
            session = blocked.session
            if not session.closed:
                user = session.user
                if user is not None and not user.rules.allows_queue(queue.name):
                    break
                if blocked.fields & CLAIM and claims_refused(state):
                    release(state, blocked, ReplyError(claims_refused(state)).encode())
                    continue
                now_ms = state.now_ms
                job = queue.type.release.take(queue, now_ms) if queue.limiter is None else take_limited(queue, now_ms)
                if job is None:
                    return
                _deliver(state, queue, job, blocked)
            unblock(state, blocked)


def _deliver(state: NodeState, queue: Queue, job: Job, blocked: WaitForJob) -> None:
    """Send a job to a client that waited."""
    session = blocked.session
    now_ms = state.now_ms
    state.counters.add(JOBS_DELIVERED)
    state.counters.observe(DELIVERY_AGE, max(now_ms - job.created_ms, 0))
    if blocked.fields & CLAIM or is_claimed(job):
        grant(state, job)
    if wants_reply(session):
        session.out.append(b"*1\r\n")
        append_job(session.out, queue, job, blocked.fields, now_ms)
    if state.ready.changes:
        state.ready.tell_changed(session)
    state.ready.flush(session)
