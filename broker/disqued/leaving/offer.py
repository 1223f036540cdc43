"""A job on its way to other nodes: who was asked to take it, who has it."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disqued.core.jobs.job import NOBODY, Job, NodeIds


@mypyc_attr(acyclic=True)
class Offer:
    """One job that other nodes were asked to keep (REPLJOB) instead of this one."""

    def __init__(self, job: Job, asked: NodeIds, wanted: i64, size_bytes: i64, now_ms: i64) -> None:
        self.job = job
        self.former: NodeIds | None = job.delivered
        """Who may have held it before it was offered; None for this node alone."""
        self.asked: NodeIds = asked
        self.confirmed: NodeIds = NOBODY
        """Those among them that said they have it."""
        self.told: NodeIds | None = None
        """The list of holders that those who were asked know."""
        self.acknowledged: bool = False
        """It was offered as a finished job whose acknowledgement others have to spread."""
        self.wanted: i64 = wanted
        """How many are to confirm before this node lets go."""
        self.size_bytes: i64 = size_bytes
        self.asked_ms: i64 = now_ms
        self.rounds: i64 = 1
        """How often nodes were asked."""
