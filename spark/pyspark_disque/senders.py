"""How commands reach nodes, and what is done when they do not. Nothing here knows Spark.

A slice of rows is sent as a pipeline. What was refused for a reason that passes, or whose answer was lost, is sent
again, with waits that grow, until `giveUpAfter` seconds went by without a single row added; then the task fails. What
is wrong with a row or a password fails at once. Where rows go is a *route*, and there are two:

- `AnyNode` (at least once) stays with one node, each partition begins with another one, and moves on when the node
  fails, refuses or leaves. A row whose fate is unknown is added again, perhaps elsewhere: it may be there twice.
- `HomeNode` (deduplicated) brings each key to one node, its home, because each node remembers keys for itself. The home
  of a slot is the first of the members by rendezvous hashing: all attempts of a task, and most replays after nodes came
  or went, agree on it without asking anybody. It is known by its node ID, which stays when a restart brings a new
  address.

Rows are added once by their keys as long as home answers, or comes back within `HOME_PATIENCE_S` with what it
remembers: after a restart with an append only file, the jobs of its last minute that are still there. With more than
one copy of a job there is a gap: of the commands that were on their way when a home died, at most a pipeline of 128,
other nodes may have copies that the home had not confirmed and does not know when it is back. A home that is no member
any more is given up at once, and one that leaves as soon as it refuses: it goes on answering for the keys it knows,
which is why it is still asked first. Then rows go to the next in the order, and those that the home had taken without
saying so may be there twice. A home that has failed for good costs each task the patience once, until it is forgotten
(CLUSTER FORGET).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Final, Protocol

from disqued.client import Backoff, ConnectionFailed, DisqueError
from disqued.client.nodes import LEAVING_PRIORITY
from pyspark_disque.added import Ledger, unpack
from pyspark_disque.brokers import Brokers, Member, is_passing
from pyspark_disque.clock import Clock
from pyspark_disque.rows import Slice

HOME_PATIENCE_S: Final = 30.0
"""How long to wait for a home that can not be reached: a pod or a process restarts in less."""
LOOK_AGAIN_S: Final = 5.0
"""How often to ask whether the node in use leaves. It may take jobs until it goes, and the last answers with it."""
BACKOFF: Final = Backoff(first_s=0.05, longest_s=2.0)
ACK_AT_ONCE: Final = 512
_OF_THE_QUEUE: Final = ("PAUSED", "MAXLEN")
"""Refusals that another node does not make better."""


class WriteFailed(RuntimeError):
    """A task's rows could not be added; the message says how far it came and what the broker said last."""


class Route(Protocol):
    """To which node a row goes."""

    def address(self, slot: int) -> str:
        """The node for a slot now.

        Raises:
            ConnectionFailed: none can be reached at the moment.
        """

    def failed(self, address: str, error: DisqueError) -> None:
        """The node could not be reached, or refused for a reason that passes."""

    def worked(self, address: str) -> None:
        """The node added something."""


class AnyNode:
    """One node at a time, the `first`-th to begin with."""

    def __init__(self, brokers: Brokers, first: int, now_s: Callable[[], float]) -> None:
        self._brokers = brokers
        self._first = first
        self._now_s = now_s
        self._current: str | None = None
        self._looked_s = 0.0
        self._failures: list[str] = []
        """Addresses that failed, the last one at the end."""

    def address(self, slot: int) -> str:  # noqa: ARG002 - any node is right for any row
        """The node in use."""
        if self._current is None or self._now_s() - self._looked_s > LOOK_AGAIN_S:
            self._current = self._choose(self._brokers.members())
            self._looked_s = self._now_s()
        return self._current

    def _choose(self, members: Sequence[Member]) -> str:
        """The node in use if nothing speaks against it; else the next that is well and did not fail lately."""
        first = self._first % len(members)
        in_turn = [*members[first:], *members[:first]]

        def reluctance(member: Member) -> tuple[bool, bool, int]:
            failed = self._failures.index(member.address) + 1 if member.address in self._failures else 0
            return member.is_doubted, member.address != self._current, failed

        return min(in_turn, key=reluctance).address

    def failed(self, address: str, error: DisqueError) -> None:
        """Turn to another one, unless it is about the queue."""
        if not str(error).startswith(_OF_THE_QUEUE):
            self._failures = [known for known in self._failures if known != address] + [address]
            self._current = None

    def worked(self, address: str) -> None:
        """Its failures are forgotten."""
        if address in self._failures:
            self._failures.remove(address)


