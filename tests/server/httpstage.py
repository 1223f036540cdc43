"""Fixtures for tests of the HTTP port in this process: the port on a loop, its clients, and a streaming page."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import h11
from uvloop import new_event_loop

from disqued.httproutes import OK, Answer, Exchange, Route
from disqued.server.health import ROUTES
from disqued.server.httpport import HttpConnection, HttpPort
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalNode

GET = "{} {} HTTP/1.1\r\nHost: node\r\n\r\n"
LIVE = GET.format("GET", "/livez").encode()
WAITING = GET.format("GET", "/stopz?timeout=60").encode()


def with_dead_peer() -> LocalNode:
    """One of two nodes; the other one does not answer."""
    cluster = Cluster(2)
    one, two = cluster.members
    two.crash()
    cluster.run(seconds=1)
    return one


class Stage:
    """An HTTP port on a running loop, and its clients."""

    def __init__(self, local: LocalNode, routes: tuple[Route, ...]) -> None:
        self.local = local
        self.loop = asyncio.get_running_loop()
        self.port = HttpPort(self.loop, local.node, routes)
        self.made: weakref.WeakSet[HttpConnection] = weakref.WeakSet()
        self.parsers: weakref.WeakSet[h11.Connection] = weakref.WeakSet()
        self.address: tuple[str, int] = ("", 0)
        self._clients: list[Client] = []

    def _accept(self) -> HttpConnection:
        connection = self.port.accept()
        self.made.add(connection)
        self.parsers.add(connection._parser)
        return connection

    async def open(self) -> asyncio.Server:
        server = await self.loop.create_server(self._accept, "127.0.0.1", 0)  # type: ignore[arg-type]
        self.address = server.sockets[0].getsockname()
        return server

    async def client(self, ip: str = "127.0.0.1") -> Client:
        """A client with an address of the loopback network."""
        client = Client(*await asyncio.open_connection(*self.address, local_addr=(ip, 0)))
        self._clients.append(client)
        return client

    def close_clients(self) -> None:
        for client in self._clients:
            client.writer.close()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.005)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def page(self) -> bytes:
        """One answer: its text."""
        async with asyncio.timeout(10):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            return await self.reader.readexactly(length)

    async def rest(self) -> bytes:
        """What comes until the node closes."""
        received = b""
        async with asyncio.timeout(10):
            try:
                while data := await self.reader.read(65536):
                    received += data
            except ConnectionResetError:
                pass
        return received


def play(
    act: Callable[[Stage], Coroutine[Any, Any, None]],
    local: LocalNode | None = None,
    routes: tuple[Route, ...] = ROUTES,
) -> None:
    """Run a test coroutine on the event loop of the server."""

    wrong: list[dict[str, Any]] = []

    async def run() -> None:
        stage = Stage(local or LocalNode(), routes)
        stage.loop.set_exception_handler(lambda _loop, context: wrong.append(context))
        server = await stage.open()
        try:
            await act(stage)
        finally:
            stage.port.end()
            stage.close_clients()
            server.close()
            await stage.until(lambda: stage.port.connected == 0)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())
    assert wrong == []


def status_of(reply: bytes) -> int:
    assert reply.startswith(b"HTTP/1.1 "), reply
    return int(reply[9:12])


class Feed:
    """A page that streams numbers."""

    def __init__(self, part: bytes = b"part ", every_s: float = 0.01) -> None:
        self.part = part
        self.every_s = every_s
        self.sent = 0
        self.left_out = 0
        self.ended = 0

    @property
    def route(self) -> Route:
        return Route("/feed", self.begin, 2, ("GET",))

    def begin(self, _node: object, exchange: Exchange) -> None:
        exchange.at_end(self._end)
        exchange.stream(Answer(OK, b"first ", content_type="text/event-stream"))
        exchange.call_later(self.every_s, lambda: self._beat(exchange))

    def _beat(self, exchange: Exchange) -> None:
        if exchange.reads:
            exchange.push(self.part)
            self.sent += 1
        else:
            self.left_out += 1
        exchange.call_later(self.every_s, lambda: self._beat(exchange))

    def _end(self) -> None:
        self.ended += 1


FEED = GET.format("GET", "/feed").encode()
