"""Which nodes do not have a job although they may be listed: for jobs whose list of holders may be incomplete.

After a crash, a node does not know whether its file has all holders of a job (INCOMPLETE). It adds all members to the
list before it sends something about the job. That list must not decide how many copies there are, because no copy would
ever be missing. The comparisons find out which members do not have the job.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.cluster.holders import Holders, lists
from disqued.core.jobs.job import INCOMPLETE, NOBODY, Job, NodeIds
from disqued.core.jobs.table import JobTable

LOOKS_PER_ROUND: Final = 200


class Absent:
    """What one node knows about the jobs that other nodes do not have."""

    def __init__(self, holders: Holders) -> None:
        self._holders = holders
        self._jobs: dict[bytes, NodeIds] = {}
        self._seen: dict[bytes, NodeIds] = {}
        """Those whose job was looked at, until all were: jobs may have ended."""

    def clear(self) -> None:
        """Forget all."""
        self._jobs = {}
        self._seen = {}

    def of(self, job_id: bytes) -> NodeIds:
        """The nodes that do not have a job."""
        absent = self._jobs.get(job_id)
        return self._seen.get(job_id, NOBODY) if absent is None else absent

    def holders(self, job: Job) -> NodeIds | None:
        """The list of holders, without nodes that do not have the job."""
        delivered = job.delivered
        if delivered is None or not job.flags & INCOMPLETE:
            return delivered
        absent = self.of(job.id)
        return self._holders.without(delivered, absent) if absent else delivered

    def may_have(self, job: Job, node_id: bytes) -> bool:
        """Whether a node is a holder of a job as far as this node knows."""
        if job.flags & INCOMPLETE:
            return not lists(self.of(job.id), node_id)
        delivered = job.delivered
        return delivered is not None and lists(delivered, node_id)

    def add(self, job: Job, node_ids: NodeIds) -> None:
        """Nodes do not have a job."""
        if job.flags & INCOMPLETE:
            absent = self._holders.union(self.of(job.id), node_ids)
            self._seen.pop(job.id, None)
            self._jobs[job.id] = absent

    def remove(self, job_id: bytes, node_id: bytes) -> None:
        """A node has a job."""
        absent = self.of(job_id)
        if lists(absent, node_id):
            self._seen.pop(job_id, None)
            self._jobs[job_id] = self._holders.without(absent, (node_id,))

    def clean(self, table: JobTable) -> None:
        """Look at some jobs, and forget those that have ended."""
        looks: i64 = LOOKS_PER_ROUND
        while looks > 0 and self._jobs:
            looks -= 1
            job_id, absent = self._jobs.popitem()
            if absent and table.get(job_id) is not None:
                self._seen[job_id] = absent
        if not self._jobs:
            self._jobs, self._seen = self._seen, self._jobs
