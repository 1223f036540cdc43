"""Jobs that were handed out for a client that is gone: they are given back, and no attempt is counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from uvloop import new_event_loop

from disqued.httpapi.serving import MOST_WAITING, Api
from disqued.server.caller import Caller
from disqued.server.httpport import HttpConnection, HttpPort
from disqued.server.shell import Clock, Shell
from disqued.testing.local import LocalNode

START_MS = 1_700_000_000_000
_BODY = b'{"timeout_ms": 60000}'
WAIT = b"POST /v1/queues/q/claims HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)


class Stage:
    """A node with the API on a running loop, and a client of its own."""

    def __init__(self) -> None:
        self.local = LocalNode()
        self.local.config.assign("protected_mode", value=False)
        self.loop = asyncio.get_running_loop()
        self.shell = Shell(self.loop, self.local.node, Clock(START_MS))
        self.shell.start()
        api = Api(partial(Caller, self.loop, self.shell), self.local.node.state.commands.items(), "full")
        self.port = HttpPort(self.loop, self.local.node, api.routes, most_connections=2 * MOST_WAITING)
        self.connections: list[HttpConnection] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.admin = Caller(self.loop, self.shell, "127.0.0.1:1", 1000, lambda _why: None)

    def accept(self) -> HttpConnection:
        connection = self.port.accept()
        self.connections.append(connection)
        return connection

    async def client(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.address)
        self.writers.append(writer)
        return reader, writer

    async def waiting_client(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A client that waits for a job of the queue q."""
        before = self.blocked
        reader, writer = await self.client()
        writer.write(WAIT)
        await self.until(lambda: self.blocked == before + 1)
        return reader, writer

    def call(self, *words: bytes) -> asyncio.Future[Any]:
        """Run a command now; its reply arrives later."""
        replied: asyncio.Future[Any] = self.loop.create_future()
        self.admin.ask([words], lambda replies: replied.set_result(replies[0]))
        return replied

    def add(self, *options: bytes) -> asyncio.Future[Any]:
        """Add a job to the queue q now; its ID arrives later."""
        return self.call(b"ADDJOB", b"q", b"body", b"0", b"REPLICATE", b"1", *options)

    @property
    def queued(self) -> int:
        queue = self.local.node.state.lifecycle.queues.get(b"q")
        return 0 if queue is None else int(queue.length)

    @property
    def blocked(self) -> int:
        return int(self.local.node.state.blocked_clients)

    async def open(self) -> asyncio.Server:
        server = await self.loop.create_server(self.accept, "127.0.0.1", 0)  # type: ignore[arg-type]
        self.address = server.sockets[0].getsockname()
        return server

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.005)


def play(act: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    """Run a test coroutine on the event loop of the server."""
    wrong: list[dict[str, Any]] = []

    async def run() -> None:
        stage = Stage()
        stage.loop.set_exception_handler(lambda _loop, context: wrong.append(context))
        server = await stage.open()
        try:
            await act(stage)
        finally:
            for writer in stage.writers:
                writer.close()
            stage.port.end()
            server.close()
            await stage.until(lambda: stage.port.connected == 0)
            stage.shell.stop()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())
    assert wrong == []


def test_job_is_given_back_if_the_client_goes_between_delivery_and_answer() -> None:
    async def act(stage: Stage) -> None:
        await stage.waiting_client()
        added = stage.add()
        assert (stage.queued, stage.blocked) == (0, 0), "the job was handed out"
        stage.connections[0].hang_up()
        job_id = await added
        await stage.until(lambda: stage.queued == 1)
        job = stage.local.node.state.lifecycle.table.get(job_id)
        assert job is not None
        assert (job.nacks, job.additional_deliveries) == (0, 0)
        await stage.until(lambda: len(stage.local.node.state.sessions) == 1)

    play(act)


def test_at_most_once_job_is_not_delivered_twice() -> None:
    async def act(stage: Stage) -> None:
        await stage.waiting_client()
        added = stage.add(b"RETRY", b"0")
        assert (stage.queued, stage.blocked) == (0, 0), "the job was handed out"
        stage.connections[0].hang_up()
        await added
        await stage.until(lambda: len(stage.local.node.state.sessions) == 1)
        assert stage.queued == 0

    play(act)


def test_job_stays_queued_if_the_client_went_in_the_same_turn() -> None:
    async def act(stage: Stage) -> None:
        await stage.waiting_client()
        stage.connections[0].hang_up()
        added = stage.add()
        assert (stage.queued, stage.blocked) == (1, 0)
        await added

    play(act)


def test_waiting_client_gets_its_job() -> None:
    async def act(stage: Stage) -> None:
        reader, _ = await stage.waiting_client()
        job_id = await stage.add()
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = json.loads(await reader.readexactly(length))
        assert [job["id"] for job in answer["jobs"]] == [job_id.decode()]

    play(act)


def test_number_of_waiting_requests_is_bounded() -> None:
    async def act(stage: Stage) -> None:
        clients = [await stage.waiting_client() for _ in range(MOST_WAITING)]
        reader, writer = await stage.client()
        writer.write(WAIT)
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 503 ")
        writer.write(b"GET /v1/queues HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"HTTP/1.1 200 ")
        clients[0][1].close()
        await stage.until(lambda: stage.blocked == MOST_WAITING - 1)
        await stage.waiting_client()

    play(act)
