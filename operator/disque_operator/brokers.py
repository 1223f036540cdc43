"""The brokers of a cluster: asks each what it is and knows, and tells it what to do, over the client.

Each look is a connection of its own with one round trip after the password, and two seconds at most for each step, so a
node that hangs holds up nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from disque_operator.observed import LOCKED, Broker, Leaving, Peer
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
"""For connecting, for the password and for the answers, each."""
_ONCE: Final = Backoff(attempts=1)
_ABOUT_AUTH: Final = ("no password is set", "invalid password")
"""What stands in the errors of AUTH."""


class UnreachableError(Exception):
    """A broker that gave no answer, and why: not reachable, or another password."""


class RefusedError(Exception):
    """A command that was not carried out, and why."""


@dataclass(frozen=True)
class Connection:
    """Where a broker is, and the password that it took; None for none."""

    address: str
    password: str | None


async def query(
    pod: str, address: str, passwords: Sequence[str], directives: Collection[str], now_s: float
) -> tuple[Broker, Connection]:
    """What a broker says of itself, these directives included; `now_s` is the time of day.

    The passwords are tried in this order, then none.

    Raises:
        SilentError: it does not answer.
    """
    commands = (
        ("INFO", "all"),
        ("HELLO",),
        ("CLUSTER", "NODES"),
        ("CLUSTER", "LEAVING", "STATUS"),
        ("CONFIG", "GET", "*"),
    )
    for password in (*passwords, None):
        connection = Connection(address, password)
        replies = await _ask(connection, commands)
        if replies is not None:
            return _read(pod, replies, directives, now_s, password or ""), connection
    raise UnreachableError(LOCKED)


async def _ask(connection: Connection, commands: Sequence[Sequence[str]]) -> list[Reply | DisqueError] | None:
    """The replies; None when it is the wrong password."""
    try:
        async with asyncio.timeout(3 * STEP_S), _client(connection) as client:
            replies: list[Reply | DisqueError] = await client.execute_many(commands)
    except TimeoutError:
        raise UnreachableError("it does not answer") from None
    except ResponseError as error:
        if _is_about_password(error):
            return None
        raise UnreachableError(f"it refuses: {error}") from error
    except (DisqueError, OSError) as error:
        raise UnreachableError(f"it does not answer: {error}") from error
    first = replies[0]
    if isinstance(first, AuthenticationRequired):
        return None
    if isinstance(first, DisqueError):
        raise UnreachableError(f"it does not answer: {first}") from first
    return replies


def _is_about_password(error: ResponseError) -> bool:
    return isinstance(error, AuthenticationRequired) or any(words in str(error) for words in _ABOUT_AUTH)


async def send_command(connection: Connection, node_id: str, words: Sequence[str]) -> None:
    """Have a broker carry out a command, if it is the one with this ID.

    Raises:
        RefusedError: it did not, or nobody knows whether it did.
    """
    try:
        async with asyncio.timeout(3 * STEP_S), _client(connection) as client:
            found = (await client.hello()).node_id
            if found != node_id:
                raise RefusedError(f"node {found} answers in the place of {node_id}")
            await client.execute(*words)
    except TimeoutError:
        raise RefusedError("no answer in time") from None
    except (DisqueError, OSError) as error:
        raise RefusedError(str(error)) from error


def _client(connection: Connection) -> AsyncClient:
    return AsyncClient(
        [connection.address],
        password=connection.password,
        discover=False,
        connect_timeout_s=STEP_S,
        timeout_s=STEP_S,
        backoff=_ONCE,
    )


# --- from replies to values -------------------------------------------------------------------------------------------


def _read(
    pod: str, replies: Sequence[Reply | DisqueError], directives: Collection[str], now_s: float, password: str
) -> Broker:
    try:
        return _node(pod, replies, directives, now_s, password)
    except (ValueError, LookupError) as error:
        raise UnreachableError(f"it answers in a way that this operator does not know: {error}") from error


def _node(
    pod: str, replies: Sequence[Reply | DisqueError], directives: Collection[str], now_s: float, password: str
) -> Broker:
    info, hello, brokers, leaving, settings = replies
    figures = _figures(_text(info))
    version = figures.get("disqued_version") or figures.get("disque_version", "")
    uptime_s = _number(figures, "uptime_in_seconds")
    if isinstance(hello, Loading) or _number(figures, "loading"):
        return Broker(pod, "", version, loading=True, uptime_s=uptime_s, requirepass=password)
    node_id, hosts = _hello(hello)
    config = {name: _word(value) for name, value in _pairs(settings).items()}
    return Broker(
        pod=pod,
        node_id=node_id,
        version=version,
        leaving=_leaving(_pairs(leaving)),
        peers=tuple(_peers(_text(brokers), hosts, now_s, uptime_s)),
        jobs=_number(figures, "registered_jobs"),
        queued=_number(figures, "queued_jobs"),
        queues=_number(figures, "registered_queues"),
        waiting_for_copies=_number(figures, "jobs_waiting_for_copies"),
        max_replicate=max(1, _number(figures, "max_replicate")),
        used_memory=_number(figures, "used_memory"),
        max_memory=_number(figures, "maxmemory"),
        refusing=figures.get("aof_refusing", ""),
        uptime_s=uptime_s,
        config={name: value for name, value in config.items() if name in directives},
        requirepass=config.get("requirepass", ""),
        requirepass_former=config.get("requirepass-former", ""),
    )


def _peers(text: str, hosts: Mapping[str, str], now_s: float, uptime_s: float) -> Iterator[Peer]:
    """The lines of CLUSTER NODES but the node's own; who still shakes hands is no member yet."""
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


def _hello(reply: Reply | DisqueError) -> tuple[str, dict[str, str]]:
    """The node's own ID, and the host that each says of itself."""
    if not isinstance(reply, list) or len(reply) < 2:
        raise UnreachableError(f"it answers HELLO with {reply!r:.80}")
    rows = [[_text(word) for word in row] for row in reply[2:] if isinstance(row, list)]
    return _text(reply[1]), {row[0]: row[1] for row in rows}


def _leaving(status: Mapping[str, Reply]) -> Leaving | None:
    words = {name: _word(value) for name, value in status.items()}
    if words.get("leaving") != "yes":
        return None
    return Leaving(
        done=words["done"] == "yes",
        jobs_left=int(words["jobs-left"]),
        rate=float(words["rate"]),
        seconds_left=float(words["seconds-left"]),
        seconds_elapsed=float(words["seconds-elapsed"]),
        waits_for=words["waits-for"],
    )


def _figures(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines() if ":" in line and not line.startswith("#"))
    return {name: value for name, _, value in lines}


def _number(figures: Mapping[str, str], name: str) -> int:
    """A figure; 0 when this version of the broker does not have it."""
    return int(float(figures.get(name) or 0))


def _pairs(reply: Reply | DisqueError) -> dict[str, Reply]:
    if not isinstance(reply, list):
        return {}
    return {_text(name): value for name, value in zip(reply[::2], reply[1::2], strict=False)}


def _word(value: Reply) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _text(reply: Reply | DisqueError) -> str:
    if isinstance(reply, DisqueError):
        raise UnreachableError(f"it refuses: {reply}") from reply
    if not isinstance(reply, bytes):
        raise UnreachableError(f"it answers {reply!r:.80} where a text belongs")
    return reply.decode(errors="replace")
