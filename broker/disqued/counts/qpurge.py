"""QPURGE: delete the jobs of a queue on all nodes, also on those that cannot be reached now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.commands.longcommand import LongWork
from disqued.core.commands.scope import first_word
from disqued.core.jobs.job import CTIMES_PER_MS
from disqued.core.jobs.phases import DEAD_LETTER, DELAYED_HERE, HELD, IN_QUEUE, PHASES
from disqued.core.queues.settings import MOST_NAME_BYTES
from disqued.core.runtime.audit import always
from disqued.core.runtime.slices import run_long
from disqued.counts.qcount import DEFAULT_TIMEOUT_MS, reply_figure, reply_nodes, timeout_ms
from disqued.counts.room import counts_of
from disqued.errors import CommandSyntaxError, ReplyError
from disqued.resp.integers import require_integer

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState
    from disqued.counts.collecting import Collection

DEFAULT_PHASES: Final = (IN_QUEUE, DELAYED_HERE, DEAD_LETTER, HELD)
"""A worker that has a job keeps it unless the request says otherwise."""


class PurgeOptions:
    """The options of one QPURGE."""

    def __init__(self, now_ms: int) -> None:
        self.phases: list[int] = []
        self.before_ms: int | None = None
        self.timeout_ms = DEFAULT_TIMEOUT_MS
        self._now_ms = now_ms

    def read(self, words: list[bytes]) -> None:
        """Parse the words after the queue."""
        if len(words) % 2:
            raise CommandSyntaxError
        for option, value in zip(words[::2], words[1::2], strict=True):
            name = option.upper()
            if name == b"STATE":
                if value.lower() not in PHASES:
                    states = ", ".join(phase.decode() for phase in PHASES)
                    raise ReplyError(f"ERR Invalid job state name, try {states}")
                self.phases.append(PHASES.index(value.lower()))
            elif name == b"BEFORE":
                self.before_ms = require_integer(value)
                if not 0 < self.before_ms <= self._now_ms:
                    raise ReplyError("ERR BEFORE must be unix milliseconds that are not in the future")
            elif name == b"TIMEOUT":
                self.timeout_ms = timeout_ms(value)
            else:
                raise CommandSyntaxError


class Purged(LongWork):
    """Waits until the mark is on disk and the nodes have answered."""

    def __init__(self, state: NodeState, collection: Collection) -> None:
        super().__init__()
        self._state = state
        self._collection = collection

    def waits(self) -> bool:
        """Whether answers may still come, or the disk writes."""
        return not self._collection.is_over(int(self._state.now_ms)) or self._state.events.entries_unsaved() == ""

    def step(self, state: NodeState, session: Session) -> bool:
        """Reply."""
        if self.waits():
            return True
        error = state.events.entries_unsaved()
        if error:
            raise ReplyError(f"ERR the jobs are deleted on all nodes, but the mark is not saved on this one: {error}")
        collection = self._collection
        session.reply_array(6)
        reply_figure(session, b"deleted", sum(collection.figures))
        reply_nodes(session, collection)
        return False


def qpurge(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Delete the jobs, and reply with names and numbers as a flat array: how many jobs, and how many nodes answered."""
    request = PurgeOptions(int(state.now_ms))
    request.read(args[2:])
    queue = args[1]
    if not 1 <= len(queue) <= MOST_NAME_BYTES:
        raise ReplyError(f"ERR QPURGE takes names of 1 to {MOST_NAME_BYTES} bytes")
    before = int(state.next_ctime(queue)) if request.before_ms is None else request.before_ms * CTIMES_PER_MS
    version = int(state.events.purge_wanted(queue, tuple(request.phases) or DEFAULT_PHASES, before))
    collection = counts_of(state).ask_purged(queue, version, request.timeout_ms)
    run_long(state, session, Purged(state, collection))


COMMAND: Final[Command] = Command(
    "qpurge",
    -2,
    ("write",),
    qpurge,
    "queues",
    "Deletes the jobs of a queue on all nodes, also on those that return later.",
    "queue [STATE queued|delayed|dead|held|leased] ... [BEFORE unix-ms] [TIMEOUT ms]",
    "O(jobs of each node), in slices",
    queues=first_word,
    audited=always,
    categories=("queueadmin",),
)
