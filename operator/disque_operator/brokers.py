"""Connections to brokers: queries their state and sends commands, through the client library.

Each query uses its own connection with one round trip after authentication, and a second one if queues are compared:
the pause of an ordered queue is asked of nobody, because the reply would wait for its leader. Each step has a timeout
of two seconds, so a broker that hangs delays nothing else. Commands that are answered by a leader have four more.

No reply contains a password, because the connection may not be encrypted: a query asks for the directives that the
operator compares, and for the hashes of passwords.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from disque_operator.observed import LOCKED, Broker, Leaving, Peer, password_hash
from disque_operator.orderedstate import OrderedStatus, parsed
from disqued.client import (
    AsyncClient,
    AuthenticationRequired,
    Backoff,
    DisqueError,
    Loading,
    Reply,
    ResponseError,
)

STEP_S: Final = 2.0
"""Timeout of each step: connecting, authentication, replies."""
ELECTION_S: Final = 4.0
"""How much longer a command about ordered queues may take, which is answered when there is a leader."""
_WITH_LEADER: Final = frozenset({"QNEW", "QDROP"})
_ORDERED_QUEUES: Final = ("CLUSTER", "ORDERED")
_ONCE: Final = Backoff(attempts=1)
_ABOUT_AUTH: Final = ("no password is set", "invalid password")
"""Parts of the error messages of AUTH."""
_ABOUT_USERS: Final = (("ACL", "LIST"), ("ACL", "CAT"), ("ACL", "CAT", "all"))
_NO_SCHEDULE: Final = "there is no schedule"
"""Part of the error message of a broker that does not have a schedule."""
_OF_SCHEDULE: Final = ("when", "zone", "queue", "body", "options", "missed", "strict")
_ORDERED: Final = 4
"""The position of CLUSTER ORDERED STATUS among the commands of a query."""
_NO_ACL: Final = "unknown command"
"""Part of the error message of a broker that has no ACL command."""


class UnreachableError(Exception):
    """A broker did not answer: it is unreachable or rejects the password."""


class CommandFailedError(Exception):
    """A command failed, or its outcome is unknown."""


@dataclass(frozen=True)
class TlsPeer:
    """How to verify a broker with TLS."""

    context: ssl.SSLContext
    host: str
    """The name that its certificate must have."""


@dataclass(frozen=True)
class Connection:
    """The address of a broker, and the password that it accepted; None for no password."""

    address: str
    password: str | None
    tls: TlsPeer | None = None


@dataclass(frozen=True)
class Asked:
    """What to ask a broker in addition to its state."""

    directives: Collection[str] = ()
    """The directives whose values are compared."""
    users: bool = False
    """Whether its users are compared."""
    queues: Collection[str] = ()
    """The queues whose settings are compared."""
    schedules: Collection[str] = ()
    """The schedules that are compared."""


async def query(
    pod: str,
    address: str,
    passwords: Sequence[str],
    asked: Asked,
    now_s: float,
    tls: TlsPeer | None = None,
) -> tuple[Broker, Connection]:
    """Query the state of a broker.

    Passwords are tried in the given order, then no password. `now_s` is the time in seconds since 1970.

    Raises:
        UnreachableError: The broker does not answer.
    """
    commands = (
        ("INFO", "all"),
        ("HELLO",),
        ("CLUSTER", "NODES"),
        ("CLUSTER", "LEAVING", "STATUS"),
        ("CLUSTER", "ORDERED", "STATUS"),
        *(("CONFIG", "GET", name) for name in asked.directives),
        *(("QCONF", queue, "GET") for queue in asked.queues),
        *(("SCHEDULE", name, "SHOW") for name in asked.schedules),
        *(_ABOUT_USERS if asked.users else ()),
        ("ACL", "GETUSER", "default"),
    )
    for password in (*passwords, None):
        connection = Connection(address, password, tls)
        replies = await _ask(connection, commands, asked.queues)
        if replies is None:
            continue
        if isinstance(replies[-1], DisqueError) and _NO_ACL in str(replies[-1]):
            replies[-1] = await _user_without_acl(connection)
        return _read(pod, replies, asked, now_s), connection
    raise UnreachableError(LOCKED)


async def _ask(
    connection: Connection, commands: Sequence[Sequence[str]], queues: Collection[str] = ()
) -> list[Reply | DisqueError] | None:
    """Return the replies; None if the password is wrong.

    With `queues`, the replies about their pauses come before the last one. Those of ordered queues are errors.
    """
    try:
        async with asyncio.timeout(3 * STEP_S), _client(connection) as client:
            replies: list[Reply | DisqueError] = await client.execute_many(commands)
            if queues:
                ordered = _ordered(replies[_ORDERED]) or OrderedStatus()
                replies[-1:-1] = await _pauses(client, queues, ordered)
    except TimeoutError:
        raise UnreachableError("no answer") from None
    except ResponseError as error:
        if _is_about_password(error):
            return None
        raise UnreachableError(f"rejects the command: {error}") from error
    except (DisqueError, OSError) as error:
        raise UnreachableError(f"no answer: {error}") from error
    except (ValueError, LookupError) as error:
        raise UnreachableError(f"unsupported reply: {error}") from error
    first = replies[0]
    if isinstance(first, AuthenticationRequired):
        return None
    if isinstance(first, DisqueError) and not isinstance(first, Loading):
        raise UnreachableError(f"no answer: {first}") from first
    return replies


async def _pauses(client: AsyncClient, queues: Collection[str], ordered: OrderedStatus) -> list[Reply | DisqueError]:
    asked = [queue for queue in queues if queue not in ordered.queues]
    found = await client.execute_many([("PAUSE", queue, "STATE") for queue in asked]) if asked else []
    replies = dict(zip(asked, found, strict=True))
    not_asked = ResponseError("it is an ordered queue")
    return [replies.get(queue, not_asked) for queue in queues]


async def _user_without_acl(connection: Connection) -> Reply:
    """Return what ACL GETUSER would reply, for a broker of an earlier release that has no ACL command.

    Such a broker shows only the passwords themselves; while it loads, only the one that it accepted is known.
    """
    replies = await _ask(connection, [("CONFIG", "GET", "requirepass*")])
    if replies is None:
        raise UnreachableError(LOCKED)
    config = _config(replies)
    passwords = [config.get("requirepass", connection.password or "")]
    if passwords[0]:  # without it, the broker ignores the former password
        passwords.append(config.get("requirepass-former", ""))
    return [b"passwords", [password_hash(one).encode() for one in passwords if one]]


def _is_about_password(error: ResponseError) -> bool:
    return isinstance(error, AuthenticationRequired) or any(words in str(error) for words in _ABOUT_AUTH)


async def confirm_identity(connection: Connection, node_id: str) -> None:
    """Raise CommandFailedError unless the broker answers with this node ID."""
    try:
        async with asyncio.timeout(STEP_S), _client(connection) as client:
            found = (await client.hello()).node_id
    except TimeoutError:
        raise CommandFailedError("no answer in time") from None
    except (DisqueError, OSError) as error:
        raise CommandFailedError(str(error)) from error
    if found != node_id:
        raise CommandFailedError(f"node {found} answers instead of {node_id}")


async def send_command(connection: Connection, node_id: str, words: Sequence[str]) -> None:
    """Send a command to a broker, if it has this node ID.

    Raises:
        CommandFailedError: The command failed, or its outcome is unknown.
    """
    wait_s = ELECTION_S if words[0] in _WITH_LEADER or tuple(words[:2]) == _ORDERED_QUEUES else 0.0
    try:
        async with asyncio.timeout(3 * STEP_S + wait_s), _client(connection) as client:
            found = (await client.hello()).node_id
            if found != node_id:
                raise CommandFailedError(f"node {found} answers instead of {node_id}")
            await client.execute(*words, wait_s=wait_s)
    except TimeoutError:
        raise CommandFailedError("no answer in time, outcome unknown") from None
    except (DisqueError, OSError) as error:
        raise CommandFailedError(str(error)) from error


def _client(connection: Connection) -> AsyncClient:
    return AsyncClient(
        [connection.address],
        password=connection.password,
        tls=connection.tls.context if connection.tls else False,
        tls_server_name=connection.tls.host if connection.tls else None,
        discover=False,
        connect_timeout_s=STEP_S,
        timeout_s=STEP_S,
        backoff=_ONCE,
    )


# --- parsing replies --------------------------------------------------------------------------------------------------


def _read(pod: str, replies: Sequence[Reply | DisqueError], asked: Asked, now_s: float) -> Broker:
    try:
        return _broker(pod, replies, asked, now_s)
    except (ValueError, LookupError) as error:
        raise UnreachableError(f"unsupported reply: {error}") from error


def _broker(pod: str, replies: Sequence[Reply | DisqueError], asked: Asked, now_s: float) -> Broker:
    info, hello, nodes, leaving, ordered, *more, user = replies
    more, pauses = more[: len(more) - len(asked.queues)], more[len(more) - len(asked.queues) :]
    settings, more = more[: len(asked.directives)], more[len(asked.directives) :]
    queue_settings, more = more[: len(asked.queues)], more[len(asked.queues) :]
    schedules, about_users = more[: len(asked.schedules)], more[len(asked.schedules) :]
    fields = _info_fields(_text(info))
    version = fields.get("disqued_version") or fields.get("disque_version", "")
    uptime_s = _number(fields, "uptime_in_seconds")
    hashes = _hashes(user)
    if isinstance(hello, Loading) or _number(fields, "loading"):
        return Broker(pod, "", version, loading=True, uptime_s=uptime_s, password_hashes=hashes)
    node_id, hosts = _hello(hello)
    return Broker(
        pod=pod,
        node_id=node_id,
        version=version,
        leaving=_leaving(_pairs(leaving)),
        peers=tuple(_peers(_text(nodes), hosts, now_s, uptime_s)),
        jobs=_number(fields, "registered_jobs"),
        queued=_number(fields, "queued_jobs"),
        queues=_number(fields, "registered_queues"),
        waiting_for_copies=_number(fields, "jobs_waiting_for_copies"),
        max_replicate=max(1, _number(fields, "max_replicate")),
        used_memory=_number(fields, "used_memory"),
        max_memory=_number(fields, "maxmemory"),
        file_format=_number(fields, "aof_format"),
        refusing=fields.get("aof_refusing", ""),
        repairs=fields.get("repair_waits_for", ""),
        repair_stuck_s=_number(fields, "repair_seconds_without_progress"),
        clock_ahead_ms=_number(fields, "cluster_clock_ahead_ms") if _number(fields, "cluster_clock_quarantine") else 0,
        uptime_s=uptime_s,
        meeting=frozenset(_meeting(_text(nodes))),
        config=_config(settings),
        password_hashes=hashes,
        users=dict(_users(about_users[:1])),
        permissions=_permissions(about_users[1:]),
        pauses={
            queue: _text(reply)
            for queue, reply in zip(asked.queues, pauses, strict=True)
            if not isinstance(reply, DisqueError)
        },
        settings={
            queue: _settings_of(queue, reply)
            for queue, reply in zip(asked.queues, queue_settings, strict=True)
            if isinstance(reply, list)
        },
        schedules={
            name: _schedule(reply)
            for name, reply in zip(asked.schedules, schedules, strict=True)
            if isinstance(reply, list) or _NO_SCHEDULE in str(reply)
        },
        ordered=_ordered(ordered),
    )


def _ordered(reply: Reply | DisqueError) -> OrderedStatus | None:
    """Return the ordered queues that a broker knows; None if it does not know what that is."""
    return parsed(reply) if isinstance(reply, list) else None


def _schedule(reply: Reply | DisqueError) -> dict[str, str]:
    """Return what the reply to SCHEDULE SHOW says that a spec decides; nothing if the schedule is not set."""
    if not isinstance(reply, list):
        return {}
    found = dict(zip(map(_text, reply[::2]), reply[1::2], strict=True))
    fields = {name: _text(found[name]) for name in _OF_SCHEDULE}
    return fields | {"paused": "yes" if _text(found["state"]) == "paused" else "no"}


def _settings_of(queue: str, reply: list[Reply]) -> dict[str, str]:
    """Return what the reply to QCONF GET says was set for exactly that queue, without its pause."""
    words = [_text(word) for word in reply]
    rows = zip(words[::3], words[1::3], words[2::3], strict=True)
    return {name: value for name, value, source in rows if source == queue and name != "pause"}


def _users(replies: Sequence[Reply | DisqueError]) -> Iterator[tuple[str, str]]:
    """Yield the users in the reply to ACL LIST with their rules; none of a broker that has no ACL."""
    for reply in replies:
        for line in reply if isinstance(reply, list) else ():
            _, name, rules = _text(line).split(" ", 2)
            yield name, rules


def _permissions(replies: Sequence[Reply | DisqueError]) -> frozenset[str]:
    """Return the categories and commands in the replies to ACL CAT; none of a broker that has no ACL."""
    if not all(isinstance(reply, list) for reply in replies):
        return frozenset()
    signs = ("@", "")
    return frozenset(
        sign + _text(word)
        for sign, reply in zip(signs, replies, strict=False)
        if isinstance(reply, list)
        for word in reply
    )


def _hashes(user: Reply | DisqueError) -> frozenset[str]:
    """Return the hashes in a reply to ACL GETUSER."""
    if isinstance(user, DisqueError):
        raise UnreachableError(f"rejects the command: {user}") from user
    hashes = _pairs(user)["passwords"]
    if not isinstance(hashes, list):
        raise UnreachableError(f"unexpected reply {hashes!r:.80} instead of hashes of passwords")
    return frozenset(map(_text, hashes))


def _config(replies: Iterable[Reply | DisqueError]) -> dict[str, str]:
    """Return the directives in replies to CONFIG GET; those that the broker does not have are left out."""
    return {name: _word(value) for reply in replies for name, value in _pairs(reply).items()}


def _peers(text: str, hosts: Mapping[str, str], now_s: float, uptime_s: float) -> Iterator[Peer]:
    """Yield the lines of CLUSTER NODES, without the broker itself and without nodes in handshake."""
    for line in text.splitlines():
        node_id, address, flags_text, _pinged, ponged_ms, link = line.split()[:6]
        flags = set(flags_text.split(","))
        if flags & {"myself", "handshake"}:
            continue
        yield Peer(
            node_id=node_id,
            host=hosts.get(node_id) or address.rpartition(":")[0],
            connected=link == "connected",
            failing=bool(flags & {"fail", "fail?"}),
            leaving="leaving" in flags,
            silent_s=max(0.0, now_s - int(ponged_ms) / 1000) if int(ponged_ms) else uptime_s,
        )


def _meeting(text: str) -> Iterator[str]:
    """Yield the addresses of nodes in handshake in CLUSTER NODES."""
    for line in text.splitlines():
        _id, address, flags, *_ = line.split()
        if "handshake" in flags.split(","):
            yield address.rpartition(":")[0].strip("[]")


def _hello(reply: Reply | DisqueError) -> tuple[str, dict[str, str]]:
    """Return the node ID of the broker, and the announced host of each member."""
    if not isinstance(reply, list) or len(reply) < 2:
        raise UnreachableError(f"unexpected reply to HELLO: {reply!r:.80}")
    rows = [[_text(word) for word in row] for row in reply[2:] if isinstance(row, list)]
    return _text(reply[1]), {row[0]: row[1] for row in rows}


def _leaving(status: Mapping[str, Reply]) -> Leaving | None:
    words = {name: _word(value) for name, value in status.items()}
    if words.get("leaving") != "yes":
        return None
    replicas_left = int(words.get("ordered-replicas-left", "0"))
    return Leaving(
        done=words["done"] == "yes" and not replicas_left,
        jobs_left=int(words["jobs-left"]),
        rate=float(words["rate"]),
        seconds_left=float(words["seconds-left"]),
        seconds_elapsed=float(words["seconds-elapsed"]),
        waits_for=words["waits-for"],
        replicas_left=replicas_left,
    )


def _info_fields(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines() if ":" in line and not line.startswith("#"))
    return {name: value for name, _, value in lines}


def _number(fields: Mapping[str, str], name: str) -> int:
    """Return a number of INFO; 0 if this version of the broker does not report it."""
    return int(float(fields.get(name) or 0))


def _pairs(reply: Reply | DisqueError) -> dict[str, Reply]:
    if not isinstance(reply, list):
        return {}
    return {_text(name): value for name, value in zip(reply[::2], reply[1::2], strict=False)}


def _word(value: Reply) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _text(reply: Reply | DisqueError) -> str:
    if isinstance(reply, DisqueError):
        raise UnreachableError(f"rejects the command: {reply}") from reply
    if not isinstance(reply, bytes):
        raise UnreachableError(f"unexpected reply {reply!r:.80} instead of a string")
    return reply.decode(errors="replace")
