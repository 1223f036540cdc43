"""Giving claims with deliveries.

The first delivery with a claim is that of a client that asks for one (GETJOB WITHCLAIM). From then on each delivery of
the job has a new claim, whether its client asks or not: those before are stale.
"""

from __future__ import annotations

from disqued.core.jobs.claims import claim_of, next_claim
from disqued.core.jobs.job import Job
from disqued.core.runtime.claiming import learn_claim
from disqued.core.runtime.state import NodeState
from disqued.delivery.counters import CLAIMS


def is_claimed(job: Job) -> bool:
    """Whether an earlier delivery of the job had a claim."""
    return job.extra is not None and job.extra.claimed


def grant(state: NodeState, job: Job) -> None:
    """Give a job that is delivered a claim, and its worker a whole retry time."""
    learn_claim(state, job, next_claim(claim_of(job), state.now_ms, state.view.claim_number))
    state.lifecycle.postpone(job, state.now_ms)
    state.counters.add(CLAIMS)
