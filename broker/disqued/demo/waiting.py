"""Waits for what a scene expects for as long as the scene makes progress: how long it takes depends on the machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from disqued.demo.workers import WorkFailedError

POLL_S = 0.05


def wait_for(
    condition: Callable[[], object],
    what: str,
    *,
    progress: Callable[[], int],
    patience_s: float,
    failures: Sequence[str],
    describe: Callable[[], str],
) -> None:
    """Wait until a condition is true.

    Args:
        condition: What is waited for.
        what: The same in words, for the error.
        progress: A number that grows when something happens.
        patience_s: How long it may stay the same.
        failures: What has failed in other threads, which ends the wait.
        describe: How far the scene is, for the error.

    Raises:
        WorkFailedError: something failed, or there was no progress.
    """
    reached, since_s = progress(), time.monotonic()
    while not condition():
        if failures:
            raise WorkFailedError(failures[0])
        if progress() != reached:
            reached, since_s = progress(), time.monotonic()
        elif time.monotonic() - since_s > patience_s:
            raise WorkFailedError(f"{patience_s:g} s without progress, and it is not true that {what}. {describe()}")
        time.sleep(POLL_S)
