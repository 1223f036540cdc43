"""Decisions of `plan` about passwords, directives, objects and claims; its status and events."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from disque_operator import names, passwords
from disque_operator.actions import Apply, Command
from disque_operator.apivalues import Json
from disque_operator.members import ClusterView
from disque_operator.observed import Leaving, Observed, password_hash
from disque_operator.resources.common import Wanted
from disque_operator.resources.configuration import secret
from disque_operator.schema.definition import CLUSTER
from disque_operator.spec import Auth, Storage, VolumeRetention
from support.kubeworld.brokers import BrokerProcess, Disk
from support.kubeworld.values import (
    at_rest,
    broker,
    broker_of,
    changed,
    decided,
    gone,
    planned,
    pod,
    reported,
    revision,
    seen,
    short,
    stateful_set,
    status,
    unreachable,
    volumes,
)

Change = Callable[[ClusterView], ClusterView]


def lone(view: ClusterView) -> ClusterView:
    """Return a cluster without any objects."""
    return ClusterView(view.spec, Observed(), view.now_s)


def test_password_is_created_before_the_first_pod() -> None:
    kinds = [short(action) for action in planned(lone(at_rest())).actions]
    assert kinds.index("apply Secret mail-auth") < kinds.index("apply StatefulSet 3")


# --- passwords --------------------------------------------------------------------------------------------------------


def stored(view: ClusterView, **fields: object) -> ClusterView:
    """Return the view with other contents of the Secret."""
    assert view.observed.passwords is not None
    found = replace(view.observed.passwords, **fields)  # type: ignore[arg-type]  # by name
    key = ("Secret", names.auth_secret(view.spec.name))
    manifest = secret(view.spec, Wanted(view.spec.replicas, found))
    live = copy.deepcopy(view.observed.children[key])
    live["data"], live["metadata"]["annotations"] = manifest["data"], manifest["metadata"]["annotations"]
    return seen(view, passwords=found, children={**view.observed.children, key: live})


def own(view: ClusterView, password: str | None) -> ClusterView:
    """Return the view with a Secret of the user."""
    return changed(seen(view, own_password=password), auth=Auth(secret_name="mine"))


def opened(view: ClusterView, ordinal: int, password: str = "", other: str = "") -> ClusterView:
    """Return the view with other passwords of a broker."""
    hashes = frozenset(password_hash(one) for one in (password, other) if one)
    return broker(view, ordinal, password_hashes=hashes)


def everywhere(view: ClusterView, password: str, other: str) -> ClusterView:
    """Return the view with other passwords of all brokers."""
    for ordinal in range(3):
        view = opened(view, ordinal, password, other)
    return view


def grace(view: ClusterView) -> ClusterView:
    """Return the view during the grace period of a previous password."""
    return changed(stored(view, former="old", rotated_s_ago=10.0), auth=Auth())


def current(view: ClusterView) -> str:
    assert view.observed.passwords is not None
    return view.observed.passwords.current


ROTATED: dict[str, tuple[Change, list[str]]] = {
    "rotation changes": (lambda view: changed(view, auth=Auth(rotation=1)), ["apply Secret mail-auth"]),
    "rotation changes during the grace period": (
        lambda view: changed(everywhere(grace(view), current(view), "old"), auth=Auth(rotation=1)),
        [],
    ),
    "the user's Secret changes": (lambda view: own(view, "mine"), ["apply Secret mail-auth"]),
    "the user's Secret has the current password": (lambda view: own(view, current(view)), []),
    "the user's Secret does not exist": (lambda view: own(view, None), []),
    "a broker rejects the next password": (
        lambda view: opened(everywhere(stored(view, following="next"), current(view), "next"), 1, current(view)),
        ["mail-1: CONFIG SET requirepass {current}", "mail-1: CONFIG SET requirepass-former next"],
    ),
    "all brokers accept the next password": (
        lambda view: everywhere(stored(view, following="next"), current(view), "next"),
        ["apply Secret mail-auth", "apply Secret mail-default-user"],
    ),
    "a broker accepts another password in addition, during the grace period after a restored Secret": (
        lambda view: opened(stored(view, rotated_s_ago=10.0), 1, current(view), "old"),
        [],
    ),
    "a broker does not answer": (
        lambda view: unreachable(everywhere(stored(view, following="next"), current(view), "next"), 1),
        [],
    ),
    "the user's Secret changes to a third password": (
        lambda view: own(everywhere(stored(view, following="next"), current(view), "next"), "third"),
        ["apply Secret mail-auth"],
    ),
    "a broker accepts only the previous password": (
        lambda view: opened(everywhere(grace(view), current(view), "old"), 1, "old"),
        ["mail-1: CONFIG SET requirepass old", "mail-1: CONFIG SET requirepass-former {current}"],
    ),
    "all brokers accept both": (lambda view: everywhere(grace(view), current(view), "old"), []),
    "a broker accepts none": (
        lambda view: opened(view, 1),
        ["mail-1: CONFIG SET requirepass {current}"],
    ),
    "a broker accepts none of two": (
        lambda view: opened(everywhere(grace(view), current(view), "old"), 1),
        ["mail-1: CONFIG SET requirepass-former old", "mail-1: CONFIG SET requirepass {current}"],
    ),
    "a broker still accepts the previous password": (
        lambda view: opened(view, 1, current(view), "old"),
        ["mail-1: CONFIG SET requirepass {current}", "mail-1: CONFIG SET requirepass-former "],
    ),
    "authentication is disabled": (
        lambda view: opened(opened(changed(view, auth=Auth(enabled=False)), 0), 1, "old", "older"),
        [
            "mail-1: CONFIG SET requirepass ",
            "mail-2: CONFIG SET requirepass ",
            "apply Secret mail-auth",
            "apply Secret mail-default-user",
        ],
    ),
    "both Secrets were deleted": (
        lambda view: seen(view, passwords=None, client_passwords=None),
        ["apply Secret mail-auth", "apply Secret mail-default-user"],
    ),
}


@pytest.mark.parametrize("case", ROTATED)
def test_password_change(case: str) -> None:
    change, expected = ROTATED[case]
    view = at_rest()
    assert decided(change(view)) == [action.replace("{current}", current(view)) for action in expected]


FORMER: dict[str, tuple[Change, bool]] = {
    "the grace period is over": (lambda view: view, False),
    "the grace period is not over": (lambda view: stored(view, rotated_s_ago=10.0), True),
    "a broker rejects the new password": (lambda view: opened(view, 1, "old"), True),
    "a broker does not answer": (lambda view: unreachable(view, 1), True),
    "a pod has not started": (lambda view: unreachable(view, 1, phase="Pending"), False),
}


@pytest.mark.parametrize("case", FORMER)
def test_previous_password_is_kept(case: str) -> None:
    change, kept = FORMER[case]
    view = changed(stored(at_rest(), former="old", rotated_s_ago=400.0), auth=Auth())
    view = change(everywhere(view, current(view), "old"))
    written = [action.manifest["data"] for action in planned(view).actions if isinstance(action, Apply)]
    assert ["former-password" in data for data in written] == ([] if kept else [False])


WANTED: dict[str, set[str]] = {"off": set(), "one": {"current"}, "two": {"current", "other"}}
"""The passwords that brokers should accept, by a name."""
ON_A_BROKER = ("", "current", "other", "manual", "typo")
"""Values of `requirepass` and `requirepass-former`: empty, passwords of the Secret, and others."""


def reachable() -> Iterator[tuple[str, str, str]]:
    """Yield all values and what is wanted, except where the broker accepts no password of the Secret."""
    for wanted, requirepass, former in itertools.product(WANTED, ON_A_BROKER, ON_A_BROKER):
        known = WANTED[wanted] | {"current"}
        if not requirepass or known & {requirepass, former}:
            yield wanted, requirepass, former


@pytest.mark.parametrize(("case", "requirepass", "former"), tuple(reachable()))
def test_broker_accepts_the_passwords_of_the_secret_throughout_a_change(
    case: str, requirepass: str, former: str
) -> None:
    """Whichever of them is `requirepass`, which the operator does not see, and after each single command."""
    node = BrokerProcess("host", "10.0.0.1", Disk(), 0.0, 0.0, "1", {}, requirepass, former)
    wanted = WANTED[case]
    keys = ["current", "other"] if "other" in wanted else ["current"]
    kept = [key for key in keys if node.accepts(key)]
    former_word, age_s = ("other", 10.0) if "other" in wanted else (None, 400.0)
    view = stored(at_rest(), current="current", former=former_word, rotated_s_ago=age_s)
    view = changed(view, auth=Auth(enabled=bool(wanted)))
    for _ in range(2):
        login = next((key for key in keys if key in node.accepted_passwords), "")
        for command in commands_to(node, view):
            assert login in (node.accepted_passwords or {""}), "the operator logs in for each command"
            node.set_password(*command[2:])
            assert all(node.accepts(key) for key in kept), command
    assert node.accepted_passwords == wanted
    assert not commands_to(node, view)


def commands_to(node: BrokerProcess, view: ClusterView) -> list[tuple[str, ...]]:
    """Return the commands for a broker with these passwords."""
    decision = passwords.decide(broker(view, 1, password_hashes=node.password_hashes), "").decision
    return [action.words for action in decision.actions if isinstance(action, Command) and action.pod == "mail-1"]


def test_cluster_is_not_created_without_a_password() -> None:
    view = own(lone(at_rest()), None)
    assert decided(view) == []
    assert reported(view, "Degraded") == ("True", "SecretMissing")
    assert "kubectl create secret generic mine" in planned(view).status["message"]


def test_passwords_are_not_logged() -> None:
    view = opened(at_rest(), 1)
    assert [action.secret for action in planned(view).actions if isinstance(action, Command)] == [True]


def test_new_password_is_stored_before_it_is_sent_to_brokers() -> None:
    actions = planned(changed(at_rest(), auth=Auth(rotation=1))).actions
    assert [short(action) for action in actions] == ["apply Secret mail-auth"]


# --- directives and objects -------------------------------------------------------------------------------------------


def test_live_directive_is_set_without_a_restart() -> None:
    view = changed(at_rest(), config={"slowlog-max-len": "64"})
    assert [action for action in decided(view) if "CONFIG" in action] == [
        f"mail-{ordinal}: CONFIG SET slowlog-max-len 64" for ordinal in range(3)
    ]


def test_manually_changed_directive_is_restored() -> None:
    config = {**broker_of(at_rest(), 1).config, "slowlog-max-len": "7", "maxclients": "900"}
    assert decided(broker(at_rest(), 1, config=config)) == ["mail-1: CONFIG SET slowlog-max-len 128"]


def test_equal_values_with_different_spelling_are_not_set() -> None:
    config = {**broker_of(at_rest(), 1).config, "auto-aof-rewrite-min-size": "64mb"}
    assert decided(broker(at_rest(), 1, config=config)) == []


def child(view: ClusterView, kind: str, name: str, change: Callable[[Json], Json]) -> ClusterView:
    """Return the view with a changed child."""
    return seen(view, children={**view.observed.children, (kind, name): change(view.observed.children[kind, name])})


def test_manually_changed_object_is_restored_over_the_observed_version() -> None:
    view = child(at_rest(), "ConfigMap", "mail-config", lambda live: live | {"data": {"disque.conf": "hz 1\n"}})
    (action,) = planned(view).actions
    assert isinstance(action, Apply)
    assert short(action) == "apply ConfigMap mail-config"
    version = at_rest().observed.children["ConfigMap", "mail-config"]["metadata"]["resourceVersion"]
    assert action.manifest["metadata"]["resourceVersion"] == version


def test_object_of_another_owner_is_not_changed() -> None:
    def taken(live: Json) -> Json:
        return {"kind": live["kind"], "metadata": {"name": "mail", "uid": "x", "labels": {}}, "spec": {}}

    view = child(at_rest(), "Service", "mail", taken)
    assert decided(view) == []
    assert reported(view, "Degraded") == ("True", "NameTaken")


def test_disabled_disruption_budget_is_deleted() -> None:
    view = at_rest()
    view = changed(view, pod_disruption_budget=view.spec.pod_disruption_budget.model_copy(update={"enabled": False}))
    assert decided(view) == ["delete PodDisruptionBudget mail"]


CLAIMS: dict[str, tuple[Change, list[str]]] = {
    "size grows": (
        lambda view: changed(view, storage=Storage(size="4Gi")),
        [f"apply PersistentVolumeClaim data-mail-{ordinal}" for ordinal in range(3)],
    ),
    "size shrinks": (lambda view: changed(view, storage=Storage(size="1Gi")), []),
    "whenDeleted is Delete": (
        lambda view: changed(view, storage=Storage(retention=VolumeRetention(when_deleted="Delete"))),
        [f"apply PersistentVolumeClaim data-mail-{ordinal}" for ordinal in range(3)],
    ),
}


@pytest.mark.parametrize("case", CLAIMS)
def test_claim_is_changed(case: str) -> None:
    change, expected = CLAIMS[case]
    assert [action for action in decided(change(at_rest())) if "Claim" in action] == expected


LEFT_BEHIND: dict[str, tuple[Change, bool]] = {
    "drained": (lambda view: volumes(view, 2, drained="id"), True),
    "drained, whenScaled is Retain": (
        lambda view: changed(
            volumes(view, 2, drained="id"), storage=Storage(retention=VolumeRetention(when_scaled="Retain"))
        ),
        False,
    ),
    "not drained": (lambda view: view, False),
    "never bound": (lambda view: volumes(view, 2, bound=False), True),
    "already being deleted": (lambda view: volumes(view, 2, drained="id", terminating=True), False),
    "drained, its pod will be created again": (lambda view: changed(volumes(view, 2, drained="id"), replicas=3), False),
}


@pytest.mark.parametrize("case", LEFT_BEHIND)
def test_claim_of_a_removed_pod_is_deleted(case: str) -> None:
    change, deleted = LEFT_BEHIND[case]
    view = change(changed(stateful_set(gone(at_rest(), 2), replicas=2), replicas=2))
    assert ("delete PersistentVolumeClaim data-mail-2" in decided(view)) == deleted


# --- status and events ------------------------------------------------------------------------------------------------

TROUBLES = {
    "ImagePullBackOff": ("ImageMissing", "spec.image"),
    "Unschedulable": ("Unschedulable", "spec.nodeSelector"),
    "CreateContainerConfigError": ("ConfigurationMissing", "Secret or ConfigMap"),
    "CrashLoopBackOff": ("CrashLooping", "kubectl logs mail-1 --previous"),
    "OOMKilled": ("OutOfMemory", "spec.resources.limits.memory"),
    "NodeLost": ("NodeLost", "delete the Node object"),
    "Evicted": ("PodFailed", "kubectl describe pod mail-1"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_reason_and_advice_for_a_pod_that_does_not_run(trouble: str) -> None:
    reason, advice = TROUBLES[trouble]
    view = unreachable(at_rest(), 1, ready=False, trouble=trouble)
    assert reported(view, "Degraded") == ("True", reason)
    assert advice in planned(view).status["message"]
    assert planned(view).status["phase"] == "Degraded"


def test_exceeded_quota_is_reported_with_advice() -> None:
    view = seen(gone(at_rest(), 2), quota="exceeded quota: pods=2")
    assert reported(view, "Degraded") == ("True", "PodsRefused")
    assert "exceeded quota: pods=2" in planned(view).status["message"]


def test_condition_keeps_its_transition_time() -> None:
    view = at_rest()
    later = ClusterView(view.spec, view.observed, view.now_s + 1000)
    assert planned(later).status == view.observed.status
    worse = unreachable(later, 1)
    times = {entry["type"]: entry["lastTransitionTime"] for entry in planned(worse).status["conditions"]}
    before = {entry["type"]: entry["lastTransitionTime"] for entry in view.observed.status["conditions"]}
    assert {kind for kind, at in times.items() if at != before[kind]} == {
        "Ready",
        "ClusterFormed",
        "AllMembersReachable",
        "Progressing",
    }


def test_briefly_silent_member_is_not_a_problem() -> None:
    view = unreachable(at_rest(), 1)
    first = planned(view)
    assert (first.status["phase"], reported(view, "Degraded")[0]) == ("Healing", "False")
    later = ClusterView(view.spec, replace(view.observed, status=first.status), view.now_s + 16)
    assert reported(later, "Degraded") == ("True", "MemberUnreachable")


def outside(schema: Json, value: object, path: str = "status") -> list[str]:
    """Return values that the schema does not have, or has with another type."""
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list}
    if not isinstance(value, kinds[schema["type"]]):  # type: ignore[arg-type]  # a table of types
        return [path]
    if isinstance(value, list):
        return [found for entry in value for found in outside(schema["items"], entry, path)]
    if not isinstance(value, dict):
        return []
    strange = [f"{path}.{name}" for name in value if name not in schema["properties"]]
    known = {name: entry for name, entry in value.items() if name in schema["properties"]}
    return strange + [
        found for name, entry in known.items() for found in outside(schema["properties"][name], entry, f"{path}.{name}")
    ]


def test_status_matches_its_schema() -> None:
    leaving = Leaving(done=False, jobs_left=5, rate=1.5, seconds_left=5.0, seconds_elapsed=10.0)
    view = status(changed(broker(at_rest(), 2, leaving=leaving), replicas=2), formerImage="disque:0")
    told_status = planned(view).status
    assert {"drain", "formerImage", "secretName"} <= told_status.keys()
    assert outside(CLUSTER.status, told_status) == []


def test_events_are_posted_only_on_transitions() -> None:
    view = unreachable(at_rest(), 1, ready=False, trouble="CrashLoopBackOff")
    first = planned(view)
    assert [event.reason for event in first.events] == ["CrashLooping"]
    assert planned(seen(view, status=first.status)).events == ()
    recovered = planned(seen(at_rest(), status=first.status))
    assert [event.reason for event in recovered.events] == ["Running", "Recovered"]


def test_silent_member_keeps_its_node_id_in_the_status() -> None:
    view = unreachable(at_rest(), 1)
    member = planned(view).status["members"][1]
    assert (member["nodeId"], member["state"]) == (broker_of(at_rest(), 1).node_id, "unreachable")


@pytest.mark.parametrize(
    ("images", "ready", "former"),
    [
        (("disque:1", "disque:1", "disque:1"), True, "disque:1"),
        (("disque:1", "disque:1", "disque:0"), True, "disque:0"),
        (("disque:1", "disque:1", "disque:1"), False, "disque:0"),
    ],
    ids=["all ran on it", "not all came to it", "it never served"],
)
def test_former_image_is_the_last_one_that_served(images: tuple[str, ...], *, ready: bool, former: str) -> None:
    view = stateful_set(status(at_rest(), image="disque:1", formerImage="disque:0"), image="disque:2")
    for ordinal, image in enumerate(images):
        view = pod(view, ordinal, image=image, ready=ready)
    assert planned(view).status["formerImage"] == former


def test_messages_contain_no_changing_numbers() -> None:
    view = at_rest()
    busy = broker(view, 1, jobs=5000, used_memory=10**9)
    one, other = planned(view).status, planned(busy).status
    assert one["conditions"] == other["conditions"]
    assert one["message"] == other["message"]
    assert other["jobs"]["registered"] == 5000


def test_paused_cluster_still_reports_problems() -> None:
    view = changed(unreachable(at_rest(), 1, ready=False, trouble="CrashLoopBackOff"), paused=True)
    assert decided(view) == []
    assert planned(view).status["phase"] == "Paused"
    assert reported(view, "Degraded") == ("True", "CrashLooping")


def test_invalid_spec_is_reported() -> None:
    view = changed(at_rest(), config={"hz": "often"})
    assert reported(view, "SpecValid") == ("False", "Invalid")
    assert "spec.config.hz" in planned(view).status["message"]
    assert [event.reason for event in planned(view).events] == ["Invalid"]


def test_rollout_progress_is_reported() -> None:
    view = pod(revision(at_rest()), 2, revision="new")
    assert "2 of 3 pods to replace, next mail-1" in planned(view).status["message"]
    assert volumes(view, 1).observed == view.observed
