"""Consumers, and the order in which they get jobs: the service queue.

A consumer gets jobs while it has *credit*, the number of jobs that it can still place, and fewer than PREFETCH jobs. Of
several such consumers, the one that was served longest ago gets the next job (round robin). One that joins comes before
those that have been served already, behind those that joined before it and wait for their first job. A consumer without
credit keeps its place.

In a SINGLE queue the consumer that joined first is active, and the others get nothing until it leaves. One that neither
has a job nor asks for one is removed after `consumer-timeout`, if it is active or its connection was closed.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

_FRESH: Final = 1 << 62
"""Subtracted from the number of a consumer that was not served yet, so that it comes before all others."""


class Consumer:
    """One consumer: a node, or a client of a SINGLE queue."""

    def __init__(self, name: bytes, agent: bytes) -> None:
        self.name = name
        self.agent = agent
        """Its node."""
        self.named: bool = False
        """Whether it may join again after its connection was closed."""
        self.present: bool = True
        """Whether it can get jobs. One that cannot is kept while it has jobs."""
        self.credit: i64 = 0
        self.ahead: bool = False
        """Whether it also gets jobs that it has no credit for, in a SINGLE queue."""
        self.assigned: i64 = 0
        """How many jobs were assigned to it since it joined."""
        self.turn: i64 = 0
        """Its place in the service queue: the lowest is next."""
        self.seen_ms: i64 = 0
        """When it last did something, or lost a job."""
        self.away_ms: i64 = 0
        """When its connection was closed; 0 while it is connected."""
        self.listed: bool = False
        """Whether it is among those that can get a job now."""
        self.jobs: dict[int, bool] = {}
        """The indexes of its jobs. The values have no meaning."""


class ServiceQueue:
    """The consumers of a queue."""

    def __init__(self, *, single: bool, prefetch: i64) -> None:
        self.single = single
        self._prefetch: i64 = prefetch
        self.by_name: dict[bytes, Consumer] = {}
        """In the order in which they joined."""
        self.joined: i64 = 0
        """How many have joined so far."""
        self.active: Consumer | None = None
        """The one that gets jobs of a SINGLE queue."""
        self._able: list[Consumer] = []
        """Those that can get a job now, the next one first."""
        self.timeout_ms: i64 = 0
        """`consumer-timeout`."""
        self.check_ms: i64 = 0
        """No consumer must be removed before; 0 if none is watched. It can be too early, because consumers act."""

    def next(self) -> Consumer | None:
        """The consumer that gets the next job; None if none can."""
        able = self._able
        return able[0] if able else None

    def add(self, name: bytes, agent: bytes, now_ms: i64) -> Consumer:
        """Add a consumer that is new, or that was removed and still has jobs."""
        consumer = self.by_name.get(name)
        if consumer is None:
            consumer = Consumer(name, agent)
            self.by_name[name] = consumer
        self.joined += 1
        consumer.agent = agent
        consumer.present = True
        consumer.turn = self.joined - _FRESH
        consumer.seen_ms = now_ms
        return consumer

    def refresh(self, consumer: Consumer) -> None:
        """List the consumer as able to get a job, or not, after a change."""
        able = (
            consumer.present
            and (consumer.credit > 0 or consumer.ahead)
            and (self._prefetch == 0 or len(consumer.jobs) < self._prefetch)
            and (not self.single or consumer is self.active)
        )
        if able == consumer.listed:
            return
        if able:
            self._list(consumer)
        else:
            self._unlist(consumer)

    def _list(self, consumer: Consumer) -> None:
        self._able.insert(self._place(consumer.turn), consumer)
        consumer.listed = True

    def _unlist(self, consumer: Consumer) -> None:
        del self._able[self._place(consumer.turn)]
        consumer.listed = False

    def _place(self, turn: i64) -> int:
        """Where a turn is, or belongs, in the list."""
        able = self._able
        low: i64 = 0
        high: i64 = len(able)
        while low < high:
            middle: i64 = (low + high) >> 1
            if able[middle].turn < turn:
                low = middle + 1
            else:
                high = middle
        return int(low)

    def served(self, consumer: Consumer, index: i64, claim: i64) -> None:
        """The next consumer has got a job: the claim is its new turn, greater than all others."""
        del self._able[0]
        consumer.listed = False
        consumer.turn = claim
        if consumer.credit > 0:
            consumer.credit -= 1
        consumer.assigned += 1
        consumer.jobs[int(index)] = True
        if (consumer.credit > 0 or consumer.ahead) and (self._prefetch == 0 or len(consumer.jobs) < self._prefetch):
            self._able.append(consumer)
            consumer.listed = True

    def released(self, consumer: Consumer, index: i64) -> None:
        """The consumer does not have a job any more."""
        del consumer.jobs[int(index)]
        if not consumer.listed:
            if consumer.present:
                self.refresh(consumer)
            elif not consumer.jobs:
                del self.by_name[consumer.name]
        if self.single and not consumer.jobs:
            self.watch(consumer)

    def set_credit(self, consumer: Consumer, credit: i64, *, ahead: bool = False) -> None:
        """Set the credit of a consumer."""
        consumer.credit = credit
        consumer.ahead = ahead and self.single
        self.refresh(consumer)
        if self.single and credit == 0:
            self.watch(consumer)

    def remove(self, consumer: Consumer) -> None:
        """A consumer has left. It is kept while it has jobs."""
        consumer.present = False
        consumer.credit = 0
        consumer.ahead = False
        consumer.assigned = 0
        self.refresh(consumer)
        if not consumer.jobs:
            del self.by_name[consumer.name]

    def activate(self, now_ms: i64) -> Consumer | None:
        """Make the first consumer of a SINGLE queue the active one if none is; None if nothing changes."""
        if self.active is not None and self.active.present:
            return None
        self.active = None
        for consumer in self.by_name.values():
            if consumer.present:
                self.active = consumer
                consumer.seen_ms = now_ms
                self.refresh(consumer)
                self.watch(consumer)
                return consumer
        return None

    def watch(self, consumer: Consumer) -> None:
        """Note when this consumer must be removed unless it does something."""
        due_ms = self.due_ms(consumer)
        if due_ms > 0 and (self.check_ms == 0 or due_ms < self.check_ms):
            self.check_ms = due_ms

    def due_ms(self, consumer: Consumer) -> i64:
        """When the consumer is removed unless it does something; 0 for never."""
        if consumer.away_ms > 0:
            return consumer.away_ms + self.timeout_ms
        if consumer is self.active and consumer.credit == 0 and not consumer.jobs:
            return consumer.seen_ms + self.timeout_ms
        return 0

    def overdue(self, now_ms: i64) -> list[Consumer]:
        """The consumers that must be removed now. Sets the time of the next check."""
        found: list[Consumer] = []
        next_ms: i64 = 0
        for consumer in self.by_name.values():
            due_ms = self.due_ms(consumer)
            if due_ms == 0:
                continue
            if due_ms <= now_ms:
                found.append(consumer)
            elif next_ms == 0 or due_ms < next_ms:
                next_ms = due_ms
        self.check_ms = next_ms
        return found

    def in_order(self) -> list[Consumer]:
        """All consumers that are present, in the order of the service queue, also those that can get no job now."""
        return sorted((one for one in self.by_name.values() if one.present), key=_turn)


def _turn(consumer: Consumer) -> int:
    return int(consumer.turn)
