"""The description of a job that SHOW and JSCAN reply with: names, each followed by its value.

The 15 names of the original come first, in its order. Those of attributes that the job has follow. If it has parents,
`after` lists all of them and `waits-for` those that are not done. `children` are the jobs that this node holds back
until the job is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.jobs.attributes import AFTER, described
from disqued.core.jobs.job import STATE_NAMES
from disqued.core.jobs.parents import ACTIONS, action_of, parents_of, unmet_of
from disqued.jobmessages import members_of

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.jobs.job import Job, NodeIds
    from disqued.core.runtime.state import NodeState


_AFTER_FIELDS: Final = 3
"""The fields of a job that has parents."""
_MOST_IDS: Final = 1000


def describe_job(state: NodeState, session: Session, job: Job) -> None:
    """Append the flat array, whose first 30 elements are in the order that clients rely on (Disque command SHOW)."""
    now_ms = state.now_ms
    attributes = [] if job.extra is None else described(job.extra)
    after = None if job.extra is None else job.extra.get(AFTER)
    parent = state.lifecycle.held.parents.get(job.id)
    fields = len(attributes) + (0 if after is None else _AFTER_FIELDS) + (parent is not None)
    session.reply_array(30 + 2 * fields)
    _bulk(session, b"id", job.id)
    _bulk(session, b"queue", job.queue)
    _bulk(session, b"state", STATE_NAMES[job.state])
    _integer(session, b"repl", job.repl)
    _integer(session, b"ttl", max(job.expire_at_s - now_ms // 1000, 0))
    _integer(session, b"ctime", job.ctime)
    _integer(session, b"delay", job.delay_s)
    _integer(session, b"retry", job.retry_s)
    _integer(session, b"nacks", job.nacks)
    _integer(session, b"additional-deliveries", job.additional_deliveries)
    delivered = (state.view.node_id,) if job.delivered is None else members_of(state, job.delivered)
    _nodes(session, b"nodes-delivered", delivered)
    _nodes(session, b"nodes-confirmed", members_of(state, job.confirmed or ()))
    _moment(session, b"next-requeue-within", job.requeue_at_ms, now_ms)
    _moment(session, b"next-awake-within", job.awake_ms, now_ms)
    _bulk(session, b"body", job.body)
    for name, value in attributes:
        if isinstance(value, bytes):
            _bulk(session, name.encode(), value)
        else:
            _integer(session, name.encode(), value)
    if after is not None:
        _ids(session, b"after", parents_of(after))
        _ids(session, b"waits-for", unmet_of(after))
        _bulk(session, b"else", ACTIONS[action_of(after)])
    if parent is not None:
        _ids(session, b"children", list(parent.children))


def _bulk(session: Session, name: bytes, value: bytes) -> None:
    session.reply_bulk(name)
    session.reply_bulk(value)


def _integer(session: Session, name: bytes, value: int) -> None:
    session.reply_bulk(name)
    session.reply_integer(value)


def _nodes(session: Session, name: bytes, node_ids: NodeIds) -> None:
    session.reply_bulk(name)
    session.reply_array(len(node_ids))
    for node_id in node_ids:
        session.reply_bulk(node_id)


def _ids(session: Session, name: bytes, job_ids: list[bytes]) -> None:
    """Reply with the IDs of jobs; of very many, with the first ones."""
    session.reply_bulk(name)
    session.reply_array(min(len(job_ids), _MOST_IDS))
    for job_id in job_ids[:_MOST_IDS]:
        session.reply_bulk(job_id)


def _moment(session: Session, name: bytes, at_ms: int, now_ms: int) -> None:
    """Reply with the milliseconds until a time; null if the time is not set."""
    session.reply_bulk(name)
    if at_ms <= 0:
        session.reply_null()
    else:
        session.reply_integer(max(at_ms - now_ms, 0))
