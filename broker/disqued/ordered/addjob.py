"""ADDJOB to an ordered queue: an entry in the log of its group.

The node of the client fills in all defaults, so every replica has the same values. The reply comes when a majority has
the entry on disk and the leader has applied it: the ID is made from its index.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.admission.options import DEFAULT_MAX_RETRY_S, DEFAULT_TTL_S, UNSET, AddJob, parse_options
from disqued.core.clients.session import Session
from disqued.core.jobs.attributes import META
from disqued.core.queues.settings import QueueSettings
from disqued.core.runtime.counters import JOBS_ADDED
from disqued.core.runtime.state import NodeState
from disqued.errors import CommandSyntaxError, ReplyError
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.replies import error_for
from disqued.ordered.requests import COMMAND
from disqued.ordered.results import unpack
from disqued.ordered.room import OrderedRoom, ordered_of
from disqued.ordered.waiting import ClientRequest, Waiting
from disqued.orderedqueue.add import Add
from disqued.orderedqueue.effects import OK
from disqued.placing.added import added, added_before
from disqued.resp.integers import require_timeout_ms

OPTIONS_AT: Final = 4
MAX_GROUP_BYTES: Final = 128


class _AddRequest(ClientRequest):
    """An ADD, and the client that waits for the ID."""

    def __init__(
        self, room: OrderedRoom, waiting: Waiting, queue: OrderedQueue, add: Add, data: bytes, deadline_ms: i64
    ) -> None:
        super().__init__(room, waiting, queue.name, COMMAND, data, deadline_ms, repeated=bool(add.key))
        self._queue = queue
        self._add = add
        self.with_copies: bool = False

    def done(self, result: bytes) -> None:
        """Reply with the ID of the job."""
        told = unpack(result)
        queue = self._queue
        if told.code != OK:
            self.waiting.finish(error_for(told).encode())
        elif told.known:
            job_id = queue.job_id(told.value, told.ttl_s, told.retry_s > 0)
            self.waiting.finish(added_before(job_id, with_copies=self.with_copies))
        else:
            self.room.state.counters.add(JOBS_ADDED)
            job_id = queue.job_id(told.value, self._add.ttl_s, self._add.retry_s > 0)
            quorum = len(queue.replicas) // 2 + 1
            self.waiting.finish(added(job_id, quorum, with_copies=self.with_copies))


def _split_group(args: list[bytes]) -> tuple[list[bytes], bytes]:
    """The words without GROUP, and the group key; empty if there is none."""
    index = OPTIONS_AT
    while index < len(args):
        word = args[index].upper()
        if word == b"GROUP":
            if index + 1 == len(args):
                raise CommandSyntaxError
            key = args[index + 1]
            if not 1 <= len(key) <= MAX_GROUP_BYTES:
                raise ReplyError(f"ERR GROUP must have 1 to {MAX_GROUP_BYTES} bytes")
            return args[:index] + args[index + 2 :], key
        index += 1 if word in {b"ASYNC", b"WITHCOPIES"} else 2
    return args, b""


def _refuse_others(options: AddJob, queue: OrderedQueue) -> None:
    """Raise ReplyError for options that ordered queues do not have."""
    if options.asynchronous:
        raise ReplyError("ERR ASYNC cannot be used with an ordered queue: a job counts when a majority has it on disk")
    if options.confirmed != UNSET:
        raise ReplyError("ERR SYNC cannot be used with an ordered queue: a job counts when a majority has it on disk")
    if options.has_priority:
        raise ReplyError("ERR PRIORITY cannot be used with an ordered queue: its jobs are in the order of their adds")
    if options.parents is not None:
        raise ReplyError("ERR AFTER cannot be used with an ordered queue: its jobs are in the order of their adds")
    if options.given_id is not None:
        raise ReplyError("ERR ID cannot be used with an ordered queue, whose IDs name a place in its log; use KEY")
    if options.replicate > len(queue.replicas):
        raise ReplyError(f"ERR REPLICATE is {options.replicate}, and the queue has {len(queue.replicas)} replicas")


def _complete(options: AddJob, settings: QueueSettings | None) -> None:
    """Fill in the defaults, and refuse contradictions."""
    if settings is not None:
        if options.ttl_s == UNSET:
            options.ttl_s = settings.ttl_s
        if options.retry_s == UNSET:
            options.retry_s = settings.retry_s
        if options.retain_s == UNSET and settings.retain_s > 0:
            options.retain_s = settings.retain_s
    if options.ttl_s == UNSET:
        options.ttl_s = DEFAULT_TTL_S
    if options.retry_s == UNSET:
        options.retry_s = max(1, min(DEFAULT_MAX_RETRY_S, options.ttl_s // 10))
    if options.delay_s >= options.ttl_s:
        raise ReplyError("ERR The specified DELAY is greater than TTL. Job refused since would never be delivered")
    if options.key is None:
        if options.window_s != UNSET:
            raise ReplyError("ERR WINDOW is of use with a KEY only")
        if options.until_done:
            raise ReplyError("ERR UNTIL is of use with a KEY only")


def _add_of(options: AddJob, group: bytes) -> Add:
    """The command for the machine."""
    add = Add(options.retry_s, options.ttl_s)
    add.delay_ms = options.delay_s * 1000
    add.group = group
    if options.key is not None:
        add.key = options.key
        add.window_s = 0 if options.until_done else options.window
        add.until_done = options.until_done
    if options.attributes is not None:
        add.meta = options.attributes.get(META, b"")
    add.retain_s = max(options.retain_s, 0)
    add.max_length = max(options.max_length, 0)
    return add


def addjob(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Add a job to an ordered queue; False if the queue is none."""
    room = ordered_of(state)
    queue = room.catalog.by_name.get(args[1])
    if queue is None:
        return False
    words, group = _split_group(args)
    options = parse_options(words, OPTIONS_AT)
    timeout_ms: i64 = require_timeout_ms(args[3])
    _refuse_others(options, queue)
    _complete(options, state.lifecycle.queues.settings_of(queue.name))
    add = _add_of(options, group)
    waiting = Waiting(state, session, len(args[2]))
    waiting.open = True
    waiting.begin()
    deadline_ms: i64 = state.now_ms + timeout_ms if timeout_ms > 0 else 0
    request = _AddRequest(room, waiting, queue, add, add.encode(args[2]), deadline_ms)
    request.with_copies = options.with_copies
    room.clients.client(queue.group).submit(request)
    return True
