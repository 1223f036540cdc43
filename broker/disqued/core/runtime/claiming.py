"""What a node learns about the claims of its jobs, and whether the claim of a worker is still the last one."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.cluster.peer import Peer
from disqued.core.jobs.attributes import NOTE, Attributes, changed, with_claim
from disqued.core.jobs.claims import NO_NODE, claim_of, refusal, superseded
from disqued.core.jobs.job import Job
from disqued.core.runtime.counters import STALE_REFUSED
from disqued.core.runtime.state import NodeState


def claims_refused(state: NodeState) -> str:
    """Why this node must not give claims: its clock is too far ahead, or its number not saved. Empty if it may."""
    return state.clock_refusal or state.view.claim_refusal


def learn_claim(state: NodeState, job: Job, claim: i64) -> bool:
    """Note a claim of a job if it is greater than the one that is known; False if it is not.

    It is not logged: a job that is logged for other reasons has it with its attributes.
    """
    if claim <= claim_of(job):
        return False
    _change_unlogged(state, job, with_claim(job.extra, claim))
    return True


def take_note(state: NodeState, job: Job, note: bytes) -> None:
    """Keep the line of progress of a worker in place of the one before."""
    _change_unlogged(state, job, changed(job.extra, {NOTE: note}))


def _change_unlogged(state: NodeState, job: Job, extra: Attributes | None) -> None:
    """Change attributes that decide nothing about the queue of the job, and are not worth a record."""
    memory = state.lifecycle.memory
    memory.remove(job)
    job.extra = extra
    memory.add(job)


def end_claim(state: NodeState, job: Job, peer: Peer) -> None:
    """Another node queues the job, so that the claim known here is stale. Does nothing to jobs without a claim.

    A claim of that node itself may be newer than its message, because it can arrive by way of a third node.
    """
    if job.extra is not None and job.extra.claimed:
        known = claim_of(job)
        if known & NO_NODE != state.view.claim_number_of(peer):
            learn_claim(state, job, superseded(known))


def require_current(state: NodeState, job: Job, claim: i64) -> None:
    """Raise StaleClaim if the job was delivered again since, as far as this node knows; otherwise note the claim."""
    error = refusal(job, claim)
    if error is not None:
        state.counters.add(STALE_REFUSED)
        raise error
    learn_claim(state, job, claim)
