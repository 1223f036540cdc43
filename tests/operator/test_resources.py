"""The objects of a cluster: snapshots, and properties that must hold."""

from __future__ import annotations

import base64
import copy
from dataclasses import replace

import pytest

from disque_operator import names, resources
from disque_operator.apivalues import Json
from disque_operator.directives import maxmemory
from disque_operator.observed import Passwords
from disque_operator.resources import Wanted, differs
from disque_operator.resources.protected import PROTECTED
from disque_operator.servicespec import ClientService
from disque_operator.spec import PodDisruptionBudget, Spec, Storage, parse
from disqued.config.loading import load
from disqued.config.options import OPTION_OF
from support.manifests import SNAPSHOTS, bodies, page

SPEC = Spec(name="jobs", namespace="shop", uid="uid-1", generation=1, image="disqued:1")
BODIES = bodies()


def objects(spec: Spec = SPEC, wanted: Wanted | None = None) -> dict[str, Json]:
    """Return the objects by kind; the service and the Secret for clients have their own keys."""
    wanted = replace(wanted or Wanted(spec.replicas), image=spec.image or "")
    manifests = resources.desired(spec, wanted)
    clients = {spec.name: "ClientService", names.client_secret(spec.name): "ClientSecret"}
    return {_key(m, clients): m for m in manifests}


def _key(manifest: Json, clients: dict[str, str]) -> str:
    kind = str(manifest["kind"])
    return clients.get(manifest["metadata"]["name"], kind) if kind in {"Service", "Secret"} else kind


def pod(spec: Spec = SPEC) -> Json:
    found: Json = objects(spec)["StatefulSet"]["spec"]["template"]
    return found


def broker(spec: Spec = SPEC) -> Json:
    found: Json = pod(spec)["spec"]["containers"][0]
    return found


def changed(**fields: object) -> Spec:
    return Spec(**(dict(SPEC) | fields))


@pytest.mark.parametrize("name", BODIES)
def test_objects_match_the_snapshot(name: str) -> None:
    assert page(BODIES[name]) == (SNAPSHOTS / f"{name}.yaml").read_text(), "review the change, then run: make manifests"


def test_no_snapshot_is_stale() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.yaml")} == set(BODIES)


