"""The connection of the command line: blocking, one request and one reply at a time, without retries.

The client library reconnects, uses several nodes and returns Python values. A user at a shell wants to see the replies
of one server with their wire types, and to decide about repetition.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Self

from disqued.resp.replies import Failure, Reply, StreamSource, read_reply
from disqued.resp.writer import request

if TYPE_CHECKING:
    from ssl import SSLContext
    from types import TracebackType

    from disqued.cli.endpoint import Endpoint, Tls

CONNECT_TIMEOUT_S = 10.0


class ConnectionFailedError(Exception):
    """The server cannot be reached; the text names the server and the reason."""


class ConnectionLostError(Exception):
    """The connection ended while a reply was expected."""


class CommandRefusedError(Exception):
    """The server replied with an error to a command whose reply is required."""


class Connection:
    """An open connection, authenticated when the endpoint has a password."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        try:
            self.socket = _open_socket(endpoint)
        except OSError as error:
            reason = getattr(error, "verify_message", "") or error.strerror or str(error)
            raise ConnectionFailedError(f"Could not connect to Disque at {endpoint}: {reason}") from error
        self._source = StreamSource(self.socket.makefile("rb"))
        # As in the original, a refused AUTH is not an error here: a server without a password refuses AUTH, too. With a
        # wrong password the first command fails.
        credentials = (endpoint.user, endpoint.password) if endpoint.user is not None else (endpoint.password,)
        words = [word.encode("utf-8", "surrogateescape") for word in credentials if word is not None]
        self.password_accepted = endpoint.password is not None and not isinstance(
            self.execute([b"AUTH", *words]), Failure
        )

    def execute(self, words: list[bytes]) -> Reply:
        """Send one request and wait for its reply. Raises `ConnectionLostError`."""
        self.send(request(words))
        return self.receive()

    def ask(self, words: list[bytes]) -> Reply:
        """Like `execute`, but an error reply raises `CommandRefusedError`."""
        reply = self.execute(words)
        if isinstance(reply, Failure):
            raise CommandRefusedError(reply.text.decode("utf-8", "surrogateescape"))
        return reply

    def send(self, data: bytes) -> None:
        """Send bytes as they are. Raises `ConnectionLostError`."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise ConnectionLostError(f"Error: {error.strerror or error}") from error

    def receive(self) -> Reply:
        """Wait for the next reply. Raises `ConnectionLostError`, `ReplyFormatError`."""
        try:
            return read_reply(self._source)
        except (OSError, EOFError) as error:
            raise ConnectionLostError(f"Error: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._source.close()
            self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _open_socket(endpoint: Endpoint) -> socket.socket:
    if endpoint.path is not None:
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            opened.connect(endpoint.path)
        except OSError:
            opened.close()
            raise
        return opened
    opened = socket.create_connection((endpoint.host, endpoint.port), CONNECT_TIMEOUT_S)
    if endpoint.tls is not None:
        opened = _encrypted(opened, endpoint.host, endpoint.tls)
    opened.settimeout(None)  # a GETJOB can block without a limit
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return opened


def tls_settings(tls: Tls) -> SSLContext:
    """The settings for TLS. Raises OSError if a file does not work."""
    from disqued.client.tls import tls_context  # noqa: PLC0415  imports the whole client, which only TLS needs

    return tls_context(cafile=tls.cacert, certfile=tls.cert, keyfile=tls.key, insecure=tls.insecure)


def _encrypted(opened: socket.socket, host: str, tls: Tls) -> socket.socket:
    try:
        return tls_settings(tls).wrap_socket(opened, server_hostname=tls.server_name or host)
    except OSError:
        opened.close()
        raise
