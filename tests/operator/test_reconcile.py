"""Rounds of one cluster over HTTP with a small API server: requests, actions, status and events."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from disque_operator import names
from disque_operator.actions import Action, Apply, Command, Create, DeletePod
from disque_operator.apivalues import Json, condition_of
from disque_operator.decisions import SOON_S, Event
from disque_operator.kube import KubeError
from disque_operator.observed import Observed
from disque_operator.reverts import TOLERATED
from support.cluster import RealCluster
from support.rounds import (
    CLUSTER,
    CONFIG,
    KEY,
    POD,
    RUNNING,
    STATUS,
    config_when_missing,
    harness,
    make,
)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_plan_is_executed_and_status_written_once() -> None:
    async def main() -> None:
        async with harness() as one:
            one.actions = config_when_missing
            one.status = STATUS | {"phase": "Creating"}
            one.events = (Event("Normal", "Creating", "creating the cluster"),)
            await one.round()
            assert one.server.objects[CONFIG]["data"] == {"a": "b"}
            assert one.written["phase"] == "Creating"
            for _ in range(3):
                await one.round()
            assert [request.split()[0] for request in one.server.writes] == ["PATCH", "PATCH", "POST"]
            [event] = one.posted
            assert event["involvedObject"]["uid"] == one.server.objects[CLUSTER]["metadata"]["uid"]
            assert (event["type"], event["reason"], event["message"]) == ("Normal", "Creating", "creating the cluster")

    asyncio.run(main())


def test_objects_are_found_by_label_and_by_name() -> None:
    async def main() -> None:
        async with harness() as one:
            one.server.put(CONFIG, make("ConfigMap", "c-config"))
            one.server.put("/api/v1/namespaces/ns/services/c", {"kind": "Service", "apiVersion": "v1", "spec": {}})
            one.server.put("/api/v1/namespaces/ns/configmaps/other", {"kind": "ConfigMap", "apiVersion": "v1"})
            await one.round()
            assert set(one.seen[-1].children) == {("ConfigMap", "c-config"), ("Service", "c")}

    asyncio.run(main())


def test_service_of_a_member_is_found_by_name_if_it_lost_its_label() -> None:
    async def main() -> None:
        async with harness() as one:
            spec = {"replicas": 2, "exposure": {"type": "NodePort"}}
            one.server.put(CLUSTER, one.server.objects[CLUSTER] | {"spec": spec})
            path = "/api/v1/namespaces/ns/services/c-1-external"
            one.server.put(path, {"kind": "Service", "apiVersion": "v1", "spec": {}})
            await one.round()
            assert set(one.seen[-1].children) == {("Service", "c-1-external")}

    asyncio.run(main())


def test_replaced_pod_is_not_deleted() -> None:
    async def main() -> None:
        async with harness() as one:
            one.actions = lambda _observed: (DeletePod("c-0", "another uid", "test"),)
            one.server.put(POD, make("Pod", "c-0", spec={"containers": []}))
            again_s = await one.subject.round(KEY)
            assert POD in one.server.objects
            assert again_s is not None
            assert again_s < 1, "the next round is due at once"
            assert condition_of(one.written, "ReconcileSuccess")["status"] != "False"

    asyncio.run(main())


def test_conflict_leads_to_a_new_round() -> None:
    async def main() -> None:
        async with harness() as one:
            one.server.put(CONFIG, make("ConfigMap", "c-config", data={"a": "1"}))

            def actions(observed: Observed) -> tuple[Action, ...]:
                live = observed.children["ConfigMap", "c-config"]
                if live["data"] == {"a": "3"}:
                    return ()
                manifest = make("ConfigMap", "c-config", data={"a": "3"})
                manifest["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
                return (Apply(manifest, "test"),)

            def somebody_else(method: str, path: str) -> None:
                if (method, path) == ("PATCH", CONFIG) and one.server.objects[CONFIG]["data"] == {"a": "1"}:
                    one.server.put(CONFIG, make("ConfigMap", "c-config", data={"a": "2"}))

            one.actions = actions
            one.server.before = somebody_else
            await one.round()
            assert one.server.objects[CONFIG]["data"] == {"a": "2"}
            await one.round(1)
            assert one.server.objects[CONFIG]["data"] == {"a": "3"}

    asyncio.run(main())


def test_failed_action_is_a_condition_and_one_event() -> None:
    async def main() -> None:
        async with harness() as one:
            one.actions = config_when_missing
            one.server.reject = lambda method, path: 403 if (method, path) == ("PATCH", CONFIG) else None
            text = await one.failing_round()
            assert "apply ConfigMap c-config" in text
            for _ in range(3):
                await one.failing_round()
            reported = condition_of(one.written, "ReconcileSuccess")
            assert (reported["status"], reported["reason"]) == ("False", "Forbidden")
            assert reported["message"] == text
            assert [event["reason"] for event in one.posted] == ["Forbidden"]
            one.server.reject = lambda _method, _path: None
            await one.round()
            assert condition_of(one.written, "ReconcileSuccess")["status"] == "True"

    asyncio.run(main())


def test_name_of_somebody_else_is_a_condition() -> None:
    async def main() -> None:
        async with harness() as one:
            claim = "/api/v1/namespaces/ns/persistentvolumeclaims/data-c-0"
            one.server.put(claim, make("PersistentVolumeClaim", "data-c-0") | {"metadata": {"name": "data-c-0"}})
            one.actions = lambda _observed: (Create(make("PersistentVolumeClaim", "data-c-0"), "test"),)
            one.status = {**STATUS, "phase": "Creating"}
            assert "create PersistentVolumeClaim data-c-0" in await one.failing_round()
            assert one.written["phase"] == "Creating"
            assert condition_of(one.written, "ReconcileSuccess")["reason"] == "NameTaken"
            assert [event["reason"] for event in one.posted] == ["NameTaken"]

    asyncio.run(main())


def test_terminating_namespace_is_not_a_failure() -> None:
    async def main() -> None:
        async with harness() as one:
            one.actions = config_when_missing
            one.server.terminating = True
            for _ in range(3):
                await one.round()
            assert condition_of(one.written, "ReconcileSuccess")["status"] == "True"
            assert one.posted == []

    asyncio.run(main())


def test_bug_is_reported_as_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with harness() as one:

            def broken(_observed: Observed) -> tuple[Action, ...]:
                raise ZeroDivisionError("a bug")

            one.actions = broken
            for _ in range(3):
                await one.failing_round(ZeroDivisionError)
            reported = condition_of(one.written, "ReconcileSuccess")
            assert (reported["reason"], reported["message"]) == ("InternalError", "ZeroDivisionError: a bug")
            assert one.written["phase"] == "Running", "the rest does not change"
            assert len(one.posted) == 1

    asyncio.run(main())
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("spec", [{"replicas": "many"}, {"storage": "large"}, {"config": [1, 2]}])
def test_invalid_object_does_not_stop_the_operator(spec: Json) -> None:
    async def main() -> None:
        async with harness() as one:
            one.server.objects[CLUSTER]["spec"] = spec
            try:
                await one.round()
            except Exception:  # noqa: BLE001 - whichever
                assert condition_of(one.written, "ReconcileSuccess")["status"] == "False"

    asyncio.run(main())


def test_round_fails_while_the_api_server_is_unreachable() -> None:
    async def main() -> None:
        async with harness() as one:
            one.server.reject = lambda _method, _path: 503
            with pytest.raises(KubeError) as raised:
                await one.round()
            assert raised.value.status == 503
            one.server.reject = lambda _method, _path: None
            assert await one.round()

    asyncio.run(main())


def test_nothing_is_written_without_the_lease() -> None:
    async def main() -> None:
        async with harness() as one:
            one.actions = config_when_missing
            one.status = STATUS | {"phase": "Creating"}
            one.permit.remaining_s = 0.0
            await one.round()
            assert not one.server.writes

    asyncio.run(main())


def test_status_write_gets_no_more_time_than_the_lease_has_left(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with harness() as one:
            one.status = STATUS | {"phase": "Creating"}
            one.events = (Event("Normal", "Creating", "creating the cluster"),)
            one.permit.remaining_s = 0.2
            one.server.hangs = lambda method, _path: method == "PATCH"
            async with asyncio.timeout(5):
                again_s = await one.subject.round(KEY)
            assert again_s == SOON_S
            assert one.written == STATUS
            assert one.posted == []

    asyncio.run(main())
    assert "lease lost: round aborted" in caplog.text


def test_status_is_not_written_over_a_change_that_was_not_observed() -> None:
    async def main() -> None:
        async with harness() as one:
            one.status = STATUS | {"phase": "Creating"}

            def user(method: str, _path: str) -> None:
                if method == "PATCH":
                    one.server.before = lambda _method, _path: None
                    one.server.put(CLUSTER, {**one.server.objects[CLUSTER], "spec": {"replicas": 5}})

            one.server.before = user
            again_s = await one.subject.round(KEY)
            assert again_s is not None
            assert again_s < 1, "the next round is due at once"
            assert one.written == STATUS
            await one.round(1)
            assert one.written["phase"] == "Creating"

    asyncio.run(main())


def test_round_stops_between_actions_when_the_lease_is_lost() -> None:
    async def main() -> None:
        async with harness() as one:

            def lose(method: str, _path: str) -> None:
                if method == "PATCH":
                    one.permit.remaining_s = 0.0

            one.server.before = lose
            one.actions = lambda _observed: (
                Apply(make("ConfigMap", "c-config"), "first"),
                Apply(make("Secret", "c-auth"), "second"),
            )
            await one.round()
            assert one.server.writes == [f"PATCH {CONFIG}"]

    asyncio.run(main())


def test_field_that_is_changed_back_is_counted_and_shown_to_the_planner() -> None:
    async def main() -> None:
        async with harness() as one:
            manifest = make("ConfigMap", "c-config", data={"a": "b"})
            manifest["metadata"]["annotations"] = {names.APPLIED: "digest"}
            one.actions = lambda _observed: (Apply(manifest, "data.a differs", "data.a"),)
            for _ in range(TOLERATED + 2):
                await one.round(2)
            assert [len(observed.reverts) for observed in one.seen] == [0] * TOLERATED + [1, 1]
            assert one.seen[-1].reverts["ConfigMap", "c-config"].field == "data.a"
            labels = {"namespace": "ns", "cluster": "c", "kind": "ConfigMap"}
            counted = one.metrics.registry.get_sample_value("disque_operator_reverts_total", labels)
            assert counted == TOLERATED + 1
            one.actions = lambda _observed: ()
            del one.server.objects[CLUSTER]
            one.subject.changed(KEY)
            await one.round()
            assert one.metrics.registry.get_sample_value("disque_operator_reverts_total", labels) is None

    asyncio.run(main())


def test_deleted_cluster_is_forgotten() -> None:
    async def main() -> None:
        async with harness() as one:
            one.actions = config_when_missing
            one.server.objects[CLUSTER]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            assert await one.subject.round(KEY) is None
            del one.server.objects[CLUSTER]
            assert await one.subject.round(KEY) is None
            assert not one.server.writes
            assert not one.subject._caches

    asyncio.run(main())


def test_deletion_during_the_status_write_is_not_an_error() -> None:
    async def main() -> None:
        async with harness() as one:
            one.status = STATUS | {"phase": "Degraded"}
            one.server.reject = lambda method, _path: 404 if method == "PATCH" else None
            await one.round()

    asyncio.run(main())


def test_secrets_are_not_logged(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    async def main(address: str, node_id: str) -> None:
        async with harness() as one:
            one.server.put(POD, make("Pod", "c-0", spec={"containers": []}, status=RUNNING))
            one.addresses["c-0"] = address
            words = ("CONFIG", "SET", "requirepass-x", "hidden")
            one.actions = lambda _observed: (Command("c-0", node_id, words, "test", secret=True),)
            await one.failing_round()
            assert "hidden" not in str(one.written) + str(one.posted)

    with RealCluster(tmp_path, 1) as cluster:
        asyncio.run(main(cluster.nodes[0].address, cluster.nodes[0].id))
    assert "hidden" not in caplog.text
    assert "CONFIG SET requirepass-x …" in caplog.text


def test_brokers_are_queried_and_commanded(tmp_path: Path) -> None:
    async def main(cluster: RealCluster) -> None:
        one_node, two_node = cluster.nodes
        async with harness() as one:
            for ordinal, node in enumerate(cluster.nodes):
                pod = make("Pod", f"c-{ordinal}", spec={"containers": []}, status=RUNNING)
                one.server.put(POD[:-1] + str(ordinal), pod)
                one.addresses[f"c-{ordinal}"] = node.address
            await one.round()
            [observed] = one.seen
            assert {pod: node.node_id for pod, node in observed.brokers.items()} == {
                "c-0": one_node.id,
                "c-1": two_node.id,
            }
            one.actions = lambda _observed: (Command("c-1", one_node.id, ("CLUSTER", "LEAVING", "yes"), "test"),)
            assert "instead of" in await one.failing_round()
            meet = Command("c-0", one_node.id, ("CLUSTER", "MEET", "127.0.0.1", "1"), "test", met=("c-1", one_node.id))
            one.actions = lambda _observed: (meet,)
            assert f"node {two_node.id} answers instead of" in await one.failing_round(), "c-1 is another broker by now"
            one.actions = lambda observed: (
                ()
                if observed.brokers["c-1"].leaving
                else (Command("c-1", two_node.id, ("CLUSTER", "LEAVING", "yes"), "test"),)
            )
            await one.round()
            await one.round()
            assert one.seen[-1].brokers["c-1"].leaving is not None
            one.actions = lambda _observed: ()
            two_node.kill()
            await one.round()
            assert "no answer" in one.seen[-1].unreachable["c-1"]

    with RealCluster(tmp_path, 2) as cluster:
        asyncio.run(main(cluster))


def test_metrics_of_a_cluster_are_removed_with_it() -> None:
    async def main() -> None:
        async with harness() as one:
            unready = {"type": "Ready", "status": "False", "reason": "PodsNotReady"}
            drain = {"pod": "c-1", "jobsLeft": 7, "secondsLeft": 2.0}
            one.status = {"phase": "Running", "conditions": [*STATUS["conditions"], unready], "drain": drain}
            await one.round()
            labels = {"namespace": "ns", "cluster": "c"}

            def value(name: str, **more: str) -> float | None:
                return one.metrics.registry.get_sample_value(name, labels | more)

            assert value("disque_operator_cluster_phase", phase="Running") == 1
            assert value("disque_operator_cluster_phase", phase="Degraded") == 0
            assert value("disque_operator_cluster_condition", condition="ReconcileSuccess") == 1
            assert value("disque_operator_cluster_condition", condition="Ready") == 0
            assert value("disque_operator_paused") == 0
            assert value("disque_operator_drain_jobs_left") == 7
            assert value("disque_operator_reconcile_seconds_count") == 1
            one.status = STATUS
            one.server.objects[CLUSTER]["spec"]["paused"] = True
            one.subject.changed(KEY)
            await one.round()
            assert value("disque_operator_drain_jobs_left") is None
            assert value("disque_operator_cluster_condition", condition="Ready") is None, "the status has no such one"
            assert value("disque_operator_paused") == 1
            one.metrics.clear("ns", "c")
            for name in ("cluster_phase", "cluster_condition", "cluster_members", "paused"):
                assert f"disque_operator_{name}{{" not in generate_latest(one.metrics.registry).decode()
            assert value("disque_operator_reconcile_seconds_count") == 2, "counters are kept"
            del one.server.objects[CLUSTER]
            one.subject.changed(KEY)
            await one.round()
            assert value("disque_operator_cluster_phase", phase="Running") is None

    asyncio.run(main())
