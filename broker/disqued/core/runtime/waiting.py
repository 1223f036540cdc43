"""Blocking and releasing clients."""

from __future__ import annotations

from disqued.core.clients.blocked import JobWait, WaitForJob
from disqued.core.clients.pipeline import Pipeline, Pipelined, pipeline_of
from disqued.core.clients.session import REPLY_ON, REPLY_SKIP, Blocked, Session
from disqued.core.memory.accounting import WAIT_BYTES
from disqued.core.queues.patterns import QueuePattern
from disqued.core.queues.queue import Queue
from disqued.core.runtime.memorymonitor import remove_if_idle
from disqued.core.runtime.state import NodeState


def block(state: NodeState, session: Session, queues: list[Queue], timeout_ms: int, fields: int) -> None:
    """Make a client wait for the first job of any of these different queues, without limit if `timeout_ms` is 0."""
    blocked = WaitForJob(session, fields)
    for queue in queues:
        wait = JobWait(blocked, queue)
        blocked.waits.append(wait)
        queue.join_line(wait)
    state.lifecycle.memory.used_bytes += WAIT_BYTES * len(queues)
    if timeout_ms > 0:
        state.lifecycle.timers.arm(blocked, state.now_ms + timeout_ms)
    suspend(state, blocked)


def block_on_patterns(
    state: NodeState, session: Session, patterns: list[QueuePattern], timeout_ms: int, fields: int
) -> None:
    """Make a client wait for the first job of any queue that matches one of these different patterns."""
    blocked = WaitForJob(session, fields)
    blocked.patterns = patterns
    for pattern in patterns:
        pattern.waiters[int(session.number)] = blocked
        pattern.asked = True
    lifecycle = state.lifecycle
    lifecycle.memory.used_bytes += WAIT_BYTES * len(patterns)
    lifecycle.patterns.wake(state.now_ms)
    if timeout_ms > 0:
        lifecycle.timers.arm(blocked, state.now_ms + timeout_ms)
    suspend(state, blocked)


def _leave_patterns(state: NodeState, blocked: WaitForJob) -> None:
    state.lifecycle.memory.used_bytes -= WAIT_BYTES * len(blocked.patterns)
    for pattern in blocked.patterns:
        pattern.waiters.pop(int(blocked.session.number), None)
        pattern.used_ms = state.now_ms
        pattern.local_ms = state.now_ms
    blocked.patterns = []


def suspend(state: NodeState, blocked: Blocked) -> None:
    """Run no more commands of the client until `unblock`."""
    blocked.session.blocked = blocked
    state.blocked_clients += 1


def suspend_pipelined(state: NodeState, request: Pipelined) -> None:
    """Make a client wait; its next requests that may follow start nevertheless, and wait behind this one."""
    session = request.session
    if session.blocked is None:
        suspend(state, request)
    else:
        pipeline_of(session).add(request)


def unblock(state: NodeState, blocked: Blocked) -> None:
    """End the wait; input that the client sent meanwhile is run after the current input."""
    state.lifecycle.timers.disarm(blocked)
    if isinstance(blocked, WaitForJob):
        state.lifecycle.memory.used_bytes -= WAIT_BYTES * len(blocked.waits)
        for wait in blocked.waits:
            queue = wait.queue
            queue.leave_line(wait)
            if queue.waiting == 0:
                state.events.queue_left(queue)
                if queue.length == 0:
                    remove_if_idle(state, queue)
        blocked.waits = []
        if blocked.patterns:
            _leave_patterns(state, blocked)
    session = blocked.session
    session.blocked = None
    session.active_ms = state.now_ms
    state.blocked_clients -= 1
    state.resumed.append(session)


def release(state: NodeState, blocked: Blocked, reply: bytes) -> None:
    """End the wait with a reply."""
    session = blocked.session
    pipeline = session.blocked
    if isinstance(pipeline, Pipeline) and isinstance(blocked, Pipelined):
        state.lifecycle.timers.disarm(blocked)
        blocked.reply = reply
        if pipeline.first is blocked:
            _reply_in_order(state, pipeline)
    else:
        unblock(state, blocked)
        if wants_reply(session):
            session.out.append(reply)
        state.ready.flush(session)
    if state.ready.changes:
        state.ready.tell_changed(session)


def _reply_in_order(state: NodeState, pipeline: Pipeline) -> None:
    """Send the replies of a pipeline that are not behind a request that still waits."""
    session = pipeline.session
    pipeline.pop_replies(session.out if session.reply_mode == REPLY_ON else [])
    if pipeline.first is None:
        unblock(state, pipeline)
        if session.reply_mode == REPLY_SKIP:  # of one request whose reply has several parts
            session.reply_mode = REPLY_ON
        if pipeline.closes:
            session.closing = True
            session.parser.discard()
    elif pipeline.reopen():
        state.resumed.append(session)
    state.ready.flush(session)


def reply_behind(state: NodeState, session: Session, reply: bytes) -> None:
    """Reply to a request that did not wait, once all requests before it have their replies."""
    pipeline_of(session).add(Pipelined(session, len(reply), reply))
    state.ready.tell_again(session)


def close_behind(session: Session) -> None:
    """Run no more requests, and close the connection when all requests have their replies."""
    pipeline = pipeline_of(session)
    pipeline.open = False
    pipeline.full = False
    pipeline.closes = True
    session.parser.discard()


def wants_reply(session: Session) -> bool:
    """Whether a client that waited gets a reply; one that it asked to skip is skipped now."""
    mode = session.reply_mode
    if mode == REPLY_SKIP:
        session.reply_mode = REPLY_ON
    return mode == REPLY_ON


def time_out(state: NodeState, blocked: WaitForJob) -> None:
    """The client waited for as long as it wanted."""
    release(state, blocked, blocked.session.null_array())


def release_all(state: NodeState) -> None:
    """End all waits for jobs as if their time were over: the queues they wait for are gone."""
    for session in list(state.sessions.values()):
        blocked = session.blocked
        if isinstance(blocked, WaitForJob):
            time_out(state, blocked)


def abandon(state: NodeState, session: Session) -> None:
    """The client is gone: end its wait."""
    blocked = session.blocked
    if blocked is None:
        return
    unblock(state, blocked)
    if not isinstance(blocked, Pipeline):
        state.events.client_gone(blocked)
        return
    request = blocked.first
    while request is not None:
        if request.reply is None:
            state.lifecycle.timers.disarm(request)
            state.events.client_gone(request)
        request = request.following
