"""Interest in the jobs of a queue: what this node asks other nodes for, and what other nodes asked this node for.

These are plain records of a queue. The federation room fills them and acts on them (its alarms are subclasses of them),
and the introspection room shows them.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.timers.alarm import Alarm

SOURCE_MS: Final = 5000
"""How long a node that sent jobs of a queue is asked directly for more, and how long an import rate is valid."""
LINGER_MS: Final = 1000
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
class Needs(Alarm):
    """The interest of this node in one queue. Made when a client finds the queue empty or another node sends a job."""

    def __init__(self, name: bytes, now_ms: i64) -> None:
        super().__init__()
        self.name = name
        self.asked_ms: i64 = 0
        """When other nodes were last asked; 0 when none of them remembers the request."""
        self.enough_ms: i64 = 0
        """When other nodes were told to forget the request (ENOUGH)."""
        self.patience_ms: i64 = LINGER_MS
        """How long no client must have wanted jobs before other nodes are told so."""
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

    def count_import(self, now_ms: i64) -> None:
        """Count a job that another node sent."""
        if now_ms - self._window_ms > _WINDOW_MS:
            self._previous_ms = self._window_ms
            self._previous_jobs = self._window_jobs
            self._window_ms = now_ms
            self._window_jobs = 0
        self._window_jobs += 1
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
class Ask:
    """The number of jobs that another node asked for and has not received."""

    def __init__(self, count: i64, now_ms: i64) -> None:
        self.count: i64 = count
        self.asked_ms: i64 = now_ms


@mypyc_attr(acyclic=True)
class Asks(Alarm):
    """The nodes that asked for jobs of one queue, by ID; the next one to serve comes first."""

    def __init__(self, name: bytes) -> None:
        super().__init__()
        self.name = name
        self.by_node: dict[bytes, Ask] = {}


class Greeting:
    """How far another node was told which queues this node is interested in; it is told several times."""

    def __init__(self, now_ms: i64) -> None:
        self.began_ms: i64 = now_ms
        self.round: i64 = 0
        self.cursor: i64 = 0
        """The scan cursor of the queues at which the next part begins."""


class Demand:
    """State of the federation room for the whole node."""

    def __init__(self) -> None:
        self.needs: i64 = 0
        """Queues for which other nodes were asked and may remember it."""
        self.asks: i64 = 0
        """Queues that other nodes asked for."""
        self.greetings: dict[bytes, Greeting] = {}
        """Nodes that became reachable and must be told which queues this node is interested in."""
        self.withdrawn: bool = False
        """This node is about to shut down and asks for no more jobs."""
