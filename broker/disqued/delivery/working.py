"""WORKING: a worker needs more time, the job must not be delivered again meanwhile, by no node.

FOR says for how long (`lease`); without, it is the retry time. CLAIM refuses a worker whose job was delivered again
since. NOTE keeps a line of progress with the job, in place of the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Peer
from disqued.core.commands.command import Command
from disqued.core.jobs.attributes import MAX_NOTE_BYTES
from disqued.core.jobs.claims import parse_claim
from disqued.core.jobs.job import ACKED, Job
from disqued.core.jobs.jobid import MAX_TTL_S, is_job_id, is_made_by, ttl_range_s
from disqued.core.runtime.claiming import require_current, take_note
from disqued.core.runtime.manyjobs import queues_of_jobs
from disqued.core.runtime.message import Message
from disqued.core.runtime.outbox import tell_holders
from disqued.core.runtime.state import NodeState
from disqued.delivery.claimed import tell_claim
from disqued.delivery.lease import can_be_set, set_lease
from disqued.errors import BadJobId, CommandSyntaxError, JobAcknowledged, NoJob, ReplyError, TooLate
from disqued.jobmessages import job_held_with
from disqued.resp.integers import parse_integer


@mypyc_attr(acyclic=True, free_list_len=1)
class Working:
    """The options of one WORKING."""

    def __init__(self) -> None:
        self.claim: i64 = 0
        """The claim of the worker; 0 if it names none."""
        self.lease_ms: i64 = 0
        """How long it wants to have the job; 0 for the retry time."""
        self.note = b""
        """Its line of progress; empty if it gives none."""


def _set_claim(options: Working, value: bytes) -> None:
    options.claim = parse_claim(value)


def _set_lease(options: Working, value: bytes) -> None:
    seconds = parse_integer(value)
    if seconds is None or not 0 < seconds <= MAX_TTL_S:
        raise ReplyError("ERR FOR must be a number of seconds, 1 or more")
    options.lease_ms = seconds * 1000


def _set_note(options: Working, value: bytes) -> None:
    if not 0 < len(value) <= MAX_NOTE_BYTES:
        raise ReplyError(f"ERR NOTE must have 1 to {MAX_NOTE_BYTES} bytes, not {len(value)}")
    options.note = value


_OPTIONS: Final[dict[bytes, Callable[[Working, bytes], None]]] = {
    b"CLAIM": _set_claim,
    b"FOR": _set_lease,
    b"NOTE": _set_note,
}
"""How each option takes its value."""


def parse_working(args: list[bytes]) -> Working:
    """The options behind the job ID. Raises ReplyError."""
    options = Working()
    count = len(args)
    for index in range(2, count, 2):
        option = _OPTIONS.get(args[index].upper())
        if option is None or index + 1 == count:
            raise CommandSyntaxError
        option(options, args[index + 1])
    return options


def working(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Restart the retry time, or the lease that the worker asks for, and reply with it, in seconds.

    Refused once half of the job's time to live is over.
    """
    if not is_job_id(args[1]):
        raise BadJobId
    options = parse_working(args)
    lifecycle = state.lifecycle
    job = lifecycle.table.get(args[1])
    if job is None:
        retry_s = state.events.forwarded(args[1], kinds.WORKING, 0, 0)
        if retry_s < 0:
            raise NoJob
        session.reply_integer(retry_s)
        return
    if job.state == ACKED:
        raise JobAcknowledged
    if options.claim:
        require_current(state, job, options.claim)
    half_ms: i64 = life_ms(state, job) // 2
    if job.expire_at_s * 1000 - state.now_ms < half_ms:
        raise TooLate
    if options.lease_ms > half_ms:
        raise ReplyError(f"ERR FOR must be at most {half_ms // 1000} seconds, half of the time to live of the job")
    leased_s: i64 = job.retry_s
    if options.lease_ms > 0 and can_be_set(job):
        set_lease(state, job, options.lease_ms)
        leased_s = options.lease_ms // 1000
    else:
        lifecycle.dequeue(job)
        lifecycle.postpone(job, state.now_ms)
        if job.delivered is not None:
            tell_holders(state, job, state.bus.about_job(kinds.WORKING, job.id))
    if options.note:
        take_note(state, job, options.note)
    if options.claim or options.note:
        tell_claim(state, job, options.claim, options.note)
    session.reply_integer(leased_s)


def life_ms(state: NodeState, job: Job) -> i64:
    """From the creation of a job to its expiry.

    For another node's job the one is on that node's clock, the other on ours: however far those are apart, the life is
    what its ID says, to the minute.
    """
    life: i64 = job.expire_at_s * 1000 - job.created_ms
    if is_made_by(job.id, state.view.node_id):
        return life
    least_s, most_s = ttl_range_s(job.id)
    return min(max(life, i64(least_s) * 1000), i64(most_s) * 1000)


def handle_working(state: NodeState, peer: Peer, frame: Frame) -> None:
    """A worker of another node is at it: do not deliver the job before the retry time is over."""
    job = job_held_with(state, peer, frame)
    if job is None:
        return
    # Otherwise two nodes that both delivered it would postpone each other forever.
    state.lifecycle.end_lease(job, still_in_flight=True)
    state.lifecycle.dequeue(job)
    state.lifecycle.postpone(job, state.now_ms)


MESSAGE: Final[Message] = Message(
    kinds.WORKING,
    "WORKING",
    kinds.OF_JOB_ID,
    "a node that got WORKING, to the other holders",
    "a queued copy leaves its queue, the retry time starts again",
    handle_working,
)

COMMAND: Final[Command] = Command(
    "working",
    -2,
    ("write", "fast"),
    working,
    "jobs",
    "Postpones the next delivery of a job that is being worked on.",
    "job-id [CLAIM claim] [FOR sec] [NOTE text]",
    queues=queues_of_jobs,
    categories=("consumer",),
)
