"""All queues of a node, by name and in the order in which they were made.

Queues are scanned in that order. A cursor is the number of the last queue that was returned. A scan therefore needs no
snapshot, returns each queue that stays exactly once, and costs no more than what it returns.

Both indexes are split, so that none of their dicts is so large that its growth would stall the node: by name as the job
table is, and by number into blocks.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64
from sortedcontainers import SortedDict

from disqued.core.jobs.job import ACTIVE, DELAYED, LEASED, Job
from disqued.core.queues.purges import Purges
from disqued.core.queues.queue import PAUSED_IN, Queue, QueueType
from disqued.core.queues.settings import QueueSettings
from disqued.core.queues.settingsindex import SettingsIndex

_SHARDS: Final = 64
_BLOCK_SHIFT: Final = 10
"""A block has the queues whose numbers differ only in this many bits."""


def _shard(name: bytes) -> i64:
    """The number of the dict that holds a name."""
    whole: i64 = hash(name)  # a machine integer: most hashes are too large for a fast `int`
    return whole & (_SHARDS - 1)


class Queues:
    """The queues of one node."""

    def __init__(self, standard: QueueType) -> None:
        self._standard = standard
        """The type of all queues that were not declared."""
        self._declared: dict[bytes, QueueType] = {}
        """The types of queues that were declared, by name."""
        self._some_declared: bool = False
        self.index = SettingsIndex()
        """The settings of all names; the settings room changes it, and then the queues."""
        self.purges = Purges()
        """The marks of purges; the settings room keeps them, the counts room deletes the jobs."""
        self._shards: list[dict[bytes, Queue]] = [{} for _ in range(_SHARDS)]
        """By name."""
        self._blocks = SortedDict()
        """By number of the block, a dict of queues by number."""
        self._last: Queue | None = None
        """The queue that was found last: consecutive requests mostly name the same one."""
        self.delayed_jobs: i64 = 0
        """The jobs of all queues that wait on this node for the end of their delay."""
        self.capped: i64 = 0
        """How many queues count their jobs in flight (`Limiter.leases`)."""
        self._count: i64 = 0
        self._made: i64 = 0
        """The number of the last queue that was made."""

    def __len__(self) -> int:
        """Number of queues."""
        return int(self._count)

    def get(self, name: bytes) -> Queue | None:
        """The queue of that name, or None."""
        last = self._last
        if last is not None and last.name == name:
            return last
        queue = self._shards[_shard(name)].get(name)
        if queue is not None:
            self._last = queue
        return queue

    def count_lease_out(self, job: Job) -> None:
        """Count a job no longer that a worker of this node had. Its state and flags are still those of the lease."""
        if job.flags & (LEASED | DELAYED) == LEASED and job.state == ACTIVE and job.retry_s > 0:
            queue = self.get(job.queue)
            assert queue is not None  # it is in use while it has leases
            queue.leased -= 1

    def lease_over(self, job: Job, *, dropped: bool = False) -> None:
        """Tell the limiter of the queue, if it has one, that a job is not in flight any more."""
        queue = self.get(job.queue)
        if queue is not None and queue.limiter is not None:
            queue.limiter.lease_over(job, dropped=dropped)

    def count_delayed_in(self, queue: Queue) -> None:
        """Count a job that waits on this node for the end of its delay."""
        queue.delayed += 1
        self.delayed_jobs += 1

    def count_delayed_out(self, name: bytes) -> None:
        """Count such a job of the queue of that name no longer."""
        queue = self.get(name)
        assert queue is not None  # it is in use while it has delayed jobs
        queue.delayed -= 1
        self.delayed_jobs -= 1

    def declare(self, name: bytes, queue_type: QueueType) -> None:
        """Choose the type of a queue that does not exist yet."""
        assert self.get(name) is None
        self._declared[name] = queue_type
        self._some_declared = True

    def type_of(self, name: bytes) -> QueueType:
        """The type of the queue of that name, whether the queue exists now or not."""
        if self._some_declared:
            return self._declared.get(name, self._standard)
        return self._standard

    def settings_of(self, name: bytes) -> QueueSettings | None:
        """The settings of the queue of that name, whether the queue exists now or not; None if there are none."""
        return self.index.resolve(name) if self.index.some else None

    def takes_no_input(self, name: bytes) -> bool:
        """Whether the queue of that name, which need not exist, is paused for input."""
        queue = self.get(name)
        if queue is not None:
            return queue.pause & PAUSED_IN != 0
        settings = self.settings_of(name)
        return settings is not None and settings.pause & PAUSED_IN != 0

    def get_or_make(self, name: bytes, now_ms: i64) -> Queue:
        """The queue of that name; it is made if it does not exist."""
        shard = self._shards[_shard(name)]
        queue = shard.get(name)
        if queue is None:
            self._made += 1
            queue = Queue(name, self._made, now_ms, self.type_of(name))
            settings = self.settings_of(name)
            if settings is not None:
                queue.settings = settings
                queue.pause = settings.pause
            shard[name] = queue
            self._count += 1
            block: dict[int, Queue] = self._blocks.setdefault(int(self._made >> _BLOCK_SHIFT), {})
            block[int(self._made)] = queue
        return queue

    def remove(self, queue: Queue) -> None:
        """Remove a queue and its statistics."""
        if self._last is queue:
            self._last = None
        shard = self._shards[_shard(queue.name)]
        del shard[queue.name]
        self._count -= 1
        number = int(queue.number >> _BLOCK_SHIFT)
        block: dict[int, Queue] = self._blocks[number]
        del block[int(queue.number)]
        if not block:
            del self._blocks[number]

    def take_all(self) -> tuple[list[dict[bytes, Queue]], list[dict[int, Queue]]]:
        """Remove all queues at once, and return the dicts that hold them: by name, and by number."""
        by_name = self._shards
        by_number: list[dict[int, Queue]] = list(self._blocks.values())
        self._shards = [{} for _ in range(_SHARDS)]
        self._blocks = SortedDict()
        self._last = None
        self._count = 0
        self.delayed_jobs = 0
        return by_name, by_number

    def scan(self, cursor: int, limit: int) -> tuple[int, list[Queue]]:
        """The next cursor, 0 at the end, and up to `limit` queues after the cursor."""
        found: list[Queue] = []
        for number in self._blocks.irange(cursor >> _BLOCK_SHIFT):
            block: dict[int, Queue] = self._blocks[number]
            for queue in block.values():
                if queue.number <= cursor:
                    continue
                if len(found) >= limit:
                    return int(found[-1].number) if found else cursor, found
                found.append(queue)
        return 0, found
