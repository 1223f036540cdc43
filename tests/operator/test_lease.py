"""Leases over a store that behaves like the API server, in virtual time."""

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


class LeaseStore:
    """One Lease with versions."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.version = 0
        self.writes = 0
        self.reads = 0


class StoreClient:
    """The connection of one operator to the store. It can be broken or slow."""

    def __init__(self, store: LeaseStore) -> None:
        self.store = store
        self.broken = False
        self.loses_responses = False
        """Whether requests arrive and responses are lost."""
        self.delay_s = 0.0

    async def get(self, _kind: str, _namespace: str, _name: str) -> Json | None:
        await self._send()
        self.store.reads += 1
        return copy.deepcopy(self.store.lease)

    async def create(self, _kind: str, _namespace: str, body: Json) -> Json:
        await self._send()
        if self.store.lease is not None:
            raise KubeError(CONFLICT, "already exists")
        return await self._put(body)

    async def replace(self, _kind: str, _namespace: str, body: Json) -> Json:
        await self._send()
        if self.store.lease is None or body["metadata"]["resourceVersion"] != str(self.store.version):
            raise KubeError(CONFLICT, "the object has been modified")
        return await self._put(body)

    async def _send(self) -> None:
        if self.broken:
            raise KubeError(UNREACHABLE, "no route")
        await asyncio.sleep(self.delay_s)

    async def _put(self, body: Json) -> Json:
        self.store.version += 1
        self.store.writes += 1
        self.store.lease = copy.deepcopy(body)
        self.store.lease["metadata"]["resourceVersion"] = str(self.store.version)
        if self.loses_responses:
            await asyncio.sleep(1e6)
        return copy.deepcopy(self.store.lease)


def lease(client: StoreClient, identity: str) -> Lease:
    return Lease(client, namespace="ns", name="l", identity=identity, clock=now_s)


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
    """Check ten times a second that never both are held."""
    for _ in range(int(seconds * 10)):
        assert not (one.held and other.held)
        await asyncio.sleep(0.1)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


def test_first_operator_acts_and_second_waits() -> None:
    async def main() -> None:
        store = LeaseStore()
        one, two = lease(StoreClient(store), "one"), lease(StoreClient(store), "two")
        async with running(one):
            await one.acquired()
            async with running(two):
                await never_both(one, two, 120)
                assert one.held
                assert two.holder == "one"

    run(main())


def test_orderly_shutdown_releases_the_lease_at_once() -> None:
    async def main() -> None:
        store = LeaseStore()
        one, two = lease(StoreClient(store), "one"), lease(StoreClient(store), "two")
        async with running(one) as [task]:
            await one.acquired()
            async with running(two):
                await asyncio.sleep(5)
                task.cancel()
                began_s = now_s()
                await two.acquired()
                assert now_s() - began_s <= RETRY_S
                assert not one.held

    run(main())


def test_disconnected_holder_stops_before_another_one_acts() -> None:
    async def main() -> None:
        store = LeaseStore()
        client = StoreClient(store)
        one, two = lease(client, "one"), lease(StoreClient(store), "two")
        async with running(one):
            await one.acquired()
            async with running(two):
                await asyncio.sleep(20)
                client.broken = True
                began_s = now_s()
                await one.lost()
                lost_s = now_s()
                assert lost_s - began_s <= STOP_S
                assert not two.held
                await two.acquired()
                assert now_s() - lost_s >= DURATION_S - STOP_S - 1e-6
                assert now_s() - began_s <= DURATION_S + RETRY_S
                client.broken = False
                await never_both(one, two, 60)
                assert two.held

    run(main())


def test_renewal_with_a_lost_response_does_not_extend_the_lease() -> None:
    async def main() -> None:
        store = LeaseStore()
        client = StoreClient(store)
        one, two = lease(client, "one"), lease(StoreClient(store), "two")
        async with running(one):
            await one.acquired()
            client.loses_responses = True
            async with running(two):
                await one.lost()
                assert not two.held
                await never_both(one, two, 60)

    run(main())


def test_lease_time_counts_from_the_start_of_a_slow_renewal() -> None:
    async def main() -> None:
        client = StoreClient(LeaseStore())
        client.delay_s = 1.5
        one = lease(client, "one")
        async with running(one):
            await one.acquired()
            assert one.remaining_s == pytest.approx(STOP_S - 3.0)

    run(main())


def test_wall_clock_is_irrelevant() -> None:
    async def main() -> None:
        store = LeaseStore()
        one, two = lease(StoreClient(store), "one"), lease(StoreClient(store), "two")
        async with running(one):
            await one.acquired()
            assert store.lease is not None
            store.lease["spec"]["renewTime"] = "1999-01-01T00:00:00.000000Z"
            async with running(two):
                await never_both(one, two, 60)
                assert one.held

    run(main())


def test_same_identity_acquires_the_lease_without_waiting() -> None:
    async def main() -> None:
        store = LeaseStore()
        before = lease(StoreClient(store), "pod-1")
        task = asyncio.create_task(before.run())
        await before.acquired()
        client = StoreClient(store)
        before._store = client  # as if killed: it releases nothing
        client.broken = True
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        after = lease(StoreClient(store), "pod-1")
        async with running(after):
            began_s = now_s()
            await after.acquired()
            assert now_s() - began_s < 0.1

    run(main())


def test_deleted_lease_is_created_again() -> None:
    async def main() -> None:
        store = LeaseStore()
        one = lease(StoreClient(store), "one")
        async with running(one):
            await one.acquired()
            store.lease = None
            await asyncio.sleep(RENEW_S + 0.1)
            assert one.held
            assert store.lease is not None

    run(main())


def test_lease_is_renewed_at_the_expected_rate() -> None:
    async def main() -> None:
        store = LeaseStore()
        async with running(lease(StoreClient(store), "one")):
            await asyncio.sleep(60)
        assert store.writes <= 60 / RENEW_S + 2
        assert store.reads == 1

    run(main())


def test_holder_stops_at_once_when_another_one_has_the_lease() -> None:
    async def main() -> None:
        store = LeaseStore()
        one = lease(StoreClient(store), "one")
        async with running(one):
            await one.acquired()
            assert store.lease is not None
            store.version += 1
            store.lease["metadata"]["resourceVersion"] = str(store.version)
            store.lease["spec"]["holderIdentity"] = "a hand"
            await asyncio.sleep(RENEW_S + 0.1)
            assert not one.held
            await asyncio.sleep(DURATION_S + RETRY_S)
            assert one.held, "a manual edit does not renew it"

    run(main())


def test_lease_counts_transitions() -> None:
    async def main() -> None:
        store = LeaseStore()
        for identity in ("one", "two", "three"):
            subject = lease(StoreClient(store), identity)
            async with running(subject):
                await subject.acquired()
        assert store.lease is not None
        assert store.lease["spec"]["holderIdentity"] == ""
        assert store.lease["spec"]["leaseTransitions"] == 5, (
            "each gave it back: one, nobody, two, nobody, three, nobody"
        )

    run(main())
