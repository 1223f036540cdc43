"""The password check of AUTH and HELLO.

There is one password (`requirepass`) and one user, `default`, for clients that require a user name. While clients
change to a new password, the previous one is accepted too (`requirepass-former`).
"""

from __future__ import annotations

from hmac import compare_digest
from typing import Final

from disqued.core.clients.session import Session
from disqued.core.runtime.state import NodeState
from disqued.errors import ReplyError

ONLY_USER: Final = b"default"


def must_authenticate(state: NodeState, session: Session) -> bool:
    """Whether a client has not authenticated although it must. This is the only place that decides it."""
    return len(state.password) > 0 and not session.authenticated


def authenticate(state: NodeState, session: Session, password: bytes, user: bytes = ONLY_USER) -> None:
    """Authenticate the session. A wrong password also ends an earlier authentication. Raises ReplyError."""
    if not state.password:
        raise ReplyError("ERR Client sent AUTH, but no password is set")
    # All comparisons take the same time, whether or not they match, so that timing reveals nothing.
    former = state.config.requirepass_former or state.password
    right = compare_digest(password, state.password) | compare_digest(password, former)
    session.authenticated = right & compare_digest(user, ONLY_USER)
    session.parser.restrict(not session.authenticated)
    if session.authenticated:
        state.unauthenticated.pop(session.number, None)
    elif session.number not in state.unauthenticated:
        session.unauthenticated_ms = state.now_ms
        state.unauthenticated[session.number] = session
    if not session.authenticated:
        raise ReplyError("ERR invalid password")