class HomeNode:
    """The home of each slot. `planned` are the IDs of the members when the write was planned."""

    def __init__(self, brokers: Brokers, planned: Sequence[str], now_s: Callable[[], float]) -> None:
        self._brokers = brokers
        self._planned = tuple(planned)
        self._now_s = now_s
        self._addresses: dict[str, str] = {}
        """Of the members by their IDs, as of the last look."""
        self._is_fresh = False
        self._away_since_s: dict[str, float] = {}
        self._given_up: set[str] = set()
        """For good: rows have gone elsewhere."""
        self._orders: dict[int, tuple[str, ...]] = {}

    def address(self, slot: int) -> str:
        """Where the home of a slot is now."""
        if not self._is_fresh:
            self._look()
        for home in self._order(slot):
            if home not in self._given_up:
                return self._addresses[home]
        raise ConnectionFailed("every node that rows could go to was away for too long, left, or was forgotten")

    def _look(self) -> None:
        """Who is there, and who of the homes has to be given up."""
        self._addresses = {member.id: member.address for member in self._brokers.members()}
        self._is_fresh = True
        self._orders.clear()
        self._given_up.update(home for home in self._planned if home not in self._addresses)
        now_s = self._now_s()
        self._given_up.update(home for home, since_s in self._away_since_s.items() if now_s - since_s > HOME_PATIENCE_S)

    def _order(self, slot: int) -> tuple[str, ...]:
        """Who a slot's home is: those planned first, then those that came later."""
        order = self._orders.get(slot)
        if order is None:
            later = [home for home in self._addresses if home not in self._planned]
            order = self._orders[slot] = (*rendezvous(slot, self._planned), *rendezvous(slot, later))
        return order

    def failed(self, address: str, error: DisqueError) -> None:
        """Remember since when it is away; give it up when it refuses because it leaves."""
        self._is_fresh = False
        for home in [home for home, known in self._addresses.items() if known == address]:
            if isinstance(error, ConnectionError):
                self._away_since_s.setdefault(home, self._now_s())
            elif self._leaves(address):
                self._given_up.add(home)

    def _leaves(self, address: str) -> bool:
        """Whether a node says of itself that it leaves. Others do not tell leaving from failed."""
        try:
            hello = self._brokers.at(address).hello()
        except DisqueError:
            return False
        return any(node.id == hello.node_id and node.priority >= LEAVING_PRIORITY for node in hello.nodes)

    def worked(self, address: str) -> None:
        """It is there."""
        if self._away_since_s:
            for home in [home for home, known in self._addresses.items() if known == address]:
                self._away_since_s.pop(home, None)


def rendezvous(slot: int, homes: Iterable[str]) -> list[str]:
    """Nodes in the order in which they are to have a slot: one that comes or goes moves only its own share."""
    return sorted(homes, key=lambda home: blake2b(b"%d/%b" % (slot, home.encode()), digest_size=8).digest())


class Sender:
    """Sends the slices of one partition, and notes what was added."""

    def __init__(
        self,
        brokers: Brokers,
        route: Route,
        give_up_after_s: float,
        ledger: Ledger,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._brokers = brokers
        self._route = route
        self._give_up_after_s = give_up_after_s
        self._ledger = ledger
        self._clock = clock
        self._rng = rng

    def send(self, part: Slice) -> None:
        """Add all rows of a slice.

        Raises:
            WriteFailed: a row was refused for good, or none was added for too long.
        """
        pending: Sequence[int] = range(len(part.commands))
        failures = 0
        progress_s = self._clock.now_s()
        while True:
            still, error = self._round(part, pending)
            if error is None:
                return
            now_s = self._clock.now_s()
            if len(still) < len(pending):
                failures, progress_s = 0, now_s
            pending = still
            left_s = progress_s + self._give_up_after_s - now_s
            if left_s <= 0:
                raise WriteFailed(
                    f"nothing could be added for {self._give_up_after_s:g} s, from row {part.first + pending[0]} on; "
                    f"{self._ledger.rows} rows of the partition were added before: {error}"
                ) from error
            self._clock.sleep(min(left_s, BACKOFF.wait_s(failures, self._rng)))
            failures += 1

    def _round(self, part: Slice, pending: Sequence[int]) -> tuple[list[int], DisqueError | None]:
        """Send each row once, where it belongs now: what is still to be added then, and the last reason."""
        by_slot: dict[int, list[int]] = {}
        for row in pending:
            by_slot.setdefault(part.slots[row], []).append(row)
        by_address: dict[str, list[int]] = {}
        refused: list[tuple[int, DisqueError]] = []
        for slot, rows in by_slot.items():
            try:
                by_address.setdefault(self._route.address(slot), []).extend(rows)
            except DisqueError as error:
                refused += [(row, _passing(error)) for row in rows]
        for address, rows in by_address.items():
            now = self._exchange(part, address, rows)
            if now:
                self._route.failed(address, now[-1][1])
                refused += now
        return sorted(row for row, _ in refused), refused[-1][1] if refused else None

    def _exchange(self, part: Slice, address: str, rows: Sequence[int]) -> list[tuple[int, DisqueError]]:
        """Send rows to one node: those that it did not add, and why.

        By words, not with `Client.add_jobs`: an object for each row costs as much as all that is done here with it.
        """
        replies = self._brokers.at(address).execute_many(part.commands[row] for row in rows)
        ids = [reply for reply in replies if isinstance(reply, bytes)]
        if ids:
            self._ledger.add(ids)
            self._route.worked(address)
        if len(ids) == len(rows):
            return []
        refused: list[tuple[int, DisqueError]] = []
        for row, reply in zip(rows, replies, strict=True):
            if isinstance(reply, DisqueError) and is_passing(reply):
                refused.append((row, reply))
            elif not isinstance(reply, bytes):
                raise WriteFailed(
                    f"row {part.first + row} was refused, {self._ledger.rows} rows of the partition were added: {reply}"
                )
        return refused


def _passing(error: DisqueError) -> DisqueError:
    """The error, if it may pass.

    Raises:
        WriteFailed: it will not.
    """
    if is_passing(error):
        return error
    raise WriteFailed(f"the nodes can not be asked who is in the cluster: {error}") from error


def take_back(brokers: Brokers, packed: bytes) -> int:
    """Finish jobs that should not have been added; how many IDs were told to a node. Best effort: it tries each node.

    With ACKJOB, which ends a job wherever it is. DELJOB forgets it at one node, and another copy would be delivered.
    """
    told = 0
    addresses = [member.address for member in sorted(brokers.members(), key=lambda member: member.priority)]
    for ids in unpack(packed, ACK_AT_ONCE):
        while addresses:
            try:
                brokers.at(addresses[0]).ack(*ids)
            except DisqueError:
                del addresses[0]
            else:
                told += len(ids)
                break
    return told
