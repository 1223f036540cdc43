"""Selects the queues that have series: the longest ones, and those that are asked for. Scans all queues in steps.

An ordered queue is among the queues of the node that leads it. A queue of jobs with the same name is left out there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl

from disqued.config.glob import glob_match
from disqued.config.kinds import BadValueError, Count
from disqued.core.queues.queue import Queue
from disqued.core.telemetry.metric import gauge
from disqued.httproutes import MAX_NAME_BYTES, MAX_PATTERN_BYTES
from disqued.ordered.figures import GroupSums, LedQueue, led_queue
from disqued.ordered.room import ordered_of

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.metric import Metric

AT_A_TIME: Final = 200
"""Number of queues that are scanned in one step."""
_NONE: Final = b"none"
_USAGE: Final = "use queues=all, queues=none or queues=NUMBER, queue=PATTERN, and name=NAME"
_UNNUMBERED: Final = 0
"""The number of a queue that is made for a page only."""


class Rank(NamedTuple):
    """The sort key of queues: length, blocked clients, age."""

    length: int
    waiting: int
    minus_number: int


TOO_LONG: Final = f"name is longer than {MAX_NAME_BYTES} bytes: such queues have no series"


@dataclass(frozen=True)
class Selection:
    """The queues that a request selects: at most `most`, matching `pattern`, and those with `names`."""

    most: int
    pattern: bytes | None = None
    names: tuple[bytes, ...] = ()
    """Queues that have series however short they are. A queue that does not exist is shown as an empty one."""


def parse(query: str, most: int) -> Selection | str:
    """Parse the query string; returns an error text if it is invalid. `most` is the default number of queues."""
    pattern: bytes | None = None
    names: list[bytes] = []
    for name, value in parse_qsl(query, keep_blank_values=True, encoding="latin-1"):
        word = value.encode("latin-1")
        if name == "queue" and len(word) <= MAX_PATTERN_BYTES:
            pattern = word
        elif name == "name" and len(word) <= MAX_NAME_BYTES:
            names.append(word)
        elif name == "queues":
            try:
                most = 0 if word == _NONE else Count().parse(word)
            except BadValueError:
                return f"invalid value {value[:MAX_PATTERN_BYTES]!r}; {_USAGE}"
        elif name == "queue":
            return f"pattern is longer than {MAX_PATTERN_BYTES} bytes"
        elif name == "name":
            return TOO_LONG
        else:
            return f"unknown parameter; {_USAGE}"
    return Selection(most, pattern, tuple(dict.fromkeys(names)))


class QueueScan:
    """One scan of all queues of a node."""

    def __init__(self, state: NodeState, selection: Selection) -> None:
        self._state = state
        self._selection = selection
        self.groups = GroupSums()
        self._led: dict[bytes, LedQueue] = {}
        """The ordered queues that this node leads, by name."""
        self.chosen: list[tuple[Rank, str, Queue | LedQueue]] = []
        """The selected queues with their labels, as a heap: the first one is the first to be replaced."""
        self._absent = 0
        """How many of them do not exist."""
        self._hidden = 0
        """How many queues of jobs have the name of an ordered queue that this node leads."""
        self.oldest_ms = 0
        """Creation time of the oldest queued job; 0 if no job is queued."""
        self.now_ms = 0
        """The end of the scan."""

    @property
    def left_out(self) -> int:
        """The number of queues without series."""
        count = len(self._state.lifecycle.queues) - self._hidden + len(self._led) + self._absent
        return max(count - len(self.chosen), 0)

    @property
    def oldest_age_s(self) -> float:
        """The age of the oldest queued job."""
        return max(self.now_ms - self.oldest_ms, 0) / 1000 if self.oldest_ms else 0.0

    def steps(self) -> Iterator[None]:
        """Scan all queues in steps."""
        yield from self._look_at_groups()
        queues = self._state.lifecycle.queues
        cursor, found = queues.scan(0, AT_A_TIME)
        while True:
            yield from self._look_at(found)
            yield
            if cursor == 0:
                break
            cursor, found = queues.scan(cursor, AT_A_TIME)
        self.add_named()

    def add_named(self) -> None:
        """Select the queues with the names of the selection, and end the scan."""
        shown = {label for _, label, _ in self.chosen}
        queues, now_ms = self._state.lifecycle.queues, int(self._state.now_ms)
        for name in self._selection.names:
            label = label_of(name)
            if label in shown:
                continue
            led = led_queue(ordered_of(self._state), name)
            if led is not None:
                self.chosen.append((_rank_of(led), label, led))
                continue
            queue = queues.get(name)
            if queue is None:
                queue = Queue(name, _UNNUMBERED, now_ms, queues.type_of(name))
                self._absent += 1
            self.chosen.append((_rank(queue), label, queue))
        self.now_ms = now_ms

    def _look_at_groups(self) -> Iterator[None]:
        """Scan the groups of ordered queues, in steps."""
        now_ms = int(self._state.now_ms)
        replicas = list(ordered_of(self._state).exchange.replicas.values())
        for number, replica in enumerate(replicas, 1):
            led = self.groups.add(replica, now_ms)
            if led is not None:
                self._led[led.name] = led
                self._note_age(int(led.machine.oldest_ms()))
                yield from self._consider(_rank_of(led), led)
            if number % AT_A_TIME == 0:
                yield

    def _note_age(self, created_ms: int) -> None:
        """A queued job was created then; 0 for none."""
        if created_ms:
            self.oldest_ms = min(created_ms, self.oldest_ms or created_ms)

    def _look_at(self, queues: list[Queue]) -> Iterator[None]:
        for queue in queues:
            oldest = queue.order.oldest()
            if oldest is not None:
                self._note_age(int(oldest.created_ms))
            if queue.name in self._led:
                self._hidden += 1
            else:
                yield from self._consider(_rank(queue), queue)

    def _consider(self, rank: Rank, queue: Queue | LedQueue) -> Iterator[None]:
        """Select a queue if the selection allows it."""
        pattern = self._selection.pattern
        if len(queue.name) > MAX_NAME_BYTES:
            return
        if pattern is not None:
            yield  # some patterns take long to match
            if not glob_match(pattern, queue.name):
                return
        self._choose(rank, queue)

    def _choose(self, rank: Rank, queue: Queue | LedQueue) -> None:
        """Select a queue if there is room, or if it ranks above a selected one."""
        most = self._selection.most
        if len(self.chosen) < most:
            heapq.heappush(self.chosen, (rank, label_of(queue.name), queue))
        elif most > 0 and rank > self.chosen[0][0]:
            heapq.heapreplace(self.chosen, (rank, label_of(queue.name), queue))


def _rank(queue: Queue) -> Rank:
    return Rank(int(queue.length), int(queue.waiting), -int(queue.number))


def _rank_of(led: LedQueue) -> Rank:
    return Rank(int(led.machine.length), int(led.credit), -int(led.group))


def label_of(name: bytes) -> str:
    r"""Return the name of a queue as the value of a label.

    A name is any bytes, a label is text. Bytes that are not UTF-8 and characters that are not printable are written in
    hexadecimal, `\xff`, and a backslash is doubled. So the labels of two queues always differ, and no label has a zero
    byte, which Prometheus cannot read.
    """
    text = name.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    return character if character.isprintable() else "".join(f"\\x{byte:02x}" for byte in character.encode())


METRICS: Final[tuple[Metric[QueueScan], ...]] = (
    gauge(
        "disque_queues_left_out",
        "Queues without series: shorter than those with series (`metrics-queues`), not selected by the request, or "
        f"with names longer than {MAX_NAME_BYTES} bytes.",
        lambda scan: scan.left_out,
    ),
    gauge(
        "disque_oldest_waiting_job_age_seconds",
        "Age of the oldest job in any queue of this node, since its creation; 0 if no job is queued.",
        lambda scan: scan.oldest_age_s,
    ),
)
