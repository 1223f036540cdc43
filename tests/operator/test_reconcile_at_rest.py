"""Rounds that have nothing to do: what they read, and when they read the API server again."""

from __future__ import annotations

import asyncio
import logging

import pytest

from disque_operator.actions import Action, DeleteChild
from disque_operator.decisions import SOON_S
from disque_operator.observed import Observed
from disque_operator.reconcile import DEGRADED_S
from disque_operator.status_writes import COUNTERS_S
from support.rounds import (
    CLUSTER,
    CONFIG,
    KEY,
    OWN_SECRET,
    POD,
    STATUS,
    config_when_missing,
    harness,
    make,
)

OUTSIDE = "/api/v1/namespaces/ns/services/c-0-external"


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_cluster_with_traffic_causes_no_reads_and_a_write_every_five_minutes() -> None:
    async def main() -> None:
        async with harness() as one:
            one.server.put(CONFIG, make("ConfigMap", "c-config"))
            one.status = STATUS | {"jobs": {"registered": 0, "queued": 0}}
            await one.round()
            requests: list[str] = []
            for number in range(1, 121):
                one.report()
                one.status = STATUS | {"jobs": {"registered": number, "queued": 0}}
                requests += await one.round(30)
            assert len(one.seen) == 121, "an hour of rounds"
            assert set(requests) == {f"PATCH {CLUSTER}/status"}
            assert len(requests) == 3600 / COUNTERS_S
            assert one.written["jobs"]["registered"] >= 110

    asyncio.run(main())


def test_cluster_without_traffic_causes_no_requests() -> None:
    async def main() -> None:
        async with harness() as one:
            await one.round()
            one.report()
            for _ in range(120):
                assert await one.round(30) == []

    asyncio.run(main())


def test_exposed_cluster_without_traffic_causes_no_requests_and_its_addresses_stay_known() -> None:
    async def main() -> None:
        async with harness() as one:
            exposed = {"spec": {"exposure": {"type": "NodePort"}}}
            one.server.put(CLUSTER, one.server.objects[CLUSTER] | exposed)
            addresses = [{"type": "InternalIP", "address": "192.0.2.1"}]
            one.server.put("/api/v1/nodes/n", {"kind": "Node", "spec": {}, "status": {"addresses": addresses}})
            one.server.put(POD, make("Pod", "c-0", spec={"nodeName": "n", "containers": []}))
            await one.round()
            one.server.put(OUTSIDE, make("Service", "c-0-external", spec={"type": "NodePort"}))
            one.report()
            for _ in range(120):
                assert await one.round(30) == []
            assert ("Service", "c-0-external") in one.seen[-1].children, "its watch reported it"
            assert [pod.node_addresses for pod in one.seen[-1].pods] == [(("InternalIP", "192.0.2.1"),)]

    asyncio.run(main())


def test_degraded_cluster_is_read_once_a_minute() -> None:
    async def main() -> None:
        async with harness() as one:
            one.again_s = 10.0
            await one.round()
            one.report()
            reads = [f"GET {CLUSTER}" in await one.round(10) for _ in range(60)]
            assert sum(reads) <= 600 / DEGRADED_S, "what it waits for may have no watch"
            assert sum(reads) >= 600 / DEGRADED_S - 2

    asyncio.run(main())


def test_objects_are_read_while_something_is_in_progress() -> None:
    async def main() -> None:
        async with harness() as one:
            one.again_s = SOON_S
            await one.round()
            one.report()
            assert f"GET {CLUSTER}" in await one.round(SOON_S)

    asyncio.run(main())


def test_round_uses_what_watches_reported() -> None:
    async def main() -> None:
        async with harness() as one:
            await one.round()
            one.server.put(CONFIG, make("ConfigMap", "c-config"))
            one.report()
            assert await one.round() == []
            assert ("ConfigMap", "c-config") in one.seen[-1].children

    asyncio.run(main())


def test_changed_secret_of_a_user_is_read_at_once() -> None:
    async def main() -> None:
        async with harness() as one:
            one.server.put(CLUSTER, one.server.objects[CLUSTER] | {"spec": {"auth": {"secretName": "own"}}})
            one.server.put(OWN_SECRET, {"kind": "Secret", "data": {"password": "b25l"}})
            await one.round()
            one.report()
            await one.woken.wait()  # the watch begins with the present Secret
            one.woken.clear()
            await one.round()
            assert await one.round() == [], "at rest"
            one.server.put(OWN_SECRET, {"kind": "Secret", "data": {"password": "dHdv"}})
            await one.woken.wait()
            await one.round(0.3)
            assert one.seen[-1].own_password == "two"

    asyncio.run(main())


def test_object_without_a_watch_is_kept_as_it_was_read() -> None:
    async def main() -> None:
        async with harness() as one:
            one.server.put("/api/v1/namespaces/ns/services/c", {"kind": "Service", "apiVersion": "v1", "spec": {}})
            await one.round()
            one.report()
            assert await one.round() == []
            assert ("Service", "c") in one.seen[-1].children

    asyncio.run(main())


def test_round_reads_objects_when_watches_may_have_missed_a_change() -> None:
    async def main() -> None:
        async with harness() as one:
            await one.round()
            one.report()
            one.server.put(CONFIG, make("ConfigMap", "c-config"))
            await one.round()
            assert ("ConfigMap", "c-config") not in one.seen[-1].children
            one.subject.changed(KEY)
            await one.round()
            assert ("ConfigMap", "c-config") in one.seen[-1].children

    asyncio.run(main())


def test_change_that_is_reported_during_a_round_is_read_in_the_next_one() -> None:
    async def main() -> None:
        async with harness() as one:

            def meanwhile(_observed: Observed) -> tuple[Action, ...]:
                if len(one.seen) == 1:
                    one.server.put(CONFIG, make("ConfigMap", "c-config"))
                    one.subject.changed(KEY)
                return ()

            one.report()
            one.actions = meanwhile
            await one.round()
            await one.round()
            assert ("ConfigMap", "c-config") in one.seen[-1].children

    asyncio.run(main())


def test_outdated_index_causes_no_action_and_no_status() -> None:
    async def main() -> None:
        async with harness() as one:
            one.actions = config_when_missing
            one.report()
            await one.round()
            written = len(one.server.writes)
            for _ in range(5):
                await one.round()
            assert len(one.server.writes) == written, "the ConfigMap exists, although no watch has reported it yet"

    asyncio.run(main())


def test_actions_are_planned_again_from_fresh_objects() -> None:
    async def main() -> None:
        async with harness() as one:
            one.server.put(CONFIG, make("ConfigMap", "c-config"))
            await one.round()
            one.report()
            config = one.server.objects[CONFIG]

            def actions(_observed: Observed) -> tuple[Action, ...]:
                return (DeleteChild("ConfigMap", "c-config", config["metadata"]["uid"], "test"),)

            one.actions = actions
            requests = await one.round()
            assert requests.index(f"GET {CLUSTER}") < requests.index(f"DELETE {CONFIG}")
            assert len(one.seen) == 3, "planned again"

    asyncio.run(main())
