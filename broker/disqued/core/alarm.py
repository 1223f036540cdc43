"""Something with a wake time that is no job: it says itself what to do then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from disqued.core.job import Timed

if TYPE_CHECKING:
    from disqued.core.state import NodeState


@mypyc_attr(acyclic=True)
class Alarm(Timed):
    """Armed on the agenda like a job."""

    def ring(self, state: NodeState) -> None:
        """The wake time has come; the agenda has let go of it."""
        raise NotImplementedError
