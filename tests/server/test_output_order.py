"""Both drivers, the server and the simulator, write the output of one turn in the order of `Ready.carry`.

The order is recorded where output leaves a driver: at the transports of the server, and at the clients, connections and
the network of the simulator. A driver that keeps output back, or sorts it, fails here.
"""

from __future__ import annotations

from typing import Any

import pytest

from disqued.config import Config
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Carrier, Link, Peer
from disqued.node import Node
from disqued.server.connection import Connection
from disqued.server.peerlink import PeerLink
from disqued.server.shell import Clock, Shell
from disqued.testing.host import FakeHost
from disqued.testing.local import NODE_ID, LocalNode
from disqued.testing.network import End, Endpoint, Network

SEED = b"seed.example"
TURN = [
    "link 1 written",
    "link 2 written",
    "client 1 written",
    "client 2 written",
    "client 2 closed",
    "client 3 closed",
    "link 3 closed",
    "dialled",
    "looked up",
]
"""The output of `end_turn`, in the order of `Ready.carry`."""


def end_turn(node: Node, clients: list[Session], links: list[Link]) -> None:
    """Collect output of every kind, in another order than that in which it must leave."""
    ready, bus = node.ready, node.state.bus
    ready.lookups.append(SEED)
    ready.dials.append(Link(Peer(b"b" * 40, b"10.0.0.9", 7711, 0, 0), 0))
    ready.hang_up_link(links[2])
    ready.hang_up(clients[2])
    for session in clients[:2]:
        session.reply_ok()
        ready.flush(session)
    clients[1].closing = True
    for link in links[:2]:
        ready.put(link, bus.fail(b"b" * 40))


# --- the server -------------------------------------------------------------------------------------------------------


class Loop:
    """An event loop that runs what was scheduled for its current turn, and no timers."""

    def __init__(self) -> None:
        self.soon: list[Any] = []

    def call_soon(self, callback: Any) -> None:
        self.soon.append(callback)

    def call_later(self, _delay_s: float, _callback: Any) -> Loop:
        return self

    def cancel(self) -> None:
        """Cancel a timer, which never runs anyway."""

    def turn(self) -> None:
        """Run what is scheduled now; what it schedules belongs to the next turn."""
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


class Transport:
    """Records what is done to one connection."""

    def __init__(self, name: str, done: list[str]) -> None:
        self._name = name
        self._done = done

    def write(self, _data: bytes) -> None:
        self._done.append(f"{self._name} written")

    def close(self) -> None:
        self._done.append(f"{self._name} closed")

    abort = close

    def get_extra_info(self, _name: str) -> None:
        return None

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, _high: int, _low: int) -> None:
        """The recorded connections are never slow."""


class Outside:
    """Records links that the server opens and names that it resolves."""

    def __init__(self, done: list[str]) -> None:
        self._done = done

    def dial(self, _link: Link) -> None:
        self._done.append("dialled")

    def look_up(self, _name: bytes) -> None:
        self._done.append("looked up")


def test_the_server_writes_a_turn_in_order() -> None:
    done: list[str] = []
    loop, host = Loop(), FakeHost()
    clock = Clock(host.now_ms)
    config = Config()
    config.protected_mode = False
    node = Node(config, host, NODE_ID, clock.now_ms())
    shell = Shell(loop, node, clock)  # type: ignore[arg-type]
    shell.network = Outside(done)
    clients: list[Session] = []
    links: list[Link] = []
    for number in (1, 2, 3):
        connection = Connection(shell, 0)
        connection.connection_made(Transport(f"client {number}", done))  # type: ignore[arg-type]
        clients.append(connection)
        link = Link(None, clock.now_ms())
        carrier = PeerLink(shell, link, lambda _carrier: True, lambda _carrier: None)
        carrier.connection_made(Transport(f"link {number}", done))  # type: ignore[arg-type]
        links.append(link)
    loop.turn()
    assert done == []

    end_turn(node, clients, links)
    shell.settle()
    loop.turn()
    assert done == TURN


# --- the simulator ----------------------------------------------------------------------------------------------------


class Recorder(Carrier):
    """Records what is done to one simulated connection, and passes it on."""

    def __init__(self, name: str, done: list[str], end: End) -> None:
        self._name = name
        self._done = done
        self._end = end

    def write(self, data: bytes) -> None:
        self._done.append(f"{self._name} written")
        self._end.write(data)

    def unsent_bytes(self) -> int:
        return self._end.unsent_bytes()

    def close(self) -> None:
        self._done.append(f"{self._name} closed")
        self._end.close()


class RecordingNetwork(Network):
    """Records connections that nodes open and names that they resolve."""

    def __init__(self, now_ms: int, done: list[str]) -> None:
        super().__init__(now_ms)
        self._done = done

    def dial(self, local: Endpoint, link: Link) -> None:
        self._done.append("dialled")
        super().dial(local, link)

    def look_up(self, local: Endpoint, name: bytes) -> None:
        self._done.append("looked up")
        super().look_up(local, name)


class LateReplies(LocalNode):
    """A faulty driver: it writes replies after everything else."""

    def flush(self) -> None:
        self.late: list[Session] = []
        super().flush()
        for session in self.late:
            super().write_session(session)

    def write_session(self, session: Session) -> None:
        self.late.append(session)


class EarlyDials(LocalNode):
    """A faulty driver: it opens links before it writes anything."""

    def flush(self) -> None:
        dials, self.node.ready.dials = self.node.ready.dials, []
        for link in dials:
            self.dial(link)
        super().flush()


def simulate(driver: type[LocalNode]) -> list[str]:
    """What the simulator does in the turn, in order."""
    done: list[str] = []
    host = FakeHost()
    network = RecordingNetwork(host.now_ms, done)
    local = driver(Config(), host, network=network)
    clients: list[Session] = []
    links: list[Link] = []

    def record(number: int, *, closed: bool) -> None:
        done.append(f"client {number} {'closed' if closed else 'written'}")

    for number in (1, 2, 3):
        client = local.client()
        client.listener = lambda number=number, client=client: record(number, closed=client.closed)
        clients.append(client.session)
        link = Link(None, local.now_ms)
        link.carrier = Recorder(f"link {number}", done, End(network, local, None, link))
        links.append(link)
    assert done == []

    end_turn(local.node, clients, links)
    local.flush()
    return done


def test_the_simulator_writes_a_turn_in_order() -> None:
    assert simulate(LocalNode) == TURN


@pytest.mark.parametrize("driver", [LateReplies, EarlyDials])
def test_a_driver_that_reorders_a_turn_is_detected(driver: type[LocalNode]) -> None:
    reordered = simulate(driver)
    assert reordered != TURN
    assert sorted(reordered) == sorted(TURN)
