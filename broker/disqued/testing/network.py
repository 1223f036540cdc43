"""The network between nodes in virtual time: connections deliver bytes in order, after a latency.

Each direction between two nodes (`Path`) can be made slow, narrow or cut, and can lose, duplicate or reorder whole
frames, as happens to frames on different connections. Randomness comes from a seed, so that every run is repeatable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from disqued.bus import kinds
from disqued.bus.errors import BusError
from disqued.bus.frame import LISTED_BYTES, Frame, FrameReader
from disqued.core.cluster.peer import Carrier, Link
from disqued.core.jobs.codec import Unpacked, unpack
from disqued.core.runtime.counters import LINKS_OVERFLOWED

if TYPE_CHECKING:
    from disqued.node import Node

LATENCY_MS: Final = 1


class EndlessError(Exception):
    """More events were processed than there can be: nodes answer each other's messages with new ones."""


class Endpoint(Protocol):
    """A node as the network uses it: a `LocalNode`."""

    node: Node
    ip: bytes
    alive: bool

    @property
    def now_ms(self) -> int:
        """The time of the node."""

    def on_input(self, take: Callable[[], None]) -> None:
        """Take input now, or when the node continues."""

    def flush(self) -> None:
        """End a turn of the node."""


@dataclass(eq=False)
class Sent:
    """A frame in transit. `receiver` is None while no node is known to listen there."""

    at_ms: int
    sender: Endpoint
    receiver: Endpoint | None
    kind: str
    frame: Frame

    @property
    def job_ids(self) -> list[bytes]:
        """The jobs that a message about one job, or a list of jobs, is about."""
        frame = self.frame
        if frame.payload_kind == kinds.OF_JOB_ID:
            return [frame.job_id]
        if frame.payload_kind == kinds.OF_JOB_IDS:
            return [frame.listed(at) for at in range(frame.jobs_at, frame.end, LISTED_BYTES)]
        return []

    @property
    def jobs(self) -> list[Unpacked]:
        """The jobs in a REPLJOB or YOURJOBS."""
        found: list[Unpacked] = []
        at = self.frame.jobs_at
        while self.frame.payload_kind == kinds.OF_JOBS and at < self.frame.end:
            found.append(unpack(self.frame.data, at, self.frame.end))
            at = found[-1].end
        return found


@dataclass(eq=False)
class Path:
    """The state of one direction between two nodes."""

    delay_ms: int = LATENCY_MS
    jitter_ms: int = 0
    """Added to the delay, evenly distributed."""
    cut: bool = False
    """Bytes wait until the path is repaired, since TCP retransmits them."""
    bytes_per_ms: int = 0
    """The bandwidth; 0 for unlimited."""
    loss: float = 0.0
    duplication: float = 0.0
    displacement: float = 0.0
    """Probabilities that a frame is lost, duplicated, or delivered after later frames."""

    free_ms: float = 0.0
    """When a narrow path has sent everything."""
    waiting: list[Callable[[], None]] = field(default_factory=list)
    """Arrivals that wait for the end of the cut."""

    def reset(self) -> None:
        """Remove delays and losses; a cut stays. What waits for a narrow path is delivered when it would have been."""
        self.delay_ms, self.jitter_ms, self.bytes_per_ms, self.free_ms = LATENCY_MS, 0, 0, 0.0
        self.loss = self.duplication = self.displacement = 0.0

    @property
    def disturbed(self) -> bool:
        """Whether frames must be treated one by one."""
        return self.loss > 0 or self.duplication > 0 or self.displacement > 0


