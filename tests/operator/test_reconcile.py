"""Rounds of one cluster over HTTP with a small API server: requests, actions, status and events."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from disque_operator import names
from disque_operator.actions import Action, Apply, Command, DeleteChild, DeletePod
from disque_operator.apivalues import Json, condition_of
from disque_operator.decisions import IDLE_S, SOON_S, Event, Plan
from disque_operator.executor import FailedError
from disque_operator.indexes import Indexes, entry
from disque_operator.kube import Kube, KubeError
from disque_operator.metrics import Metrics
from disque_operator.observed import Observed, Pod
from disque_operator.queue import Key
from disque_operator.reconcile import DEGRADED_S, Reconciler
from disque_operator.references import References
from disque_operator.spec import Spec
from disque_operator.status_writes import COUNTERS_S
from disque_operator.turns import Turns
from support.apiserver import ApiServer, serving
from support.cluster import RealCluster

KEY = ("ns", "c")
CLUSTER = f"/apis/{names.API_VERSION}/namespaces/ns/{names.PLURAL}/c"
CONFIG = "/api/v1/namespaces/ns/configmaps/c-config"
POD = "/api/v1/namespaces/ns/pods/c-0"
OWN_SECRET = "/api/v1/namespaces/ns/secrets/own"
RUNNING: Json = {"podIP": "127.0.0.1", "phase": "Running"}
STATUS: Json = {
    "phase": "Running",
    "operator": "operators/lease",
    "conditions": [{"type": "ReconcileSuccess", "status": "True", "reason": "Done"}],
}


@dataclass
class Permit:
    remaining_s: float = 1000.0


@dataclass
class Harness:
    """A reconciler with its environment and the plan it gets."""

    server: ApiServer
    kube: Kube
    metrics: Metrics
    permit: Permit = field(default_factory=Permit)
    now_s: float = 1000.0
    actions: Callable[[Observed], tuple[Action, ...]] = lambda _observed: ()
    events: tuple[Event, ...] = ()
    status: Json = field(default_factory=lambda: STATUS)
    again_s: float = IDLE_S
    seen: list[Observed] = field(default_factory=list)
    addresses: dict[str, str] = field(default_factory=dict)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether a watch of a Secret reported a change."""

    def __post_init__(self) -> None:
        self.server.put(CLUSTER, {"kind": names.KIND, "spec": {}, "status": STATUS})
        self.indexes = Indexes(lambda _body: False)
        self.references = References(self.kube, self._changed, random.Random(1))
        self.subject = Reconciler(
            self.kube,
            self.indexes,
            self.permit,
            self.references,
            self.metrics,
            self._plan,
            turns=Turns(lambda: [KEY]),
            image="disqued:test",
            identity="me",
            operator="operators/lease",
            operator_namespace="operators",
            clock=lambda: self.now_s,
            address=self._address,
        )

    def _plan(self, spec: Spec, observed: Observed, _now_s: float, _password: str) -> Plan:
        assert spec.image is None
        assert observed.default_image == "disqued:test"
        assert observed.operator_namespace == "operators"
        self.seen.append(observed)
        actions = self.actions(observed)
        return Plan(actions, self.status, self.events if observed.status != self.status else (), self.again_s)

    def _changed(self, key: Key) -> None:
        self.subject.changed(key)
        self.woken.set()

    def _address(self, pod: Pod) -> str:
        return self.addresses[pod.name]

    async def round(self, after_s: float = 30.0) -> list[str]:
        """Run a round and return its requests."""
        self.now_s += after_s
        before = len(self.server.requests)
        await self.subject.round(KEY)
        return self.server.requests[before:]

    def report(self) -> None:
        """Let the watches report the present objects."""
        objects = self.server.objects
        labelled = [item for item in objects.values() if names.CLUSTER_LABEL in (item["metadata"].get("labels") or {})]
        clusters: Any = {KEY: [entry(objects[CLUSTER], names.KIND)]} if CLUSTER in objects else {}
        children: Any = {KEY: [entry(item, item["kind"]) for item in labelled]}
        self.indexes.attach(clusters, children)

    async def failing_round(self, error: type[Exception] = FailedError) -> str:
        with pytest.raises(error) as raised:
            await self.round()
        return str(raised.value)

    @property
    def written(self) -> Json:
        status: Json = self.server.objects[CLUSTER]["status"]
        return status

    @property
    def posted(self) -> list[Json]:
        return [item for path, item in self.server.objects.items() if "/events/" in path]


@asynccontextmanager
async def harness() -> AsyncIterator[Harness]:
    server = ApiServer()
    async with serving(server) as configuration:
        metrics = Metrics()
        kube = Kube(configuration, metrics.request)
        try:
            one = Harness(server, kube, metrics)
            yield one
        finally:
            await one.references.stop()
            await kube.close()


def make(kind: str, name: str, **more: Any) -> Json:
    metadata = {"name": name, "namespace": "ns", "labels": {names.CLUSTER_LABEL: "c"}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


def config_when_missing(observed: Observed) -> tuple[Action, ...]:
    if ("ConfigMap", "c-config") in observed.children:
        return ()
    return (Apply(make("ConfigMap", "c-config", data={"a": "b"}), "it does not exist"),)


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
