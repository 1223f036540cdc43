"""The account of every job: the replies that clients received, and what is lost, duplicated or unexpected.

Tests, simulations and the demonstration keep one while nodes fail, and check it at the end. An ADDJOB without a reply
may have added its job, and an acknowledgement without a reply may have completed it: neither counts as a loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass
class JobAccount(Generic[Key]):
    """Jobs by a key that identifies each of them, as their bodies or IDs do. Times are of any one clock."""

    attempted: set[Key] = field(default_factory=set)
    """Jobs that were sent with an ADDJOB."""
    added: dict[Key, float] = field(default_factory=dict)
    """Jobs whose ADDJOB was answered with an ID, and when."""
    delivered: Counter[Key] = field(default_factory=Counter)
    """How often each job was delivered."""
    doubtful: set[Key] = field(default_factory=set)
    """Jobs that may be completed: the request that completes them was sent, and not answered."""
    completed: dict[Key, float] = field(default_factory=dict)
    """Jobs that were acknowledged, or delivered at most once, and when that was answered."""

    def add(self, key: Key, at_s: float = 0.0) -> None:
        """A client received the ID of a job."""
        self.attempted.add(key)
        self.added[key] = at_s

    def complete(self, key: Key, at_s: float = 0.0) -> None:
        """A client received the reply that completes a job. Only the first time counts."""
        self.doubtful.discard(key)
        self.completed.setdefault(key, at_s)

    def update(self, other: JobAccount[Key]) -> Self:
        """Add the account of another client, which may still be adding to it in another thread."""
        self.attempted |= other.attempted
        self.added |= other.added
        self.delivered.update(other.delivered.copy())
        self.doubtful |= other.doubtful
        self.completed |= other.completed
        return self

    @property
    def undelivered(self) -> set[Key]:
        """Added and never delivered: lost, if every queue was drained."""
        return self.added.keys() - self.delivered.keys()

    @property
    def uncompleted(self) -> set[Key]:
        """Added and certainly not completed: nodes must still have these jobs."""
        return self.added.keys() - self.completed.keys() - self.doubtful

    @property
    def unexpected(self) -> set[Key]:
        """Delivered, and never sent by a client."""
        return self.delivered.keys() - self.attempted

    @property
    def recovered(self) -> set[Key]:
        """Delivered, although the client received no ID."""
        return self.delivered.keys() & (self.attempted - self.added.keys())

    @property
    def duplicates(self) -> int:
        """Deliveries beyond the first one of each job."""
        return self.delivered.total() - len(self.delivered)

    def missing(self, stored: Iterable[Key]) -> set[Key]:
        """Jobs that nodes lost, given those that they have stored."""
        return self.uncompleted - set(stored)

    def revived(self, stored: Iterable[Key]) -> set[Key]:
        """Completed jobs that nodes have stored again."""
        return self.completed.keys() & set(stored)

    def __str__(self) -> str:
        return (
            f"attempted {len(self.attempted)}, added {len(self.added)}, delivered {len(self.delivered)}, "
            f"completed {len(self.completed)}, recovered {len(self.recovered)}, duplicates {self.duplicates}, "
            f"undelivered {len(self.undelivered)}, unexpected {len(self.unexpected)}"
        )

    def check(self, at_least: int) -> None:
        """Assert that no job was lost after all queues were drained, none is unexpected, and enough were added."""
        assert not self.undelivered, f"{self}: lost {sorted(map(str, self.undelivered))[:20]}"
        assert not self.unexpected, f"{self}: unexpected {sorted(map(str, self.unexpected))[:20]}"
        assert len(self.added) >= at_least, str(self)
