"""Something with a wake time that is no job: it says itself what happens then."""

from __future__ import annotations

from typing import Any

from mypy_extensions import mypyc_attr

from disqued.core.timers.timed import Timed


@mypyc_attr(acyclic=True)
class Alarm(Timed):
    """Armed on the timer wheel like a job."""

    def ring(self, state: Any) -> None:
        """Act: the wake time has come, and the timer wheel has let go of this alarm.

        `state` is the `NodeState`, which this package, below it, does not know; subclasses name its type.
        """
        raise NotImplementedError
