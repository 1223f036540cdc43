"""Which user a session is: the logins of AUTH and HELLO, and what changed rules mean for the sessions that run.

A session whose user is None must log in first. `requirepass` and `requirepass-former` are the passwords of the user
`default`, which every connection has that logs in as nobody else; without passwords it needs no login.
"""

from __future__ import annotations

from typing import Final

from disqued.core.access import accesslog
from disqued.core.access.rules import digest
from disqued.core.access.user import User
from disqued.core.access.users import DEFAULT
from disqued.core.clients.blocked import WaitForJob
from disqued.core.clients.origin import origin_of
from disqued.core.clients.session import Blocked, Session
from disqued.core.commands.longcommand import LongCommand
from disqued.core.runtime.authorization import refusal
from disqued.core.runtime.counters import LOGINS_FAILED
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import release, suspend
from disqued.errors import LoginRefused, ReplyError
from disqued.resp.words import quote_word

BY_CERTIFICATE: Final = b"certificate"
"""The login of a session whose certificate names its user; no digest of a password is that short."""
_LOGGED_NAME_BYTES: Final = 64
_LOOPBACK: Final = (b"127.", b"[::1]:", b"[::ffff:127.")


class DelayedRefusal(Blocked):
    """A client that waits for the refusal of its login."""

    def __init__(self, session: Session, reply: bytes) -> None:
        super().__init__(session)
        self.reply = reply

    def ring(self, state: NodeState) -> None:
        """Refuse the login now."""
        release(state, self, self.reply)


def welcome(state: NodeState, session: Session) -> None:
    """A session has not logged in: it is the user that its certificate names, or the default user without password."""
    users = state.users
    named = _named_by_certificate(state, session)
    if named is not None:
        _become(state, session, named, BY_CERTIFICATE)
        return
    _become(state, session, users.default if users.open_to_all else None, b"")


def _named_by_certificate(state: NodeState, session: Session) -> User | None:
    """The user whose name a session's certificate has, if that user can log in now."""
    if not session.certificate_name or state.config.tls_auth_clients_user == "off":
        return None
    user = state.users.by_name.get(session.certificate_name)
    if user is None or not user.rules.enabled:
        return None
    most = user.rules.most_connections
    return None if 0 < most <= user.connections and session.user is not user else user


def is_served(state: NodeState, session: Session) -> bool:
    """Whether a connection is accepted in protected mode: a node that anybody can use serves its own machine only."""
    config = state.config
    if not config.protected_mode or config.bind or not state.users.open_to_all or session.unix_socket:
        return True
    return session.address.startswith(_LOOPBACK)


def leave(session: Session) -> None:
    """The session ends."""
    user = session.user
    if user is not None:
        user.connections -= 1
    session.user = None
    session.login = b""
    session.unrestricted = False


def _become(state: NodeState, session: Session, user: User | None, login: bytes) -> None:
    """Make a session that of a user, logged in with the password of this digest; None if it must log in."""
    leave(session)
    session.login = login
    session.parser.restrict(user is None)
    if user is not None:
        user.connections += 1
        session.user = user
        session.unrestricted = user.unrestricted
        state.unauthenticated.pop(session.number, None)
    elif session.number not in state.unauthenticated:
        session.unauthenticated_ms = state.now_ms
        state.unauthenticated[session.number] = session


def authenticate(state: NodeState, session: Session, password: bytes, name: bytes | None = None) -> None:
    """Log a session in. A wrong password also ends an earlier login.

    Without a name the user is `default`, and the errors are those of the original. Raises ReplyError; LoginRefused for
    a wrong user or password.
    """
    try:
        user = find_user(state, session.address, password, name, tls=session.tls)
    except LoginRefused:
        welcome(state, session)
        raise
    most = user.rules.most_connections
    if 0 < most <= user.connections and session.user is not user:
        raise ReplyError(
            f"ERR User {user.name.decode()} has {user.connections} connections to this node, and its rules allow no "
            f"more (%c={most}): close some, or change the rules"
        )
    _become(state, session, user, b"" if user.rules.any_password else digest(password))


