"""Short histories of simulated ordered queues, for the search for a linearisation (`orderedsearch`).

Three clients at different nodes do some operations on one queue: they add jobs, take what there is, and acknowledge or
give back what they took. Leases are long, so nothing else changes the queue. Only operations whose outcome is known
from the reply are certain. A history is not searched if a reply with jobs was lost, or if a node gave back a job that
came too late for its client: the search knows no such operations. A job that came too late may also go to the next
client of its node: then it was taken when it was assigned, before that client asked.
"""

from __future__ import annotations

from random import Random
from typing import Final

from disqued.testing.orderedload import TTL_S, OrderedLoad, number_in
from disqued.testing.orderedsearch import ACK, ADD, BACK, NEVER, TAKE, Operation, linearisation
from disqued.testing.workload import Answer, Caller, Lost

QUEUE: Final = "short"
OPERATIONS: Final = 24
"""So many operations are begun; the time of the search grows exponentially with the adds among them."""
RETRY_S: Final = 3600
SLOW_MS: Final = 4500
"""A GETJOB that does not wait may say that there is nothing because it has found no leader for this time."""


class ShortClients:
    """The clients of the short queue."""

    def __init__(self, load: OrderedLoad, seed: int, homes: int) -> None:
        self._load = load
        self._chance = Random(f"short {seed}")  # noqa: S311 - repeatable chance is the point
        self._callers = [Caller(load.world, home, self._chance) for home in range(1, homes + 1)][:3]
        self._operations: list[Operation] = []
        self._last_job = 0
        self._have: list[list[tuple[bytes, int]]] = [[] for _ in self._callers]
        """The jobs of each client: ID and claim."""
        self._claims: list[tuple[Operation, int]] = []
        """The claims of the jobs that were taken."""
        self._values: dict[bytes, int] = {}
        """By ID, once it is known."""
        self._unsure = False

    def start(self) -> None:
        """Start to work."""
        for client in range(len(self._callers)):
            self._load.world.later(200 + self._chance.random() * 500, lambda client=client: self._act(client))  # type: ignore[misc]

    def _act(self, client: int) -> None:
        if len(self._operations) >= OPERATIONS or not self._load.world.producing:
            return
        way = self._chance.random()
        have = self._have[client]
        if have and way < 0.5:
            self._end(client, *have.pop(), ACK if way < 0.3 else BACK)
        elif way < 0.7:
            self._add(client)
        else:
            self._take(client)

    def _next(self, client: int) -> None:
        self._load.world.later(20 + self._chance.random() * 400, lambda: self._act(client))

    def _begin(self, kind: str, value: int) -> Operation:
        operation = Operation(kind, value, self._load.world.now_ms)
        self._operations.append(operation)
        return operation

    def _add(self, client: int) -> None:
        self._last_job += 1
        operation = self._begin(ADD, self._last_job)
        words = ("ADDJOB", QUEUE, b"job %d" % operation.value, 2000, "RETRY", RETRY_S, "TTL", TTL_S)
        self._callers[client].call(lambda answer: self._added(client, operation, answer), *words)

    def _added(self, client: int, operation: Operation, answer: Answer) -> None:
        if isinstance(answer, bytes):
            operation.answered = self._load.world.now_ms
        elif not isinstance(answer, Lost) and getattr(answer, "prefix", "") == "NOQUORUM":
            self._operations.remove(operation)
        self._next(client)

    def _take(self, client: int) -> None:
        operation = self._begin(TAKE, -1)
        words = ("GETJOB", "NOHANG", "WITHCLAIM", "FROM", QUEUE)
        self._callers[client].call(lambda answer: self._took(client, operation, answer), *words)

    def _took(self, client: int, operation: Operation, answer: Answer) -> None:
        now_ms = self._load.world.now_ms
        match answer:
            case [[bytes(), bytes(job_id), bytes(body), b"claim", int(claim), *_]]:
                operation.value = number_in(body)
                operation.answered = now_ms
                self._values[job_id] = operation.value
                self._have[client].append((job_id, claim))
                self._claims.append((operation, claim))
            case None if now_ms - operation.called < SLOW_MS:
                operation.ok = False
                operation.answered = now_ms
            case None:
                self._operations.remove(operation)
            case _:
                self._unsure = True
        self._next(client)

    def _end(self, client: int, job_id: bytes, claim: int, kind: str) -> None:
        operation = self._begin(kind, self._values[job_id])
        command = "ACKJOB" if kind == ACK else "NACK"
        self._callers[client].call(
            lambda answer: self._ended(client, operation, answer), command, job_id, "CLAIM", claim
        )

    def _ended(self, client: int, operation: Operation, answer: Answer) -> None:
        """An answer of 0, or STALE, may be that of a repetition of the command within the cluster."""
        if answer == 1:
            operation.answered = self._load.world.now_ms
        self._next(client)

    def check(self) -> bool:
        """Search for a linearisation; False if this history cannot be searched."""
        group = self._load.truth.of_queue(QUEUE.encode())
        if self._unsure or group is None or group.uncounted:
            return False
        for operation, claim in self._claims:
            operation.called = min(operation.called, group.assignments[claim].assigned_ms)
        operations = [one for one in self._operations if one.kind != TAKE or one.answered != NEVER]
        if linearisation(operations) is None:
            self._load.violate(f"no order explains the operations on {QUEUE}: {operations}")
        return True
