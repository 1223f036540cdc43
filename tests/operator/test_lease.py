"""Who may act: leases over a store that behaves as the API server does, in virtual time."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from disque_operator.apivalues import Json
from disque_operator.kube import CONFLICT, UNREACHABLE, KubeError
from disque_operator.lease import DURATION_S, RENEW_S, RETRY_S, STOP_S, Lease
from support.virtualtime import now_s, run


class Shelf:
    """One Lease, with versions. An operator can be cut off from it, or its requests be slow."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.version = 0
        self.writes = 0
        self.reads = 0


class Way:
    """One operator's way to the shelf."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.broken = False
        self.missed = False
        """Requests arrive, answers do not."""
        self.delay_s = 0.0

    async def get(self, _kind: str, _namespace: str, _name: str) -> Json | None:
        await self._travel()
        self.shelf.reads += 1
        return copy.deepcopy(self.shelf.lease)

    async def create(self, _kind: str, _namespace: str, body: Json) -> Json:
        await self._travel()
        if self.shelf.lease is not None:
            raise KubeError(CONFLICT, "already exists")
        return await self._put(body)

    async def replace(self, _kind: str, _namespace: str, body: Json) -> Json:
        await self._travel()
        if self.shelf.lease is None or body["metadata"]["resourceVersion"] != str(self.shelf.version):
            raise KubeError(CONFLICT, "the object has been modified")
        return await self._put(body)

    async def _travel(self) -> None:
        if self.broken:
            raise KubeError(UNREACHABLE, "no route")
        await asyncio.sleep(self.delay_s)

    async def _put(self, body: Json) -> Json:
        self.shelf.version += 1
        self.shelf.writes += 1
        self.shelf.lease = copy.deepcopy(body)
        self.shelf.lease["metadata"]["resourceVersion"] = str(self.shelf.version)
        if self.missed:
            await asyncio.sleep(1e6)
        return copy.deepcopy(self.shelf.lease)


def lease(way: Way, identity: str) -> Lease:
    return Lease(way, namespace="ns", name="l", identity=identity, clock=now_s)


@asynccontextmanager
async def running(*leases: Lease) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(one.run()) for one in leases]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def never_both(one: Lease, other: Lease, seconds: float) -> None:
    """For so long, looked at ten times a second."""
    for _ in range(int(seconds * 10)):
        assert not (one.held and other.held)
        await asyncio.sleep(0.1)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


def test_the_first_one_acts_and_the_second_waits() -> None:
    async def main() -> None:
        shelf = Shelf()
        one, two = lease(Way(shelf), "one"), lease(Way(shelf), "two")
        async with running(one):
            await one.gained()
            async with running(two):
                await never_both(one, two, 120)
                assert one.held
                assert two.holder == "one"

    run(main())


def test_who_ends_in_order_gives_it_to_the_next_at_once() -> None:
    async def main() -> None:
        shelf = Shelf()
        one, two = lease(Way(shelf), "one"), lease(Way(shelf), "two")
        async with running(one) as [task]:
            await one.gained()
            async with running(two):
                await asyncio.sleep(5)
                task.cancel()
                began_s = now_s()
                await two.gained()
                assert now_s() - began_s <= RETRY_S
                assert not one.held

    run(main())


def test_who_is_cut_off_stops_before_the_other_one_begins() -> None:
    async def main() -> None:
        shelf = Shelf()
        way = Way(shelf)
        one, two = lease(way, "one"), lease(Way(shelf), "two")
        async with running(one):
            await one.gained()
            async with running(two):
                await asyncio.sleep(20)
                way.broken = True
                began_s = now_s()
                await one.lost()
                lost_s = now_s()
                assert lost_s - began_s <= STOP_S
                assert not two.held
                await two.gained()
                assert now_s() - lost_s >= DURATION_S - STOP_S - 1e-6
                assert now_s() - began_s <= DURATION_S + RETRY_S
                way.broken = False
                await never_both(one, two, 60)
                assert two.held

    run(main())


def test_a_renewal_whose_answer_is_lost_does_not_count_for_the_holder() -> None:
    async def main() -> None:
        shelf = Shelf()
        way = Way(shelf)
        one, two = lease(way, "one"), lease(Way(shelf), "two")
        async with running(one):
            await one.gained()
            way.missed = True
            async with running(two):
                await one.lost()
                assert not two.held
                await never_both(one, two, 60)

    run(main())


def test_the_time_counts_from_before_a_slow_renewal() -> None:
    async def main() -> None:
        way = Way(Shelf())
        way.delay_s = 1.5
        one = lease(way, "one")
        async with running(one):
            await one.gained()
            assert one.remaining_s == pytest.approx(STOP_S - 3.0)

    run(main())


def test_the_wall_clock_does_not_matter() -> None:
    async def main() -> None:
        shelf = Shelf()
        one, two = lease(Way(shelf), "one"), lease(Way(shelf), "two")
        async with running(one):
            await one.gained()
            assert shelf.lease is not None
            shelf.lease["spec"]["renewTime"] = "1999-01-01T00:00:00.000000Z"
            async with running(two):
                await never_both(one, two, 60)
                assert one.held

    run(main())


def test_the_same_pod_takes_it_back_without_waiting() -> None:
    async def main() -> None:
        shelf = Shelf()
        before = lease(Way(shelf), "pod-1")
        task = asyncio.create_task(before.run())
        await before.gained()
        way = Way(shelf)
        before._store = way  # killed: gives nothing back
        way.broken = True
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        after = lease(Way(shelf), "pod-1")
        async with running(after):
            began_s = now_s()
            await after.gained()
            assert now_s() - began_s < 0.1

    run(main())


def test_a_lease_that_was_deleted_is_made_again() -> None:
    async def main() -> None:
        shelf = Shelf()
        one = lease(Way(shelf), "one")
        async with running(one):
            await one.gained()
            shelf.lease = None
            await asyncio.sleep(RENEW_S + 0.1)
            assert one.held
            assert shelf.lease is not None

    run(main())


def test_it_is_renewed_as_often_as_it_has_to_be_and_not_more() -> None:
    async def main() -> None:
        shelf = Shelf()
        async with running(lease(Way(shelf), "one")):
            await asyncio.sleep(60)
        assert shelf.writes <= 60 / RENEW_S + 2
        assert shelf.reads == 1

    run(main())


def test_who_finds_that_another_one_has_it_stops_at_once() -> None:
    async def main() -> None:
        shelf = Shelf()
        one = lease(Way(shelf), "one")
        async with running(one):
            await one.gained()
            assert shelf.lease is not None
            shelf.version += 1
            shelf.lease["metadata"]["resourceVersion"] = str(shelf.version)
            shelf.lease["spec"]["holderIdentity"] = "a hand"
            await asyncio.sleep(RENEW_S + 0.1)
            assert not one.held
            await asyncio.sleep(DURATION_S + RETRY_S)
            assert one.held, "a hand does not renew it"

    run(main())


def test_its_record_says_how_often_it_changed_hands() -> None:
    async def main() -> None:
        shelf = Shelf()
        for identity in ("one", "two", "three"):
            subject = lease(Way(shelf), identity)
            async with running(subject):
                await subject.gained()
        assert shelf.lease is not None
        assert shelf.lease["spec"]["holderIdentity"] == ""
        assert shelf.lease["spec"]["leaseTransitions"] == 5, (
            "each gave it back: one, nobody, two, nobody, three, nobody"
        )

    run(main())
