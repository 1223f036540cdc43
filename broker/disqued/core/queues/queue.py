"""A queue: the waiting jobs in order of creation, the clients that wait for jobs, and statistics.

Jobs are ordered by (ctime, id). New jobs are the youngest and go to the end of an intrusive list; a job that comes back
is mostly the oldest and goes to its front; both cost the same whatever the length. Jobs that belong in between (many
requeued at once, imports from other nodes) go to a sorted side structure, so that nothing ever walks a long queue; the
oldest of both is the next to be delivered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy_extensions import i64, mypyc_attr
from sortedcontainers import SortedKeyList

from disqued.core.jobs.job import IN_LATE, IN_LINE, NOWHERE, Job
from disqued.core.jobs.joblist import JobList
from disqued.core.queues.interest import Asks, Needs
from disqued.resp.writer import bulk

PAUSED_IN: Final = 1
PAUSED_OUT: Final = 2
PAUSE_NAMES: Final = (b"none", b"in", b"out", b"all")
"""By pause flags."""


def _age_key(job: Job) -> tuple[int, bytes]:
    """What jobs are ordered by."""
    return (job.ctime, job.id)


def _older(one: Job, other: Job) -> bool:
    """Whether `one` is delivered before `other`."""
    if one.ctime != other.ctime:
        return one.ctime < other.ctime
    return one.id < other.id


@mypyc_attr(acyclic=True)
class Wait:
    """A place in the line of a queue, taken by a client that waits for its jobs."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.previous: Wait | None = None
        self.next: Wait | None = None


class Queue:
    """The queue object of one node; it comes into being by use and leaves when it was idle for long."""

    def __init__(self, name: bytes, number: i64, now_ms: i64) -> None:
        self.name = name
        self.number: i64 = number
        """Grows with each queue this node makes: the scan order."""
        self.length: i64 = 0
        self._line = JobList()
        self._late: SortedKeyList | None = None
        self.first_wait: Wait | None = None
        self.last_wait: Wait | None = None
        self.waiting: i64 = 0
        """Clients blocked on this queue."""
        self.ready: bool = False
        """Has been put on the list of queues whose clients can be served."""
        self.wanted: bool = False
        """Other nodes asked for its jobs. Kept by the federation room."""
        self.sought: bool = False
        """Has been put on the list of queues whose jobs other nodes asked for."""
        self.visited_ms: i64 = 0
        """When a client last came for jobs, in a cluster."""
        self.needs: Needs | None = None
        """What is asked of other nodes; None while nothing ever was."""
        self.asks: Asks | None = None
        """What other nodes asked for; None while nothing is."""
        self.pause: i64 = 0
        self.created_ms: i64 = now_ms
        self.used_ms: i64 = now_ms
        """When a job was last queued or fetched."""
        self.jobs_in: i64 = 0
        self.jobs_out: i64 = 0
        self.reply_prefix = b"*3\r\n" + bulk(name) + b"$40\r\n"
        """Start of a delivered job on the wire, up to its ID; with counters the array is longer."""
        self.reply_prefix_counters = b"*7\r\n" + bulk(name) + b"$40\r\n"

    def insert(self, job: Job) -> None:
        """Put a job where its age says."""
        self.length += 1
        line = self._line
        last = line.last
        job.place = IN_LINE
        if last is None or _older(last, job):
            line.append(job)
            return
        first = line.first
        assert first is not None
        if _older(job, first):
            line.prepend(job)
            return
        if self._late is None:
            self._late = SortedKeyList(key=_age_key)
        job.place = IN_LATE
        self._late.add(job)

    def oldest(self) -> Job | None:
        """The job to be delivered next."""
        first = self._line.first
        if self._late is None:
            return first
        late: Job = self._late[0]
        if first is None or _older(late, first):
            return late
        return first

    def remove(self, job: Job) -> None:
        """Take a job out, wherever it stands."""
        self.length -= 1
        where = job.place
        job.place = NOWHERE
        if where == IN_LINE:
            self._line.remove(job)
            return
        assert self._late is not None
        self._late.remove(job)
        if not self._late:
            self._late = None

    def peek(self, count: int) -> list[Job]:
        """The oldest `count` jobs, oldest first; for a negative count the youngest, youngest first."""
        backwards = count < 0
        wanted = min(abs(count), self.length)
        found: list[Job] = []
        late: Iterator[Job] = iter(())
        if self._late is not None:
            late = reversed(self._late) if backwards else iter(self._late)
        job = self._line.last if backwards else self._line.first
        side = next(late, None)
        while len(found) < wanted:
            if side is None or (job is not None and _older(job, side) != backwards):
                assert job is not None
                found.append(job)
                job = job.queue_previous if backwards else job.queue_next
            else:
                found.append(side)
                side = next(late, None)
        return found

    def join_line(self, wait: Wait) -> None:
        """Put a client at the end of the line."""
        self.waiting += 1
        last = self.last_wait
        if last is None:
            self.first_wait = wait
        else:
            last.next = wait
            wait.previous = last
        self.last_wait = wait

    def leave_line(self, wait: Wait) -> None:
        """Take a client out of the line."""
        self.waiting -= 1
        previous = wait.previous
        following = wait.next
        if previous is None:
            self.first_wait = following
        else:
            previous.next = following
            wait.previous = None
        if following is None:
            self.last_wait = previous
        else:
            following.previous = previous
            wait.next = None

    @property
    def deserted(self) -> bool:
        """Nothing would be lost with this queue but its statistics."""
        return self.length == 0 and self.waiting == 0 and self.pause == 0 and not self.wanted
