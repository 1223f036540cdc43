"""The asyncio transport: asyncio's own streams."""

from __future__ import annotations

import asyncio
import socket
import ssl

from disqued.client.nodes import Address
from disqued.client.transport import BrokenConnectionError
from disqued.client.wire import Decoder, Reply

READ_BYTES = 65536


class StreamLink:
    """A pair of streams and the decoder of their replies."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._address = address
        self.node_id = ""
        self._reader = reader
        self._writer = writer
        self._decoder = Decoder()

    @property
    def address(self) -> Address:
        """The node at the other end."""
        return self._address

    def is_usable(self) -> bool:
        """False when the end of the stream has been seen."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    async def exchange(self, request: bytes, replies: int, read_timeout_s: float | None) -> list[Reply]:
        """Send the request and read until at least so many replies have arrived."""
        answers: list[Reply] = []
        try:
            async with asyncio.timeout(read_timeout_s):
                self._writer.write(request)
                await self._writer.drain()
            while len(answers) < replies:
                async with asyncio.timeout(read_timeout_s):
                    data = await self._read()
                answers += self._decoder.feed(data)
        except TimeoutError as error:
            raise BrokenConnectionError(f"no data for {read_timeout_s:g} s", answers) from error
        except OSError as error:
            raise BrokenConnectionError(error, answers) from error
        return answers

    async def _read(self) -> bytes:
        data = await self._reader.read(READ_BYTES)
        if not data:
            raise ConnectionResetError("the node closed the connection")
        return data

    def close(self) -> None:
        """Close without flushing: no call needs the rest."""
        self._writer.transport.abort()


class StreamTransport:
    """The transport for tasks of one event loop."""

    def __init__(
        self, max_connections: int, tls: ssl.SSLContext | None = None, tls_server_name: str | None = None
    ) -> None:
        self._tls = tls
        self._tls_server_name = tls_server_name
        self._slots = asyncio.Semaphore(max_connections)

    async def dial(self, address: Address, timeout_s: float | None) -> StreamLink:
        """Open a connection."""
        async with asyncio.timeout(timeout_s):
            if address.is_unix:
                return StreamLink(address, *await asyncio.open_unix_connection(address.host))
            server_name = None if self._tls is None else self._tls_server_name
            reader, writer = await asyncio.open_connection(
                address.host, address.port, ssl=self._tls, server_hostname=server_name
            )
        endpoint: socket.socket = writer.get_extra_info("socket")
        endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # detects a dead node
        return StreamLink(address, reader, writer)

    async def sleep(self, seconds: float) -> None:
        """Suspend the task."""
        await asyncio.sleep(seconds)

    async def acquire(self) -> None:
        """Suspend until a slot is free."""
        await self._slots.acquire()

    def release(self) -> None:
        """Free the slot."""
        self._slots.release()
