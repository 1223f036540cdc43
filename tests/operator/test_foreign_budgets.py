"""PodDisruptionBudgets of others that cover the pods of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from disque_operator import names, observe
from disque_operator.actions import DeleteChild, DeletePod
from disque_operator.apivalues import Json, selects
from disque_operator.budgets import BudgetTracker
from disque_operator.kube import Kube
from disque_operator.observe import Objects
from disque_operator.observed import Budget, Leaving, Platform
from disque_operator.queue import Key
from disque_operator.spec import Spec
from support.apiserver import ApiServer, serving
from support.kubeworld.values import at_rest, broker, decided, planned, pod, reported, revision, seen
from support.kubeworld.values import changed as with_spec

BUDGETS = "/apis/policy/v1/namespaces/ns/poddisruptionbudgets"
DONE = Leaving(done=True, jobs_left=0, rate=0.0, seconds_left=0.0, seconds_elapsed=10.0)
LABELS = {"app": "jobs", "tier": "back"}


@asynccontextmanager
async def client(server: ApiServer) -> AsyncIterator[Kube]:
    async with serving(server) as configuration:
        kube = Kube(configuration, lambda _verb, _kind, _status: None)
        try:
            yield kube
        finally:
            await kube.close()


def budget(*, allowed: int = 0, app: str = "jobs", **metadata: object) -> Json:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "jobs"}}, True),
        ({"matchLabels": {"app": "other"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["jobs", "x"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["jobs"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, False),
        ({"matchLabels": {"app": "jobs"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
    ],
    ids=str,
)
def test_selectors(selector: Json | None, selected: bool) -> None:
    assert selects(selector, LABELS) == selected


def test_only_budgets_that_cover_a_pod_count() -> None:
    member: Json = {
        "metadata": {"name": "c-0", "uid": "u", "labels": LABELS},
        "spec": {"containers": []},
    }
    budgets: tuple[Json, ...] = (
        {"metadata": {"name": "all"}, "spec": {"selector": {}}, "status": {"disruptionsAllowed": 2}},
        {"metadata": {"name": "new"}, "spec": {"selector": {"matchLabels": {"app": "jobs"}}}},
        {"metadata": {"name": "other"}, "spec": {"selector": {"matchLabels": {"app": "other"}}}},
    )
    found = Objects({("Pod", "c-0"): member}, None, (), budgets=budgets)
    seen_now = asyncio.run(observe.observe_cluster(Spec(name="c", namespace="ns"), {}, found, 0.0)).observed
    assert seen_now.foreign_budgets == (Budget("all", 2), Budget("new", 0))


def test_budget_of_another_counts_although_it_has_the_label_of_the_cluster() -> None:
    async def main() -> Objects:
        server = ApiServer()
        server.put(f"{BUDGETS}/team", budget(labels={names.CLUSTER_LABEL: "c"}))
        server.put(f"{BUDGETS}/c", budget(labels={names.CLUSTER_LABEL: "c"}))
        async with client(server) as kube:
            return await observe.read_objects(kube, Spec(name="c", namespace="ns"), Platform())

    assert [item["metadata"]["name"] for item in asyncio.run(main()).budgets] == ["team"]


def test_clusters_in_the_namespace_of_a_new_changed_or_deleted_budget_are_read_again() -> None:
    async def main() -> None:
        server, read = ApiServer(), list[Key]()
        async with client(server) as kube:
            subject = BudgetTracker(kube, lambda: [("ns", "c"), ("other", "c")], read.append)

            async def listed() -> list[Key]:
                read.clear()
                await subject.list((None,))
                return list(read)

            assert await listed() == []
            server.put(f"{BUDGETS}/c", budget(labels={names.CLUSTER_LABEL: "c"}))
            assert await listed() == [], "that of the cluster has a watch"
            server.put(f"{BUDGETS}/team", budget())
            assert await listed() == [("ns", "c")]
            assert await listed() == []
            server.put(f"{BUDGETS}/team", budget(allowed=1))
            assert await listed() == [], "evictions do not matter at rest"
            server.put(f"{BUDGETS}/team", budget(app="other"))
            assert await listed() == [("ns", "c")]
            server.remove(f"{BUDGETS}/team")
            assert await listed() == [("ns", "c")]

    asyncio.run(main())


OPEN, SPENT = (Budget("team", 1),), (Budget("open", 1), Budget("team", 0))


def test_the_own_budget_is_deleted_because_kubernetes_evicts_no_pod_with_two() -> None:
    (action,) = planned(seen(at_rest(), foreign_budgets=OPEN)).actions
    assert isinstance(action, DeleteChild)
    assert (action.kind, action.name) == ("PodDisruptionBudget", names.disruption_budget("mail"))


def test_rollout_evicts_pods_that_serve() -> None:
    rolled = planned(seen(revision(at_rest()), foreign_budgets=OPEN)).actions
    assert [action.evict for action in rolled if isinstance(action, DeletePod)] == [True]
    alone = planned(revision(at_rest())).actions
    assert [action.evict for action in alone if isinstance(action, DeletePod)] == [False]


def test_pod_that_serves_nobody_is_deleted() -> None:
    view = pod(revision(at_rest()), 2, ready=False, trouble="ImagePullBackOff", phase="Pending")
    brokers = {name: one for name, one in view.observed.brokers.items() if name != "mail-2"}
    rolled = planned(seen(view, brokers=brokers, foreign_budgets=SPENT)).actions
    assert [(action.name, action.evict) for action in rolled if isinstance(action, DeletePod)] == [("mail-2", False)]


def test_rollout_waits_for_a_spent_budget() -> None:
    view = seen(revision(at_rest()), foreign_budgets=SPENT)
    assert not [action for action in planned(view).actions if isinstance(action, DeletePod)]
    assert reported(view, "Progressing") == ("True", "RollingOut")
    conditions = {entry["type"]: entry["message"] for entry in planned(view).status["conditions"]}
    assert "PodDisruptionBudget team allows no disruption" in conditions["Progressing"]


def test_scale_down_does_not_wait_for_budgets() -> None:
    view = with_spec(seen(at_rest(), foreign_budgets=SPENT), replicas=2)
    assert "mail-2: CLUSTER LEAVING yes" in decided(view)


def test_drained_pod_without_a_volume_is_deleted() -> None:
    view = pod(revision(at_rest(ephemeral=True)), 2, ready=False)
    from_drain = broker(view, 2, leaving=DONE)
    rolled = planned(seen(from_drain, foreign_budgets=SPENT)).actions
    assert [(action.name, action.evict) for action in rolled if isinstance(action, DeletePod)] == [("mail-2", False)]
