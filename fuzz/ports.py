"""What takes bytes from the outside: the ports for clients, nodes and HTTP, and the files that a node reads.

A `Target` gets one input after the other. Whatever the bytes are, no exception escapes, no bug is reported, no turn
takes long, and afterwards the node still serves. The inputs are mutations of samples (`fuzz.bytestreams`), or come from
a fuzzer that watches which code they reach (`fuzz.guided`).
"""

from __future__ import annotations

import json
import random
from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop, Transport
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from disqued.client import wire
from disqued.config import ConfigError, load
from disqued.console.routes import Console
from disqued.core.cluster.peer import Carrier, Link
from disqued.httpapi.serving import MORE_CONNECTIONS, Api
from disqued.membership.nodesconf import decode
from disqued.metrics.server import ServerFigures
from disqued.node import ROOMS, Node
from disqued.persistence.check import Check, fault_of, unknown_format
from disqued.persistence.fororiginal import Conversion
from disqued.persistence.parse import Entry
from disqued.persistence.reader import EntryReader
from disqued.server import metricspage
from disqued.server.caller import Caller
from disqued.server.health import ROUTES, why_not_ready
from disqued.server.httpport import MOST_CONNECTIONS, HttpConnection, HttpPort
from disqued.server.shell import Clock, Shell
from disqued.testing.cluster import Cluster
from disqued.testing.local import NODE_ID, no_include
from fuzz import samples
from fuzz.grammar import Grammar
from fuzz.victim import RealHost, Victim, Violation, check_log, make_config, measure

VECTORS: Final = Path(__file__).parent.parent / "tests" / "vectors"
"""Bytes that the original sent and wrote."""
_SAMPLES: Final = 400


class Target(ABC):
    """Something that takes bytes."""

    samples: Sequence[bytes]
    """Valid input."""

    @abstractmethod
    def take(self, data: bytes) -> None:
        """Take one input.

        Raises:
            Violation: the input did what no input may do.
        """


