"""Rounds of a cluster with DisqueUsers and DisqueQueues, over HTTP with a small API server."""

from __future__ import annotations

import asyncio
from typing import Any

from disque_operator import names
from disque_operator.actions import WriteStatus
from disque_operator.apivalues import Json, condition_of
from support.rounds import CLUSTER, harness


def declared_user(**spec: Any) -> Json:
    return {"kind": names.USER_KIND, "spec": {"clusterRef": {"name": "c"}, **spec}}


USER = f"/apis/{names.API_VERSION}/namespaces/ns/{names.USER_PLURAL}"


def test_users_and_queues_of_the_cluster_are_observed_with_their_secrets() -> None:
    async def main() -> None:
        async with harness() as one:
            one.server.put(f"{USER}/own", declared_user(passwordSecret={"name": "mine"}))
            one.server.put(f"{USER}/generated", declared_user())
            one.server.put(f"{USER}/foreign", {"kind": names.USER_KIND, "spec": {"clusterRef": {"name": "other"}}})
            one.server.put(
                f"/apis/{names.API_VERSION}/namespaces/ns/{names.QUEUE_PLURAL}/mail",
                {"kind": names.QUEUE_KIND, "spec": {"clusterRef": {"name": "c"}}},
            )
            one.server.put("/api/v1/namespaces/ns/secrets/mine", {"kind": "Secret", "data": {"password": "eA=="}})
            await one.round()
            [observed] = one.seen
            assert {user.resource["metadata"]["name"] for user in observed.users} == {"own", "generated"}
            secrets = {user.resource["metadata"]["name"]: user.secret for user in observed.users}
            assert secrets["own"] is not None
            assert secrets["generated"] is None
            assert [queue.resource["metadata"]["name"] for queue in observed.queues] == ["mail"]

    asyncio.run(main())


def test_status_of_a_user_is_written_by_an_action() -> None:
    async def main() -> None:
        async with harness() as one:
            one.server.put(f"{USER}/shop", declared_user())
            status = {"conditions": [{"type": "Ready", "status": "True"}]}
            one.actions = lambda observed: (
                *(
                    WriteStatus(user.resource, status, "it differs")
                    for user in observed.users
                    if user.resource.get("status") != status
                ),
            )
            await one.round()
            assert one.server.objects[f"{USER}/shop"]["status"] == status
            version = one.server.objects[f"{USER}/shop"]["metadata"]["resourceVersion"]
            await one.round()
            assert one.server.objects[f"{USER}/shop"]["metadata"]["resourceVersion"] == version

    asyncio.run(main())


def test_user_without_a_cluster_says_so_once() -> None:
    async def main() -> None:
        async with harness() as one:
            del one.server.objects[CLUSTER]
            one.server.put(f"{USER}/shop", declared_user())
            await one.round()
            status = one.server.objects[f"{USER}/shop"]["status"]
            assert condition_of(status, "Ready")["reason"] == "ClusterNotFound"
            version = one.server.objects[f"{USER}/shop"]["metadata"]["resourceVersion"]
            await one.round()
            assert one.server.objects[f"{USER}/shop"]["metadata"]["resourceVersion"] == version

    asyncio.run(main())
