"""ADDJOB ID: the client gives the ID, so the same ADDJOB can be repeated at any node and adds one job.

A job with a given ID is sent to nodes that its ID determines (`placing.homes`). A node that repeats the ADDJOB asks the
same nodes, and they know the job already, also if it was finished within the last ten minutes.
"""

from __future__ import annotations

import re
from typing import Final

from disqued.admission.counters import JOBS_DEDUPLICATED
from disqued.core.clients.session import Session
from disqued.core.jobs.job import ACKED, NOBODY, WAIT_REPL
from disqued.core.jobs.jobid import can_exist, suffix_for
from disqued.core.runtime.state import NodeState
from disqued.errors import JobExists, NotReplicated, ReplyError
from disqued.placing.added import added_before

STILL_WAITS: Final = "The job with this ID still waits for its copies, try again later"
_SHORT: Final = re.compile(rb"[A-Za-z0-9+/]{24}")
_SUFFIX_AT: Final = 35


def require_id(word: bytes, ttl_s: int, *, at_least_once: bool) -> bytes:
    """The ID of a job with these options that the client gave, whole or only its 24 characters in the middle.

    Raises:
        ReplyError: it is no ID, or not one of a job with this time to live.
    """
    suffix = suffix_for(ttl_s, at_least_once)
    if _SHORT.fullmatch(word):
        return b"D-00000000-" + word + suffix
    if not can_exist(word):
        raise ReplyError("ERR ID must be a job ID, or the 24 characters in its middle: letters, digits, + and /")
    if word[_SUFFIX_AT:].lower() != suffix:
        retry = "above 0" if at_least_once else "0"
        raise ReplyError(f"ERR the ID must end with {suffix.decode()} if TTL is {ttl_s} seconds and RETRY is {retry}")
    return word


def answer_known(state: NodeState, session: Session, job_id: bytes, queue: bytes, *, with_copies: bool) -> bool:
    """Reply with the ID if this node knows the job, unfinished or finished; False if it does not.

    If copies may be missing, they are asked for.
    """
    job = state.lifecycle.table.get(job_id)
    if job is None and not state.events.is_done(job_id):
        return False
    if job is not None and not job.is_dummy:
        if job.queue != queue:
            raise JobExists
        if job.state == WAIT_REPL:
            raise NotReplicated(STILL_WAITS)
        if job.state != ACKED and job.repl > 1:
            state.events.copies_missing(job, state.holders.plus(NOBODY, state.view.node_id))
    state.counters.add(JOBS_DEDUPLICATED)
    state.ready.tell_again(session)
    session.out.append(added_before(job_id, with_copies=with_copies))
    return True
