"""Parsing of objects into the values that the planner reads."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from disque_operator import names, observe
from disque_operator.apivalues import Json
from disque_operator.certificate_files import Authorities, TlsFiles
from disque_operator.kube import Kube
from disque_operator.observe import Objects
from disque_operator.observed import Observed, Passwords, Platform, Pod
from disque_operator.pki import new_authority, new_certificate
from disque_operator.spec import Spec, Tls
from support.apiserver import ApiServer, serving
from support.cluster import RealCluster

NOW_S = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC).timestamp()
SPEC = Spec(name="c", namespace="ns", uid="uid-c", generation=1)


def pod(name: str = "c-0", **status: Any) -> Json:
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-01-01T11:59:00Z",
            "labels": {"controller-revision-hash": "c-77", names.CLUSTER_LABEL: "c"},
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "sidecar"}, {"name": "broker", "image": "disqued:1"}]},
        "status": status,
    }


def waiting(reason: str, message: str = "") -> Json:
    return {"name": "broker", "state": {"waiting": {"reason": reason, "message": message}}}


def unscheduled(since: str) -> Json:
    says = {"reason": "Unschedulable", "message": "0/3 nodes", "lastTransitionTime": since}
    return {"type": "PodScheduled", "status": "False"} | says


def secret(annotations: dict[str, str] | None = None, **data: str) -> Json:
    encoded = {key.replace("_", "-"): base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"kind": "Secret", "metadata": {"name": "c-auth", "annotations": annotations}, "data": encoded}


def look(*items: Json, spec: Spec = SPEC, status: Json | None = None, **more: Any) -> Observed:
    by_name = {(item["kind"], item["metadata"]["name"]): item for item in items}
    found = Objects(by_name, more.get("own"), tuple(more.get("refusals", ())))
    return asyncio.run(observe.observe_cluster(spec, status or {}, found, NOW_S)).observed


def one(**status: Any) -> Pod:
    [found] = look(pod(**status)).pods
    return found


def test_expansion_of_a_claim_is_read() -> None:
    def claim(**status: Any) -> Json:
        spec = {"resources": {"requests": {"storage": "4Gi"}}, "storageClassName": "fast"}
        there = {"phase": "Bound", "capacity": {"storage": "2Gi"}} | status
        return {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data-c-0", "uid": "u"},
            "spec": spec,
            "status": there,
        }

    def resize(**status: Any) -> tuple[str, str]:
        [volume] = look(claim(**status)).volumes
        assert (volume.size, volume.capacity, volume.class_name) == ("4Gi", "2Gi", "fast")
        return volume.resize, volume.resize_text

    pending = {"type": "FileSystemResizePending", "status": "True", "message": "waiting for the pod"}
    refused = {"type": "ControllerResizeError", "status": "True", "message": "no space"}
    ended = {"type": "Resizing", "status": "False"}
    assert resize() == ("", "")
    assert resize(conditions=[ended]) == ("", "")
    assert resize(conditions=[pending, ended]) == ("FileSystemResizePending", "waiting for the pod")
    assert resize(allocatedResourceStatuses={"storage": "NodeResizePending"}, conditions=[]) == (
        "NodeResizePending",
        "",
    )
    infeasible = {"storage": "ControllerResizeInfeasible"}
    assert resize(allocatedResourceStatuses=infeasible, conditions=[refused]) == (infeasible["storage"], "no space")


def test_running_pod() -> None:
    conditions = [
        {"type": "PodScheduled", "status": "True"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T11:59:30Z"},
    ]
    containers = [{"name": "sidecar", "restartCount": 9}, {"name": "broker", "restartCount": 2, "ready": True}]
    assert one(phase="Running", conditions=conditions, containerStatuses=containers) == Pod(
        name="c-0",
        ordinal=0,
        uid="uid-c-0",
        revision="c-77",
        image="disqued:1",
        age_s=60.0,
        phase="Running",
        ready=True,
        ready_for_s=30.0,
        node="node-1",
        restarts=2,
    )


@pytest.mark.parametrize(
    ("status", "trouble", "says"),
    [
        ({"containerStatuses": [waiting("ContainerCreating")]}, "", ""),
        ({"containerStatuses": [waiting("ImagePullBackOff", "no such image")]}, "ImagePullBackOff", "no such image"),
        ({"containerStatuses": [waiting("ErrImagePull", "no such image")]}, "ImagePullBackOff", "no such image"),
        (
            {
                "conditions": [unscheduled("2026-01-01T11:59:50Z")],
            },
            "Unschedulable",
            "0/3 nodes",
        ),
        ({"conditions": [unscheduled("2026-01-01T11:59:51Z")]}, "", ""),
        (
            {
                "containerStatuses": [
                    waiting("CrashLoopBackOff", "back-off")
                    | {"lastState": {"terminated": {"reason": "Error", "exitCode": 1, "message": "bad directive\n"}}}
                ]
            },
            "CrashLoopBackOff",
            "Error, exit status 1: bad directive",
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "broker",
                        "ready": False,
                        "state": {"running": {}},
                        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
                    }
                ]
            },
            "OOMKilled",
            "OOMKilled, exit status 137",
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "broker",
                        "ready": True,
                        "state": {"running": {}},
                        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
                    }
                ]
            },
            "",
            "",
        ),
        ({"phase": "Failed", "reason": "Evicted", "message": "disk pressure"}, "Evicted", "disk pressure"),
        ({"containerStatuses": [waiting("ErrImagePull") | {"name": "sidecar"}]}, "", ""),
    ],
)
def test_reason_why_a_pod_does_not_run(status: Json, trouble: str, says: str) -> None:
    found = one(**status)
    assert (found.trouble, found.trouble_text) == (trouble, says)


@pytest.mark.parametrize(
    ("state", "restarts", "trouble"),
    [
        ({"terminated": {"reason": "Error", "exitCode": 1}}, 0, "CrashLoopBackOff"),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, 2, "CrashLoopBackOff"),
        ({"running": {"startedAt": "2026-01-01T11:59:50Z"}}, 2, "CrashLoopBackOff"),
        ({"running": {"startedAt": "2026-01-01T11:59:50Z"}}, 1, ""),
        ({"running": {"startedAt": "2026-01-01T11:50:00Z"}}, 9, ""),
        ({"terminated": {"reason": "Completed", "exitCode": 0}}, 1, ""),
    ],
)
def test_crash_looping_pod_has_a_constant_reason(state: Json, restarts: int, trouble: str) -> None:
    last = {"terminated": {"reason": "Error", "exitCode": 1}}
    container = {"name": "broker", "ready": False, "state": state, "lastState": last, "restartCount": restarts}
    assert one(phase="Running", containerStatuses=[container]).trouble == trouble


def test_pods_of_the_statefulset_are_sorted_by_ordinal() -> None:
    names_of = [found.name for found in look(*(pod(f"c-{n}") for n in ("10", "2", "0", "01", "x", "2-debug"))).pods]
    assert names_of == ["c-0", "c-2", "c-10"]


def test_pod_without_an_address_is_unreachable_and_deleted_pod_is_terminating() -> None:
    item = pod()
    item["metadata"] |= {"deletionTimestamp": "2026-01-01T12:00:00Z", "annotations": {names.DRAIN: "true"}}
    observed = look(item)
    assert observed.unreachable == {"c-0": "the pod is Pending"}
    assert observed.pods[0].terminating
    assert observed.pods[0].drain


@pytest.mark.parametrize("phase", ["Pending", "Failed", "Succeeded", "Unknown"])
def test_pod_that_does_not_run_is_not_queried(phase: str) -> None:
    observed = look(pod(phase=phase, podIP="127.0.0.1"))
    assert observed.unreachable == {"c-0": f"the pod is {phase}"}


@pytest.mark.parametrize(
    ("announced", "is_it"),
    [
        ("", True),
        ("localhost", True),
        ("c-0.c-members.ns.svc", True),
        ("c-1.c-members.ns.svc", False),
        ("c-0.c-members.other.svc", False),
        ("d-0.d-members.ns.svc", False),
    ],
)
def test_broker_that_announces_another_pod_is_ignored(tmp_path: Path, announced: str, is_it: bool) -> None:
    flags = ["--cluster-announce-hostname", announced] if announced else []
    with RealCluster(tmp_path, 1, *flags) as cluster:
        item = pod(phase="Running", podIP="127.0.0.1")
        found = Objects({("Pod", "c-0"): item}, None, ())
        address = cluster.nodes[0].address
        view = asyncio.run(observe.observe_cluster(SPEC, {}, found, NOW_S, lambda _pod: address))
    assert ("c-0" in view.observed.brokers) == ("c-0" in view.connections) == is_it
    assert view.observed.unreachable == ({} if is_it else {"c-0": f"the broker of {announced} answers at its address"})


def test_stateful_set_is_outdated_until_its_controller_has_observed_it() -> None:
    item: Json = {
        "kind": "StatefulSet",
        "metadata": {"name": "c", "uid": "u", "generation": 5, "annotations": {names.HIBERNATED_MEMBERS: "3"}},
        "spec": {"replicas": 3, "template": {"spec": pod()["spec"]}},
        "status": {"observedGeneration": 4, "updateRevision": "c-76"},
    }
    before = look(item).stateful_set
    assert before is not None
    assert (before.replicas, before.revision, before.image, before.hibernated_members) == (3, "c-76", "disqued:1", 3)
    assert not before.up_to_date
    item["status"]["observedGeneration"] = 5
    after = look(item).stateful_set
    assert after is not None
    assert after.up_to_date


def test_volumes_are_the_claims_of_members() -> None:
    def claim(name: str, **metadata: Any) -> Json:
        requests = {"resources": {"requests": {"storage": "2Gi"}}}
        return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "uid": name} | metadata, "spec": requests}

    owned = claim("data-c-0", ownerReferences=[{"uid": "uid-c"}], annotations={names.DRAINED: "abc"})
    owned["status"] = {"phase": "Bound"}
    going = claim("data-c-1", deletionTimestamp="2026-01-01T12:00:00Z")
    first, second = look(owned, going, claim("other-c-0"), claim("data-c-x")).volumes
    assert (first.ordinal, first.bound, first.owned, first.drained, first.size) == (0, True, True, "abc", "2Gi")
    assert (second.ordinal, second.bound, second.owned, second.terminating) == (1, False, False, True)


def test_passwords_are_read_from_the_secret() -> None:
    annotations = {names.ROTATION: "4", names.ROTATED_AT: "2026-01-01T11:58:20Z"}
    assert look(secret(annotations, password="new", former_password="old")).passwords == Passwords(
        "new", "old", 4, 100.0, "2026-01-01T11:58:20Z"
    )
    assert look(secret({}, password="new\n")).passwords == Passwords("new")
    assert look(secret({}, password="old", next_password="new")).passwords == Passwords("old", following="new")
    assert look(secret({}, other="x")).passwords is None
    assert look().passwords is None


def test_invalid_secret_has_no_passwords() -> None:
    item = secret({names.ROTATION: "often", names.ROTATED_AT: "yesterday"}, password="p")
    assert look(item).passwords == Passwords("p", rotated_at="yesterday")
    item["data"]["password"] = "not base64!"
    assert look(item).passwords is None


def test_user_secret_is_read() -> None:
    assert look(own=secret(password="mine\n")).own_password == "mine"
    assert look(own=secret(other="x")).own_password is None


@pytest.mark.parametrize(
    ("passwords", "of_clients", "own", "expected"),
    [
        (Passwords("new", "old"), Passwords("old"), None, ("new", "old")),
        (Passwords("old", following="new"), Passwords("old"), None, ("old", "new")),
        (Passwords("new"), Passwords("new"), "newer", ("new", "newer")),
        (Passwords("new"), None, "new", ("new",)),
        (None, Passwords("kept"), None, ("kept",)),
        (None, None, "mine", ("mine",)),
        (None, None, None, ()),
    ],
)
def test_all_possible_passwords_are_tried(
    passwords: Passwords | None, of_clients: Passwords | None, own: str | None, expected: tuple[str, ...]
) -> None:
    assert observe._keys(passwords, of_clients, own) == expected


def test_latest_pod_rejection_is_reported_for_some_time() -> None:
    def refusal(at: str, message: str) -> Json:
        return {"lastTimestamp": at, "message": message}

    events = [refusal("2026-01-01T11:58:00Z", "older"), refusal("2026-01-01T11:59:00Z", "exceeded quota: pods=2")]
    assert look(refusals=events).quota == "exceeded quota: pods=2"
    assert not look(refusals=[refusal("2026-01-01T11:00:00Z", "long ago")]).quota


def test_events_are_read_only_when_pods_are_missing() -> None:
    async def main() -> None:
        server = ApiServer()
        stateful_set = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"labels": {names.CLUSTER_LABEL: "c"}},
            "spec": {"replicas": 1},
        }
        uid = server.put("/apis/apps/v1/namespaces/ns/statefulsets/c", stateful_set)["metadata"]["uid"]
        for number, about in enumerate((uid, "other-uid")):
            event = {"involvedObject": {"uid": about}, "reason": "FailedCreate", "message": f"quota of {about}"}
            server.put(f"/api/v1/namespaces/ns/events/c.{number}", event)
        async with serving(server) as configuration:
            kube = Kube(configuration, lambda _verb, _kind, _status: None)
            refusals = (await observe.read_objects(kube, SPEC, Platform())).refusals
            assert [event["message"] for event in refusals] == [f"quota of {uid}"]
            server.put("/api/v1/namespaces/ns/pods/c-0", pod())
            server.requests.clear()
            assert not (await observe.read_objects(kube, SPEC, Platform())).refusals
            assert not [request for request in server.requests if "events" in request]
            await kube.close()

    asyncio.run(main())


@pytest.mark.parametrize(("ip", "address"), [("10.1.2.3", "10.1.2.3:7711"), ("fd00::7", "[fd00::7]:7711")])
def test_broker_is_queried_at_the_address_of_its_pod(ip: str, address: str) -> None:
    assert observe.pod_address(replace(one(), ip=ip)) == address


# --- TLS --------------------------------------------------------------------------------------------------------------


def encrypted(**fields: Any) -> Spec:
    return SPEC.model_copy(update={"tls": Tls(enabled=True, **fields)})


def entries(name: str, **data: str) -> Json:
    encoded = {key.replace("_", "."): base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"kind": "Secret", "metadata": {"name": name}, "data": encoded}


def test_pod_has_tls_by_its_port_and_its_mode_of_the_bus_by_its_arguments() -> None:
    body = pod()
    body["spec"]["containers"][1] |= {"ports": [{"name": "client-tls"}], "args": ["--tls-cluster", "optional"]}
    [found] = look(body).pods
    assert (found.tls, found.bus.tls) == (True, "optional")
    assert (one().tls, one().bus.tls) == (False, "no")
    assert observe.pod_address(replace(found, ip="10.0.0.1")) == "10.0.0.1:7712"


def test_certificate_of_the_secret_that_a_watch_reported_is_newer_than_the_one_that_was_read() -> None:
    found = Objects({("Secret", "c-tls"): entries("c-tls", tls_crt="new")}, None, (), entries("c-tls", tls_crt="old"))
    seen = asyncio.run(observe.observe_cluster(encrypted(), {}, found, NOW_S)).observed
    assert seen.tls is not None
    assert seen.tls.pem.certificate == "new"


def test_certificates_and_authorities_are_read_as_they_were_written() -> None:
    """Otherwise they differ from the desired ones, and a new certificate is made in each round."""
    begins_s, ends_s = NOW_S - 60, NOW_S + 86400
    signer = new_authority("c", begins_s, ends_s)
    authorities = Authorities(signer)
    files = TlsFiles(new_certificate(signer, ["c"], begins_s, ends_s), authorities.trusted())
    written = {
        ("Secret", "c-authority"): entries("c-authority", **authorities.entries()),
        ("Secret", "c-tls"): entries("c-tls", **files.entries()),
    }
    seen = asyncio.run(observe.observe_cluster(encrypted(), {}, Objects(written, None, ()), NOW_S)).observed
    assert seen.tls is not None
    assert seen.tls.entries() == files.entries()
    assert seen.authorities is not None
    assert seen.authorities.entries() == authorities.entries()


def test_certificates_of_cert_manager_are_children_although_no_watch_reports_them() -> None:
    requested = {"kind": "Certificate", "metadata": {"name": "c-tls"}}
    found = Objects({}, None, (), None, (requested,))
    seen = asyncio.run(observe.observe_cluster(encrypted(), {}, found, NOW_S)).observed
    assert seen.serves_certificates
    assert seen.children["Certificate", "c-tls"] == requested


def test_pod_with_tls_is_not_asked_while_no_authority_is_known() -> None:
    body = pod(phase="Running", podIP="127.0.0.1")
    body["spec"]["containers"][1]["ports"] = [{"name": "client-tls"}]
    assert look(body, spec=encrypted()).unreachable == {"c-0": observe.UNVERIFIABLE}
