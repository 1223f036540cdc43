"""GETJOB from ordered queues, or from queues of both types."""

from __future__ import annotations

from disqued.core.clients.session import Session
from disqued.core.queues.queue import Queue
from disqued.core.runtime.state import NodeState
from disqued.delivery.getjob import GetJob, parse_getjob, take_now
from disqued.errors import NodeLeaving
from disqued.ordered.agents import Agent
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.fetching import JobFetch
from disqued.ordered.room import OrderedRoom, ordered_of


def getjob(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Take jobs of ordered queues; False if none of the queues is ordered."""
    room = ordered_of(state)
    options = parse_getjob(args)
    if options.by_pattern:
        return False
    names = list(dict.fromkeys(args[int(options.first_queue) :]))
    by_name = room.catalog.by_name
    ordered = [by_name[name] for name in names if name in by_name]
    if not ordered:
        return False
    if state.view.leaving:
        raise NodeLeaving
    queues = _queues(state, [name for name in names if name not in by_name])
    if queues and take_now(state, session, queues, options):
        return True
    _fetch(state, session, room, ordered, queues, options)
    return True


def _queues(state: NodeState, names: list[bytes]) -> list[Queue]:
    """The queues of jobs; they are made, so that the client can wait for them."""
    return [state.lifecycle.make_queue(name, state.now_ms) for name in names]


def _fetch(
    state: NodeState,
    session: Session,
    room: OrderedRoom,
    ordered: list[OrderedQueue],
    queues: list[Queue],
    options: GetJob,
) -> None:
    sources: list[tuple[OrderedQueue, Agent]] = [(queue, room.consumers.of(queue, session)) for queue in ordered]
    fetch = JobFetch(
        state, session, sources, queues, options.count, options.fields, options.timeout_ms, waits=options.wait
    )
    fetch.begin()
