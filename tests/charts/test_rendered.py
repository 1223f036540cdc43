"""The objects that the charts render, in every mode that has a value file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from charts.helm import CLUSTER, KUBERNETES, OPERATOR, Helm, Json, chart_of, ci_values
from charts.test_generated import spec_schema
from disque_operator import names
from disqued import __version__
from support import yamltext

MODES = [
    pytest.param(path, id=f"{chart_of(path).name}-{path.name.removesuffix('-values.yaml')}") for path in ci_values()
]
CLUSTERS = [mode for mode in MODES if str(mode.id).startswith(CLUSTER.name)]
CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
STANDARD = {
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
}


def nulls(value: Any, path: str = "") -> Iterator[str]:
    match value:
        case None:
            yield path
        case dict():
            for name, child in value.items():
                yield from nulls(child, f"{path}.{name}")
        case list():
            for number, child in enumerate(value):
                yield from nulls(child, f"{path}[{number}]")


def pods(items: list[Json]) -> Iterator[Json]:
    for item in items:
        if item["kind"] == "Pod":
            yield item["spec"]
        elif item["kind"] == "Deployment":
            yield item["spec"]["template"]["spec"]


@pytest.mark.parametrize("values", MODES)
def test_lint_finds_nothing(helm: Helm, values: Path) -> None:
    assert helm.lint(chart_of(values), values) == ""


@pytest.mark.parametrize("values", MODES)
def test_objects_have_names_labels_and_their_namespace(helm: Helm, values: Path) -> None:
    for item in helm.template(chart_of(values), values).all:
        about = item["metadata"]
        assert item["apiVersion"], item["kind"]
        assert about["labels"].keys() >= STANDARD, item["kind"]
        assert ("namespace" in about) == (item["kind"] not in CLUSTER_WIDE), item["kind"]
        assert list(nulls(item)) == []


@pytest.mark.parametrize("values", MODES)
def test_pods_meet_the_restricted_standard(helm: Helm, values: Path) -> None:
    for pod in pods(helm.template(chart_of(values), values).all):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["image"].rpartition(":")[2], "an image without a version"


@pytest.mark.parametrize("values", MODES)
def test_pods_have_no_fixed_user(helm: Helm, values: Path) -> None:
    """OpenShift's restricted-v2 assigns users of a range, and rejects others. Elsewhere the image has one."""
    for pod in pods(helm.template(chart_of(values), values).all):
        assert not pod["securityContext"].keys() & {"runAsUser", "runAsGroup", "fsGroup"}


