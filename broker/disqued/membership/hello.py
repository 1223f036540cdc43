"""HELLO: the nodes of the cluster, or the handshake of Redis.

Both protocols have a command of this name, and the arguments distinguish them. Without arguments it is Disque's: the
reply has a format version, this node's ID, and for each node its address and its priority, by which clients choose a
node. A client that is connected with TLS sees the ports for TLS, and one of an external port the external addresses.
With a protocol version it is the handshake of Redis clients: `HELLO 2|3 [AUTH user password] [SETNAME name]`, and the
reply is a map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued import SPOKEN_VERSION
from disqued.bus import kinds
from disqued.core.clients.label import require_client_name
from disqued.core.clients.session import RESP2, RESP3
from disqued.core.commands.command import Command
from disqued.core.runtime.authentication import authenticate
from disqued.errors import AuthenticationRequired, ReplyError, shown
from disqued.membership.external import address_of
from disqued.resp.integers import parse_integer

if TYPE_CHECKING:
    from disqued.config import Config
    from disqued.core.clients.session import Session
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

FORMAT_VERSION: Final = 1
NORMAL_PRIORITY: Final = 1
UNCONNECTED_PRIORITY: Final = 5
SUSPECT_PRIORITY: Final = 10
LEAVING_PRIORITY: Final = 100

_SERVER: Final = b"disque"


def hello(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the nodes, or perform the handshake of Redis."""
    if len(args) > 1:
        _handshake(state, session, args)
        return
    if session.user is None:
        raise AuthenticationRequired
    view = state.view
    session.reply_array(3 + len(view.peers))
    session.reply_integer(FORMAT_VERSION)
    session.reply_bulk(view.node_id)
    own_priority = LEAVING_PRIORITY if view.leaving else NORMAL_PRIORITY
    where, port = _address(session, view.host or view.ip, view.port, view.tls_port, view.external)
    _show(session, view.node_id, where, port, own_priority)
    for peer in view.peers.values():
        where, port = _address(session, peer.host or peer.ip, peer.port, peer.tls_port, peer.external)
        _show(session, peer.id, where, port, priority(peer))


def _address(session: Session, host: bytes, port: int, tls_port: int, external: bytes) -> tuple[bytes, int]:
    """The host and the port of a node for a client: its external ones, if the client comes from outside."""
    found = address_of(external) if session.external else None
    if found is not None:
        return found[0], found[2] if session.tls else found[1]
    return host, _port(session, port, tls_port)


def _port(session: Session, port: int, tls_port: int) -> int:
    """The port of a node for a client that uses TLS, or does not; 0 if the node has none."""
    if session.tls:
        return int(tls_port)
    return 0 if port == tls_port else int(port)


def _show(session: Session, node_id: bytes, where: bytes, port: int, chance: int) -> None:
    """Reply with one node: its ID, its name or address, its port, and its priority."""
    session.reply_array(4)
    session.reply_bulk(node_id)
    session.reply_bulk(where)
    session.reply_bulk(b"%d" % port)
    session.reply_bulk(b"%d" % chance)


def priority(peer: Peer) -> int:
    """The priority of a node: clients avoid nodes with larger numbers."""
    if peer.flags & (kinds.NODE_FAIL | kinds.NODE_LEAVING):
        return LEAVING_PRIORITY
    if peer.flags & kinds.NODE_PFAIL:
        return SUSPECT_PRIORITY
    return NORMAL_PRIORITY if peer.connected else UNCONNECTED_PRIORITY


class _Handshake:
    """The options of a Redis handshake."""

    def __init__(self, words: list[bytes]) -> None:
        self.credentials: tuple[bytes, bytes] | None = None
        self.name: bytes | None = None
        version = parse_integer(words[0])
        if version not in {RESP2, RESP3}:
            raise ReplyError("NOPROTO unsupported protocol version")
        self.protocol = version
        at = 1
        while at < len(words):
            option = words[at].upper()
            if option == b"AUTH" and at + 2 < len(words):
                self.credentials = (words[at + 1], words[at + 2])
                at += 3
            elif option == b"SETNAME" and at + 1 < len(words):
                self.name = require_client_name(words[at + 1])
                at += 2
            else:
                word = shown(words[at])
                raise ReplyError(
                    f"ERR syntax error in HELLO at '{word}', try HELLO 2|3 [AUTH user password] [SETNAME name]"
                )


def _secret_words(_config: Config, args: list[bytes]) -> list[int]:
    """User and password behind AUTH, also if the version before it is missing."""
    return [
        index
        for at, word in enumerate(args)
        if at > 0 and word.upper() == b"AUTH"
        for index in range(at + 1, min(at + 3, len(args)))
    ]


def _handshake(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Authenticate, name the connection, switch the protocol, and reply with a map in the new one."""
    wanted = _Handshake(args[1:])
    if wanted.credentials is not None:
        user, password = wanted.credentials
        authenticate(state, session, password, user)
    elif session.user is None:
        raise ReplyError("NOAUTH Authentication required: send AUTH first or HELLO <version> AUTH default <password>")
    if wanted.name is not None:
        session.name = wanted.name
    session.protocol = wanted.protocol
    session.reply_map(7)
    for name, text in ((b"server", _SERVER), (b"version", SPOKEN_VERSION.encode())):
        session.reply_bulk(name)
        session.reply_bulk(text)
    for name, number in ((b"proto", wanted.protocol), (b"id", session.number)):
        session.reply_bulk(name)
        session.reply_integer(number)
    for name, text in ((b"mode", b"standalone"), (b"role", b"master")):
        session.reply_bulk(name)
        session.reply_bulk(text)
    session.reply_bulk(b"modules")
    session.reply_array(0)


COMMAND: Final[Command] = Command(
    "hello",
    -1,
    ("readonly", "fast"),
    hello,
    "connection",
    "Shows the nodes of the cluster; with a protocol version, the handshake of Redis.",
    "[2|3 [AUTH user password] [SETNAME name]]",
    "O(nodes)",
    secret_words=_secret_words,
    before_auth=True,
    allowed_paused=True,
    categories=("connection",),
)