def find_user(
    state: NodeState, address: bytes, password: bytes, name: bytes | None = None, *, tls: bool = False
) -> User:
    """The user with this name and password, for a client at an address. Raises ReplyError as `authenticate` does."""
    users = state.users
    if name in {None, DEFAULT} and users.open_to_all:
        raise ReplyError("ERR Client sent AUTH, but no password is set")
    hashed = digest(password)  # also for an unknown user, so that the time does not show which users exist
    user = users.by_name.get(name or DEFAULT)
    if user is not None and user.rules.accepts(hashed):
        return user
    refused = LoginRefused(0, named=name is not None)
    refused.delay_ms = _note_failure(state, address, name or DEFAULT, tls=tls, outcome=refused.text)
    raise refused


def _note_failure(state: NodeState, address: bytes, name: bytes, *, tls: bool, outcome: str) -> int:
    """Count and log a failed login; returns by how much the answer is delayed."""
    users = state.users
    state.counters.add(LOGINS_FAILED)
    users.log.add(accesslog.AUTH, b"AUTH", name, address, state.now_ms, state.config.acllog_max_len)
    count = users.failures.to_log(state.now_ms)
    if count > 0:
        user = quote_word(name[:_LOGGED_NAME_BYTES]).decode()
        state.host.log("warning", f"Login failed: user={user} address={quote_word(address).decode()} failures={count}")
        state.audit.note_login(name, address, tls=tls, outcome=outcome, failures=int(count))
    return int(users.failures.note(origin_of(address.decode("utf-8", "replace")), state.now_ms))


def refuse_later(state: NodeState, session: Session, refused: LoginRefused) -> None:
    """Reply to a failed login after its delay; the node serves its other clients meanwhile."""
    waiting = DelayedRefusal(session, refused.encode())
    suspend(state, waiting)
    state.lifecycle.timers.arm(waiting, state.now_ms + refused.delay_ms)


def apply_changes(state: NodeState) -> None:
    """Users or their rules have changed: sessions follow, and those end that could not log in as they did."""
    for session in list(state.sessions.values()):
        user = session.user
        if user is None or (user is state.users.default and not session.login):
            welcome(state, session)
        elif user.removed or not _still_admits(state, user, session.login):
            _end(state, session)
            continue
        user = session.user
        session.unrestricted = user is not None and user.unrestricted
        if not session.unrestricted and _does_what_it_may_not(state, session, user):
            _end(state, session)


def _still_admits(state: NodeState, user: User, login: bytes) -> bool:
    """Whether a session could log in again as it did."""
    rules = user.rules
    if login == BY_CERTIFICATE:
        return rules.enabled and state.config.tls_auth_clients_user != "off"
    return rules.enabled and (rules.any_password or login in rules.passwords)


def _does_what_it_may_not(state: NodeState, session: Session, user: User | None) -> bool:
    """Whether a session waits for jobs of queues, monitors, or runs a long command, and its user may not any more."""
    rules = None if user is None else user.rules
    if session.monitor:
        return rules is None or b"monitor" not in rules.commands
    blocked = session.blocked
    if isinstance(blocked, LongCommand):
        entry = blocked.entry
        return entry is not None and (user is None or refusal(state, entry, user, blocked.words) is not None)
    if not isinstance(blocked, WaitForJob):
        return False
    if rules is None or b"getjob" not in rules.commands:
        return True
    return any(not rules.allows_queue(wait.queue.name) for wait in blocked.waits)


def _end(state: NodeState, session: Session) -> None:
    """End a session; the one whose command made the change gets its reply before."""
    leave(session)
    if session.blocked is not None or session.monitor:
        state.ready.hang_up(session)
    else:
        session.closing = True
        state.ready.flush(session)
