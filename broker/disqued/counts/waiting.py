"""Which of the holders of a job counts or deletes it, if several of them know that it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.core.jobs.job import POSTPONED
from disqued.core.jobs.jobid import is_made_by
from disqued.placing.homes import live_holders

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState


def waits_here(state: NodeState, job: Job) -> bool:
    """Whether this node speaks for a delayed or held job that its other holders have as well.

    A job that was never delivered waits on the node that made it. If that node cannot be reached, and for a job that a
    worker gave back, the first of the holders speaks for it.
    """
    if job.delivered is None:
        return True
    live = live_holders(state, job)
    if not job.flags & POSTPONED:
        for node_id in live:
            if is_made_by(job.id, node_id):
                return node_id == state.view.node_id
    return live[0] == state.view.node_id