class ClientPort(Target):
    """Requests on a new connection to a node with jobs."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._start()
        keeper = self._victim.client()
        grammar = Grammar(ROOMS.commands, self._chance, [keeper.add("mail") for _ in range(20)])
        requests = [wire.encode(grammar.request()) for _ in range(_SAMPLES)]
        self.samples = [
            *(data for data in requests if len(data) < 1000),
            *(b"PING\r\n", b'ADDJOB mail "a \\x00 body" 0\r\n', b"*1\r\n$4\r\nPING\r\n" * 20),
        ]

    def _start(self) -> None:
        """Start a node."""
        self._victim = Victim(self._chance.getrandbits(32))
        self._witness = self._victim.collector()

    def take(self, data: bytes) -> None:
        """Send it; another client gets a reply."""
        victim = self._victim
        client = victim.collector()
        victim.measured(partial(client.send_bytes, data))
        victim.measured(partial(victim.step, victim.now_ms + 1))
        client.decode()
        victim.forget(client)
        state = victim.node.state
        if victim.host.ended is not None or state.ending or state.client_pause.until_ms or self._witness.closed:
            self._start()  # the input ended the node, paused its clients, or closed their connections
            return
        self._witness.send("PING")
        if not self._witness.decode():
            raise Violation("another client gets no reply to PING")


class Nowhere(Carrier):
    """The other end of a link, which reads nothing."""

    def write(self, data: bytes) -> None:
        """Drop it."""

    def unsent_bytes(self) -> int:
        """Nothing waits."""
        return 0

    def close(self) -> None:
        """There is no connection."""


class BusPort(Target):
    """Frames on a new link to a node of a cluster, some with the ID of a member and of a job."""

    def __init__(self, seed: int) -> None:
        self._cluster = Cluster(2)
        self._victim, other = self._cluster.members
        for member in self._cluster.members:
            member.host.log_level = "warning"
        self._chance = random.Random(seed)
        self._senders = (b"bad0" * 10, other.id, self._victim.id)
        recorded = [
            bytes.fromhex(line["hex"])
            for file in ("one-per-type", "fake-peer")
            for line in map(json.loads, (VECTORS / "bus" / f"{file}.jsonl").read_text().splitlines())
            if "hex" in line
        ]
        ours = samples.frames(other.id, self._victim.admin.add("mail", "body", "REPLICATE", 1))
        self.samples = [data for data in dict.fromkeys(recorded + ours) if len(data) < 1000]

    def take(self, data: bytes) -> None:
        """Send it in one piece; the other node stays a member."""
        victim = self._victim
        data = data[:16] + self._chance.choice(self._senders) + data[56:] if len(data) > 56 else data
        link = Link(None, victim.now_ms, b"10.9.9.9", victim.ip)
        link.carrier = Nowhere()
        measure(partial(self._feed, link, data))
        measure(partial(self._cluster.run, milliseconds=1))
        check_log(victim.host)
        if not link.closed:
            victim.node.link_closed(link, victim.now_ms)
        if self._senders[1] not in victim.node.state.view.peers:
            raise Violation("the other node is no member any more")

    def _feed(self, link: Link, data: bytes) -> None:
        self._victim.node.link_bytes(link, data, self._victim.now_ms)
        self._victim.flush()


class _Timer:
    """A call that is due later."""

    def __init__(self, call: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.run: Callable[[], object] | None = partial(call, *args)

    def cancel(self) -> None:
        """Do not call it."""
        self.run = None


class _Loop:
    """As much of an event loop as the HTTP port uses, in virtual time: everything is due at once or never."""

    def __init__(self) -> None:
        self._soon: deque[_Timer] = deque()

    def call_soon(self, call: Callable[..., object], *args: object) -> _Timer:
        """Call it in the next turn."""
        timer = _Timer(call, args)
        self._soon.append(timer)
        return timer

    def call_later(self, _delay_s: float, call: Callable[..., object], *args: object) -> _Timer:
        """Never call it."""
        return _Timer(call, args)

    def time(self) -> float:
        """Seconds."""
        return 0.0

    def turn(self) -> None:
        """Run what is due, with what that makes due, for a bounded number of calls."""
        for _ in range(1000):
            if not self._soon:
                return
            run = self._soon.popleft().run
            if run is not None:
                run()


class _Wire(Transport):
    """A connection whose other end drops what it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Drop it."""

    def close(self) -> None:
        """Close."""
        self.closed = True

    abort = write_eof = close

    def is_closing(self) -> bool:
        """Whether it is closed."""
        return self.closed

    def pause_reading(self) -> None:
        """All input has arrived."""

    resume_reading = pause_reading

    def can_write_eof(self) -> bool:
        """A connection without TLS can close one side."""
        return True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The address of the client."""
        return ("192.0.2.1", 50000) if name == "peername" else default


