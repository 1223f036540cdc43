"""PAUSE: stop what comes into a queue, what goes out of it, or both; on this node, or with BCAST on all.

The setting `pause` of a queue (QCONF) does so besides: what either of them stops is stopped. PAUSE shows its own state.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Peer
from disqued.core.commands.command import Command
from disqued.core.commands.scope import first_word
from disqued.core.lifecycle.pausing import set_local_pause
from disqued.core.lifecycle.records import Words
from disqued.core.memory.accounting import FULL
from disqued.core.queues.queue import PAUSE_NAMES, PAUSED_IN, PAUSED_OUT
from disqued.core.runtime.message import Message
from disqued.core.runtime.outbox import tell_all
from disqued.core.runtime.recordkind import RecordKind
from disqued.core.runtime.state import NodeState
from disqued.errors import CommandSyntaxError, NodeEnding, OutOfMemory, ReplyError

_ADDS: Final = {b"IN": PAUSED_IN, b"OUT": PAUSED_OUT, b"ALL": PAUSED_IN | PAUSED_OUT}
_BOTH: Final = PAUSED_IN | PAUSED_OUT
_RECORD: Final = b"PAUSE"
_PART_QUEUES: Final = 2048
"""How many queues are searched for pauses at a time when the append-only file is rewritten."""


def pause(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Replace the pause of a queue by what the options add up to and reply with the result."""
    wanted: int | None = None
    to_all = False
    for word in args[2:]:
        option = word.upper()
        if option == b"NONE":
            wanted = 0
        elif option in _ADDS:
            wanted = (wanted or 0) | _ADDS[option]
        elif option == b"BCAST":
            to_all = True
        elif option != b"STATE":
            raise CommandSyntaxError
    name = args[1]
    if wanted is not None:
        _set_pause(state, name, wanted)
        state.ready.tell_again(session)  # another client may have paused it just before, which is not logged yet
    queue = state.lifecycle.queues.get(name)
    result: i64 = queue.local_pause if queue is not None else 0
    if to_all:
        tell_all(state, state.bus.about_queue(kinds.PAUSE, name, result))
    session.reply_status(PAUSE_NAMES[result])


def handle_pause(state: NodeState, peer: Peer, frame: Frame) -> None:  # noqa: ARG001 - any member may ask
    """A client paused or resumed the queue on another node: do the same here, if there is memory for the queue."""
    with contextlib.suppress(ReplyError):
        _set_pause(state, frame.queue, frame.aux & _BOTH)


def _set_pause(state: NodeState, name: bytes, wanted: i64) -> None:
    """Set the pause of a queue, and log it if it changes.

    Raises NodeEnding, and OutOfMemory if the queue must be made: a paused queue stays until it is resumed.
    """
    if state.ending:
        raise NodeEnding
    if wanted and state.lifecycle.memory.level() >= FULL and state.lifecycle.queues.get(name) is None:
        raise OutOfMemory
    if set_local_pause(state.lifecycle, name, wanted, state.now_ms):
        state.lifecycle.journal.note((_RECORD, name, PAUSE_NAMES[wanted]))


def record_fault(words: list[bytes]) -> str:
    """Return what is wrong with a PAUSE record; empty if nothing is."""
    if words[2] in PAUSE_NAMES:
        return ""
    return f"PAUSE with {words[2][:40]!r} instead of none, in, out or all"


def load_record(state: NodeState, words: list[bytes]) -> None:
    """Pause a queue as a record says."""
    set_local_pause(state.lifecycle, words[1], PAUSE_NAMES.index(words[2]), state.now_ms)


def current_records(state: NodeState) -> Iterator[list[Words]]:
    """Yield the records of all paused queues."""
    cursor = 0
    while True:
        cursor, queues = state.lifecycle.queues.scan(cursor, _PART_QUEUES)
        yield [(_RECORD, queue.name, PAUSE_NAMES[queue.local_pause]) for queue in queues if queue.local_pause]
        if cursor == 0:
            return


def _changes(args: list[bytes]) -> bool:
    """Whether a request does more than to show the state of a queue."""
    return any(word.upper() != b"STATE" for word in args[2:])


RECORD: Final[RecordKind] = RecordKind("PAUSE", 3, record_fault, load_record, current_records)

MESSAGE: Final[Message] = Message(
    kinds.PAUSE,
    "PAUSE",
    kinds.OF_QUEUE,
    "PAUSE ... bcast, to all; the number is 1 for in, 2 for out, 3 for both, 0 for none",
    "the receiver pauses the queue likewise",
    handle_pause,
)

COMMAND: Final[Command] = Command(
    "pause",
    -3,
    ("readonly", "fast"),
    pause,
    "queues",
    "Pauses a queue in input, output or both, or resumes it, and replies with its state.",
    "queue in|out|all|none|state|bcast [in|out|all|none|state|bcast ...]",
    queues=first_word,
    audited=_changes,
    categories=("queueadmin",),
)
