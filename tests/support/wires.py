"""The wires between the nodes of a real cluster, which a test can cut: a TCP proxy in front of every bus port.

    with Wires() as wires, WiredCluster(tmp_path, wires, 5) as cluster:
        wires.halve(cluster.nodes[:2], cluster.nodes[2:])
        ...
        wires.repair()

Every node has its own address (127.0.1.1, 127.0.1.2, ...) and announces the port of its proxy as its bus port. A proxy
identifies the sender by its address and connects to the receiver from the same address. Data sent over a cut wire
waits, as if packets were dropped, and arrives when the wire is repaired, unless the receiver has closed the connection.
Directions are cut separately.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from disqued.core.cluster.peer import BUS_PORT_DISTANCE
from disqued.testing.ports import free_port
from support.cluster import NODE_TIMEOUT_MS, RealCluster, RealNode

NETWORK: Final = "127.0.1."
CHUNK_BYTES: Final = 1 << 16

Wire: TypeAlias = tuple[str, str]
"""One direction: the addresses of sender and receiver."""


class Wires:
    """All proxies, in their own thread. Used as a context around that of the cluster."""

    def __init__(self) -> None:
        self.held_bytes: dict[Wire, int] = {}
        """How many bytes were held back so far, by direction: the proof that a cut had an effect."""
        self._cut: set[Wire] = set()
        self._delay_s = 0.0
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._proxies: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    # --- control by tests ---------------------------------------------------------------------------------------------

    def cut(self, senders: Iterable[RealNode], receivers: Iterable[RealNode]) -> None:
        """Block all directions from the senders to the receivers; the opposite ones stay open."""
        found = list(receivers)
        self._set(self._cut | {(sender.host, receiver.host) for sender in senders for receiver in found})

    def halve(self, some: Iterable[RealNode], others: Iterable[RealNode]) -> None:
        """Separate two groups of nodes."""
        one, two = list(some), list(others)
        self.cut(one, two)
        self.cut(two, one)

    def repair(self) -> None:
        """Undo all cuts."""
        self._set(set())

    def slow(self, delay_s: float) -> None:
        """Delay every frame in each direction; 0 for no delay."""
        self._delay_s = delay_s

    def _set(self, cut: set[Wire]) -> None:
        async def change() -> None:
            self._cut = cut
            self._changed.set()
            self._changed.clear()  # wakes those who wait now, and nobody later

        self._run(change())

    # --- proxies ------------------------------------------------------------------------------------------------------

    def lead(self, host: str, port: int, to_port: int) -> None:
        """Start a proxy at one port of a node's address that connects to another port there."""
        self._run(self._listen(host, port, to_port))

    async def _listen(self, host: str, port: int, to_port: int) -> None:
        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._carry(reader, writer, host, to_port)
            finally:
                self._tasks.discard(task)

        self._proxies.append(await asyncio.start_server(carry, host, port))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
        """Forward one connection until one end closes it."""
        opener = str(writer.get_extra_info("peername")[0])
        async with contextlib.AsyncExitStack() as opened:
            opened.push_async_callback(_hang_up, writer)
            with contextlib.suppress(OSError):
                there, onwards = await asyncio.open_connection(host, port, local_addr=(opener, 0))
                opened.push_async_callback(_hang_up, onwards)
                ways = [
                    asyncio.create_task(self._pump(reader, onwards, (opener, host))),
                    asyncio.create_task(self._pump(there, writer, (host, opener))),
                ]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wire: Wire) -> None:
        while data := await reader.read(CHUNK_BYTES):
            if self._delay_s:
                await asyncio.sleep(self._delay_s)
            if wire in self._cut:
                self.held_bytes[wire] = self.held_bytes.get(wire, 0) + len(data)
            while wire in self._cut:
                await self._changed.wait()
            writer.write(data)
            await writer.drain()

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _end(self) -> None:
        for proxy in self._proxies:
            proxy.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


class WiredCluster(RealCluster):
    """A real cluster whose nodes reach each other only through wires; see the module."""

    def __init__(
        self, directory: Path, wires: Wires, count: int, *arguments: str, node_timeout_ms: int = NODE_TIMEOUT_MS
    ) -> None:
        super().__init__(directory, 0, *arguments, node_timeout_ms=node_timeout_ms)
        try:
            for number in range(count):
                self._start_wired(wires, f"{NETWORK}{number + 1}")
        except BaseException:
            self.close()
            raise

    def _start_wired(self, wires: Wires, host: str) -> None:
        port, hidden_port = free_port(), free_port()
        announced_port = port + BUS_PORT_DISTANCE
        wires.lead(host, announced_port, hidden_port)
        bus = ("--cluster-port", str(hidden_port), "--cluster-announce-bus-port", str(announced_port))
        self.start_node(*bus, host=host, port=port)
