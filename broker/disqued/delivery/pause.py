"""PAUSE: stop what comes into a queue, what goes out of it, or both."""

from __future__ import annotations

from typing import Final

from disqued.core.command import Command
from disqued.core.queue import PAUSE_NAMES, PAUSED_IN, PAUSED_OUT
from disqued.core.session import Session
from disqued.core.state import NodeState
from disqued.errors import CommandSyntaxError

_ADDS: Final = {b"IN": PAUSED_IN, b"OUT": PAUSED_OUT, b"ALL": PAUSED_IN | PAUSED_OUT}
_NOTES: Final = (b"STATE", b"BCAST")
"""Options that change nothing here; BCAST tells the other nodes of the cluster, if there are any."""


def pause(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Replace the pause of a queue by what the options add up to and reply with the result."""
    wanted: int | None = None
    for word in args[2:]:
        option = word.upper()
        if option == b"NONE":
            wanted = 0
        elif option in _ADDS:
            wanted = (wanted or 0) | _ADDS[option]
        elif option not in _NOTES:
            raise CommandSyntaxError
    queue = state.lifecycle.queues.get(args[1])
    if wanted is not None and (queue is not None or wanted != 0):
        if queue is None:
            queue = state.lifecycle.make_queue(args[1], state.now_ms)
        queue.pause = wanted
        if queue.waiting > 0:
            state.lifecycle.offer(queue)
    session.reply_status(PAUSE_NAMES[queue.pause if queue is not None else 0])


COMMAND: Final[Command] = Command(
    "pause",
    -3,
    ("readonly", "fast"),
    pause,
    "queues",
    "Pauses a queue in input, output or both, or resumes it, and replies with its state.",
    "queue in|out|all|none|state|bcast [in|out|all|none|state|bcast ...]",
)
