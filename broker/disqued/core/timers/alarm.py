"""A timer that is not a job: a subclass says what happens at its wake time."""

from __future__ import annotations

from typing import Any

from mypy_extensions import mypyc_attr

from disqued.core.timers.timed import Timed


@mypyc_attr(acyclic=True)
class Alarm(Timed):
    """A timer; it is armed on the timer wheel, as jobs are."""

    def ring(self, state: Any) -> None:
        """Act: the wake time has come, and the alarm is disarmed.

        `state` is the `NodeState`, which this package does not know; subclasses name its type.
        """
        raise NotImplementedError