class HttpInput(Target):
    """Requests to the HTTP port, with the pages of a server."""

    samples = (
        b"GET /livez HTTP/1.1\r\nHost: node\r\n\r\n",
        b"GET /readyz?verbose=1 HTTP/1.0\r\n\r\n",
        b"GET /stopz?timeout=1.5 HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n",
        b"HEAD /metrics?queues=all&queue=mail.* HTTP/1.1\r\nHost: node\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: node\r\nAccept: */*\r\nCookie: a=b\r\n\r\n",
        b"GET /api/jobs?queue=mail&count=10 HTTP/1.1\r\nHost: node\r\n\r\n",
        b"GET /api/events?queue=mail HTTP/1.1\r\nHost: node\r\nAuthorization: Basic ZGVmYXVsdDpwdw==\r\n\r\n",
        b'POST /api/act HTTP/1.1\r\nHost: node\r\nContent-Length: 30\r\n\r\n{"act":"pause","queue":"mail"}',
        b"POST /livez HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"GET /%00%ff/../livez?a=%zz HTTP/1.1\r\nHost: node\r\nContent-Length: -1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: node\r\n\r\n" * 3,
        *samples.api_requests(),
    )

    def __init__(self, seed: int) -> None:
        self._host = RealHost(seed)
        config = make_config()
        config.http_actions = True
        self._loop = _Loop()
        loop = cast("AbstractEventLoop", self._loop)
        node = Node(config, self._host, NODE_ID, self._host.now_ms)
        shell = Shell(loop, node, Clock(self._host.now_ms))
        node.start(self._host.now_ms)
        figures = ServerFigures(lambda: why_not_ready(node))
        console = Console(partial(Caller, loop, shell), node.state.commands.items())
        api = Api(partial(Caller, loop, shell), node.state.commands.items(), "full")
        routes = (*ROUTES, *metricspage.routes(figures), *console.routes, *api.routes)
        self._port = HttpPort(loop, node, routes, {}, MOST_CONNECTIONS + MORE_CONNECTIONS)

    def take(self, data: bytes) -> None:
        """Send it, then close this side."""
        connection: HttpConnection = self._port.accept()
        transport = _Wire()
        connection.connection_made(transport)
        measure(partial(connection.data_received, data))
        measure(self._loop.turn)
        if not transport.closed:
            measure(connection.eof_received)
            measure(self._loop.turn)
        connection.connection_lost(None)
        measure(self._loop.turn)
        check_log(self._host)
        if self._port.connected:
            raise Violation("the HTTP port keeps a connection that is closed")


class AppendOnlyFile(Target):
    """The bytes of an append-only file."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        written = [file.read_bytes() for file in sorted((VECTORS / "aof").glob("*.aof"))]
        self.samples = [*written, *[samples.append_only_file()] * (len(written) // 2)]

    def take(self, data: bytes) -> None:
        """Read it in pieces: records and damage together are the whole file. Sound records can be converted."""
        reader, check, conversion = EntryReader(ROOMS.record_table), Check(), Conversion()
        end = 0

        def read() -> None:
            nonlocal end
            while (item := reader.next()) is not None:
                if item.offset != end:
                    raise Violation(f"bytes {end} to {item.offset} are neither a record nor damage")
                end = item.end
                check.take(item)
                if isinstance(item, Entry) and fault_of(item) is None and not unknown_format(item):
                    conversion.record(item)

        cut = self._chance.randrange(len(data) + 1)
        for piece in (data[:cut], data[cut:]):
            reader.feed(piece)
            measure(read)
        reader.end()
        measure(read)
        if end != len(data):
            raise Violation(f"bytes {end} to {len(data)} are neither a record nor damage")


class ConfigurationFiles(Target):
    """Configuration files, and the file in which a node keeps its view of the cluster."""

    def __init__(self, _seed: int) -> None:
        files = (*(VECTORS / "config").glob("*.conf"), *(VECTORS / "nodes-conf").glob("*.conf"))
        self.samples = [file.read_bytes() for file in sorted(files)]

    def take(self, data: bytes) -> None:
        """Read it as both: it is valid, or refused with a reason."""
        text = data.decode("utf-8", "surrogateescape")
        measure(partial(self._read, text))

    def _read(self, text: str) -> None:
        try:
            load(text, (), no_include)
        except (ConfigError, FileNotFoundError) as error:
            if not str(error):
                raise Violation("a configuration file is refused without a reason") from error
        try:
            decode(text)
        except ValueError as error:
            if not str(error):
                raise Violation("nodes.conf is refused without a reason") from error


TARGETS: Final[dict[str, Callable[[int], Target]]] = {
    "clients": ClientPort,
    "bus": BusPort,
    "http": HttpInput,
    "aof": AppendOnlyFile,
    "configuration": ConfigurationFiles,
}
"""By the name on the command line."""