class End(Carrier):
    """One end of a connection. What it sends arrives in order, and its close last."""

    def __init__(self, network: Network, local: Endpoint, remote: Endpoint | None, link: Link) -> None:
        self.network = network
        self.local = local
        self.remote = remote
        self.link = link
        if network.limit_bytes > 0:
            link.congested_bytes = network.congested_bytes
        self.other: End | None = None
        self.open = True
        self.vanished = False
        """The machine lost power: peers learn of it only when it is back and they send something."""
        self._sending: deque[Callable[[], None]] = deque()
        self._latest_ms = 0
        self._unsent_bytes = 0
        self._reader = FrameReader(table=local.node.rooms.message_table)

    def write(self, data: bytes) -> None:
        """Deliver to the other end after the latency."""
        if not self.open:
            return
        network = self.network
        if network.tap is not None:
            network.tap(network.now_ms, data)
        path = network.path(self.local, self.remote)
        if not (network.capturing or network.watchers or network.filters or path.disturbed):
            self._send(data, path)
            return
        try:
            frames = self._frames(data)
        except BusError:
            self._send(data, path)
            return
        for frame, raw in frames:
            if network.watch(self, frame):
                continue
            for extra_ms in network.delays_ms(path, frame):
                if extra_ms > 0:
                    network.later(extra_ms, lambda raw=raw: self._send(raw, path))  # type: ignore[misc]
                else:
                    self._send(raw, path)

    def _frames(self, data: bytes) -> list[tuple[Frame, bytes]]:
        """Split the data into frames; nodes write only whole frames."""
        self._reader.feed(data)
        found: list[tuple[Frame, bytes]] = []
        while (frame := self._reader.next()) is not None:
            found.append((frame, frame.data[frame.start : frame.end]))
        return found

    def _send(self, data: bytes, path: Path) -> None:
        if not self.open:
            return
        if path.bytes_per_ms > 0:
            now_ms = self.network.now_ms
            path.free_ms = max(path.free_ms, now_ms) + len(data) / path.bytes_per_ms
            self._unsent_bytes += len(data)
            self.network.later(int(path.free_ms - now_ms), lambda: self._sent(len(data)))
            if 0 < self.network.limit_bytes < self._unsent_bytes:
                self._overflow()
                return
        if path.bytes_per_ms > 0 or self.network.limit_bytes > 0:
            self.note_congestion()
        self.depart(lambda: self._arrive(data))

    def _sent(self, size: int) -> None:
        """A narrow path has sent the data."""
        self._unsent_bytes -= size
        self.note_congestion()

    def note_congestion(self) -> None:
        """Mark the link as congested if too much data waits."""
        congested_bytes = self.network.congested_bytes
        if self._unsent_bytes > congested_bytes:
            self.link.congested = True
        elif self._unsent_bytes <= congested_bytes // 2:
            self.link.congested = False

    def _overflow(self) -> None:
        """Drop the link: more data waits than the limit allows."""
        self.local.node.state.counters.add(LINKS_OVERFLOWED)
        self.close()
        self._sending.clear()
        self.network.later(0, lambda: self.local.on_input(self._closed))
        if self.other is not None:
            self.other.break_off()

    def depart(self, action: Callable[[], None]) -> None:
        """Run an action at the other end, after everything that was sent before."""
        network = self.network
        path = network.path(self.local, self.remote)
        delay_ms = path.delay_ms + (network.draw(path.jitter_ms) if path.jitter_ms else 0)
        arrival_ms = max(network.now_ms, int(path.free_ms)) + delay_ms
        self._latest_ms = max(self._latest_ms, arrival_ms)
        self._sending.append(action)
        network.later(self._latest_ms - network.now_ms, self._next)

    def _next(self) -> None:
        """The oldest action arrives, unless the path is cut."""
        path = self.network.path(self.local, self.remote)
        if path.cut:
            path.waiting.append(self._next)
        elif self._sending:
            self._sending.popleft()()

    def _arrive(self, data: bytes) -> None:
        other = self.other
        if other is not None and other.open:
            other.local.on_input(lambda: other.receive(data))
        elif other is not None and other.vanished and other.local.alive:
            self.break_off()

    def receive(self, data: bytes) -> None:
        """Pass data to the node."""
        if self.open:
            self.local.node.link_bytes(self.link, data, self.local.now_ms)
            self.local.flush()

    def unsent_bytes(self) -> int:
        """Bytes that a narrow path has not sent yet."""
        return self._unsent_bytes

    def close(self) -> None:
        """Close this end. The close arrives after everything that was sent."""
        if self.open:
            self.open = False
            self.network.ends.pop(self, None)
            self.depart(self._close_other)

    def _close_other(self) -> None:
        other = self.other
        if other is not None:
            other.local.on_input(other.break_off)

    def break_off(self) -> None:
        """Break the connection from outside; data in transit is lost."""
        if self.open:
            self.open = False
            self._sending.clear()
            self.network.ends.pop(self, None)
            self.local.on_input(self._closed)

    def _closed(self) -> None:
        self.local.node.link_closed(self.link, self.local.now_ms)
        self.local.flush()

    def vanish(self) -> None:
        """The node disappears, with data in transit."""
        self.open = False
        self.vanished = True
        self._sending.clear()
        self.network.ends.pop(self, None)


