"""SETACK: another node says that a job is acknowledged. SETACKS: many jobs are."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.acks.gc import collect, finish, held_only_with, note_ack_confirmed, unconfirmed
from disqued.acks.room import acks_of
from disqued.bus import kinds
from disqued.bus.frame import LISTED_BYTES, Frame
from disqued.core.cluster.peer import Peer
from disqued.core.fates.fate import DONE, Fate
from disqued.core.jobs.job import WAIT_REPL, Job
from disqued.core.jobs.jobid import is_job_id
from disqued.core.runtime.message import Message
from disqued.core.runtime.outbox import tell_end
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import members_of, note_holder

_DONE: Final = Fate(DONE)


def handle_setack(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Acknowledge the job."""
    acknowledge(state, peer, frame.job_id, frame.aux, _DONE)


def handle_setacks(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Acknowledge the jobs."""
    at = frame.jobs_at
    while at < frame.end:
        acknowledge(state, peer, frame.listed(at), frame.listed_aux(at), _DONE)
        at += LISTED_BYTES


def acknowledge(state: NodeState, peer: Peer, job_id: bytes, may_have: i64, fate: Fate) -> None:
    """Acknowledge a job that ended with this fate.

    `may_have` is how many holders the sender knows, 0 if it only has the acknowledgement.

    A node that knows more holders does not confirm: it runs the garbage collection and asks them, the sender included.
    It does not ask again for a sender that only has the acknowledgement: nodes that cannot write their disks send so
    (`tell_end`), and two that answer each other's SETACK with another one would never stop.
    If the two nodes are the only holders, both know now that the job is done. This node then drops it at once, and the
    sender does when it reads so; no DELJOB is needed.
    """
    if not is_job_id(job_id):
        return
    lifecycle = state.lifecycle
    job = lifecycle.table.get(job_id)
    if job is None:
        acks_of(state).done.note(job_id, state.now_ms)
        tell_end(state, peer, kinds.GOTACK, job_id, kinds.UNKNOWN)
        return
    if job.state == WAIT_REPL and not state.events.complete(job):
        return
    if job.is_dummy:
        _answer_without_job(state, job, peer, may_have)
        return
    state.holders.complete(job, state.view)
    if may_have == 2 and peer.features & kinds.FEATURE_LISTS and held_only_with(state, job, peer):
        acks_of(state).done.note(job_id, state.now_ms)
        lifecycle.end(job, fate.outcome, fate.successor)
        tell_end(state, peer, kinds.GOTACK, job_id, kinds.DROPPED)
        return
    if may_have > 0:
        note_holder(state, job, peer)
    lifecycle.acknowledge(job, state.now_ms, fate.outcome, fate.successor)
    delivered = job.delivered
    if delivered is None:
        tell_end(state, peer, kinds.GOTACK, job_id, kinds.KNOWN)
        lifecycle.drop(job)
        return
    known: i64 = len(members_of(state, delivered))
    if 0 < may_have <= known:
        note_ack_confirmed(state, job, peer)
    if may_have == 0 or known <= may_have:
        tell_end(state, peer, kinds.GOTACK, job_id, kinds.KNOWN)
    if known > may_have and (may_have > 0 or job.gc_retry == 0):
        collect(state, job)
    elif job.gc_retry > 0 and not unconfirmed(state, job):
        finish(state, job)


def _answer_without_job(state: NodeState, job: Job, peer: Peer, may_have: i64) -> None:
    """Answer for a dummy, an acknowledgement without a job. Of two nodes, one keeps its own until a holder is found.

    A node whose acknowledgement is known elsewhere drops its own. The original always answers that it knows the job, so
    its dummy must stay.
    """
    keeps = may_have > 0 or (peer.features != 0 and state.view.node_id > peer.id)
    tell_end(state, peer, kinds.GOTACK, job.id, kinds.KNOWN if keeps else kinds.UNKNOWN)


MESSAGE: Final[Message] = Message(
    kinds.SETACK,
    "SETACK",
    kinds.OF_JOB_ID,
    "a node that has an acknowledged job, to the other holders",
    "the receiver acknowledges the job; GOTACK",
    handle_setack,
)

LIST: Final[Message] = Message(
    kinds.SETACKS,
    "SETACKS",
    kinds.OF_JOB_IDS,
    "as SETACK, for the jobs of one turn of the event loop, to nodes with the feature",
    "as SETACK for each job",
    handle_setacks,
    feature=kinds.FEATURE_LISTS,
)
