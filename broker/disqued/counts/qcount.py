"""QCOUNT: the number of jobs of a queue over all nodes, by phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus.frame import MAX_NAME_BYTES
from disqued.core.commands.command import Command
from disqued.core.commands.longcommand import LongWork
from disqued.core.commands.scope import first_word
from disqued.core.runtime.slices import run_long
from disqued.counts.counting import FIGURES
from disqued.counts.room import counts_of
from disqued.errors import CommandSyntaxError, ReplyError
from disqued.resp.integers import require_integer

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState
    from disqued.counts.collecting import Collection

DEFAULT_TIMEOUT_MS: Final = 5000
LONGEST_TIMEOUT_MS: Final = 60_000


def timeout_of(options: list[bytes]) -> int:
    """The timeout that the options of a request give, in milliseconds."""
    if not options:
        return DEFAULT_TIMEOUT_MS
    if len(options) != 2 or options[0].upper() != b"TIMEOUT":
        raise CommandSyntaxError
    return timeout_ms(options[1])


def timeout_ms(word: bytes) -> int:
    """The timeout in an option."""
    value = require_integer(word)
    if not 1 <= value <= LONGEST_TIMEOUT_MS:
        raise ReplyError(f"ERR timeout must be 1 to {LONGEST_TIMEOUT_MS} ms, not {value}")
    return value


class Counted(LongWork):
    """Waits for the answers of the nodes."""

    def __init__(self, state: NodeState, collection: Collection) -> None:
        super().__init__()
        self._state = state
        self._collection = collection

    def waits(self) -> bool:
        """Whether answers may still come."""
        return not self._collection.is_over(int(self._state.now_ms))

    def step(self, state: NodeState, session: Session) -> bool:  # noqa: ARG002 - any long command gets it
        """Reply."""
        if self.waits():
            return True
        collection = self._collection
        figures = collection.figures + [0] * len(FIGURES)
        session.reply_array(2 * len(FIGURES) + 4)
        for name, figure in zip(FIGURES, figures, strict=False):
            reply_figure(session, name, figure)
        reply_nodes(session, collection)
        return False


def reply_figure(session: Session, name: bytes, figure: int) -> None:
    """Append a name and a number."""
    session.reply_bulk(name)
    session.reply_integer(figure)


def reply_nodes(session: Session, collection: Collection) -> None:
    """Append how many nodes answered, and how many there are."""
    reply_figure(session, b"nodes-answered", collection.answered)
    reply_figure(session, b"nodes-known", collection.known)


def qcount(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with names and numbers as a flat array: the jobs by phase, and how many of the nodes were counted."""
    if len(args[1]) > MAX_NAME_BYTES:
        raise ReplyError(f"ERR QCOUNT takes names of at most {MAX_NAME_BYTES} bytes")
    run_long(state, session, Counted(state, counts_of(state).ask_jobs(args[1], timeout_of(args[2:]))))


COMMAND: Final[Command] = Command(
    "qcount",
    -2,
    ("readonly",),
    qcount,
    "queues",
    "Counts the jobs of a queue over all nodes: queued, leased, delayed, dead, held, and records of ended ones.",
    "queue [TIMEOUT ms]",
    "O(jobs of each node), in slices",
    queues=first_word,
    categories=("inspect",),
)
