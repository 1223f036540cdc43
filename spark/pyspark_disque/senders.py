"""Sends commands to nodes, retries them, and chooses the node. This module does not know Spark.

A `Sender` sends a slice of rows as a pipeline. It retries rows with a temporary error or a lost reply, with growing
pauses, until `giveUpAfter` seconds have passed without adding a row. Then the task fails. An invalid row or a wrong
password fails immediately. A `Route` chooses the node of a row:

- `AnyNode` (at least once) stays with one node until that node fails, refuses or leaves. Each partition starts with a
  different node. A row with a lost reply is added again, possibly at another node, so it may be added twice.
- `HomeNode` (deduplicated) sends each key to one node, its home, because each node remembers only its own keys. The
  home of a slot is the first of the members in rendezvous hashing order. All attempts of a task agree on it without
  coordination, and so do most replays after nodes joined or left. A home is identified by its node ID, which stays the
  same when the node restarts with a new address.

Keys add each row once if the home answers, or returns within `HOME_TIMEOUT_S` with its memory: after a restart with an
append-only file, it remembers the jobs of the last minute that still exist. Jobs with more than one copy have a gap.
Of the commands in flight when a home fails, at most one pipeline of 128, other nodes may hold copies that the home had
not confirmed and does not know after its restart. A home that is no longer a member is given up immediately. A home
that leaves is given up once it refuses a row; it is asked first because it still answers for the keys it knows. The
rows then go to the next node in the order, and rows that the home had added without replying may be added twice. A
permanently failed home costs each task the timeout once, until the node is removed with CLUSTER FORGET.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Final, Protocol

from disqued.client import Backoff, ConnectionFailed, DisqueError
from disqued.client.nodes import LEAVING_PRIORITY
from pyspark_disque.addedjobs import AddedJobs, decode_ids
from pyspark_disque.brokers import Brokers, Member, is_retryable
from pyspark_disque.clock import Clock
from pyspark_disque.rows import Slice

HOME_TIMEOUT_S: Final = 30.0
"""How long to wait for an unreachable home; a pod or a process restarts in less."""
REFRESH_S: Final = 5.0
"""How often to check whether the current node is leaving; replies may be lost when it stops."""
BACKOFF: Final = Backoff(first_s=0.05, longest_s=2.0)
ACKS_PER_CALL: Final = 512
_QUEUE_ERRORS: Final = ("PAUSED", "MAXLEN")
"""Errors that concern the queue, so that another node would reply the same."""


class WriteFailed(RuntimeError):
    """The rows of a task could not be added; the message has the progress and the last error of the broker."""


class Route(Protocol):
    """Chooses the node of each row."""

    def address(self, slot: int) -> str:
        """Return the current node of a slot.

        Raises:
            ConnectionFailed: no node can be reached at the moment.
        """

    def failed(self, address: str, error: DisqueError) -> None:
        """Note that the node could not be reached, or replied with a temporary error."""

    def worked(self, address: str) -> None:
        """Note that the node added a row."""


class AnyNode:
    """Routes all rows to one node at a time, starting with the `first`-th."""

    def __init__(self, brokers: Brokers, first: int, now_s: Callable[[], float]) -> None:
        self._brokers = brokers
        self._first = first
        self._now_s = now_s
        self._current: str | None = None
        self._refreshed_s = 0.0
        self._failures: list[str] = []
        """Addresses that failed, the latest last."""

    def address(self, slot: int) -> str:  # noqa: ARG002 - any node can add any row
        """Return the current node."""
        if self._current is None or self._now_s() - self._refreshed_s > REFRESH_S:
            self._current = self._choose(self._brokers.members())
            self._refreshed_s = self._now_s()
        return self._current

    def _choose(self, members: Sequence[Member]) -> str:
        """Keep the current node unless it is suspect; otherwise return the next healthy one without recent failures."""
        first = self._first % len(members)
        in_turn = [*members[first:], *members[:first]]

        def cost(member: Member) -> tuple[bool, bool, int]:
            failed = self._failures.index(member.address) + 1 if member.address in self._failures else 0
            return member.is_suspect, member.address != self._current, failed

        return min(in_turn, key=cost).address

    def failed(self, address: str, error: DisqueError) -> None:
        """Switch to another node, unless the error concerns the queue."""
        if not str(error).startswith(_QUEUE_ERRORS):
            self._failures = [known for known in self._failures if known != address] + [address]
            self._current = None

    def worked(self, address: str) -> None:
        """Forget the failures of the node."""
        if address in self._failures:
            self._failures.remove(address)


class HomeNode:
    """Routes each slot to its home. `planned` are the IDs of the members when the write was planned."""

    def __init__(self, brokers: Brokers, planned: Sequence[str], now_s: Callable[[], float]) -> None:
        self._brokers = brokers
        self._planned = tuple(planned)
        self._now_s = now_s
        self._addresses: dict[str, str] = {}
        """The address of each member by ID, as of the last refresh."""
        self._is_fresh = False
        self._unreachable_since_s: dict[str, float] = {}
        self._given_up: set[str] = set()
        """Homes whose rows went to other nodes; this is final."""
        self._orders: dict[int, tuple[str, ...]] = {}

    def address(self, slot: int) -> str:
        """Where the home of a slot is now."""
        if not self._is_fresh:
            self._refresh()
        for home in self._order(slot):
            if home not in self._given_up:
                return self._addresses[home]
        raise ConnectionFailed("every node for these rows was unreachable for too long, left, or was forgotten")

    def _refresh(self) -> None:
        """Ask for the members, and give up homes that left or were unreachable for too long."""
        self._addresses = {member.id: member.address for member in self._brokers.members()}
        self._is_fresh = True
        self._orders.clear()
        self._given_up.update(home for home in self._planned if home not in self._addresses)
        now_s = self._now_s()
        self._given_up.update(
            home for home, since_s in self._unreachable_since_s.items() if now_s - since_s > HOME_TIMEOUT_S
        )

    def _order(self, slot: int) -> tuple[str, ...]:
        """Return the nodes of a slot in order: the planned ones first, then those that joined later."""
        order = self._orders.get(slot)
        if order is None:
            later = [home for home in self._addresses if home not in self._planned]
            order = self._orders[slot] = (*rendezvous(slot, self._planned), *rendezvous(slot, later))
        return order

    def failed(self, address: str, error: DisqueError) -> None:
        """Note the start of an outage; give the node up if it refuses because it is leaving."""
        self._is_fresh = False
        for home in [home for home, known in self._addresses.items() if known == address]:
            if isinstance(error, ConnectionError):
                self._unreachable_since_s.setdefault(home, self._now_s())
            elif self._is_leaving(address):
                self._given_up.add(home)

    def _is_leaving(self, address: str) -> bool:
        """Return whether a node reports itself as leaving; other nodes report leaving and failed alike."""
        try:
            hello = self._brokers.at(address).hello()
        except DisqueError:
            return False
        return any(node.id == hello.node_id and node.priority >= LEAVING_PRIORITY for node in hello.nodes)

    def worked(self, address: str) -> None:
        """Note the end of an outage."""
        if self._unreachable_since_s:
            for home in [home for home, known in self._addresses.items() if known == address]:
                self._unreachable_since_s.pop(home, None)


def rendezvous(slot: int, homes: Iterable[str]) -> list[str]:
    """Return the nodes in their order for a slot; a node that joins or leaves moves only its own share of slots."""
    return sorted(homes, key=lambda home: blake2b(b"%d/%b" % (slot, home.encode()), digest_size=8).digest())


class Sender:
    """Sends the slices of one partition, and records the added jobs."""

    def __init__(
        self,
        brokers: Brokers,
        route: Route,
        give_up_after_s: float,
        added: AddedJobs,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._brokers = brokers
        self._route = route
        self._give_up_after_s = give_up_after_s
        self._added = added
        self._clock = clock
        self._rng = rng

    def send(self, part: Slice) -> None:
        """Add all rows of a slice.

        Raises:
            WriteFailed: a row is invalid, or no row was added for `giveUpAfter`.
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
                    f"no row could be added for {self._give_up_after_s:g} s, from row {part.first + pending[0]} on; "
                    f"{self._added.rows} rows of the partition were added before: {error}"
                ) from error
            self._clock.sleep(min(left_s, BACKOFF.wait_s(failures, self._rng)))
            failures += 1

    def _round(self, part: Slice, pending: Sequence[int]) -> tuple[list[int], DisqueError | None]:
        """Send each row once, to its current node; return the rows that must be sent again, and the last error."""
        by_slot: dict[int, list[int]] = {}
        for row in pending:
            by_slot.setdefault(part.slots[row], []).append(row)
        by_address: dict[str, list[int]] = {}
        refused: list[tuple[int, DisqueError]] = []
        for slot, rows in by_slot.items():
            try:
                by_address.setdefault(self._route.address(slot), []).extend(rows)
            except DisqueError as error:
                refused += [(row, _require_retryable(error)) for row in rows]
        for address, rows in by_address.items():
            now = self._exchange(part, address, rows)
            if now:
                self._route.failed(address, now[-1][1])
                refused += now
        return sorted(row for row, _ in refused), refused[-1][1] if refused else None

    def _exchange(self, part: Slice, address: str, rows: Sequence[int]) -> list[tuple[int, DisqueError]]:
        """Send rows to one node; return the rows to send again, each with its error.

        This sends raw commands, because the object per row of `Client.add_jobs` would double the cost of a row.
        """
        replies = self._brokers.at(address).execute_many(part.commands[row] for row in rows)
        ids = [reply for reply in replies if isinstance(reply, bytes)]
        if ids:
            self._added.add(ids)
            self._route.worked(address)
        if len(ids) == len(rows):
            return []
        refused: list[tuple[int, DisqueError]] = []
        for row, reply in zip(rows, replies, strict=True):
            if isinstance(reply, DisqueError) and is_retryable(reply):
                refused.append((row, reply))
            elif not isinstance(reply, bytes):
                raise WriteFailed(
                    f"row {part.first + row} was rejected; {self._added.rows} rows of the partition were added: {reply}"
                )
        return refused


def _require_retryable(error: DisqueError) -> DisqueError:
    """Return the error if it is temporary.

    Raises:
        WriteFailed: it is permanent.
    """
    if is_retryable(error):
        return error
    raise WriteFailed(f"cannot get the members of the cluster: {error}") from error


def roll_back(brokers: Brokers, packed: bytes) -> int:
    """Acknowledge the added jobs of a failed write at any node, and return how many a node accepted.

    ACKJOB removes a job from all nodes. DELJOB would remove it from one node only, and another copy would be delivered.
    """
    accepted = 0
    addresses = [member.address for member in sorted(brokers.members(), key=lambda member: member.priority)]
    for ids in decode_ids(packed, ACKS_PER_CALL):
        while addresses:
            try:
                brokers.at(addresses[0]).ack(*ids)
            except DisqueError:
                del addresses[0]
            else:
                accepted += len(ids)
                break
    return accepted