def test_operator_has_a_disruption_budget_only_with_a_standby(helm: Helm) -> None:
    assert helm.template(OPERATOR).of("PodDisruptionBudget") == [], "it would block the drain of a node"
    objects = helm.template(OPERATOR, {"replicas": 2})
    budget = objects.one("PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert budget["selector"] == objects.one("Deployment")["spec"]["selector"]


@pytest.mark.parametrize("values", CLUSTERS)
def test_resource_satisfies_its_definition(helm: Helm, values: Path) -> None:
    cluster = helm.template(CLUSTER, values).one(names.KIND)
    assert cluster["apiVersion"] == names.API_VERSION
    assert helm.violations(spec_schema(), cluster["spec"]) == ""


def test_invalid_resource_is_detected(helm: Helm) -> None:
    assert "at '/storage/size': got number, want string" in helm.violations(spec_schema(), {"storage": {"size": 1}})


def test_default_spec_equals_the_defaults_of_the_api_server(helm: Helm) -> None:
    def defaulted(schema: Json, given: Any) -> Any:
        """Return an object with defaults as the API server sets them, from the outside inwards."""
        if "properties" not in schema or not isinstance(given, dict):
            return given
        result = {}
        for name, child in schema["properties"].items():
            value = defaulted(child, given.get(name, child.get("default")))
            if value not in (None, {}):
                result[name] = value
        return result

    spec = helm.template(CLUSTER).one(names.KIND)["spec"]
    assert defaulted(spec_schema(), spec) == defaulted(spec_schema(), {})


@pytest.mark.parametrize(
    ("release", "values", "name"),
    [
        ("mail", {}, "mail-disque"),
        ("disque", {}, "disque"),
        ("my-disque", {}, "my-disque"),
        ("mail", {"nameOverride": "jobs"}, "mail-jobs"),
        ("mail", {"fullnameOverride": "orders"}, "orders"),
        ("a" * 53, {}, "a" * 52),
    ],
)
def test_resource_is_named_after_the_release(helm: Helm, release: str, values: Json, name: str) -> None:
    assert helm.template(CLUSTER, values, release=release).one(names.KIND)["metadata"]["name"] == name


def test_spec_of_a_manifest_is_rendered_unchanged(helm: Helm) -> None:
    spec: Json = {
        "replicas": 4,
        "config": {"slowlog-max-len": "10"},
        "affinity": {},
        "topologySpreadConstraints": [],
        "podTemplate": {"spec": {"securityContext": None, "containers": [{"name": "log", "image": "log:1"}]}},
    }
    rendered = helm.template(CLUSTER, spec).one(names.KIND)["spec"]
    assert {name: rendered[name] for name in spec} == spec


def test_null_values_are_left_out(helm: Helm) -> None:
    spec = helm.template(CLUSTER, {"replicas": None, "storage": {"size": None}, "drain": None}).one(names.KIND)["spec"]
    assert "replicas" not in spec
    assert "drain" not in spec
    assert "size" not in spec["storage"]


def test_test_pod_has_the_password_of_the_cluster(helm: Helm) -> None:
    def password(values: Json) -> Any:
        [container] = helm.template(CLUSTER, values).one("Pod")["spec"]["containers"]
        env = {variable["name"]: variable for variable in container["env"]}
        return env.get("DISQUE_PASSWORD", {}).get("valueFrom", {}).get("secretKeyRef")

    assert password({}) == {"name": names.client_secret("demo-disque"), "key": "password"}
    assert password({"auth": {"secretName": "mine"}}) == {"name": names.client_secret("demo-disque"), "key": "password"}
    assert password({"auth": {"enabled": False}}) is None
    assert password({"auth": None}) == {"name": names.client_secret("demo-disque"), "key": "password"}


def test_test_pod_is_not_selected_as_a_member(helm: Helm) -> None:
    labels = helm.template(CLUSTER).one("Pod")["metadata"]["labels"]
    assert not names.selector("demo-disque").items() <= labels.items()


def test_tls_is_used_by_the_test_pod(helm: Helm) -> None:
    values = {"tls": {"enabled": True, "http": True}}
    rendered = helm.template(CLUSTER, values)
    test = rendered.one("Pod")["spec"]
    environ = {entry["name"]: entry.get("value") for entry in test["containers"][0]["env"]}
    assert environ["ENDPOINT"].endswith(".here.svc:7712")
    assert environ["CA_FILE"] == "/ca/ca.crt"
    [volume] = test["volumes"]
    assert volume["configMap"]["name"] == names.ca_config_map("demo-disque")
    assert "volumes" not in helm.template(CLUSTER).one("Pod")["spec"]


@pytest.mark.parametrize(
    ("chart", "values", "kind"),
    [
        (OPERATOR, {"metrics": {"podMonitor": {"enabled": True}}}, "PodMonitor"),
        (OPERATOR, {"metrics": {"serviceMonitor": {"enabled": True}}}, "ServiceMonitor"),
        (OPERATOR, {"alerts": {"enabled": True}}, "PrometheusRule"),
    ],
)
def test_monitors_and_alerts_need_the_prometheus_operator(helm: Helm, chart: Path, values: Json, kind: str) -> None:
    error = helm.error(chart, values, apis=())
    assert f"the Kubernetes cluster has no {kind} (monitoring.coreos.com/v1)" in error
    assert "install the Prometheus Operator first" in error


def test_monitors_need_metrics(helm: Helm) -> None:
    error = helm.error(OPERATOR, {"metrics": {"enabled": False, "podMonitor": {"enabled": True}}})
    assert "metrics.serviceMonitor or metrics.podMonitor requires metrics.enabled=true" in error


def test_labels_that_network_policies_admit_do_not_depend_on_the_name(helm: Helm) -> None:
    deployment = helm.template(OPERATOR, {"nameOverride": "x", "podLabels": {"app.kubernetes.io/name": "y"}}).one(
        "Deployment"
    )
    assert names.OPERATOR_LABELS.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    selector = deployment["spec"]["selector"]["matchLabels"]
    assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("values", "operator", "broker"),
    [
        ({}, f"disqued-operator:{__version__}", f"disqued:{__version__}"),
        ({"image": {"tag": "2"}}, "disqued-operator:2", f"disqued:{__version__}"),
        (
            {"image": {"registry": "a.example:5000", "digest": "sha256:00"}, "brokerImage": {"tag": "3"}},
            "a.example:5000/disqued-operator@sha256:00",
            "a.example:5000/disqued:3",
        ),
        (
            {"image": {"registry": "a.example"}, "brokerImage": {"registry": "b.example", "digest": "sha256:11"}},
            f"a.example/disqued-operator:{__version__}",
            "b.example/disqued@sha256:11",
        ),
    ],
)
def test_images_are_named_by_registry_tag_and_digest(helm: Helm, values: Json, operator: str, broker: str) -> None:
    [container] = helm.template(OPERATOR, values).one("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == operator
    assert {"name": "DISQUE_OPERATOR_IMAGE", "value": broker} in container["env"]


def test_resource_definitions_are_kept_by_default(helm: Helm) -> None:
    definitions = {path.stem: yamltext.load(path.read_text())["spec"] for path in (OPERATOR / "files/crd").iterdir()}
    kept = helm.template(OPERATOR).of("CustomResourceDefinition")
    assert {item["spec"]["names"]["plural"]: item["spec"] for item in kept} == definitions
    for item in kept:
        assert item["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    for item in helm.template(OPERATOR, {"crds": {"keep": False}}).of("CustomResourceDefinition"):
        assert "helm.sh/resource-policy" not in item["metadata"].get("annotations", {})
    assert helm.template(OPERATOR, {"crds": {"install": False}}).of("CustomResourceDefinition") == []


def test_notes_show_the_next_steps(helm: Helm) -> None:
    notes = helm.notes(CLUSTER, {})
    for line in (
        "kubectl -n here wait disquecluster/demo-disque --for=condition=Ready --timeout=5m",
        "helm test demo -n here",
        "connect to demo-disque.here.svc:7711 with the password in the Secret demo-disque-default-user",
        "get secret demo-disque-default-user -o go-template='{{.data.password | base64decode}}'",
    ):
        assert line in notes
    notes = helm.notes(
        CLUSTER, {"auth": {"enabled": False}, "hibernate": True, "paused": True, "storage": {"ephemeral": True}}
    )
    for part in ("without a password", "is hibernated", "is paused", "has no volumes"):
        assert part in notes
    assert "Secret" not in notes
    assert "in all namespaces" in helm.notes(OPERATOR, {})
    notes = helm.notes(OPERATOR, {"watch": {"namespaces": ["a", "b"]}, "crds": {"install": False}})
    assert "in the namespaces a, b" in notes
    assert "kubectl apply --server-side -f manifests/crd" in notes


def test_kubernetes_version_of_these_tests_is_supported_by_the_charts() -> None:
    for chart in (OPERATOR, CLUSTER):
        oldest = yamltext.load((chart / "Chart.yaml").read_text())["kubeVersion"]
        assert int(oldest.split(".")[1]) <= int(KUBERNETES.split(".")[1])
