"""NEWID: an ID for a job that is added later, with ADDJOB ID.

The client has the ID before the node has the job, so it can repeat the ADDJOB at any node, and it can name the job as
a parent of other jobs. The node keeps nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.admission.options import DEFAULT_TTL_S, parse_options
from disqued.core.commands.command import Command
from disqued.errors import CommandSyntaxError

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState

_TAKEN: Final = (b"TTL", b"RETRY")
_FIRST: Final = 1


def newid(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with a new ID that ADDJOB takes for the same TTL and RETRY."""
    if any(word.upper() not in _TAKEN for word in args[_FIRST::2]):
        raise CommandSyntaxError
    options = parse_options(args, _FIRST)
    ttl_s = options.ttl_s if options.ttl_s > 0 else DEFAULT_TTL_S
    session.reply_bulk(state.job_ids.make(ttl_s, options.retry_s != 0))


COMMAND: Final[Command] = Command(
    "newid",
    -1,
    ("readonly", "fast"),
    newid,
    "jobs",
    "Makes a job ID for a later ADDJOB with ID, TTL and RETRY.",
    "[TTL sec] [RETRY sec]",
    "O(1)",
    categories=("producer",),
)
