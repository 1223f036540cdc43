"""Jobs that moves from queues of other types add: under the ID that is derived from the old job.

The ID was derived elsewhere (`moves.successor`), and its last digits say how long the first job of the chain lives, so
they are not compared with the TTL. A move is not refused for the length of the queue. A repetition meets the same homes
and adds nothing.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.admission.given import answer_known
from disqued.core.clients.session import Session
from disqued.core.jobs.job import Job
from disqued.core.memory.accounting import BIG_BYTES, COPIES_UNDER_WAY
from disqued.core.runtime.memorymonitor import make_room_for
from disqued.core.runtime.state import NodeState
from disqued.errors import TOO_BIG, NotReplicated, OutOfMemory, QueuePaused
from disqued.placing.added import added
from disqued.placing.homes import is_home
from disqued.placing.otherhomes import ask_other_homes

COPIES_MS: Final = 5000
"""How long the job waits for its copies."""


def add_moved(state: NodeState, session: Session, job: Job) -> None:
    """Add a job that a move made; the session gets its ID, now or later. Raises ReplyError if that is refused now.

    It is there when a majority of REPLICATE nodes have it, or all that can be reached; the others get it later.
    """
    if answer_known(state, session, job.id, job.queue, with_copies=False):
        return
    queues = state.lifecycle.queues
    if queues.takes_no_input(job.queue):
        raise QueuePaused
    queue = queues.get(job.queue)
    if queue is not None:
        job.queue = queue.name
    external = not is_home(state, job.id, i64(job.repl))
    able: i64 = len(state.view.reachable)
    if not external:
        able += 1
    if able == 0:
        raise NotReplicated
    if len(job.body) > BIG_BYTES and not make_room_for(state, COPIES_UNDER_WAY * len(job.body)):
        raise OutOfMemory(TOO_BIG)
    placement = (queue.type if queue is not None else queues.type_of(job.queue)).placement
    confirmed: i64 = min(i64(job.repl) // 2 + 1, able)
    if placement.place(session, job, COPIES_MS, state.now_ms, confirmed=confirmed, external=external):
        session.out.append(added(job.id, 1, with_copies=False))
        ask_other_homes(state, job)
