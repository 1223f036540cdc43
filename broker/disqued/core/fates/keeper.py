"""What keeps the ends of jobs on one node, for rooms that know more about them than the lifecycle does."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disqued.core.fates.fate import Fate


@mypyc_attr(allow_interpreted_subclasses=True)
class FateKeeper:
    """Keeps nothing. The fates room puts its own in the place of this one (`Watches.keeper`)."""

    def receive(self, job_id: bytes, fate: Fate, keep_ms: i64) -> None:
        """Another node said how a job ended (SETREC), which this node may have and acknowledges next."""

    def take_result(self, job_id: bytes, result: bytes, claim: i64) -> bool:  # noqa: ARG002 - keeps nothing
        """A worker is about to acknowledge a job with a result. False if no record of it would be kept."""
        return False

    def ask_now(self) -> None:
        """Ask other nodes about newly watched jobs now, before what this turn still sends."""
