"""AUTH: logs the connection in, as the user `default` if only a password is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.runtime.authentication import authenticate
from disqued.errors import WrongArity

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def auth(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Authenticate the session and reply OK, or refuse."""
    if len(args) > 3:
        raise WrongArity("auth")
    authenticate(state, session, args[-1], args[1] if len(args) == 3 else None)
    session.reply_ok()


COMMAND: Final[Command] = Command(
    "auth",
    -2,
    ("readonly", "loading", "fast"),
    auth,
    "connection",
    "Authenticates the connection.",
    "[user] password",
    secret_words=lambda _config, args: range(1, len(args)),
    before_auth=True,
    allowed_paused=True,
    categories=("connection",),
)
