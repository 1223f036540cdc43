"""What depends on the Kubernetes: PodMonitors where that kind exists, and users that OpenShift assigns to pods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from disque_operator import names, observe, resources
from disque_operator.apivalues import Json
from disque_operator.kube import Kube, KubeError
from disque_operator.metrics import Metrics
from disque_operator.observed import Platform
from disque_operator.platforms import FRESH_S, Platforms
from disque_operator.resources import Wanted
from disque_operator.spec import Spec, Tls, parse
from support.apiserver import ApiServer, serving

MONITORS = "/apis/monitoring.coreos.com/v1"
OPENSHIFT = "/apis/security.openshift.io/v1"
MONITOR = f"{MONITORS}/namespaces/shop/podmonitors/jobs"
SPEC = Spec(name="jobs", namespace="shop", uid="uid-1", image="disqued:1")


def served(plural: str) -> Json:
    return {"resources": [{"name": plural}, {"name": f"{plural}/status"}]}


def monitored(**monitor: object) -> Spec:
    body = {"metadata": {"name": "jobs", "namespace": "shop"}, "spec": {"monitoring": {"podMonitor": monitor}}}
    return parse(body)


def objects(spec: Spec, platform: Platform) -> dict[str, Json]:
    return {item["kind"]: item for item in resources.desired(spec, Wanted(3, platform=platform))}


class Subject:
    """Looks up the platform at a time that a test sets."""

    def __init__(self, server: ApiServer, kube: Kube) -> None:
        self.server = server
        self.kube = kube
        self.now_s = 0.0
        self.platforms = Platforms(kube, lambda: self.now_s)

    async def after(self, seconds: float) -> Platform:
        self.now_s += seconds
        return await self.platforms.current()


@asynccontextmanager
async def subject() -> AsyncIterator[Subject]:
    server = ApiServer()
    async with serving(server) as configuration:
        kube = Kube(configuration, Metrics().request)
        try:
            yield Subject(server, kube)
        finally:
            await kube.close()


def test_platform_is_what_the_api_server_serves() -> None:
    async def scenario() -> None:
        async with subject() as it:
            assert await it.after(0) == Platform()
            it.server.added = {MONITORS: served("podmonitors"), OPENSHIFT: served("securitycontextconstraints")}
            assert await it.after(FRESH_S / 2) == Platform(), "it costs requests, so it is remembered"
            assert await it.after(FRESH_S) == Platform(pod_monitors=True, assigns_ids=True)
            it.server.added = {MONITORS: served("probes")}
            assert await it.after(FRESH_S + 1) == Platform()

    asyncio.run(scenario())


def test_nothing_is_asked_at_rest_unless_the_spec_needs_what_was_missing() -> None:
    async def scenario() -> None:
        async with subject() as it:
            await it.after(0)
            asked = len(it.server.requests)
            it.now_s += 10 * FRESH_S
            assert await it.platforms.at_rest(SPEC) == Platform()
            assert len(it.server.requests) == asked
            it.server.added = {MONITORS: served("podmonitors")}
            assert await it.platforms.at_rest(monitored(enabled=True)) == Platform(pod_monitors=True)
            asked = len(it.server.requests)
            it.now_s += 10 * FRESH_S
            assert await it.platforms.at_rest(monitored(enabled=True)) == Platform(pod_monitors=True)
            assert len(it.server.requests) == asked

    asyncio.run(scenario())


def test_previous_answer_counts_while_the_api_server_fails() -> None:
    async def scenario() -> None:
        async with subject() as it:
            it.server.reject = lambda _method, _path: 503
            with pytest.raises(KubeError):
                await it.after(0)
            it.server.reject = lambda _method, _path: None
            it.server.added = {MONITORS: served("podmonitors")}
            assert await it.after(1) == Platform(pod_monitors=True)
            it.server.reject = lambda _method, _path: 503
            assert await it.after(FRESH_S + 1) == Platform(pod_monitors=True)

    asyncio.run(scenario())


def test_pod_monitors_are_read_only_where_they_exist() -> None:
    async def scenario() -> None:
        async with subject() as it:
            assert (await observe.read_objects(it.kube, SPEC, Platform())).by_name == {}
            assert not any("podmonitors" in request for request in it.server.requests)
            it.server.put(MONITOR, {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor"})
            found = await observe.read_objects(it.kube, SPEC, Platform(pod_monitors=True))
            assert set(found.by_name) == {("PodMonitor", "jobs")}

    asyncio.run(scenario())


def test_pod_monitor_is_made_where_the_kind_exists() -> None:
    spec = monitored(enabled=True, labels={"release": "prometheus", "disque.dev/cluster": "x"}, queues=["mail"])
    assert "PodMonitor" not in objects(spec, Platform())
    assert "PodMonitor" not in objects(SPEC, Platform(pod_monitors=True))
    monitor = objects(spec, Platform(pod_monitors=True))["PodMonitor"]
    assert monitor["metadata"]["labels"] == {"release": "prometheus", **names.labels("jobs")}
    assert monitor["spec"]["selector"]["matchLabels"] == names.selector("jobs")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["params"] == {"name": ["mail"]}
    assert "basicAuth" not in endpoint


def test_metrics_have_the_labels_that_alerts_and_dashboards_expect() -> None:
    monitor = objects(monitored(enabled=True), Platform(pod_monitors=True))["PodMonitor"]["spec"]
    assert names.selector("jobs")[monitor["jobLabel"]] == "disque", 'up{job="disque"}'
    (endpoint,) = monitor["podMetricsEndpoints"]
    label = names.CLUSTER_LABEL.replace(".", "_").replace("/", "_")
    assert {rule["targetLabel"]: rule["sourceLabels"] for rule in endpoint["relabelings"]} == {
        "cluster": [f"__meta_kubernetes_pod_label_{label}"],
        "instance": ["__meta_kubernetes_pod_name"],
    }


def test_monitor_verifies_the_certificates_of_metrics_over_tls() -> None:
    plain = monitored(enabled=True)
    spec = plain.model_copy(update={"tls": Tls(enabled=True, http=True)})
    (endpoint,) = objects(spec, Platform(pod_monitors=True))["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"]["serverName"] == "jobs.shop.svc"
    assert endpoint["tlsConfig"]["ca"]["configMap"]["name"] == names.ca_config_map("jobs")
    (endpoint,) = objects(plain, Platform(pod_monitors=True))["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert "scheme" not in endpoint


def test_credentials_of_a_monitor_are_in_a_secret() -> None:
    spec = monitored(enabled=True, secretName="prometheus")
    (endpoint,) = objects(spec, Platform(pod_monitors=True))["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert endpoint["basicAuth"] == {
        "username": {"name": "prometheus", "key": "username"},
        "password": {"name": "prometheus", "key": "password"},
    }


def test_monitor_that_is_no_longer_enabled_is_surplus() -> None:
    platform = Platform(pod_monitors=True)
    made = resources.desired(monitored(enabled=True), Wanted(3, platform=platform))
    live = {(item["kind"], item["metadata"]["name"]): item for item in made}
    wanted = resources.desired(monitored(enabled=False), Wanted(3, platform=platform))
    assert [item["kind"] for item in resources.surplus(wanted, live)] == ["PodMonitor"]


@pytest.mark.parametrize("assigns_ids", [False, True])
def test_pods_use_the_ids_of_the_image_or_those_that_openshift_assigns(*, assigns_ids: bool) -> None:
    template = objects(SPEC, Platform(assigns_ids=assigns_ids))["StatefulSet"]["spec"]["template"]["spec"]
    context = template["securityContext"]
    assert not context.keys() & {"runAsUser", "runAsGroup"}, "restricted-v2 rejects users outside the namespace's range"
    assert context["runAsNonRoot"] is True
    assert ("fsGroup" in context) != assigns_ids, "volumes belong to a group, which OpenShift chooses"
