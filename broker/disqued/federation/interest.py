"""What a node and its queues keep about jobs that move: import requests, and the requests of other nodes.

Plain records. `importing` and `exporting` act on them; their alarms are derived from these records.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.jobs.template import BusJobs
from disqued.core.queues.queue import Queue
from disqued.core.queues.watcher import QueueWatcher
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.core.timers.alarm import Alarm

NAME: Final = "federation"
SOURCE_MS: Final = 5000
"""How long a node that sent jobs of a queue is asked directly for more, and how long an import rate is valid."""
IDLE_TIMEOUT_MS: Final = 1000
"""How long a queue counts as wanted after the last client that waited for it."""
_WINDOW_MS: Final = 1000
_LEAST_SPAN_MS: Final = 50


@mypyc_attr(acyclic=True)
class Source:
    """A node that sent jobs of a queue."""

    def __init__(self, now_ms: i64) -> None:
        self.last_ms: i64 = now_ms
        """When it last sent jobs."""
        self.expected: i64 = 0
        """Jobs that it was asked for after that and has not sent."""


@mypyc_attr(acyclic=True)
class Imports(Alarm):
    """The interest of this node in one queue. Made when a client finds the queue empty or another node sends a job."""

    def __init__(self, name: bytes, now_ms: i64) -> None:
        super().__init__()
        self.name = name
        self.asked_ms: i64 = 0
        """When other nodes were last asked; 0 when none of them remembers the request."""
        self.enough_ms: i64 = 0
        """When other nodes were told to forget the request (ENOUGH)."""
        self.idle_timeout_ms: i64 = IDLE_TIMEOUT_MS
        """How long no client must have wanted jobs before ENOUGH is sent."""
        self.broadcast_ms: i64 = 0
        self.broadcasts: i64 = 0
        """Broadcasts since the last new source."""
        self.adhoc_ms: i64 = 0
        self.adhocs: i64 = 0
        """Direct requests since the last job."""
        self.next_ms: i64 = 0
        """When to check again whether other nodes must be asked."""
        self.used_ms: i64 = now_ms
        """When a client last found the queue empty, took its last job, or waited for it."""
        self.imported_ms: i64 = 0
        self.sources: dict[bytes, Source] = {}
        self._window_ms: i64 = now_ms
        self._window_jobs: i64 = 0
        self._previous_ms: i64 = now_ms
        self._previous_jobs: i64 = 0

    def count_imports(self, now_ms: i64, jobs: i64) -> None:
        """Count jobs that another node sent."""
        if now_ms - self._window_ms > _WINDOW_MS:
            self._previous_ms = self._window_ms
            self._previous_jobs = self._window_jobs
            self._window_ms = now_ms
            self._window_jobs = 0
        self._window_jobs += jobs
        self.imported_ms = now_ms

    def rate(self, now_ms: i64) -> i64:
        """Jobs per second that other nodes send, rounded up (Disque `getQueueImportRate`)."""
        if now_ms - self._window_ms > SOURCE_MS:
            return 0
        span_ms: i64 = max(now_ms - self._previous_ms, _LEAST_SPAN_MS)
        jobs: i64 = self._previous_jobs + self._window_jobs
        return (jobs * 1000 + span_ms - 1) // span_ms

    def drop_stale_sources(self, now_ms: i64) -> None:
        """Remove the nodes that sent nothing for SOURCE_MS."""
        stale = [node_id for node_id, source in self.sources.items() if now_ms - source.last_ms > SOURCE_MS]
        for node_id in stale:
            del self.sources[node_id]


@mypyc_attr(acyclic=True)
class Request:
    """How many jobs another node asked for and did not get yet."""

    def __init__(self, count: i64, now_ms: i64) -> None:
        self.count: i64 = count
        self.asked_ms: i64 = now_ms


@mypyc_attr(acyclic=True)
class Requests(Alarm):
    """The requests of other nodes for jobs of one queue, by node ID, the next to be served first."""

    def __init__(self, name: bytes) -> None:
        super().__init__()
        self.name = name
        self.by_node: dict[bytes, Request] = {}


@mypyc_attr(acyclic=True)
class Interest(QueueWatcher):
    """What is kept about one queue."""

    def __init__(self) -> None:
        super().__init__()
        self.imports: Imports | None = None
        """What this node asks other nodes for; None if it never did."""
        self.requests: Requests | None = None
        """What other nodes ask this node for; None while they ask for nothing."""

    def import_rate(self, now_ms: i64) -> i64:
        """Jobs per second that come from other nodes."""
        return 0 if self.imports is None else self.imports.rate(now_ms)

    def sources(self, now_ms: i64) -> list[bytes]:
        """The IDs of the nodes that sent jobs in the last five seconds."""
        if self.imports is None:
            return []
        return [node_id for node_id, source in self.imports.sources.items() if now_ms - source.last_ms <= SOURCE_MS]


def interest_of(queue: Queue) -> Interest:
    """What is kept about a queue; created if it does not exist."""
    watcher = queue.watcher
    if watcher is None:
        interest = Interest()
        queue.watcher = interest
        return interest
    assert isinstance(watcher, Interest)  # the slot belongs to this room
    return watcher


def imports_of(queue: Queue) -> Imports | None:
    """The import requests for a queue."""
    watcher = queue.watcher
    return watcher.imports if isinstance(watcher, Interest) else None


def requests_of(queue: Queue) -> Requests | None:
    """The requests of other nodes for a queue."""
    watcher = queue.watcher
    return watcher.requests if isinstance(watcher, Interest) else None


class PeerSync:
    """How far another node was told which queues this node imports; it is told several times."""

    def __init__(self, now_ms: i64) -> None:
        self.began_ms: i64 = now_ms
        self.round: i64 = 0
        self.cursor: i64 = 0
        """Where in the queues to continue."""


class InterestRoom(Room):
    """What the room keeps about the node as a whole."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.imported_queues: i64 = 0
        """Queues for which other nodes were asked and may remember it."""
        self.requested_queues: i64 = 0
        """Queues that other nodes asked for."""
        self.syncs: dict[bytes, PeerSync] = {}
        """Nodes that connected (again) and are being told which queues this node imports."""
        self.bus_jobs = BusJobs()
        """Serialises the jobs that leave."""
        self.withdrawn: bool = False
        """The node is shutting down and asks for nothing any more."""


def federation_of(state: NodeState) -> InterestRoom:
    """The federation room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, InterestRoom)
    return room