class Network:
    """Connects nodes; `now_ms` is the virtual time of the network itself."""

    def __init__(self, now_ms: int, chance: Random | None = None) -> None:
        self.now_ms = now_ms
        self.chance = chance or Random(0)  # noqa: S311 - repeatable chance is the point
        self.names: dict[bytes, list[bytes]] = {}
        """The addresses of host names."""
        self.congested_bytes = 64 * 1024
        """A link is congested while more than this waits, until half of it is left."""
        self.limit_bytes = 0
        """A link is dropped when more than this waits; 0 for never, and then links never report congestion."""
        self.tap: Callable[[int, bytes], None] | None = None
        """Called with all data that is written, and the time."""
        self.capturing = True
        self.sent: list[Sent] = []
        """Frames in the order in which they were written, while `capturing`."""
        self.watchers: list[Callable[[Sent], None]] = []
        """Each is called with every frame."""
        self.filters: list[Callable[[Sent], bool]] = []
        """Each returns True to lose a frame."""
        self.ends: dict[End, None] = {}
        """Open ends, oldest first."""
        self.events = 0
        """How many events were processed."""
        self.most_events = 0
        """How many there can be; 0 for any number."""
        self._listening: dict[tuple[bytes, int], Endpoint] = {}
        self._paths: dict[tuple[Endpoint, Endpoint], Path] = {}
        self._plain = Path()
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()

    # --- time ---------------------------------------------------------------------------------------------------------

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Schedule an action."""
        heappush(self._events, (self.now_ms + delay_ms, next(self._order), action))

    def next_ms(self) -> int | None:
        """The time of the next event."""
        return self._events[0][0] if self._events else None

    def deliver(self) -> None:
        """Run all actions that are due.

        Raises:
            EndlessError: there were more than `most_events`.
        """
        while self._events and self._events[0][0] <= self.now_ms:
            self.events += 1
            if 0 < self.most_events < self.events:
                raise EndlessError(f"messages multiply: more than {self.most_events} events")
            heappop(self._events)[2]()

    def draw(self, most: int) -> int:
        """A random integer from 0 to `most`."""
        return int(self.chance.random() * (most + 1))

    # --- places and paths ---------------------------------------------------------------------------------------------

    def listen(self, local: Endpoint, bus_port: int) -> None:
        """Make a node reachable at its address."""
        self._listening[local.ip, bus_port] = local

    def unlisten(self, local: Endpoint, bus_port: int) -> None:
        """Make a node unreachable at its address."""
        if self._listening.get((local.ip, bus_port)) is local:
            del self._listening[local.ip, bus_port]

    def path(self, sender: Endpoint, receiver: Endpoint | None) -> Path:
        """The path from one node to another, which the caller may change."""
        if receiver is None:
            return self._plain
        path = self._paths.get((sender, receiver))
        if path is None:
            path = self._paths[sender, receiver] = Path()
        return path

    def paths(self) -> list[Path]:
        """All paths that were used or changed so far."""
        return list(self._paths.values())

    def cut(self, sender: Endpoint, receiver: Endpoint) -> None:
        """Block one direction. Data waits, and connections stay open."""
        self.path(sender, receiver).cut = True

    def repair(self, sender: Endpoint, receiver: Endpoint) -> None:
        """Unblock a direction; data that waited arrives first."""
        path = self.path(sender, receiver)
        if path.cut:
            path.cut = False
            waiting, path.waiting = path.waiting, []
            for arrival in waiting:
                self.later(path.delay_ms, arrival)

    def reset(self, one: Endpoint, other: Endpoint) -> None:
        """Break all connections between two nodes; data in transit is lost."""
        for end in list(self.ends):
            if (end.local is one and end.remote is other) or (end.local is other and end.remote is one):
                end.break_off()

    def ends_of(self, local: Endpoint) -> list[End]:
        """The open ends at a node."""
        return [end for end in self.ends if end.local is local]

    # --- frames -------------------------------------------------------------------------------------------------------

    def watch(self, end: End, frame: Frame) -> bool:
        """Record a frame that is sent; True if a filter loses it."""
        kind = end.local.node.rooms.message_table.names.get(int(frame.kind), str(frame.kind))
        sent = Sent(self.now_ms, end.local, end.remote, kind, frame)
        if self.capturing:
            self.sent.append(sent)
        for watch in self.watchers:
            watch(sent)
        return any(lose(sent) for lose in self.filters)

    def delays_ms(self, path: Path, frame: Frame) -> list[int]:
        """After how many milliseconds a frame is written, one entry for each time it arrives.

        Frames that transfer jobs are not duplicated: no connection does that, and the receiver could not tell.
        """
        if not path.disturbed:
            return [0]
        chance = self.chance
        if chance.random() < path.loss:
            return []
        times = [0]
        if chance.random() < path.displacement:
            times = [1 + self.draw(200)]
        if frame.kind != kinds.YOURJOBS and chance.random() < path.duplication:
            times.append(1 + self.draw(1000))
        return times

    # --- requests of nodes --------------------------------------------------------------------------------------------

    def carried(self, _local: Endpoint) -> bool:
        """Called when the output of a turn was carried; True if the node has more output now."""
        return False

    def dial(self, local: Endpoint, link: Link) -> None:
        """Open a connection to the peer of a link. What is written meanwhile arrives once it is open."""
        peer = link.peer
        assert peer is not None
        target = peer.target
        place = ((self.names.get(target) or [target])[0], int(peer.bus_port))
        end = End(self, local, self._listening.get(place), link)
        self.ends[end] = None
        link.carrier = end
        end.depart(lambda: self._accept(end, place))

    def _accept(self, end: End, place: tuple[bytes, int]) -> None:
        """The connection request arrives: it is accepted or refused."""
        target = self._listening.get(place)
        if not end.open:
            return
        if target is None:
            end.break_off()
            return
        local = end.local
        accepted = Link(None, target.now_ms, remote_ip=local.ip, local_ip=target.ip)
        end.link.local_ip = local.ip
        end.link.remote_ip = target.ip
        end.remote = target
        far = End(self, target, local, accepted)
        self.ends[far] = None
        accepted.carrier = far
        end.other = far
        far.other = end

    def look_up(self, local: Endpoint, name: bytes) -> None:
        """Resolve a name, after the latency."""
        addresses = self.names.get(name, [])
        self.later(LATENCY_MS, lambda: local.on_input(lambda: self._found(local, name, addresses)))

    def _found(self, local: Endpoint, name: bytes, addresses: list[bytes]) -> None:
        local.node.found(name, addresses, local.now_ms)
        local.flush()