@pytest.mark.parametrize("name", BODIES)
def test_all_objects_are_owned_by_the_resource(name: str) -> None:
    spec = parse(BODIES[name])
    for manifest in resources.desired(spec, Wanted(3)):
        assert manifest["metadata"]["namespace"] == spec.namespace
        assert manifest["metadata"]["labels"] == names.labels(spec.name)
        (owner,) = manifest["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (spec.uid, True)
        assert not owner["blockOwnerDeletion"], "otherwise the operator needs a permission for finalizers"


@pytest.mark.parametrize("name", ["minimal", "production", "ephemeral"])
def test_pods_satisfy_the_restricted_pod_security_standard(name: str) -> None:
    template = pod(parse(BODIES[name]))["spec"]
    assert template["securityContext"]["runAsNonRoot"]
    assert template["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in template["containers"]:
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
    assert all(set(volume) - {"name"} <= {"configMap", "secret", "emptyDir"} for volume in template["volumes"])


@pytest.mark.parametrize("name", BODIES)
def test_broker_accepts_the_configuration(name: str) -> None:
    """The broker's own parser reads the file and the included file."""
    spec = parse(BODIES[name])
    found = objects(spec, Wanted(3, Passwords('a "word"\n', "old")))
    secret = {key: base64.b64decode(text) for key, text in found["Secret"]["data"].items()}
    included = {"/etc/disque-auth/disque.conf": secret["disque.conf"].decode()}
    config = load(found["ConfigMap"]["data"]["disque.conf"], [], included.__getitem__)
    assert config.requirepass == b'a "word"\n' == secret["password"]
    assert secret["former-password"] == b"old"
    assert config.appendonly == spec.persistence.appendonly
    assert config.cluster_seeds == (f"{spec.name}-members.shop.svc",)
    assert config.cluster_name == f"shop/{spec.name}"
    for directive, text in spec.config.items():
        assert OPTION_OF[directive].kind.read(text.encode().split()) == getattr(config, directive.replace("-", "_"))


def test_http_api_is_a_directive_and_a_port_of_the_service() -> None:
    found = objects(changed(http_api="full"))
    assert "http-api full" in found["ConfigMap"]["data"]["disque.conf"].splitlines()
    ports = {port["name"]: port["port"] for port in found["ClientService"]["spec"]["ports"]}
    assert ports == {"client": 7711, "http": 9711}
    assert "http" not in {port["name"] for port in objects()["ClientService"]["spec"]["ports"]}
    assert "http-api" not in objects()["ConfigMap"]["data"]["disque.conf"]


def test_secret_without_passwords_is_empty() -> None:
    found = objects()["Secret"]
    assert found["data"] == {"disque.conf": ""}
    assert objects(wanted=Wanted(3, Passwords("x")))["StatefulSet"] == objects()["StatefulSet"]


def test_the_digest_of_the_secret_does_not_depend_on_the_password() -> None:
    one, other = (objects(wanted=Wanted(3, Passwords(word)))["Secret"] for word in ("one", "other"))
    assert one["metadata"] == other["metadata"]
    assert one["data"] != other["data"]


@pytest.mark.parametrize("replicas", [0, 1, 3])
def test_scaling_changes_no_pod_template(replicas: int) -> None:
    assert objects(wanted=Wanted(replicas))["StatefulSet"]["spec"]["template"] == pod()


def budget(replicas: int, most: int = 1) -> Json | None:
    """Return the spec of the PodDisruptionBudget while the StatefulSet has `replicas`."""
    spec = changed(pod_disruption_budget=PodDisruptionBudget(max_unavailable=most))
    found = objects(spec, Wanted(replicas)).get("PodDisruptionBudget")
    return found["spec"] if found else None


def test_single_pod_has_no_disruption_budget() -> None:
    assert budget(2)
    assert budget(1) is None


def test_budget_always_keeps_a_member_and_never_protects_a_pod_that_serves_nobody() -> None:
    assert [found["maxUnavailable"] for replicas in (2, 3, 5) if (found := budget(replicas, most=3))] == [1, 2, 3]
    found = budget(3)
    assert found
    assert found["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


ZONE_AFFINITY: Json = {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]}
}


@pytest.mark.parametrize(
    ("given", "spread"),
    [
        (None, True),
        ({}, True),
        ({"nodeAffinity": ZONE_AFFINITY}, True),
        ({"podAffinity": {}}, True),
        ({"podAntiAffinity": {}}, False),
        ({"nodeAffinity": ZONE_AFFINITY, "podAntiAffinity": {}}, False),
    ],
    ids=str,
)
def test_pods_prefer_different_nodes_unless_the_spec_says_otherwise(given: Json | None, spread: bool) -> None:
    default = pod()["spec"]["affinity"]["podAntiAffinity"]
    found = pod(changed(affinity=given))["spec"]["affinity"]
    assert (found["podAntiAffinity"] == default) == spread
    assert {name: found[name] for name in given or {}} == (given or {})


def test_claim_templates_do_not_change_when_volumes_grow() -> None:
    live = objects()["StatefulSet"]["spec"]["volumeClaimTemplates"]
    grown = changed(storage=Storage(size="9Gi"))
    kept = objects(grown, Wanted(3, claim_templates=tuple(live)))["StatefulSet"]
    assert kept["spec"]["volumeClaimTemplates"] == live
    assert objects(grown)["StatefulSet"]["spec"]["volumeClaimTemplates"] != live


def test_claim_templates_with_defaults_of_the_api_server_are_no_difference() -> None:
    live = copy.deepcopy(objects()["StatefulSet"])
    for template in live["spec"]["volumeClaimTemplates"]:
        template["spec"]["volumeMode"] = "Filesystem"
        template["status"] = {"phase": "Pending"}
    again = objects(wanted=Wanted(3, claim_templates=tuple(live["spec"]["volumeClaimTemplates"])))["StatefulSet"]
    assert differs(again, live) == ""


def test_ephemeral_cluster_has_no_claims() -> None:
    found = objects(changed(storage=Storage(ephemeral=True)))["StatefulSet"]["spec"]
    assert "volumeClaimTemplates" not in found
    assert {"name": "data", "emptyDir": {}} in found["template"]["spec"]["volumes"]


def test_hibernated_cluster_records_its_members() -> None:
    hibernated_members = objects(wanted=Wanted(0, hibernated_members=5))["StatefulSet"]
    assert hibernated_members["metadata"]["annotations"][names.HIBERNATED_MEMBERS] == "5"
    assert names.HIBERNATED_MEMBERS not in objects()["StatefulSet"]["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("fields", "restarts"),
    [
        ({"config": {"hz": "20"}}, False),
        ({"maxmemory": "1gb"}, False),
        ({"config": {"tcp-backlog": "100"}}, True),
        ({"config": {"tcp-keepalive": "300"}}, True),
        ({"annotations": {names.RESTART_AT: "2026-01-31"}}, True),
        ({"annotations": {"other": "1"}}, False),
        ({"service": ClientService(port=7000)}, False),
        ({"image": "disqued:2"}, True),
    ],
    ids=str,
)
def test_pod_template_changes_only_for_settings_that_need_a_restart(fields: Json, restarts: bool) -> None:
    assert (pod(changed(**fields)) != pod()) == restarts


def test_equal_values_with_different_spelling_need_no_restart() -> None:
    one, other = (pod(changed(config={"tcp-backlog": text})) for text in ("100", ' "100" '))
    assert one == other


def test_removed_directive_gets_its_default() -> None:
    given, gone = resources.settings(changed(config={"hz": "20"})), resources.settings(SPEC)
    assert (given["hz"], gone["hz"]) == ("20", "10")
    assert set(given) == set(gone)
    assert not {"requirepass", "cluster-announce-hostname", "tcp-keepalive", "watchdog-period"} & set(gone)


@pytest.mark.parametrize(
    ("directive", "one", "other", "same"),
    [
        ("maxmemory", "1gb", "1073741824", True),
        ("maxmemory", "75%", "60%", False),
        ("appendonly", "YES", "yes", True),
        ("hz", "x", "x", True),
        ("hz", "x", "10", False),
    ],
)
def test_values_are_compared_like_in_the_broker(directive: str, one: str, other: str, same: bool) -> None:
    assert resources.same(directive, one, other) == same


@pytest.mark.parametrize(
    ("given", "found", "expected"),
    [
        ("2gb", {}, "2gb"),
        ("auto", {"limits": {"memory": "2Gi"}}, "75%"),
        ("auto", {"limits": {"memory": "512Mi"}}, "75%"),
        ("auto", {"limits": {"memory": "511Mi"}}, "60%"),
        ("auto", {"limits": {"memory": "1Gi"}, "requests": {"memory": "256Mi"}}, "75%"),
        ("auto", {"requests": {"memory": "1000M"}}, "750000000"),
        ("auto", {"requests": {"memory": "100M"}}, "60000000"),
        ("auto", {"limits": {"cpu": "1"}}, "1gb"),
        ("auto", {}, "1gb"),
    ],
)
def test_maxmemory_follows_the_container(given: str, found: Json, expected: str) -> None:
    assert maxmemory(changed(maxmemory=given, resources=found)) == expected


@pytest.mark.parametrize(
    ("given", "ephemeral", "expected"),
    [
        ({}, False, 60),
        ({"limits": {"cpu": "1"}}, False, 60),
        ({"limits": {"memory": "much"}}, False, 60),
        ({"limits": {"memory": "256Mi"}}, False, 60),
        ({"limits": {"memory": "1Gi"}}, False, 60),
        ({"limits": {"memory": "2Gi"}}, False, 105),
        ({"limits": {"memory": "8Gi"}, "requests": {"memory": "1Gi"}}, False, 375),
        ({"requests": {"memory": "8Gi"}}, False, 375),
        ({"limits": {"memory": "512Gi"}}, False, 3600),
        ({}, True, 60),
        ({"limits": {"memory": "256Mi"}}, True, 60),
        ({"limits": {"memory": "8Gi"}}, True, 735),
    ],
    ids=str,
)
def test_time_to_stop_grows_with_the_jobs_to_write_or_to_transfer(given: Json, ephemeral: bool, expected: int) -> None:
    spec = changed(resources=given, storage=Storage(ephemeral=ephemeral))
    assert pod(spec)["spec"]["terminationGracePeriodSeconds"] == expected


def arguments(spec: Spec, image: str) -> list[str]:
    """Return the arguments of the broker."""
    return list(broker(Spec(**(dict(spec) | {"image": image})))["args"])


def test_broker_without_a_volume_transfers_its_jobs_before_the_pod_is_killed() -> None:
    ephemeral = changed(resources={"limits": {"memory": "8Gi"}}, storage=Storage(ephemeral=True))
    found = arguments(ephemeral, "disqued:0.2.0")
    assert found[found.index("--shutdown-on-sigterm") + 1] == "drain"
    assert int(found[found.index("--shutdown-drain-timeout") + 1]) == 735 - 15 - 5
    assert "--shutdown-on-sigterm" not in arguments(ephemeral, "disqued:0.1.0")
    assert "--shutdown-on-sigterm" not in arguments(changed(), "disqued:0.2.0")


def test_time_to_stop_can_be_set() -> None:
    spec = changed(
        resources={"limits": {"memory": "8Gi"}}, pod_template={"spec": {"terminationGracePeriodSeconds": 90}}
    )
    assert pod(spec)["spec"]["terminationGracePeriodSeconds"] == 90


def test_memory_that_changes_without_a_restart_does_not_change_the_time_to_stop() -> None:
    given = {"limits": {"memory": "8Gi"}}
    assert pod(changed(resources=given, maxmemory="1gb")) == pod(changed(resources=given, maxmemory="6gb"))


def test_invalid_value_is_not_in_the_configuration() -> None:
    text = objects(changed(config={"hz": "fast"}))["ConfigMap"]["data"]["disque.conf"]
    assert "hz" not in text


def test_pod_template_can_be_extended() -> None:
    template = {
        "metadata": {"labels": {"team": "shop"}},
        "spec": {
            "securityContext": {"runAsUser": None},
            "containers": [{"name": "broker", "env": [{"name": "TZ", "value": "UTC"}]}, {"name": "side", "image": "s"}],
            "volumes": [],
        },
    }
    found = pod(changed(pod_template=template))
    assert found["metadata"]["labels"]["team"] == "shop"
    assert "runAsUser" not in found["spec"]["securityContext"]
    assert [container["name"] for container in found["spec"]["containers"]] == ["broker", "side"]
    assert [entry["name"] for entry in found["spec"]["containers"][0]["env"]] == ["POD_NAME", "TZ"]
    assert found["spec"]["volumes"] == pod()["spec"]["volumes"]


def test_protected_fields_of_the_pod_template_cannot_be_changed() -> None:
    fields = [name.rpartition(".")[2] for name in PROTECTED if name.startswith("spec.containers[broker].")]
    container: Json = {name: "other" for name in fields if "[" not in name} | {
        "name": "broker",
        "env": [{"name": "POD_NAME", "value": "other"}],
        "volumeMounts": [{"name": "other", "mountPath": path} for path in ("/data", "/etc/disque", "/etc/disque-auth")],
    }
    template = {
        "metadata": {"labels": dict.fromkeys(names.labels(""), "other")},
        "spec": {
            "hostname": "other",
            "subdomain": "other",
            "restartPolicy": "Never",
            "containers": [container],
            "volumes": [{"name": name, "emptyDir": {}} for name in ("data", "config", "auth")],
        },
    }
    assert pod(changed(pod_template=template)) == pod()


def test_spread_without_a_selector_applies_to_the_pods_of_the_cluster() -> None:
    (found,) = pod(
        changed(
            topology_spread_constraints=({"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"},)
        )
    )["spec"]["topologySpreadConstraints"]
    assert found["labelSelector"] == {"matchLabels": names.selector("jobs")}
    assert "topologySpreadConstraints" not in pod(changed(topology_spread_constraints=()))["spec"]


@pytest.mark.parametrize(
    ("image", "known"),
    [
        ("disqued:0.1.0", False),
        ("disqued:0.1.0@sha256:0123", False),
        ("disqued@sha256:0123", False),
        ("disqued:0.2.0", True),
        ("disqued:0.2.0@sha256:0123", True),
        ("disqued:main", True),
    ],
)
def test_brokers_of_an_older_release_get_no_directive_that_they_do_not_know(image: str, *, known: bool) -> None:
    """Such a broker would not start, and it runs until its image is changed or after the image was set back."""
    assert ("--cluster-seeds-delay" in broker(changed(image=image))["args"]) == known


def test_probes_and_hook_use_the_http_port() -> None:
    container = broker()
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"client": names.CLIENT_PORT, "bus": names.BUS_PORT, "http": names.HTTP_PORT}
    paths = {name: container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert paths == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
    assert container["lifecycle"]["preStop"]["httpGet"]["path"].startswith("/stopz?timeout=")


def test_objects_that_are_no_longer_desired_are_found() -> None:
    live = {(m["kind"], m["metadata"]["name"]): m for m in resources.desired(SPEC, Wanted(3))}
    strange = {"metadata": {"name": "other", "labels": names.labels("jobs")}}
    manifests = resources.desired(SPEC, Wanted(1))
    found = resources.surplus(manifests, live | {("NetworkPolicy", "other"): strange})
    assert [(m["kind"], m["metadata"]["name"]) for m in found] == [("PodDisruptionBudget", "jobs")]
