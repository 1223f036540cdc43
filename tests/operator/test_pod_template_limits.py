"""What `spec.podTemplate` may ask for: it must not give more access than users of the resource have."""

from __future__ import annotations

from typing import Any

import pytest

from disque_operator.actions import Apply
from disque_operator.apivalues import Json
from disque_operator.problems import problems
from support.kubeworld.scenario import a_spec
from support.kubeworld.values import at_rest, changed, planned, reported, seen


def found(pod: Json, *, privileged: bool = False) -> list[str]:
    """Return the fields of a pod template that are refused."""
    return [problem.field for problem in problems(a_spec(pod_template={"spec": pod}), privileged=privileged)]


def container(kind: str = "containers", **fields: Any) -> Json:
    return {kind: [{"name": "side", **fields}]}


def context(**fields: Any) -> Json:
    return container(securityContext=fields)


REFUSED: dict[str, Json] = {
    "serviceAccountName": {"serviceAccountName": "admin"},
    "serviceAccount": {"serviceAccount": "admin"},
    "nodeName": {"nodeName": "control-plane"},
    "hostNetwork": {"hostNetwork": True},
    "hostPID": {"hostPID": True},
    "hostIPC": {"hostIPC": True},
    "volumes[root].hostPath": {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]},
    "securityContext.sysctls[kernel.msgmax].name": {"securityContext": {"sysctls": [{"name": "kernel.msgmax"}]}},
    "securityContext.seccompProfile.type": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "containers[side].ports[web].hostPort": container(ports=[{"name": "web", "hostPort": 80}]),
    "containers[side].ports[0].hostPort": container(ports=[{"hostPort": 80}]),
    "initContainers[side].securityContext.privileged": container(
        "initContainers", securityContext={"privileged": True}
    ),
    "containers[side].securityContext.capabilities.add[SYS_ADMIN]": context(
        capabilities={"add": ["KILL", "SYS_ADMIN"]}
    ),
    "containers[side].securityContext.procMount": context(procMount="Unmasked"),
    "containers[side].securityContext.seLinuxOptions.type": context(seLinuxOptions={"type": "spc_t"}),
    "containers[side].securityContext.appArmorProfile.type": context(appArmorProfile={"type": "Unconfined"}),
    "containers[side].securityContext.windowsOptions.hostProcess": context(windowsOptions={"hostProcess": True}),
}
ALLOWED: tuple[Json, ...] = (
    {"hostNetwork": False, "hostPID": None},
    {"volumes": [{"name": "notes", "emptyDir": {}}, {"name": "mine", "secret": {"secretName": "mine"}}]},
    {"securityContext": {"runAsUser": None, "seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}},
    context(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, privileged=False),
    container(ports=[{"containerPort": 80}]),
    {"schedulerName": "mine", "runtimeClassName": "gvisor", "dnsPolicy": "Default"},
)


@pytest.mark.parametrize("path", REFUSED)
def test_access_to_the_node_or_another_account_is_refused(path: str) -> None:
    assert found(REFUSED[path]) == [f"spec.podTemplate.spec.{path}"]
    assert found(REFUSED[path], privileged=True) == []


@pytest.mark.parametrize("pod", ALLOWED, ids=str)
def test_everything_else_is_allowed(pod: Json) -> None:
    assert found(pod) == []


def test_a_refused_template_is_reported_and_not_applied() -> None:
    view = changed(at_rest(), pod_template={"spec": {"hostNetwork": True}})
    assert planned(view).actions == ()
    assert reported(view, "SpecValid") == ("False", "Invalid")
    assert "option pod-templates" in planned(view).status["message"]
    (action,) = planned(seen(view, privileged=True)).actions
    assert isinstance(action, Apply)
    assert action.manifest["spec"]["template"]["spec"]["hostNetwork"]
