"""Lost copies, in rounds after a run has ended: nodes without files restart one after the other, and lose nothing.

Each round adds jobs with attributes and one that waits for another job, restarts one node without its jobs, and waits
until no node misses a copy. Then every job must have its copies and its attributes, jobs that wait must still wait, and
each lost copy must have been made once. The rounds come after all other checks, and not all seeds have them, so that
the runs are those from before.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from disqued.core.jobs.attributes import META
from disqued.core.jobs.job import ACKED
from disqued.repair.counters import REBUILT
from disqued.repair.room import repair_of
from disqued.testing.mixes import MIXES

if TYPE_CHECKING:
    from disqued.testing.cluster import Cluster, Member
    from disqued.testing.history import History

SHARE: Final = 0.2
"""The part of the seeds that have rounds, of those whose nodes keep no files."""
WHOLE_S: Final = 60
"""The bound within which all copies exist again."""
_QUEUE: Final = "repaired"
_JOBS: Final = 12
_HELD_RETRY_S: Final = 5
_BODY: Final = "repaired"


def has_repairs(seed: int, mix: str) -> bool:
    """Whether the run of a seed ends with such rounds."""
    return not MIXES[mix].configured and Random(f"has repairs {seed}").random() < SHARE  # noqa: S311 - repeatable


class RepairRounds:
    """The rounds of one run."""

    def __init__(self, cluster: Cluster, history: History, seed: int, pass_time: Callable[[float], None]) -> None:
        self._cluster = cluster
        self._history = history
        self._chance = Random(f"repairs {seed}")  # noqa: S311 - repeatable chance is the point
        self._pass_time = pass_time
        self._jobs: list[bytes] = []
        self._held: list[bytes] = []
        """Those that wait for another one, which no worker takes."""

    def run(self) -> None:
        """Restart all nodes once."""
        members = [member for member in self._cluster.members if member.running]
        if len(members) < 3 or not self._is_whole():
            return
        for member in members:
            others = [other for other in members if other is not member]
            self._add(self._chance.choice(others), min(3, len(members)))
            table = member.node.state.lifecycle.table
            lost = sum(job.repl > 1 and job.state != ACKED for job in table.jobs())
            before = self._rebuilt(others)
            member.restart()
            self._wait()
            self._check(member, lost, self._rebuilt(others) - before)
        for member in members:
            member.tell("DELJOB", *self._jobs)
        self._pass_time(1)

    def _add(self, member: Member, copies: int) -> None:
        """Add jobs that no worker takes, and wait for their copies."""
        clients = [member.client() for _ in range(_JOBS)]
        for client in clients:
            replicate = self._chance.randint(2, copies)
            client.send("ADDJOB", _QUEUE, _BODY, 0, "REPLICATE", replicate, "RETRY", 3000, "PRIORITY", 7, "META", _BODY)
        self._pass_time(3)
        for client in clients:
            reply = None if client.silent else client.next_reply()
            if isinstance(reply, bytes):
                self._jobs.append(reply)
            client.disconnect()
        if self._jobs:
            self._add_held(member, copies, self._jobs[-1])

    def _add_held(self, member: Member, copies: int, parent: bytes) -> None:
        """Add a job that waits for another one."""
        client = member.client()
        client.send(
            "ADDJOB", _QUEUE, _BODY, 3000, "REPLICATE", copies, "RETRY", _HELD_RETRY_S, "META", _BODY, "AFTER", parent
        )
        self._pass_time(4)
        reply = None if client.silent else client.next_reply()
        if isinstance(reply, bytes):
            self._jobs.append(reply)
            self._held.append(reply)
        client.disconnect()

    def _wait(self) -> None:
        """Wait until no copy is missing."""
        end_ms = self._cluster.network.now_ms + WHOLE_S * 1000
        self._pass_time(1)
        while not self._is_whole():
            if self._cluster.network.now_ms > end_ms:
                self._violate("copies are missing for too long")
                return
            self._pass_time(1)

    def _is_whole(self) -> bool:
        rooms = [repair_of(member.node.state) for member in self._cluster.members if member.running]
        return self._cluster.is_whole() and not any(room.waits_for() or room.under_replicated for room in rooms)

    def _rebuilt(self, members: list[Member]) -> int:
        counters = [member.node.state.counters for member in members]
        return sum(int(node.value(counter)) for node in counters for counter in REBUILT)

    def _check(self, restarted: Member, lost: int, rebuilt: int) -> None:
        """Check the copies and the attributes of all jobs, and how many copies were made."""
        for job_id in self._jobs:
            tables = [member.node.state.lifecycle.table for member in self._cluster.members if member.running]
            copies = [job for job in (table.get(job_id) for table in tables) if job is not None]
            if not copies or len(copies) < copies[0].repl:
                self._violate(f"{job_id!r} has {len(copies)} copies after the restart of node {restarted.number}")
            elif any(job.extra is None or job.extra.get(META) != _BODY.encode() for job in copies):
                self._violate(f"{job_id!r} lost its attributes")
            elif job_id in self._held and not all(job.is_held for job in copies):
                self._violate(f"{job_id!r} does not wait any more")
        if rebuilt > lost + lost // 4 + 2:  # a holder takes over from another one that is late
            self._violate(f"{rebuilt} copies were made again, and {lost} were lost")

    def _violate(self, what: str) -> None:
        self._history.violate(self._cluster.network.now_ms, what)
