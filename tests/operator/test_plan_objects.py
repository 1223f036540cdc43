"""What `plan` answers to what it sees of passwords, directives, objects and claims, and what it tells."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest

from disque_operator import names
from disque_operator.actions import Apply, Command
from disque_operator.apivalues import Json
from disque_operator.members import ClusterView
from disque_operator.observed import Leaving, Observed
from disque_operator.resources.configuration import secret
from disque_operator.schema.definition import status as status_schema
from disque_operator.spec import Auth, Storage, VolumeRetention
from support.kubeworld.values import (
    at_rest,
    broker,
    broker_of,
    changed,
    done,
    gone,
    planned,
    pod,
    revision,
    seen,
    short,
    stateful_set,
    status,
    told,
    unreachable,
    volumes,
)

Change = Callable[[ClusterView], ClusterView]


def lone(view: ClusterView) -> ClusterView:
    """Nothing is there yet."""
    return ClusterView(view.spec, Observed(), view.now_s)


def test_the_password_comes_before_the_first_pod() -> None:
    kinds = [short(action) for action in planned(lone(at_rest())).actions]
    assert kinds.index("apply Secret mail-auth") < kinds.index("apply StatefulSet 3")


# --- passwords --------------------------------------------------------------------------------------------------------


def stored(view: ClusterView, **fields: object) -> ClusterView:
    """The Secret says something else."""
    assert view.observed.passwords is not None
    passwords = replace(view.observed.passwords, **fields)  # type: ignore[arg-type]  # by name
    key = ("Secret", names.auth_secret(view.spec.name))
    manifest = secret(view.spec, passwords)
    live = copy.deepcopy(view.observed.children[key])
    live["data"], live["metadata"]["annotations"] = manifest["data"], manifest["metadata"]["annotations"]
    return seen(view, passwords=passwords, children={**view.observed.children, key: live})


def own(view: ClusterView, password: str | None) -> ClusterView:
    """The user has a Secret."""
    return changed(seen(view, own_password=password), auth=Auth(secret_name="mine"))


def opened(view: ClusterView, ordinal: int, password: str = "", other: str = "") -> ClusterView:
    """A node takes these passwords."""
    return broker(view, ordinal, requirepass=password, requirepass_former=other)


def everywhere(view: ClusterView, password: str, other: str) -> ClusterView:
    """All nodes take these."""
    for ordinal in range(3):
        view = opened(view, ordinal, password, other)
    return view


def grace(view: ClusterView) -> ClusterView:
    """The former password is taken for a while."""
    return changed(stored(view, former="old", rotated_s_ago=10.0), auth=Auth())


def current(view: ClusterView) -> str:
    assert view.observed.passwords is not None
    return view.observed.passwords.current


ROTATED: dict[str, tuple[Change, list[str]]] = {
    "another number": (lambda view: changed(view, auth=Auth(rotation=1)), ["apply Secret mail-auth"]),
    "another number while a former one is taken": (
        lambda view: changed(everywhere(grace(view), current(view), "old"), auth=Auth(rotation=1)),
        [],
    ),
    "the user's Secret says something else": (lambda view: own(view, "mine"), ["apply Secret mail-auth"]),
    "the user's Secret says the same": (lambda view: own(view, current(view)), []),
    "the user's Secret is missing": (lambda view: own(view, None), []),
    "a node does not take the next one": (
        lambda view: opened(everywhere(stored(view, following="next"), current(view), "next"), 1, current(view)),
        ["mail-1: CONFIG SET requirepass-former next"],
    ),
    "all take the next one": (
        lambda view: everywhere(stored(view, following="next"), current(view), "next"),
        ["apply Secret mail-auth"],
    ),
    "a node does not answer": (
        lambda view: unreachable(everywhere(stored(view, following="next"), current(view), "next"), 1),
        [],
    ),
    "the user's Secret says a third one": (
        lambda view: own(everywhere(stored(view, following="next"), current(view), "next"), "third"),
        ["apply Secret mail-auth"],
    ),
    "a node takes the former one only": (
        lambda view: opened(everywhere(grace(view), current(view), "old"), 1, "old"),
        ["mail-1: CONFIG SET requirepass-former {current}"],
    ),
    "a node takes both, the other way round": (
        lambda view: opened(everywhere(grace(view), current(view), "old"), 1, "old", current(view)),
        [],
    ),
    "a node takes none": (
        lambda view: opened(view, 1),
        ["mail-1: CONFIG SET requirepass {current}"],
    ),
    "a node takes none, there are two": (
        lambda view: opened(everywhere(grace(view), current(view), "old"), 1),
        ["mail-1: CONFIG SET requirepass-former old", "mail-1: CONFIG SET requirepass {current}"],
    ),
    "a node takes a former one still": (
        lambda view: opened(view, 1, current(view), "old"),
        ["mail-1: CONFIG SET requirepass-former "],
    ),
    "a node has the former one as its first still": (
        lambda view: opened(view, 1, "old", current(view)),
        ["mail-1: CONFIG SET requirepass {current}", "mail-1: CONFIG SET requirepass-former "],
    ),
    "switched off": (
        lambda view: opened(opened(changed(view, auth=Auth(enabled=False)), 0), 1, "old", "older"),
        [
            "mail-1: CONFIG SET requirepass-former ",
            "mail-1: CONFIG SET requirepass ",
            "mail-2: CONFIG SET requirepass ",
            "apply Secret mail-auth",
        ],
    ),
    "the Secret was deleted": (lambda view: seen(view, passwords=None), ["apply Secret mail-auth"]),
}


@pytest.mark.parametrize("case", ROTATED)
def test_how_a_password_gets_everywhere(case: str) -> None:
    change, expected = ROTATED[case]
    view = at_rest()
    assert done(change(view)) == [action.replace("{current}", current(view)) for action in expected]


FORMER: dict[str, tuple[Change, bool]] = {
    "its time is over": (lambda view: view, False),
    "its time runs": (lambda view: stored(view, rotated_s_ago=10.0), True),
    "a node does not take the new one": (lambda view: opened(view, 1, "old"), True),
    "a node does not answer": (lambda view: unreachable(view, 1), True),
    "a pod has not started": (lambda view: unreachable(view, 1, phase="Pending"), False),
}


@pytest.mark.parametrize("case", FORMER)
def test_how_long_the_former_password_is_kept(case: str) -> None:
    change, kept = FORMER[case]
    view = changed(stored(at_rest(), former="old", rotated_s_ago=400.0), auth=Auth())
    view = change(everywhere(view, current(view), "old"))
    written = [action.manifest["data"] for action in planned(view).actions if isinstance(action, Apply)]
    assert ["former-password" in data for data in written] == ([] if kept else [False])


def test_without_any_password_no_cluster_is_begun() -> None:
    view = own(lone(at_rest()), None)
    assert done(view) == []
    assert told(view, "Degraded") == ("True", "SecretMissing")
    assert "kubectl create secret generic mine" in planned(view).status["message"]


def test_passwords_are_not_logged() -> None:
    view = opened(at_rest(), 1)
    assert [action.secret for action in planned(view).actions if isinstance(action, Command)] == [True]


def test_a_fresh_password_is_in_the_secret_and_nowhere_else_at_first() -> None:
    actions = planned(changed(at_rest(), auth=Auth(rotation=1))).actions
    assert [short(action) for action in actions] == ["apply Secret mail-auth"]


# --- directives and objects -------------------------------------------------------------------------------------------


def test_a_directive_that_changes_while_a_node_runs_is_set() -> None:
    view = changed(at_rest(), config={"slowlog-max-len": "64"})
    assert [action for action in done(view) if "CONFIG" in action] == [
        f"mail-{ordinal}: CONFIG SET slowlog-max-len 64" for ordinal in range(3)
    ]


def test_a_directive_that_somebody_set_goes_back() -> None:
    config = {**broker_of(at_rest(), 1).config, "slowlog-max-len": "7", "maxclients": "900"}
    assert done(broker(at_rest(), 1, config=config)) == ["mail-1: CONFIG SET slowlog-max-len 128"]


def test_the_same_value_in_other_words_is_no_difference() -> None:
    config = {**broker_of(at_rest(), 1).config, "auto-aof-rewrite-min-size": "64mb"}
    assert done(broker(at_rest(), 1, config=config)) == []


def child(view: ClusterView, kind: str, name: str, change: Callable[[Json], Json]) -> ClusterView:
    """A child that looks otherwise."""
    return seen(view, children={**view.observed.children, (kind, name): change(view.observed.children[kind, name])})


def test_an_object_changed_by_hand_is_put_right_over_the_version_that_was_seen() -> None:
    view = child(at_rest(), "ConfigMap", "mail-config", lambda live: live | {"data": {"disque.conf": "hz 1\n"}})
    (action,) = planned(view).actions
    assert isinstance(action, Apply)
    assert short(action) == "apply ConfigMap mail-config"
    version = at_rest().observed.children["ConfigMap", "mail-config"]["metadata"]["resourceVersion"]
    assert action.manifest["metadata"]["resourceVersion"] == version


def test_an_object_of_somebody_else_is_left_alone() -> None:
    def taken(live: Json) -> Json:
        return {"kind": live["kind"], "metadata": {"name": "mail", "uid": "x", "labels": {}}, "spec": {}}

    view = child(at_rest(), "Service", "mail", taken)
    assert done(view) == []
    assert told(view, "Degraded") == ("True", "NameTaken")


def test_a_budget_that_is_not_asked_for_goes() -> None:
    view = at_rest()
    view = changed(view, pod_disruption_budget=view.spec.pod_disruption_budget.model_copy(update={"enabled": False}))
    assert done(view) == ["delete PodDisruptionBudget mail"]


CLAIMS: dict[str, tuple[Change, list[str]]] = {
    "larger": (
        lambda view: changed(view, storage=Storage(size="4Gi")),
        [f"apply PersistentVolumeClaim data-mail-{ordinal}" for ordinal in range(3)],
    ),
    "smaller": (lambda view: changed(view, storage=Storage(size="1Gi")), []),
    "owned": (
        lambda view: changed(view, storage=Storage(retention=VolumeRetention(when_deleted="Delete"))),
        [f"apply PersistentVolumeClaim data-mail-{ordinal}" for ordinal in range(3)],
    ),
}


@pytest.mark.parametrize("case", CLAIMS)
def test_what_claims_need(case: str) -> None:
    change, expected = CLAIMS[case]
    assert [action for action in done(change(at_rest())) if "Claim" in action] == expected


LEFT_BEHIND: dict[str, tuple[Change, bool]] = {
    "drained": (lambda view: volumes(view, 2, drained="id"), True),
    "drained, kept by the spec": (
        lambda view: changed(
            volumes(view, 2, drained="id"), storage=Storage(retention=VolumeRetention(when_scaled="Retain"))
        ),
        False,
    ),
    "not drained": (lambda view: view, False),
    "never bound": (lambda view: volumes(view, 2, bound=False), True),
    "going already": (lambda view: volumes(view, 2, drained="id", terminating=True), False),
    "drained, its pod is to be made again": (lambda view: changed(volumes(view, 2, drained="id"), replicas=3), False),
}


@pytest.mark.parametrize("case", LEFT_BEHIND)
def test_claims_of_pods_that_are_gone(case: str) -> None:
    change, deleted = LEFT_BEHIND[case]
    view = change(changed(stateful_set(gone(at_rest(), 2), replicas=2), replicas=2))
    assert ("delete PersistentVolumeClaim data-mail-2" in done(view)) == deleted


# --- what is told -----------------------------------------------------------------------------------------------------

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
def test_a_pod_that_does_not_run_says_what_to_do(trouble: str) -> None:
    reason, advice = TROUBLES[trouble]
    view = unreachable(at_rest(), 1, ready=False, trouble=trouble)
    assert told(view, "Degraded") == ("True", reason)
    assert advice in planned(view).status["message"]
    assert planned(view).status["phase"] == "Degraded"


def test_a_quota_says_what_to_do() -> None:
    view = seen(gone(at_rest(), 2), quota="exceeded quota: pods=2")
    assert told(view, "Degraded") == ("True", "PodsRefused")
    assert "exceeded quota: pods=2" in planned(view).status["message"]


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
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


def test_a_member_that_did_not_answer_once_is_no_problem_yet() -> None:
    view = unreachable(at_rest(), 1)
    first = planned(view)
    assert (first.status["phase"], told(view, "Degraded")[0]) == ("Healing", "False")
    later = ClusterView(view.spec, replace(view.observed, status=first.status), view.now_s + 16)
    assert told(later, "Degraded") == ("True", "MemberUnreachable")


def outside(schema: Json, value: object, path: str = "status") -> list[str]:
    """What the schema does not have, or has as something else."""
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


def test_the_api_server_keeps_all_of_the_status() -> None:
    leaving = Leaving(done=False, jobs_left=5, rate=1.5, seconds_left=5.0, seconds_elapsed=10.0)
    view = status(changed(broker(at_rest(), 2, leaving=leaving), replicas=2), formerImage="disque:0")
    told_status = planned(view).status
    assert {"drain", "formerImage", "secretName"} <= told_status.keys()
    assert outside(status_schema(), told_status) == []


def test_events_are_told_on_the_transition_only() -> None:
    view = unreachable(at_rest(), 1, ready=False, trouble="CrashLoopBackOff")
    first = planned(view)
    assert [event.reason for event in first.events] == ["CrashLooping"]
    assert planned(seen(view, status=first.status)).events == ()
    recovered = planned(seen(at_rest(), status=first.status))
    assert [event.reason for event in recovered.events] == ["Running", "Recovered"]


def test_a_member_that_does_not_answer_keeps_its_id_in_the_status() -> None:
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
def test_the_former_image_is_one_that_served(images: tuple[str, ...], *, ready: bool, former: str) -> None:
    view = stateful_set(status(at_rest(), image="disque:1", formerImage="disque:0"), image="disque:2")
    for ordinal, image in enumerate(images):
        view = pod(view, ordinal, image=image, ready=ready)
    assert planned(view).status["formerImage"] == former


def test_figures_are_in_no_text() -> None:
    view = at_rest()
    busy = broker(view, 1, jobs=5000, used_memory=10**9)
    one, other = planned(view).status, planned(busy).status
    assert one["conditions"] == other["conditions"]
    assert one["message"] == other["message"]
    assert other["jobs"]["registered"] == 5000


def test_a_paused_cluster_says_so_and_what_is_wrong() -> None:
    view = changed(unreachable(at_rest(), 1, ready=False, trouble="CrashLoopBackOff"), paused=True)
    assert done(view) == []
    assert planned(view).status["phase"] == "Paused"
    assert told(view, "Degraded") == ("True", "CrashLooping")


def test_a_spec_that_can_not_be_done_says_what_is_wrong() -> None:
    view = changed(at_rest(), config={"hz": "often"})
    assert told(view, "SpecValid") == ("False", "Invalid")
    assert "spec.config.hz" in planned(view).status["message"]
    assert [event.reason for event in planned(view).events] == ["Invalid"]


def test_the_progress_of_a_roll_out_is_told() -> None:
    view = pod(revision(at_rest()), 2, revision="new")
    assert "2 of 3 pods to replace, next mail-1" in planned(view).status["message"]
    assert volumes(view, 1).observed == view.observed
