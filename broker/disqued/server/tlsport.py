"""Accepts connections with TLS. A connection reaches the node when its handshake is done.

If connections without TLS are accepted as well, the first byte of a connection tells which one it is.

Each connection gets the settings that are current when it is accepted. Handshakes are limited in time and number, so
that connections which never complete one cannot take the descriptors of clients: one more than allowed ends the oldest
of the address that has most of them, so one address cannot end the handshakes of others.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from itertools import islice
from typing import Final

from disqued.core.clients.origin import origin_of_ip
from disqued.server.replacing import COMPARED, oldest_of_busiest

HANDSHAKE_S: Final = 10.0
"""The longest time for a handshake. The loop closes the connection after it."""
PAUSE_S: Final = 1.0
"""How long nothing is accepted when the process has no descriptors left."""


_HANDSHAKE: Final = b"\x16"
"""The type of the record that begins a connection with TLS (RFC 8446, 5.1). No frame of the bus begins with it."""


class TlsPort:
    """The listening sockets of one port."""

    def __init__(
        self,
        sockets: list[socket.socket],
        settings: Callable[[], ssl.SSLContext],
        accept: Callable[[], object],
        most: Callable[[], int],
        failed: Callable[[str, str], None],
        longest_s: Callable[[], float] = lambda: HANDSHAKE_S,
        plain: Callable[[], bool] = lambda: False,
    ) -> None:
        """Accept connections.

        `settings` returns the settings for the next connection, `accept` its protocol, `most` how many handshakes may
        run now, `longest_s` how long one may take, `plain` whether connections without TLS are accepted. `failed` is
        called with the address and the reason when a handshake fails.
        """
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._settings = settings
        self._accept: Callable[[], asyncio.Protocol] = accept  # type: ignore[assignment]
        self._most = most
        self._failed = failed
        self._longest_s = longest_s
        self._plain = plain
        self._handshakes: dict[asyncio.Task[None], str] = {}
        """The running handshakes with the origins of their clients, the oldest first."""
        for sock in sockets:
            sock.setblocking(False)
            self._listen(sock)

    def _listen(self, sock: socket.socket) -> None:
        if sock.fileno() >= 0:
            self._loop.add_reader(sock, self._take, sock)

    def _take(self, sock: socket.socket) -> None:
        """Accept one connection; the loop calls again while more wait."""
        try:
            connection, address = sock.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:
            self._loop.remove_reader(sock)
            self._loop.call_later(PAUSE_S, self._listen, sock)
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host = str(address[0])
        origin = origin_of_ip(host)
        while len(self._handshakes) >= max(self._most(), 1):
            self._end_one(origin)
        task = self._loop.create_task(self._shake_hands(connection, host))
        self._handshakes[task] = origin
        task.add_done_callback(self._done)

    def _end_one(self, newest: str) -> None:
        """End the oldest handshake of the origin that has most, including the one that comes from `newest`."""
        victim = oldest_of_busiest(dict(islice(self._handshakes.items(), COMPARED)), newest)
        del self._handshakes[victim]
        victim.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._handshakes.pop(task, None)

    async def _shake_hands(self, connection: socket.socket, address: str) -> None:
        why = ""
        try:
            if self._plain() and not await self._begins_tls(connection):
                await self._loop.connect_accepted_socket(self._accept, connection)
                return
            await self._loop.connect_accepted_socket(
                self._accept, connection, ssl=self._settings(), ssl_handshake_timeout=self._longest_s()
            )
        except OSError as error:
            why = reason(error)
        if why:
            self._failed(address, why)

    async def _begins_tls(self, connection: socket.socket) -> bool:
        """Wait for the first byte of a connection, and look at it; raises OSError if there is none in time."""
        arrived = self._loop.create_future()
        self._loop.add_reader(connection, _set, arrived)
        try:
            async with asyncio.timeout(self._longest_s()):
                await arrived
            self._loop.remove_reader(connection)
            return connection.recv(1, socket.MSG_PEEK) == _HANDSHAKE
        except BaseException:
            self._loop.remove_reader(connection)
            connection.close()
            raise

    def close(self) -> None:
        """Accept no more, and end the running handshakes."""
        for sock in self._sockets:
            self._loop.remove_reader(sock)
            sock.close()
        for task in list(self._handshakes):
            task.cancel()


def _set(arrived: asyncio.Future[None]) -> None:
    if not arrived.done():
        arrived.set_result(None)


def reason(error: OSError) -> str:
    """Why a handshake failed. The error must not be used any more."""
    error.__traceback__ = None  # it refers to the error: a cycle, and the garbage collector is off
    if isinstance(error, ssl.SSLError):
        detail = getattr(error, "verify_message", "")
        return str(error.reason or error).replace("_", " ").lower() + (f" ({detail})" if detail else "")
    return str(error.strerror or error) or type(error).__name__  # a time-out is one
