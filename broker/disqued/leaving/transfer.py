"""The transfer of one job to other nodes: which nodes were asked to take the job, and which of them have it."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disqued.core.jobs.job import NOBODY, Job, NodeIds


@mypyc_attr(acyclic=True)
class Transfer:
    """One job that other nodes were asked to keep (REPLJOB) instead of this node."""

    def __init__(self, job: Job, asked: NodeIds, wanted: i64, size_bytes: i64, now_ms: i64) -> None:
        self.job = job
        self.former: NodeIds | None = job.delivered
        """The nodes that may have held the job before the transfer; None if only this node did."""
        self.asked: NodeIds = asked
        """The nodes that were asked to take the job."""
        self.confirmed: NodeIds = NOBODY
        """The nodes among them that confirmed that they have it."""
        self.listed: NodeIds | None = None
        """The list of holders that was last sent to the nodes that were asked."""
        self.acknowledged: bool = False
        """Whether the job was already finished, so that the new owners must spread its acknowledgement."""
        self.wanted: i64 = wanted
        """How many nodes must confirm before this node drops the job."""
        self.size_bytes: i64 = size_bytes
        self.asked_ms: i64 = now_ms
        """When nodes were last asked."""
        self.rounds: i64 = 1
        """How often nodes were asked."""
