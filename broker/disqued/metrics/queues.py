"""Which queues have series: the longest ones, or those that are asked for. All are looked at, a few at a time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl

from disqued.config.glob import glob_match
from disqued.config.kinds import BadValueError, Count
from disqued.core.telemetry.metric import gauge
from disqued.httproutes import LONGEST_NAME, LONGEST_PATTERN
from disqued.metrics.labels import label_of

if TYPE_CHECKING:
    from disqued.core.queues.queue import Queue
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.metric import Metric

AT_A_TIME: Final = 200
"""Queues that are looked at without a break."""
_NONE: Final = b"none"
_USAGE: Final = "queues is all, none or a number of queues, queue a glob pattern"


class Rank(NamedTuple):
    """What queues are chosen by: length, clients that wait, and then age."""

    length: int
    waiting: int
    minus_number: int


@dataclass(frozen=True)
class Wanted:
    """Which queues somebody wants to see."""

    most: int
    pattern: bytes | None = None


def parse(query: str, most: int) -> Wanted | str:
    """What stands behind the question mark, or what is wrong with it; `most` queues where it does not say how many."""
    pattern: bytes | None = None
    for name, value in parse_qsl(query, keep_blank_values=True, encoding="latin-1"):
        word = value.encode("latin-1")
        if name == "queue" and len(word) <= LONGEST_PATTERN:
            pattern = word
        elif name == "queues":
            try:
                most = 0 if word == _NONE else Count().parse(word)
            except BadValueError:
                return f"{_USAGE}; not {value[:LONGEST_PATTERN]!r}"
        elif name == "queue":
            return f"A pattern has {LONGEST_PATTERN} bytes at most"
        else:
            return f"There is no such parameter; {_USAGE}"
    return Wanted(most, pattern)


class Survey:
    """One look at all queues of a node."""

    def __init__(self, state: NodeState, wanted: Wanted) -> None:
        self._state = state
        self._wanted = wanted
        self.chosen: list[tuple[Rank, str, Queue]] = []
        """The queues that have series, with their labels; a heap, so that the one to be given up first is the first."""
        self.oldest_ms = 0
        """When the oldest job that waits in any queue was created; 0 when none waits."""
        self.now_ms = 0
        """When the last queue was looked at."""

    @property
    def left_out(self) -> int:
        """How many queues have none."""
        return max(len(self._state.lifecycle.queues) - len(self.chosen), 0)

    @property
    def oldest_age_s(self) -> float:
        """How old the oldest job is that waits in any queue."""
        return max(self.now_ms - self.oldest_ms, 0) / 1000 if self.oldest_ms else 0.0

    def steps(self) -> Iterator[None]:
        """Look at all, with a break after each few of them."""
        queues = self._state.lifecycle.queues
        cursor, found = queues.scan(0, AT_A_TIME)
        while True:
            yield from self._look_at(found)
            yield
            if cursor == 0:
                break
            cursor, found = queues.scan(cursor, AT_A_TIME)
        self.now_ms = int(self._state.now_ms)

    def _look_at(self, queues: list[Queue]) -> Iterator[None]:
        pattern = self._wanted.pattern
        for queue in queues:
            oldest = queue.oldest()
            if oldest is not None:
                created_ms = int(oldest.ctime) // 1_000_000
                self.oldest_ms = min(created_ms, self.oldest_ms or created_ms)
            if len(queue.name) > LONGEST_NAME:
                continue
            if pattern is not None:
                yield  # some patterns take long
                if not glob_match(pattern, queue.name):
                    continue
            self._choose(queue)

    def _choose(self, queue: Queue) -> None:
        """Take a queue if there is room, or if it is longer than one that was chosen."""
        most = self._wanted.most
        rank = Rank(int(queue.length), int(queue.waiting), -int(queue.number))
        if len(self.chosen) < most:
            heapq.heappush(self.chosen, (rank, label_of(queue.name), queue))
        elif most > 0 and rank > self.chosen[0][0]:
            heapq.heapreplace(self.chosen, (rank, label_of(queue.name), queue))


METRICS: Final[tuple[Metric[Survey], ...]] = (
    gauge(
        "disque_queues_left_out",
        "Queues without series: shorter than those that have them (`metrics-queues`), not asked for, or with names of "
        f"more than {LONGEST_NAME} bytes.",
        lambda survey: survey.left_out,
    ),
    gauge(
        "disque_oldest_waiting_job_age_seconds",
        "How long ago the oldest job was created that waits in any queue of this node; 0 when none waits.",
        lambda survey: survey.oldest_age_s,
    ),
)
