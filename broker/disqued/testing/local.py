"""One node in virtual time, driven as the server drives it, for tests that read as scenarios."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias, cast

from disqued.client import ResponseError, wire
from disqued.config import Config, load
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Link
from disqued.core.host.disk import REPLACE
from disqued.core.output.ready import Driver
from disqued.node import ROOMS, Node, Rooms
from disqued.testing.disk import NEVER_MS
from disqued.testing.host import FakeHost
from disqued.testing.network import Network

Reply: TypeAlias = "bytes | int | str | float | bool | list[Reply] | dict[bytes, Reply] | ResponseError | None"
"""A reply in RESP2 or RESP3; an error reply is a value."""

NODE_ID = b"5ca1ab1e" + b"0" * 32


class LocalClient:
    """A client of a `LocalNode`. Error replies are returned, not raised."""

    def __init__(self, local: LocalNode, session: Session) -> None:
        self.local = local
        self.session = session
        self._decoder = wire.Decoder()
        self._replies: deque[Reply] = deque()
        self.received = b""
        """All bytes ever received."""
        self.closed = False
        self.window: int | None = None
        """How many more bytes it reads before it pauses; None for no limit."""
        self.listener: Callable[[], None] | None = None
        """Called during the turn of the node when replies arrive or the connection is lost."""

    def notify(self) -> None:
        """Call the listener: replies arrived, or the connection is lost."""
        if self.listener is not None:
            self.listener()

    def read(self, size: int) -> None:
        """Read `size` more bytes, after `window` was set."""
        self.window = (self.window or 0) + size
        self.local.node.ready.flush(self.session)
        self.local.flush()

    def receive(self, data: bytes) -> None:
        """Receive bytes from the node."""
        self.received += data
        self._replies += cast("list[Reply]", self._decoder.feed(data))
        self.notify()

    def send(self, *words: bytes | str | int) -> None:
        """Send a command without reading its reply."""
        self.send_bytes(encode(*words))

    def send_bytes(self, data: bytes) -> None:
        """Send any bytes."""
        self.local.on_input(lambda: self._arrive(data))

    def _arrive(self, data: bytes) -> None:
        if not self.closed:
            self.local.node.client_bytes(self.session, data, self.local.now_ms, self.local.host.stopwatch_ns())
            self.local.flush()

    def next_reply(self) -> Reply:
        """The next reply received; AssertionError when there is none."""
        assert self._replies, "no reply was received"
        return self._replies.popleft()

    @property
    def silent(self) -> bool:
        """Whether no complete reply waits to be read."""
        return not self._replies

    def call(self, *words: bytes | str | int) -> Reply:
        """Send a command and return its reply."""
        self.send(*words)
        return self.next_reply()

    def replies(self) -> list[Reply]:
        """All replies received and not read yet."""
        found = list(self._replies)
        self._replies.clear()
        return found

    def add(self, queue: str, body: bytes | str = b"body", *options: bytes | str | int) -> bytes:
        """ADDJOB: the ID of the new job; AssertionError when it is refused."""
        job_id = self.call("ADDJOB", queue, body, 0, *options)
        assert isinstance(job_id, bytes), job_id
        return job_id

    def take(self, *queues: str, count: int = 1) -> list[bytes]:
        """GETJOB without waiting: the IDs of up to `count` jobs."""
        jobs = self.call("GETJOB", "NOHANG", "COUNT", count, "FROM", *queues)
        assert jobs is None or isinstance(jobs, list), jobs
        return [job[1] for job in jobs or []]  # type: ignore[index, misc]

    def show(self, job_id: bytes) -> dict[str, Reply]:
        """SHOW: the fields of a job by name; empty when there is no such job."""
        return _by_name(self.call("SHOW", job_id))

    def stat(self, queue: str) -> dict[str, Reply]:
        """QSTAT: the statistics of a queue by name; empty when there is no such queue."""
        return _by_name(self.call("QSTAT", queue))

    def raw(self, *words: bytes | str | int) -> bytes:
        """Send a command and return the bytes of its reply."""
        before = len(self.received)
        self.send(*words)
        self.replies()
        return self.received[before:]

    def disconnect(self) -> None:
        """Close the connection from this side."""
        if not self.closed:
            self.closed = True
            self.local.on_input(self._leave)

    def _leave(self) -> None:
        self.local.node.disconnected(self.session, self.local.now_ms)
        self.local.flush()


def _by_name(flat: Reply) -> dict[str, Reply]:
    """A flat array of names and values as a dict; empty for a null."""
    assert flat is None or isinstance(flat, list), flat
    return {str(name, "ascii"): value for name, value in zip(flat[::2], flat[1::2], strict=True)} if flat else {}  # type: ignore[arg-type]


def encode(*words: bytes | str | int) -> bytes:
    """A request as a client sends it."""
    return wire.encode(words)


def no_include(path: str) -> str:
    """Refuse includes: there is only one configuration file."""
    raise FileNotFoundError(path)


class LocalNode(Driver):
    """A node in virtual time; without a network it has no peers."""

    def __init__(
        self,
        config: Config | None = None,
        host: FakeHost | None = None,
        *,
        node_id: bytes = NODE_ID,
        ip: bytes = b"127.0.0.1",
        network: Network | None = None,
        rooms: Rooms = ROOMS,
    ) -> None:
        super().__init__()
        self.rooms = rooms
        """What its nodes are made of."""
        self.host = host or FakeHost()
        self.ip = ip
        """Its address in the network."""
        self.network = network
        self.config = config or Config(rooms.directives)
        self.node = Node(self.config, self.host, node_id, self.host.now_ms, rooms)
        self._clients: dict[int, LocalClient] = {}
        self.dialed: list[Link] = []
        """Links that the node wanted to open while there is no network."""
        self.held_turns = 0
        """After how many turns output waited for the disk."""
        self.held_replacements = 0
        """How often a rewrite replaced the append-only file while output waited."""
        self.alive = True
        self.paused = False
        self._inputs: list[Callable[[], None]] = []
        """Input that arrived while paused."""
        self.node.start(self.now_ms)
        self.node.tick(self.now_ms)

    @property
    def now_ms(self) -> int:
        """Virtual time, unix milliseconds."""
        return self.host.now_ms

    def on_input(self, take: Callable[[], None]) -> None:
        """Take input now, or when the node continues."""
        if self.paused:
            self._inputs.append(take)
        elif self.alive:
            take()

    def pause(self) -> None:
        """Suspend the process (SIGSTOP): time passes, input waits, and connections stay open."""
        self.paused = True

    def resume(self) -> None:
        """Continue the process (SIGCONT): it finds its input, and that time has passed."""
        self.paused = False
        inputs, self._inputs = self._inputs, []
        for take in inputs:
            take()

    def crash(self) -> None:
        """Kill the process: it loses its memory and its connections, and keeps what it wrote."""
        self.alive = False
        self.host.disk.crash()
        self._lose_clients()

    def lose_power(self) -> None:
        """Cut the power of the machine: of what was written, only synced data certainly survives."""
        self.crash()
        self.host.disk.lose_power()

    def shut_down(self, *options: str) -> Reply:
        """SHUTDOWN: None if the node ended, otherwise the error reply."""
        client = self.client()
        client.send("SHUTDOWN", *options)
        while self.node.state.ending:  # the disk does at once what a controlled shutdown waits for
            self.finish()
            self.node.tick(self.now_ms)
            self.flush()
        if self.host.ended is None:
            return client.next_reply()
        self.crash()
        return None

    def restart(self, *, keep_disk: bool = True) -> None:
        """Start the process again with its configuration file, if it has one. Kills it first if it runs."""
        if self.alive:
            self.crash()
        self._prepare(keep_disk=keep_disk)
        self.node = Node(self.config, self.host, self.node.state.view.node_id, self.now_ms, self.rooms)
        self.node.start(self.now_ms)
        self.node.tick(self.now_ms)
        self.flush()

    def _prepare(self, *, keep_disk: bool) -> None:
        """Prepare the host for a new process."""
        self.alive = True
        if not keep_disk:
            self.host.disk = self.host.new_disk()
        self.host.start_process()
        if self.host.config_text is not None:
            self.config = load(self.host.config_text, (), no_include)

    def _lose_clients(self) -> None:
        """Drop all connections and unread input of the process."""
        self.paused = False
        self._inputs.clear()
        clients, self._clients = self._clients, {}
        for client in clients.values():
            client.closed = True
            client.notify()

    def client(self, address: bytes = b"", *, unix_socket: bool = False) -> LocalClient:
        """A new connection, from this machine unless there is an address."""
        session = Session(address or b"127.0.0.1:%d" % (40000 + len(self._clients)), self.now_ms)
        session.unix_socket = unix_socket
        client = LocalClient(self, session)
        self.admit(client)
        return client

    def admit(self, client: LocalClient) -> None:
        """Open the connection of a client whose session has further attributes."""
        self._clients[id(client.session)] = client
        self.node.connected(client.session)
        self.flush()

    def flush(self) -> None:
        """End a turn: carry the node's output to the network and to its clients, as the server does."""
        node = self.node
        more = node.carry(self)
        self.held_turns += not node.ready.barrier.empty
        while more or (self.network is not None and self.network.carried(self)):
            more = node.carry(self)

    def write_session(self, session: Session) -> None:
        """Pass the replies to the client, as far as its window allows."""
        session.flushing = False
        client = self._clients[id(session)]
        data = b"".join(session.out)
        session.out.clear()
        if client.window is not None and client.window < len(data):
            session.out.append(data[client.window :])
            data = data[: client.window]
            self.node.ready.slow[session.number] = session
        if client.window is not None:
            client.window -= len(data)
        client.receive(data)
        if session.closing and session.held is None and not session.out:
            self._close(client)

    def abort_session(self, session: Session) -> None:
        """Close a client's connection."""
        self._close(self._clients[id(session)])

    def dial(self, link: Link) -> None:
        """Connect a link through the network; without one it is recorded in `dialed`."""
        if self.network is not None:
            self.network.dial(self, link)
        else:
            self.dialed.append(link)

    def look_up(self, name: bytes) -> None:
        """Resolve a host name through the network."""
        if self.network is not None:
            self.network.look_up(self, name)

    def _close(self, client: LocalClient) -> None:
        if not client.closed:
            client.closed = True
            self.node.disconnected(client.session, self.now_ms)
            client.notify()

    def run(self, *, seconds: float = 0, milliseconds: int = 0) -> None:
        """Let virtual time pass."""
        end_ms = self.now_ms + int(seconds * 1000) + milliseconds
        self.step(end_ms)
        while self.now_ms < end_ms:
            self.step(end_ms)

    def step(self, end_ms: int) -> None:
        """Advance to the next deadline of the node, at most to `end_ms`, and wake it."""
        deadline_ms = max(min(self.node.next_deadline_ms(), self.host.disk.next_ms), self.now_ms + 1)
        self.host.now_ms = min(deadline_ms, end_ms)
        self.deliver_disk_work()
        self.node.tick(self.now_ms)
        self.flush()

    @property
    def barrier_empty(self) -> bool:
        """Whether no reply waits for the disk."""
        return self.node.ready.barrier.empty

    def deliver_disk_work(self) -> None:
        """Tell the node which disk work has finished by now."""
        if self.host.disk.next_ms <= self.now_ms:
            for work in self.host.disk.take_finished():
                self.held_replacements += work.verb == REPLACE and not work.error and not self.node.ready.barrier.empty
                self.node.disk_done(work, self.now_ms)
            self.flush()

    def finish(self, works: int = NEVER_MS) -> None:
        """Finish the oldest pending disk work, and tell the node."""
        self.host.disk.finish(works)
        self.deliver_disk_work()
