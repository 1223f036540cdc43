"""The blocking transport: plain sockets. Its coroutines never suspend, see `transport`."""

from __future__ import annotations

import socket
import ssl
import threading
import time

from disqued.client.nodes import Address
from disqued.client.transport import BrokenConnectionError
from disqued.client.wire import Decoder, Reply

READ_BYTES = 65536


class SocketLink:
    """A connected socket and the decoder of its replies."""

    def __init__(
        self, address: Address, timeout_s: float | None, tls: ssl.SSLContext | None, tls_server_name: str | None
    ) -> None:
        self._address = address
        self.node_id = ""
        self._socket = _connected(address, timeout_s, tls, tls_server_name or address.host)
        self._decoder = Decoder()

    @property
    def address(self) -> Address:
        """The node at the other end."""
        return self._address

    def is_usable(self) -> bool:
        """False when there is something to read: between two calls that can only be the end of the stream."""
        try:
            self._socket.setblocking(False)
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        return False

    async def exchange(self, request: bytes, replies: int, read_timeout_s: float | None) -> list[Reply]:
        """Send the request and read until at least so many replies have arrived."""
        answers: list[Reply] = []
        try:
            self._socket.settimeout(read_timeout_s)
            self._socket.sendall(request)
            while len(answers) < replies:
                answers += self._decoder.feed(self._read())
        except TimeoutError as error:
            raise BrokenConnectionError(f"no data for {read_timeout_s:g} s", answers) from error
        except OSError as error:
            raise BrokenConnectionError(error, answers) from error
        return answers

    def _read(self) -> bytes:
        data = self._socket.recv(READ_BYTES)
        if not data:
            raise ConnectionResetError("the node closed the connection")
        return data

    # For a call whose reply a selector waits for (see `pending`).

    def fileno(self) -> int:
        """The descriptor of the socket; -1 when it is closed."""
        return self._socket.fileno()

    def send(self, request: bytes, timeout_s: float | None) -> None:
        """Send a request without reading. Raises OSError."""
        self._socket.settimeout(timeout_s)
        self._socket.sendall(request)

    def receive(self) -> list[Reply]:
        """Return the replies that have arrived, without waiting. Raises OSError when the connection has ended."""
        answers: list[Reply] = []
        self._socket.setblocking(False)
        try:
            while True:  # a socket with TLS may have decrypted more than one read returns
                answers += self._decoder.feed(self._read())
        except (BlockingIOError, ssl.SSLWantReadError):
            return answers
        except OSError:
            if answers:
                return answers  # the next call finds the end again
            raise

    def end(self, timeout_s: float | None) -> list[Reply]:
        """Tell the node that no request follows, and return the replies that it had sent before it closed."""
        answers: list[Reply] = []
        try:
            socket.socket.shutdown(self._socket, socket.SHUT_WR)  # that of a socket with TLS gives up decryption, too
            self._socket.settimeout(timeout_s)
            while True:
                answers += self._decoder.feed(self._read())
        except OSError:
            return answers
        finally:
            self.close()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _connected(
    address: Address, timeout_s: float | None, tls: ssl.SSLContext | None, server_name: str
) -> socket.socket:
    if address.is_unix:
        endpoint = socket.socket(socket.AF_UNIX)
        try:
            endpoint.settimeout(timeout_s)
            endpoint.connect(address.host)
        except OSError:
            endpoint.close()
            raise
        return endpoint
    endpoint = socket.create_connection((address.host, address.port), timeout_s)
    endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # detects a dead node
    if tls is None:
        return endpoint
    try:
        return tls.wrap_socket(endpoint, server_hostname=server_name)
    except OSError:
        endpoint.close()
        raise


class SocketTransport:
    """The transport for threads."""

    def __init__(
        self, max_connections: int, tls: ssl.SSLContext | None = None, tls_server_name: str | None = None
    ) -> None:
        self._tls = tls
        self._tls_server_name = tls_server_name
        self._slots = threading.Semaphore(max_connections)

    async def dial(self, address: Address, timeout_s: float | None) -> SocketLink:
        """Open a connection."""
        return SocketLink(address, timeout_s, self._tls, self._tls_server_name)

    async def sleep(self, seconds: float) -> None:
        """Block the thread."""
        time.sleep(seconds)  # noqa: ASYNC251 (no event loop runs this coroutine, see `transport`)

    async def acquire(self) -> None:
        """Block until a slot is free."""
        self._slots.acquire()

    def release(self) -> None:
        """Free the slot."""
        self._slots.release()
