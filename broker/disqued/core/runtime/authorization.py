"""Whether a session may run a request. The dispatcher asks only for sessions that are not `unrestricted`."""

from __future__ import annotations

from typing import Final

from disqued.core.access import accesslog
from disqued.core.access.user import User
from disqued.core.clients.session import Session
from disqued.core.commands.entry import CommandEntry
from disqued.core.runtime.counters import REFUSED_COMMANDS, REFUSED_FOR_RATE, REFUSED_QUEUES
from disqued.core.runtime.state import NodeState
from disqued.core.telemetry.counter import Counter
from disqued.errors import AuthenticationRequired, NoPermission, RateLimited, ReplyError

_SHOWN_BYTES: Final = 128


def authorize(state: NodeState, entry: CommandEntry, session: Session, args: list[bytes]) -> None:
    """Raise ReplyError unless the user of a session may run a request now."""
    if entry.before_auth:
        return
    user = session.user
    if user is None:
        raise AuthenticationRequired
    if not user.may_send(state.now_ms):
        _note(state, session, user, REFUSED_FOR_RATE, accesslog.RATE, entry.key(args))
        raise RateLimited(user.name.decode(), int(user.rules.rate))
    key = entry.key(args)
    if key not in user.rules.commands:
        _note(state, session, user, REFUSED_COMMANDS, accesslog.COMMAND, key)
        raise no_command(user, key)
    queue = forbidden_queue(state, entry, user, args)
    if queue is not None:
        _note(state, session, user, REFUSED_QUEUES, accesslog.QUEUE, queue)
        raise no_queue(user, queue)


def refusal(state: NodeState, entry: CommandEntry, user: User, args: list[bytes]) -> ReplyError | None:
    """Why a user could not run a request, apart from limits; None if it could (ACL DRYRUN)."""
    if entry.before_auth:
        return None
    key = entry.key(args)
    if key not in user.rules.commands:
        return no_command(user, key)
    queue = forbidden_queue(state, entry, user, args)
    return None if queue is None else no_queue(user, queue)


def forbidden_queue(state: NodeState, entry: CommandEntry, user: User, args: list[bytes]) -> bytes | None:
    """The first queue of a request that the user may not touch."""
    command = entry.command
    rules = user.rules
    if command.queues is None or rules.every_queue:
        return None
    for name in command.queues(state, args):
        if not rules.allows_queue(name):
            return bytes(name)
    if command.patterns is not None:
        for pattern in command.patterns(state, args):
            if not rules.allows_pattern(pattern):
                return bytes(pattern)
    return None


def no_command(user: User, key: bytes) -> NoPermission:
    """The error for a command."""
    shown = key[:_SHOWN_BYTES].decode("utf-8", "replace")
    return NoPermission(f"User {user.name.decode()} has no permissions to run the '{shown}' command")


def no_queue(user: User, queue: bytes) -> NoPermission:
    """The error for a queue."""
    shown = queue[:_SHOWN_BYTES].decode("utf-8", "surrogateescape")
    return NoPermission(f"User {user.name.decode()} has no permissions to access the queue '{shown}'")


def _note(state: NodeState, session: Session, user: User, counter: Counter, reason: bytes, what: bytes) -> None:
    """Count a refusal and keep it for ACL LOG."""
    state.counters.add(counter)
    most = state.config.acllog_max_len
    state.users.log.add(reason, what, user.name, session.address, state.now_ms, most)
