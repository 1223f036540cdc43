"""What is wanted of a queue and is not there: what this node asks others for, and what others asked this node for.

Plain records that hang on the queue; the federation room fills them and acts on them (its alarms are made from these),
the introspection room shows them.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.timers.alarm import Alarm

SOURCE_MS: Final = 5000
"""A node that sent jobs of a queue is asked directly for more for that long; so long does an import rate count."""
LINGER_MS: Final = 1000
"""A queue counts as wanted for that long after the last client that waited for it."""
_WINDOW_MS: Final = 1000
_LEAST_SPAN_MS: Final = 50


@mypyc_attr(acyclic=True)
class Source:
    """A node that sent jobs of a queue."""

    def __init__(self, now_ms: i64) -> None:
        self.last_ms: i64 = now_ms
        """When it last did."""
        self.expected: i64 = 0
        """Jobs that it was asked for since and has not sent."""


@mypyc_attr(acyclic=True)
class Needs(Alarm):
    """What this node wants of one queue from others. It exists once a client found the queue empty, or a job came."""

    def __init__(self, name: bytes, now_ms: i64) -> None:
        super().__init__()
        self.name = name
        self.asked_ms: i64 = 0
        """When other nodes were last asked, 0 when none of them remembers it."""
        self.enough_ms: i64 = 0
        """When they were told to forget it."""
        self.patience_ms: i64 = LINGER_MS
        """How long nobody needs to have wanted jobs until they are told."""
        self.broadcast_ms: i64 = 0
        self.broadcasts: i64 = 0
        """Without a new source since."""
        self.adhoc_ms: i64 = 0
        self.adhocs: i64 = 0
        """Without a job since."""
        self.next_ms: i64 = 0
        """When it may be time to ask again."""
        self.used_ms: i64 = now_ms
        """When a client last found the queue empty, emptied it, or waited for it."""
        self.imported_ms: i64 = 0
        self.sources: dict[bytes, Source] = {}
        self._window_ms: i64 = now_ms
        self._window_jobs: i64 = 0
        self._previous_ms: i64 = now_ms
        self._previous_jobs: i64 = 0

    def count_import(self, now_ms: i64) -> None:
        """A job came from another node."""
        if now_ms - self._window_ms > _WINDOW_MS:
            self._previous_ms = self._window_ms
            self._previous_jobs = self._window_jobs
            self._window_ms = now_ms
            self._window_jobs = 0
        self._window_jobs += 1
        self.imported_ms = now_ms

    def rate(self, now_ms: i64) -> i64:
        """Jobs per second that come from other nodes, rounded up (Disque `getQueueImportRate`)."""
        if now_ms - self._window_ms > SOURCE_MS:
            return 0
        span_ms: i64 = max(now_ms - self._previous_ms, _LEAST_SPAN_MS)
        jobs: i64 = self._previous_jobs + self._window_jobs
        return (jobs * 1000 + span_ms - 1) // span_ms

    def drop_stale_sources(self, now_ms: i64) -> None:
        """Forget the nodes that sent nothing for long."""
        stale = [node_id for node_id, source in self.sources.items() if now_ms - source.last_ms > SOURCE_MS]
        for node_id in stale:
            del self.sources[node_id]


@mypyc_attr(acyclic=True)
class Ask:
    """How many jobs another node asked for and did not get yet."""

    def __init__(self, count: i64, now_ms: i64) -> None:
        self.count: i64 = count
        self.asked_ms: i64 = now_ms


@mypyc_attr(acyclic=True)
class Asks(Alarm):
    """Who asked for jobs of one queue, by node ID, the next to be served first."""

    def __init__(self, name: bytes) -> None:
        super().__init__()
        self.name = name
        self.by_node: dict[bytes, Ask] = {}


class Greeting:
    """How far another node was told what is wanted here, which is done several times."""

    def __init__(self, now_ms: i64) -> None:
        self.began_ms: i64 = now_ms
        self.round: i64 = 0
        self.cursor: i64 = 0
        """Where in the queues to go on."""


class Demand:
    """What the federation room keeps of the node as a whole."""

    def __init__(self) -> None:
        self.needs: i64 = 0
        """Queues for which others were asked and may remember it."""
        self.asks: i64 = 0
        """Queues that others asked for."""
        self.greetings: dict[bytes, Greeting] = {}
        """Nodes that came (back) and are to be told what is wanted here."""
        self.withdrawn: bool = False
        """This node is about to end: it wants nothing any more."""
