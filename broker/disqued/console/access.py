"""Who uses the HTTP port: the users of the node, by the Authorization header.

A connection cannot wait for a delayed refusal as a client's does, because few are open at a time. So an address that
had several failures is refused without a look at its password until the delay is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.console import guard
from disqued.core.access.users import DEFAULT
from disqued.core.clients.origin import origin_of
from disqued.core.runtime.authentication import find_user
from disqued.core.runtime.authorization import refusal
from disqued.errors import LoginRefused, ReplyError
from disqued.httproutes import FORBIDDEN, TOO_MANY_REQUESTS, UNAUTHORIZED, Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from disqued.console.calling import Caller
    from disqued.core.access.user import User
    from disqued.core.runtime.state import NodeState
    from disqued.httproutes import Request
    from disqued.node import Node

NEEDS_LOGIN: Final = Answer(UNAUTHORIZED, "user and password required", guard.ASK_FOR_PASSWORD)


def wait_answer(state: NodeState, client: str) -> Answer | None:
    """The answer to an address that must wait after failed logins; None if it need not."""
    wait_ms = int(state.users.failures.wait_ms(origin_of(client), state.now_ms))
    if wait_ms == 0:
        return None
    seconds = -(-wait_ms // 1000)
    text = f"too many failed logins from this address; try again in {seconds} s"
    return Answer(TOO_MANY_REQUESTS, text, (("Retry-After", str(seconds)),))


def metrics_refusal(state: NodeState, headers: Mapping[str, str], client: str, *words: bytes) -> Answer | None:
    """The answer to a client that may not read metrics; None if it may.

    Metrics need the permission for the command that shows the same (`words`): INFO, or QSTAT for one queue.
    """
    if not state.config.http_auth:
        return None
    found = user_of(state, headers, client)
    if isinstance(found, Answer):
        return found
    name = words[0].decode().lower()
    command = next(entry for entry in state.command_entries if entry.command.name == name)
    refused = refusal(state, command, found, list(words))
    return None if refused is None else Answer(FORBIDDEN, refused.text)


def user_of(state: NodeState, headers: Mapping[str, str], client: str) -> User | Answer:
    """The user of a request, or the answer that refuses it."""
    users = state.users
    given = guard.credentials(headers)
    if given is None:
        return users.default if users.open_to_all else NEEDS_LOGIN
    waiting = wait_answer(state, client)
    if waiting is not None:
        return waiting
    password, name = given
    try:
        return find_user(state, client.encode(), password, name or None, tls=state.config.http_tls)
    except ReplyError:
        return users.default if users.open_to_all and not name else NEEDS_LOGIN


def log_in(node: Node, caller: Caller, request: Request) -> Answer | None:
    """Log in with the credentials of a request, if it has any; returns the answer if it is refused."""
    needs_login = not node.state.users.open_to_all
    given = guard.credentials(request.headers)
    if given is None:
        return NEEDS_LOGIN if needs_login else None
    password, name = given
    if not needs_login and name in {b"", DEFAULT}:
        return None  # the default user needs no password
    waiting = wait_answer(node.state, request.client)
    if waiting is not None:
        return waiting
    try:
        caller.authenticate(password, name or None)
    except LoginRefused:
        return NEEDS_LOGIN
    except ReplyError as error:  # too many connections of this user
        return Answer(FORBIDDEN, error.text.removeprefix("ERR "))
    return None
