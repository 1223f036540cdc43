"""NACK: a worker could not do its job, somebody else should.

With DELAY no node queues the job before; without, the setting `backoff` of its queue may say when. UNCOUNTED gives the
job back without counting a failed attempt, as a worker that stops does with jobs it did not begin. DEAD makes it a dead
letter now. REASON is kept with the job. CLAIM refuses to give back a job that was delivered again since.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.jobs.attributes import MAX_REASON_BYTES, REASON, changed
from disqued.core.jobs.claims import parse_claim
from disqued.core.jobs.job import ACTIVE, QUEUED, Job
from disqued.core.jobs.jobid import is_job_id
from disqued.core.lifecycle.lifecycle import COUNT_NACK, UNCOUNTED
from disqued.core.runtime.claiming import require_current
from disqued.core.runtime.manyjobs import for_each_job, queues_of_jobs
from disqued.core.runtime.state import NodeState
from disqued.delivery.counters import REQUEUED_BY_NACK
from disqued.delivery.enqueue import forward, requeue
from disqued.delivery.postpone import postpone
from disqued.errors import BadJobId, CommandSyntaxError, DelayTooLong, ReplyError
from disqued.resp.integers import parse_integer
from disqued.resp.limits import MAX_ARGUMENTS

MAX_DELAY_S: Final = (1 << 32) - 1
_WITH_VALUE: Final = {b"DELAY", b"PDELAY", b"REASON", b"CLAIM"}
_ALONE: Final = {b"UNCOUNTED", b"DEAD"}
_MOST_OPTION_WORDS: Final = 16
"""More words than all options have: only the last words of a request are searched for them."""


@mypyc_attr(acyclic=True)
class Nack:
    """The options of one NACK."""

    def __init__(self) -> None:
        self.delay_ms: i64 = 0
        self.counting: int = COUNT_NACK
        self.dead: bool = False
        self.reason: bytes | None = None
        self.claim: i64 = 0
        """The claim of the worker; 0 if it names none."""

    def part(self, state: NodeState, _session: Session, args: list[bytes], first: int, end: int) -> int:
        """Give back the jobs whose IDs are in this part of the request; returns how many could be."""
        given_back = 0
        for index in range(first, end):
            job = state.lifecycle.table.get(args[index])
            if job is None:
                given_back += forward(state, args[index], self.counting, int(self.delay_ms + 999) // 1000)
            else:
                given_back += self._give_back(state, job, alone=len(args) == 2)
        return given_back

    def _give_back(self, state: NodeState, job: Job, *, alone: bool) -> bool:
        """Queue a job now or later; False if it is never queued again, or not within its life.

        If it is the only job of the request, the second is an error.
        """
        if self.claim:
            require_current(state, job, self.claim)
        if job.state != ACTIVE and not (self.dead and job.state == QUEUED):
            return False
        left_ms: i64 = job.expire_at_s * 1000 - state.now_ms
        if self.delay_ms > 0 and self.delay_ms >= left_ms:
            if alone:
                raise DelayTooLong(int(max(left_ms, 0) // 1000))
            return False
        if self.reason is not None and (job.retry_s > 0 or self.dead):  # else it is not in the file any more
            state.lifecycle.set_attributes(job, changed(job.extra, {REASON: self.reason}))
        if self.dead:
            return state.events.rejected(job)
        if state.events.attempt_failed(job, self.counting):
            return True
        delay_ms = self.delay_ms
        if delay_ms == 0 and self.counting == COUNT_NACK:
            delay_ms = backoff_ms(state, job, left_ms)
        if delay_ms == 0:
            return requeue(state, job, self.counting)
        if not postpone(state, job, delay_ms, self.counting):
            return False
        state.counters.add(REQUEUED_BY_NACK)
        return True


def backoff_ms(state: NodeState, job: Job, left_ms: i64) -> i64:
    """How long a job waits after a failed attempt, by the setting `backoff` of its queue; 0 without it.

    The time grows with each attempt, and differs by up to a tenth by chance, so that jobs that failed together do not
    come back together. At most three quarters of the remaining life: the job must come back.
    """
    settings = state.lifecycle.queues.settings_of(job.queue)
    if settings is None or settings.backoff_min_ms == 0:
        return 0
    attempts = int(job.nacks) + int(job.additional_deliveries)
    longest = float(settings.backoff_max_ms)
    wait_ms = float(settings.backoff_min_ms)
    for _ in range(attempts):
        wait_ms *= settings.backoff_factor
        if wait_ms >= longest or settings.backoff_factor <= 1.0:
            break
    wait_ms = min(wait_ms, longest) * (0.9 + 0.2 * state.host.random())
    return max(min(i64(wait_ms), left_ms // 4 * 3), 0)


def ids_end(args: list[bytes]) -> int:
    """The index after the last job ID; the first word that is no ID must be an option."""
    count = len(args)
    for index in range(max(1, count - _MOST_OPTION_WORDS), count):
        if is_job_id(args[index]):
            continue
        word = args[index].upper()
        if word not in _ALONE and word not in _WITH_VALUE:
            raise BadJobId
        return index
    return count


def parse_nack(args: list[bytes], first: int) -> Nack:
    """The options from index `first` on."""
    options = Nack()
    count = len(args)
    index = first
    while index < count:
        word = args[index].upper()
        if word in _ALONE:
            if word == b"DEAD":
                options.dead = True
            else:
                options.counting = UNCOUNTED
            index += 1
            continue
        if word not in _WITH_VALUE or index + 1 == count:
            raise CommandSyntaxError
        _set(options, word, args[index + 1])
        index += 2
    if options.dead and (options.delay_ms > 0 or options.counting == UNCOUNTED):
        raise ReplyError("ERR DEAD ends the job now, so it cannot be combined with DELAY or UNCOUNTED")
    return options


def _set(options: Nack, word: bytes, value: bytes) -> None:
    """Set an option that has a value."""
    if word == b"REASON":
        if len(value) > MAX_REASON_BYTES:
            raise ReplyError(f"ERR REASON must have at most {MAX_REASON_BYTES} bytes, not {len(value)}")
        options.reason = value
        return
    if word == b"CLAIM":
        options.claim = parse_claim(value)
        return
    per_ms = 1000 if word == b"DELAY" else 1
    most = MAX_DELAY_S * 1000 // per_ms
    number = parse_integer(value)
    if number is None or not 0 <= number <= most:
        unit = "seconds" if word == b"DELAY" else "milliseconds"
        raise ReplyError(f"ERR {word.decode()} must be between 0 and {most} {unit}")
    options.delay_ms = number * per_ms


def nack(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Queue jobs again, now or later, and reply with their number."""
    end = ids_end(args)
    options = parse_nack(args, end)
    if options.claim and end > 2:
        raise ReplyError(f"ERR CLAIM takes one job ID, {end - 1} were given")
    for_each_job(state, session, args if end == len(args) else args[:end], options.part)


COMMAND: Final[Command] = Command(
    "nack",
    -1,
    ("write", "denyoom", "fast"),
    nack,
    "jobs",
    "Puts jobs that could not be processed back in their queues.",
    "job-id [job-id ...] [CLAIM claim] [DELAY sec | PDELAY ms] [REASON text] [UNCOUNTED | DEAD]",
    "O(jobs)",
    most_words=MAX_ARGUMENTS,
    queues=queues_of_jobs,
    categories=("consumer",),
)
