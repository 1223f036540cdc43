"""SETACK: another node says that a job is acknowledged."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.acks.gc import collect, finish, note_ack_confirmed, unconfirmed
from disqued.acks.room import acks_of
from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import WAIT_REPL, Job
from disqued.core.jobs.jobid import is_job_id
from disqued.core.runtime import outbox
from disqued.core.runtime.message import Message
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import members_of, note_holder

_UNKNOWN: Final = 0
_KNOWN: Final = 1


def handle_setack(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Acknowledge the job. `aux` is how many holders the sender knows, 0 for one that only has the acknowledgement.

    A node that knows more holders does not confirm: it runs the garbage collection and asks them, the sender included.
    """
    job_id = frame.job_id
    if not is_job_id(job_id):
        return
    lifecycle = state.lifecycle
    may_have = frame.aux
    job = lifecycle.table.get(job_id)
    if job is None:
        acks_of(state).done.note(job_id, state.now_ms)
        _answer(state, peer, job_id, _UNKNOWN)
        return
    if job.state == WAIT_REPL and not state.events.complete(job):
        return
    if job.is_dummy:
        _answer_without_job(state, job, peer, may_have)
        return
    if may_have > 0:
        note_holder(state, job, peer)
    lifecycle.acknowledge(job, state.now_ms)
    delivered = job.delivered
    if delivered is None:
        _answer(state, peer, job_id, _KNOWN)
        lifecycle.drop(job)
        return
    known: i64 = len(members_of(state, delivered))
    if 0 < may_have <= known:
        note_ack_confirmed(state, job, peer)
    if may_have == 0 or known <= may_have:
        _answer(state, peer, job_id, _KNOWN)
    if known > may_have:
        collect(state, job)
    elif job.gc_retry > 0 and not unconfirmed(state, job):
        finish(state, job)


def _answer_without_job(state: NodeState, job: Job, peer: Peer, may_have: i64) -> None:
    """Answer for a dummy, an acknowledgement without a job. Of two nodes, one keeps its own until a holder is found.

    A node whose acknowledgement is known elsewhere drops its own. The original always answers that it knows the job, so
    its dummy must stay.
    """
    keeps = may_have > 0 or (peer.features != 0 and state.view.node_id > peer.id)
    _answer(state, peer, job.id, _KNOWN if keeps else _UNKNOWN)


def _answer(state: NodeState, peer: Peer, job_id: bytes, known: i64) -> None:
    outbox.send_when_logged(state, peer, state.bus.about_job(kinds.GOTACK, job_id, known))


MESSAGE: Final[Message] = Message(
    kinds.SETACK,
    "SETACK",
    kinds.OF_JOB_ID,
    "a node that has an acknowledged job, to the other holders",
    "the receiver acknowledges the job; GOTACK",
    handle_setack,
)
