"""A job of the queue, and the profile that jobs with the same options share.

Most waiting jobs are rows of packed arrays (`line`). A job has an object of its own while a consumer has it, and from
then on: it came back, waits for a delay, or is on its way to another queue. A job that is added with a delay or with
counters has one from the start.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.orderedqueue.consumers import Consumer
from disqued.orderedqueue.effects import Move
from disqued.orderedqueue.groups import Group, Groups

READY: Final = 1
"""It waits to be assigned."""
LEASED: Final = 2
"""A consumer has it."""
DELAYED: Final = 3
"""It waits for a time."""
MOVING: Final = 4
"""It is on its way to another queue."""


class Profile:
    """Options that jobs share: a row of packed jobs has the number of its profile."""

    def __init__(self, number: i64, retry_s: i64, ttl_s: i64, retain_s: i64, dead: bool, group: Group | None) -> None:
        self.number: i64 = number
        self.retry_s: i64 = retry_s
        self.ttl_s: i64 = ttl_s
        self.retain_s: i64 = retain_s
        self.dead = dead
        """Whether the jobs are dead letters."""
        self.group = group
        self.jobs: i64 = 0
        """How many jobs have this profile."""


class Job:
    """A job."""

    def __init__(self, index: i64, created_ms: i64, profile: Profile, size: i64) -> None:
        self.index: i64 = index
        """The index of the entry that added it."""
        self.created_ms: i64 = created_ms
        self.profile = profile
        self.size: i64 = size
        """Bytes of the body."""
        self.state: i64 = READY
        self.packed: bool = False
        """Whether this is a copy of a row: changes of it have no effect."""
        self.claim: i64 = 0
        """The last claim; 0 if nobody had the job."""
        self.consumer: Consumer | None = None
        """The consumer that has it."""
        self.until_ms: i64 = 0
        """When the lease or the delay ends."""
        self.due_ms: i64 = 0
        """When something happens to the job without a command; 0 for never."""
        self.nacks: i64 = 0
        self.additional: i64 = 0
        """Additional deliveries: leases that ended."""
        self.holds_back: bool = False
        """Whether later jobs wait for the end of its delay."""
        self.reason = b""
        """What the last worker said when it gave the job back."""
        self.note = b""
        """The last line of progress."""
        self.move: Move | None = None
        """Where it is on its way to."""

    @property
    def expires_ms(self) -> i64:
        """When its life ends."""
        return self.created_ms + self.profile.ttl_s * 1000

    @property
    def attempts(self) -> i64:
        """How often the job failed."""
        return self.nacks + self.additional

    @property
    def group_key(self) -> bytes:
        """Its group key; empty for none."""
        group = self.profile.group
        return b"" if group is None else group.key


class Profiles:
    """The profiles of the jobs in the queue, by number. Numbers are used again."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.table: list[Profile | None] = []
        self.free: list[int] = []
        """Numbers that no profile has, the next one last."""
        self._by_values: dict[tuple[int, int, int, bool, bytes], Profile] = {}
        self._last: Profile | None = None

    def find(self, retry_s: i64, ttl_s: i64, retain_s: i64, dead: bool, group: bytes) -> Profile:
        """The profile with these values. The caller counts its job."""
        last = self._last
        if (
            last is not None
            and last.group is None
            and not group
            and last.retry_s == retry_s
            and last.ttl_s == ttl_s
            and last.retain_s == retain_s
            and last.dead == dead
        ):
            return last
        found = self._by_values.get((int(retry_s), int(ttl_s), int(retain_s), dead, group))
        if found is None:
            if self.free:
                number = self.free.pop()
            else:
                number = len(self.table)
                self.table.append(None)
            found = Profile(number, retry_s, ttl_s, retain_s, dead, self.groups.join(group) if group else None)
            self.put(found)
        self._last = found
        return found

    def put(self, profile: Profile) -> None:
        """Store a profile under its number."""
        group = b"" if profile.group is None else profile.group.key
        self.table[profile.number] = profile
        self._by_values[_values(profile, group)] = profile

    def release(self, profile: Profile) -> None:
        """A job of this profile has ended."""
        profile.jobs -= 1
        if profile.jobs > 0:
            return
        group = b"" if profile.group is None else profile.group.key
        del self._by_values[_values(profile, group)]
        self.table[profile.number] = None
        self.free.append(int(profile.number))
        if self._last is profile:
            self._last = None
        if profile.group is not None:
            self.groups.leave(profile.group)


def _values(profile: Profile, group: bytes) -> tuple[int, int, int, bool, bytes]:
    return (int(profile.retry_s), int(profile.ttl_s), int(profile.retain_s), profile.dead, group)
