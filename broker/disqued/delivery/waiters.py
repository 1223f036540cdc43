"""Serving the clients that wait in GETJOB, in the order in which they came, one job each."""

from __future__ import annotations

from disqued.core.clients.blocked import JobWait
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import unblock, wants_reply
from disqued.delivery.counters import DELIVERY_AGE, JOBS_DELIVERED
from disqued.delivery.getjob import append_job


def serve(state: NodeState) -> None:
    """Hand the jobs of all ready queues to the clients that wait for them, queues in the order they became ready.

    A client that is being disconnected is skipped: a job delivered to it would be requeued late, or never.
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
                job = queue.type.release.take(queue, now_ms)
                if job is None:
                    break
                state.counters.add(JOBS_DELIVERED)
                state.counters.observe(DELIVERY_AGE, max(now_ms - job.ctime // 1_000_000, 0))
                if wants_reply(session):
                    session.out.append(b"*1\r\n")
                    append_job(session.out, queue, job, blocked.fields, now_ms)
                if state.ready.changes:
                    state.ready.tell_changed(session)
                state.ready.flush(session)
            unblock(state, blocked)
            wait = queue.first_wait
        if federated:
            queue.visited_ms = now_ms
            if queue.length == 0:
                state.events.queue_visited(queue, drained=True)
    ready.clear()
