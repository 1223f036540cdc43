"""The queue of clusters, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections.abc import Awaitable, Callable

import pytest

from disque_operator.queue import BACKOFF, SETTLE_S, SHORTEST_RETRY_S, Key, Queue
from support.virtualtime import now_s, run

A: Key = ("ns", "a")
B: Key = ("ns", "b")


def queue(work: Callable[[Key], Awaitable[float | None]], workers: int = 8) -> Queue:
    return Queue(work, workers=workers, rng=random.Random(1), clock=now_s)


async def run_for(subject: Queue, seconds: float) -> None:
    task = asyncio.create_task(subject.run())
    await asyncio.sleep(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_burst_of_changes_leads_to_one_round() -> None:
    rounds: list[float] = []

    async def work(_key: Key) -> float:
        rounds.append(now_s())
        return 1000.0

    async def main() -> None:
        subject = queue(work)
        for _ in range(50):
            subject.wake(A)
        await run_for(subject, 10)

    run(main())
    assert rounds == [1000.0 + SETTLE_S]


def test_changes_during_a_round_lead_to_one_more_round() -> None:
    rounds: list[float] = []

    async def main() -> None:
        async def work(key: Key) -> float:
            rounds.append(now_s())
            if len(rounds) == 1:
                await asyncio.sleep(5)
                subject.wake(key)
                subject.wake(key)
                await asyncio.sleep(5)
            return 1000.0

        subject = queue(work)
        subject.wake(A)
        await run_for(subject, 60)

    run(main())
    assert rounds == [pytest.approx(1000 + SETTLE_S), pytest.approx(1010 + 2 * SETTLE_S)]


def test_next_round_is_due_when_the_last_one_requested() -> None:
    rounds: list[float] = []

    async def work(_key: Key) -> float:
        rounds.append(now_s())
        return 30.0

    async def main() -> None:
        subject = queue(work)
        subject.wake(A)
        await run_for(subject, 100)

    run(main())
    assert rounds == [pytest.approx(1000 + SETTLE_S + 30 * number) for number in range(4)]


def test_deleted_key_is_forgotten_until_it_is_woken() -> None:
    rounds: list[Key] = []

    async def work(key: Key) -> None:
        rounds.append(key)

    async def main() -> None:
        subject = queue(work)
        subject.wake(A)
        await run_for(subject, 10)
        assert subject.keys == []
        subject.wake(A)
        await run_for(subject, 10)

    run(main())
    assert rounds == [A, A]


def test_concurrency_is_one_per_key_and_limited_by_workers() -> None:
    running: list[Key] = []
    most = 0

    async def work(key: Key) -> float:
        nonlocal most
        assert key not in running
        running.append(key)
        most = max(most, len(running))
        await asyncio.sleep(1)
        running.remove(key)
        return 0.5

    async def main() -> None:
        subject = queue(work, workers=3)
        for number in range(10):
            subject.wake(("ns", str(number)))
        await run_for(subject, 30)
        assert subject.overdue_s() < 4, "every key gets its turn"

    run(main())
    assert most == 3


def test_failed_round_is_retried_with_backoff_and_delays_no_other_key(caplog: pytest.LogCaptureFixture) -> None:
    failed: list[float] = []
    worked: list[float] = []

    async def work(key: Key) -> float:
        if key == A:
            failed.append(now_s())
            raise ZeroDivisionError
        worked.append(now_s())
        return 10.0

    async def main() -> None:
        subject = queue(work)
        subject.wake(A)
        subject.wake(B)
        await run_for(subject, 1000)

    with caplog.at_level(logging.CRITICAL):
        run(main())
    waits = [after - before for before, after in itertools.pairwise(failed)]
    assert waits[:4] == sorted(waits[:4])
    assert max(waits) <= BACKOFF.longest_s
    assert len(failed) < 35
    assert len(worked) == 100


def test_change_shortens_the_backoff_but_not_below_the_minimum(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failed: list[float] = []

    async def main() -> None:
        async def work(key: Key) -> float:
            failed.append(now_s())
            subject.wake(key)  # as watch events of the round's own writes do
            raise ZeroDivisionError

        subject = queue(work)
        subject.wake(A)
        await run_for(subject, 600)

    with caplog.at_level(logging.CRITICAL):
        run(main())
    waits = [after - before for before, after in itertools.pairwise(failed)]
    assert max(waits) == pytest.approx(SHORTEST_RETRY_S)
    assert min(waits) >= 0.5


def test_cancelled_rounds_are_due_again() -> None:
    rounds: list[str] = []

    async def work(_key: Key) -> float:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            rounds.append("cancelled")
            raise
        rounds.append("done")
        return 1000.0

    async def main() -> None:
        subject = queue(work)
        subject.wake(A)
        await run_for(subject, 50)
        assert rounds == ["cancelled"]
        await run_for(subject, 200)

    run(main())
    assert rounds == ["cancelled", "done"]
