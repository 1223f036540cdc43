"""The page is generated in steps between which other work runs, and leaves no state behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

from uvloop import new_event_loop

from disqued.metrics.exposition import Encoder, page
from disqued.metrics.queues import Selection
from disqued.metrics.server import ServerFigures
from disqued.server import metricspage
from disqued.server.httpport import HttpPort
from disqued.testing.local import LocalNode
from metrics.pages import figures

PART_NS = 1_000_000
"""The time that one part takes on the fake clock."""


class Stage:
    """An HTTP port with one page on a running event loop."""

    def __init__(self, local: LocalNode, server: ServerFigures) -> None:
        loop = asyncio.get_running_loop()
        self.port = HttpPort(loop, local.node, metricspage.routes(server), server.http_answers)
        self.turns = 0
        self._loop = loop
        self._address: tuple[str, int] = ("", 0)

    async def open(self) -> asyncio.Server:
        server = await self._loop.create_server(self.port.accept, "127.0.0.1", 0)  # type: ignore[arg-type]
        self._address = server.sockets[0].getsockname()
        return server

    def count_turns(self) -> None:
        """Everybody else, who has something to do in each turn of the loop."""
        self.turns += 1
        self._loop.call_soon(self.count_turns)

    async def fetch(self, query: str = "") -> bytes:
        reader, writer = await asyncio.open_connection(*self._address)
        writer.write(f"GET /metrics{query} HTTP/1.0\r\n\r\n".encode())
        received = await reader.read()
        writer.close()
        await writer.wait_closed()
        return received

    async def leave_early(self) -> None:
        """Ask for a long page and go after the beginning of it."""
        reader, writer = await asyncio.open_connection(*self._address)
        writer.write(b"GET /metrics?queues=all HTTP/1.0\r\n\r\n")
        await reader.readexactly(100)
        writer.transport.abort()


def play(local: LocalNode, server: ServerFigures, act: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        stage = Stage(local, server)
        opened = await stage.open()
        await act(stage)
        while stage.port.connected:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)
        opened.close()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())


def busy(queues: int) -> LocalNode:
    local = LocalNode()
    client = local.client()
    for number in range(queues):
        client.send("ADDJOB", f"queue-{number}", "x", 0)
    return local


def test_other_work_runs_while_a_long_page_is_generated() -> None:
    local = busy(1000)
    parts = len(list(page(local.node, figures(), Selection(1000), Encoder(""))))
    local.host.command_ns = PART_NS
    server = figures()
    turns = 0

    async def act(stage: Stage) -> None:
        nonlocal turns
        stage.count_turns()
        before = stage.turns
        assert b'disque_queue_jobs{queue="queue-999"} 1.0\n' in await stage.fetch("?queues=all")
        turns = stage.turns - before

    play(local, server, act)
    in_a_turn = metricspage.TURN_NS // PART_NS
    assert parts > 100
    assert turns >= parts // in_a_turn
    assert server.scrape_ns >= parts * PART_NS


def test_page_leaves_no_state_after_it_was_read_or_aborted() -> None:
    local = busy(1000)
    gc.collect()
    gc.disable()
    try:

        async def act(stage: Stage) -> None:
            await stage.fetch()
            await stage.leave_early()
            await stage.fetch("?queues=all")

        play(local, figures(), act)
        ours = [one for one in gc.get_objects() if str(type(one).__module__).startswith("disqued.")]
        ours = [one for one in ours if type(one).__module__ != "disqued.ordered.exchange"]
        left = [one for one in ours if type(one).__name__ in {"_Making", "QueueScan", "Exchange"}]
        assert left == []
    finally:
        gc.enable()
