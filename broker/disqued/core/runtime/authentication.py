"""The password check that AUTH and HELLO share.

There is one password (`requirepass`) and one user, whom clients that insist on a name call `default`. While clients
change over to a new password, the one before may be taken as well (`requirepass-former`).
"""

from __future__ import annotations

from hmac import compare_digest
from typing import TYPE_CHECKING, Final

from disqued.errors import ReplyError

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState

ONLY_USER: Final = b"default"


def authenticate(state: NodeState, session: Session, password: bytes, user: bytes = ONLY_USER) -> None:
    """Let the session in; a wrong password also takes away what an earlier right one gave. Raises ReplyError."""
    if not state.password:
        raise ReplyError("ERR Client sent AUTH, but no password is set")
    # All are compared in a time that says nothing about how much of them is right.
    former = state.config.requirepass_former or state.password
    right = compare_digest(password, state.password) | compare_digest(password, former)
    session.authenticated = right & compare_digest(user, ONLY_USER)
    session.parser.restrict(not session.authenticated)
    if not session.authenticated:
        raise ReplyError("ERR invalid password")
