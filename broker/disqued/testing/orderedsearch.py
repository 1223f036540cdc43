"""A search for a linearisation of a short history of one ordered queue.

If the queue is linearisable, each operation took effect at some moment between its call and its answer. There is then
an order of all operations that respects these intervals and that a plain queue explains. The search tries the orders,
and remembers the states that it has seen (Wing and Gong, with Lowe's memory). Its time grows exponentially with the
number of adds whose order is not known until their jobs are taken, so histories must be short: some tens of operations,
few at the same time.

An operation without an answer may have taken effect at any later moment, or never. Leases do not end in such histories:
give back jobs by an operation.
"""

from __future__ import annotations

from typing import Final, TypeAlias

ADD: Final = "add"
TAKE: Final = "take"
ACK: Final = "ack"
BACK: Final = "back"
NEVER: Final = 1 << 62
"""The time of an answer that did not come."""

Queue: TypeAlias = tuple[tuple[int, ...], frozenset[int]]
"""The waiting jobs in order, by the place of their adds, and the jobs that consumers have."""


class Operation:
    """One operation of a client."""

    def __init__(self, kind: str, value: int, called: int, answered: int = NEVER, *, ok: bool = True) -> None:
        self.kind = kind
        self.value = value
        """The job. Values of jobs say nothing about their order."""
        self.called = called
        self.answered = answered
        self.ok = ok
        """Whether it did something: False for a TAKE that found the queue empty, and for an ACK or BACK of a job that
        no consumer has."""

    def __repr__(self) -> str:
        """The operation, for the message of a failed test."""
        return f"{self.kind} {self.value}{'' if self.ok else ' (nothing)'} [{self.called}, {self.answered}]"


def linearisation(operations: list[Operation]) -> list[Operation] | None:
    """An order that explains the answers; None if there is none."""
    return _Search(operations).run()


class _Search:
    """One search."""

    def __init__(self, operations: list[Operation]) -> None:
        self._operations = operations
        self._answered = frozenset(at for at, one in enumerate(operations) if one.answered != NEVER)
        self._seen: set[tuple[frozenset[int], tuple[int, ...], Queue]] = set()

    def run(self) -> list[Operation] | None:
        """Depth first, without recursion: each entry is what was done, in which order, and the queue after it."""
        stack: list[tuple[tuple[int, ...], tuple[int, ...], Queue]] = [((), (), ((), frozenset()))]
        while stack:
            order, added, queue = stack.pop()
            done = frozenset(order)
            if self._answered <= done:
                return [self._operations[at] for at in order]
            key = (done, added, queue)
            if key in self._seen:
                continue
            self._seen.add(key)
            for at in self._possible(done):
                after = self._apply(self._operations[at], added, queue)
                if after is not None:
                    stack.append(((*order, at), *after))
        return None

    def _possible(self, done: frozenset[int]) -> list[int]:
        """The operations that can be next: called before any other one was answered that is not done."""
        left = [at for at in range(len(self._operations)) if at not in done]
        first = min((self._operations[at].answered for at in left), default=NEVER)
        return [at for at in left if self._operations[at].called <= first]

    @staticmethod
    def _apply(one: Operation, added: tuple[int, ...], queue: Queue) -> tuple[tuple[int, ...], Queue] | None:
        """The jobs in the order of their adds, and the queue, after an operation; None if its answer contradicts it."""
        waiting, taken = queue
        value = one.value
        if one.kind == ADD:
            return None if value in added else ((*added, value), ((*waiting, value), taken))
        if one.kind == TAKE:
            if not one.ok:
                return None if waiting else (added, queue)
            if not waiting or (one.answered != NEVER and waiting[0] != value):
                return None
            return added, (waiting[1:], taken | {waiting[0]})
        if (value in taken) != one.ok and one.answered != NEVER:
            return None
        if value not in taken:
            return added, queue
        if one.kind == ACK:
            return tuple(other for other in added if other != value), (waiting, taken - {value})
        before = [other for other in waiting if added.index(other) < added.index(value)]
        return added, ((*before, value, *waiting[len(before) :]), taken - {value})
