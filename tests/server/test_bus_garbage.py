"""Links leave no garbage: the server runs for months with the garbage collector off."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from disqued.config import Config
from disqued.core.cluster.peer import Link, Peer
from disqued.node import Node
from disqued.server import listener
from disqued.server.bus import Bus
from disqued.server.certificates import Certificates
from disqued.server.shell import Clock, Shell
from disqued.testing.certificates import Authority
from disqued.testing.host import FakeHost
from disqued.testing.local import NODE_ID
from disqued.testing.ports import free_port

ROUNDS = 3
TIMES = 10
RESET = struct.pack("ii", 1, 0)


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Turn the garbage collector off, as in the server, and have it skip the objects of earlier tests."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def garbage(scene: Callable[[Shell, Bus], Awaitable[None]], certificates: Path | None = None) -> int:
    """How many objects only the collector can free after `TIMES` runs of the scene, not counting the first runs.

    It is the least of some rounds: what the scene leaves is there in each, what a thread of another test leaves in one.
    The bus uses TLS if there is a directory with `certificates`.
    """

    async def play() -> int:
        loop = asyncio.get_running_loop()
        config = Config()
        config.port = free_port()
        config.bind = ("127.0.0.1",)
        if certificates is not None:
            config.tls_cluster = "yes"
            config.tls_cert_file, config.tls_key_file, config.tls_ca_cert_file = (
                str(certificates / name) for name in ("node.crt", "node.key", "ca.crt")
            )
        host = FakeHost()
        clock = Clock(host.now_ms)
        shell = Shell(loop, Node(config, host, NODE_ID, clock.now_ms()), clock)
        bus = Bus(shell, loop, Certificates(config, host.log) if certificates is not None else None)
        servers = await bus.listen(listener.open_bus_sockets(config), 100)
        try:
            for _ in range(3):
                await scene(shell, bus)
            gc.collect()
            found = []
            for _ in range(ROUNDS):
                for _ in range(TIMES):
                    await scene(shell, bus)
                found.append(gc.collect())
            return min(found)
        finally:
            for server in servers:
                server.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(play())


async def until(condition: Callable[[], bool], turns: int = 2000) -> None:
    """Run the loop until a condition holds."""
    for _ in range(turns):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError


async def closed(connection: socket.socket) -> None:
    """Wait until the other end has closed a connection, and has forgotten it."""
    with contextlib.suppress(ConnectionError):
        while await asyncio.get_running_loop().sock_recv(connection, 4096):
            pass
    for _ in range(20):
        await asyncio.sleep(0)


def own_bus_port(shell: Shell) -> int:
    """The bus port of the node of a shell."""
    return listener.bus_port(shell.node.state.config)


def peer_at(shell: Shell, ip: bytes, bus_port: int) -> Peer:
    """A peer as membership knows it."""
    return Peer(b"b" * 40, ip, 1, 0, shell.clock.now_ms(), bus_port)


def test_dialling_a_node_that_is_down_leaves_no_garbage() -> None:
    async def scene(shell: Shell, bus: Bus) -> None:
        link = Link(peer_at(shell, b"127.0.0.1", 1), 0)
        bus.dial(link)
        await until(lambda: link.closed)

    assert garbage(scene) == 0


def test_resolving_an_unknown_name_leaves_no_garbage() -> None:
    async def scene(shell: Shell, bus: Bus) -> None:
        peer = peer_at(shell, b"", 1)
        peer.host = b"x" * 64 + b".invalid"  # no name of the domain name system: nobody is asked
        link = Link(peer, 0)
        bus.dial(link)
        bus.look_up(peer.host)
        await until(lambda: link.closed)

    assert garbage(scene) == 0


def test_closed_links_leave_no_garbage() -> None:
    async def scene(shell: Shell, bus: Bus) -> None:
        link = Link(peer_at(shell, b"127.0.0.1", own_bus_port(shell)), 0)
        bus.dial(link)
        await until(lambda: bus.connected == 2)
        shell.node.ready.hang_up_link(link)
        shell.carry()
        await until(lambda: bus.connected == 0)

    assert garbage(scene) == 0


@pytest.mark.parametrize("names", ["IP:127.0.0.1", "IP:192.0.2.1"])
def test_links_with_tls_leave_no_garbage_whether_the_certificate_fits_or_not(tmp_path: Path, names: str) -> None:
    Authority(tmp_path).issue("node", names=names)

    async def scene(shell: Shell, bus: Bus) -> None:
        link = Link(peer_at(shell, b"127.0.0.1", own_bus_port(shell)), 0)
        bus.dial(link)
        await until(lambda: bus.connected == 2 or link.closed)
        if not link.closed:
            shell.node.ready.hang_up_link(link)
            shell.carry()
        await until(lambda: bus.connected == 0)

    assert garbage(scene, tmp_path) == 0


def test_failed_handshakes_leave_no_garbage(tmp_path: Path) -> None:
    Authority(tmp_path).issue("node")

    async def scene(shell: Shell, _bus: Bus) -> None:
        with socket.create_connection(("127.0.0.1", own_bus_port(shell))) as unknown:
            unknown.setblocking(False)
            unknown.sendall(b"DbuZ" * 40)
            await closed(unknown)

    assert garbage(scene, tmp_path) == 0


def test_dialling_a_node_without_tls_leaves_no_garbage(tmp_path: Path) -> None:
    Authority(tmp_path).issue("node")

    async def scene(shell: Shell, bus: Bus) -> None:
        with socket.create_server(("127.0.0.1", 0)) as plain:
            plain.setblocking(False)
            link = Link(peer_at(shell, b"127.0.0.1", plain.getsockname()[1]), 0)
            bus.dial(link)
            connection, _ = await asyncio.get_running_loop().sock_accept(plain)
            with connection:
                connection.sendall(b"DbuZ" * 40)
                await until(lambda: link.closed)

    assert garbage(scene, tmp_path) == 0


def test_garbage_is_detected() -> None:
    async def scene(_shell: Shell, _bus: Bus) -> None:
        cycle: list[object] = []
        cycle.append(cycle)

    assert garbage(scene) == TIMES


def test_closed_unknown_connections_leave_no_garbage() -> None:
    async def scene(shell: Shell, bus: Bus) -> None:
        for last_words, is_refused in ((b"", False), (b"GET / HTTP/1.1\r\n\r\n", True), (b"DbuZ", False)):
            with socket.create_connection(("127.0.0.1", own_bus_port(shell))) as unknown:
                unknown.setblocking(False)
                unknown.sendall(last_words)
                await (closed(unknown) if is_refused else until(lambda: bus.connected == 1))
                unknown.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            await until(lambda: bus.connected == 0)

    assert garbage(scene) == 0


def test_closed_unknown_connections_are_not_kept_until_the_node_timeout() -> None:
    async def scene(shell: Shell, bus: Bus) -> None:
        before = links()
        with socket.create_connection(("127.0.0.1", own_bus_port(shell))):
            await until(lambda: bus.connected == 1)
        await until(lambda: bus.connected == 0)
        await until(lambda: links() <= before, turns=50)

    garbage(scene)


def links() -> int:
    """How many links exist."""
    return len([found for found in gc.get_objects() if isinstance(found, Link)])
