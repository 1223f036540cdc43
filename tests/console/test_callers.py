"""The clients that the server creates for the console: they end with their requests and leave no state behind."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from uvloop import new_event_loop

from disqued.console.routes import Console
from disqued.core.runtime.slices import MOST_PARTS
from disqued.resp.replies import Failure, Reply, Truncated
from disqued.server.caller import Caller
from disqued.server.connection import Connection
from disqued.server.httpport import HttpPort
from disqued.server.shell import Clock, Shell
from disqued.testing.local import LocalNode

START_MS = 1_700_000_000_000


def play(act: Callable[[Shell], Coroutine[Any, Any, None]]) -> None:
    """Run `act` with a node on the event loop of the server."""

    async def run() -> None:
        local = LocalNode()
        local.config.assign("protected_mode", value=False)
        shell = Shell(asyncio.get_running_loop(), local.node, Clock(START_MS))
        shell.start()
        try:
            await act(shell)
        finally:
            shell.stop()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())


class Asker:
    """A user of a caller that waits for replies."""

    def __init__(self, shell: Shell, most_bytes: int = 100) -> None:
        self.gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.caller = Caller(asyncio.get_running_loop(), shell, "192.0.2.1:5", most_bytes, self.gone.set_result)

    async def ask(self, *requests: list[bytes]) -> list[Reply]:
        replied: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
        self.caller.ask(requests, replied.set_result)
        async with asyncio.timeout(10):
            return await replied


def test_caller_is_a_normal_client() -> None:
    async def act(shell: Shell) -> None:
        asker = Asker(shell)
        sessions = shell.node.state.sessions
        (listed,) = await asker.ask([b"CLIENT", b"LIST"])
        assert isinstance(listed, Truncated)
        assert listed.find(b"addr=192.0.2.1:5") >= 0
        replies = await asker.ask([b"QLEN", b"q"], [b"nothing"], [b"QLEN"])
        assert replies[0] == 0
        assert replies[1:] == [
            Failure(b"ERR unknown command 'nothing'"),
            Failure(b"ERR wrong number of arguments for 'qlen' command"),
        ]
        assert len(sessions) == 1
        asker.caller.close()
        await asyncio.sleep(0)
        assert not sessions
        assert not asker.gone.done()

    play(act)


def test_replies_arrive_in_a_later_turn() -> None:
    """While the node writes its output, no commands may be sent to it."""

    async def act(shell: Shell) -> None:
        asker = Asker(shell)
        received: list[list[Reply]] = []

        def again(replies: list[Reply]) -> None:
            received.append(replies)
            if len(received) < 3:
                asker.caller.ask([[b"PING"]], again)

        asker.caller.ask([[b"PING"]], again)
        assert received == []
        shell.carry()
        assert received == []
        await asker.ask([b"PING"])
        await asker.ask([b"PING"])
        await asker.ask([b"PING"])
        assert received == [[b"PONG"]] * 3

    play(act)


def test_reply_that_is_written_in_slices_arrives_whole() -> None:
    async def act(shell: Shell) -> None:
        asker = Asker(shell)
        ids = await asker.ask(*[[b"ADDJOB", b"q", b"body %d" % number, b"0"] for number in range(MOST_PARTS)])
        peek = [b"QPEEK", b"q", b"%d" % len(ids)]
        first, length, second = await asker.ask(peek, [b"QLEN", b"q"], peek)
        assert length == len(ids)
        assert isinstance(first, list)
        assert [job[1] for job in first if isinstance(job, list)] == ids
        assert second == first

    play(act)


def test_caller_is_notified_when_the_node_closes_the_connection() -> None:
    async def act(shell: Shell) -> None:
        asker = Asker(shell)
        (number,) = await asker.ask([b"CLIENT", b"LIST"])
        assert isinstance(number, Truncated)
        state = shell.node.state
        state.ready.hang_up(next(iter(state.sessions.values())))
        shell.settle()
        async with asyncio.timeout(10):
            assert await asker.gone == "The node closed the connection; its log says why"
        asker.caller.ask([[b"PING"]], lambda _replies: None)
        asker.caller.close()
        assert not state.sessions

    play(act)


def connections() -> list[Connection]:
    """All connections in this process, including those of other tests."""
    return [known for known in gc.get_objects() if isinstance(known, Connection)]


def test_requests_leave_no_objects_behind() -> None:
    """The garbage collector is disabled in the server."""
    made: weakref.WeakSet[Caller] = weakref.WeakSet()
    served: list[str] = []

    async def act(shell: Shell) -> None:
        loop, node = asyncio.get_running_loop(), shell.node
        node.state.config.http_actions = True

        def callers(address: str, most_bytes: int, gone: Callable[[str], None]) -> Caller:
            caller = Caller(loop, shell, address, most_bytes, gone)
            made.add(caller)
            served.append(address)
            return caller

        port = HttpPort(loop, node, Console(callers, node.state.commands.items()).routes)
        server = await loop.create_server(port.accept, "127.0.0.1", 0)  # type: ignore[arg-type]
        address = server.sockets[0].getsockname()

        async def ask(target: str, more: str = "", body: str = "") -> None:
            reader, writer = await asyncio.open_connection(*address)
            method = "POST" if body else "GET"
            size = f"Content-Length: {len(body)}\r\n" if body else ""
            writer.write(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n{size}{more}\r\n{body}".encode())
            async with asyncio.timeout(10):
                await reader.readuntil(b"\r\n\r\n")
                await reader.read(10)
            writer.close()
            await writer.wait_closed()

        for _ in range(3):
            await ask("/console/events")
            await ask("/console/jobs?queue=q")
            await ask("/console/jobs?queue=q&state=active")
            await ask("/console/act", "X-Disque-Console: 1\r\n", '{"action": "pause", "queue": "q", "pause": "in"}')
        node.state.config.requirepass = b"secret"
        node.state.events.config_changed("requirepass")
        await ask("/console/events")
        await ask("/console/events", "Authorization: Bearer secret\r\n")
        server.close()
        async with asyncio.timeout(10):
            while port.connected or node.state.sessions:  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.01)
        assert len(served) == 14
        assert not made
        assert not [left for left in connections() if left not in before]

    gc.collect()
    before = connections()
    gc.disable()
    try:
        play(act)
    finally:
        gc.enable()


def test_only_the_page_itself_is_listed() -> None:

    async def act(shell: Shell) -> None:
        console = Console(partial(Caller, asyncio.get_running_loop(), shell), shell.node.state.commands.items())
        assert {route.path for route in console.routes} > {"/", "/console/events", "/console/jobs", "/console/act"}
        assert [route.path for route in console.routes if route.listed] == ["/"]

    play(act)
