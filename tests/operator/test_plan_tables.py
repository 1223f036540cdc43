"""Decisions of `plan`: one row for each case in the tables of the concerns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from disque_operator import names
from disque_operator.actions import Command
from disque_operator.disruption import Disruption, blocker
from disque_operator.members import ClusterView
from disque_operator.observed import LOCKED, Leaving
from disque_operator.spec import Drain
from support.kubeworld.values import (
    at_rest,
    broker,
    broker_of,
    changed,
    decided,
    gone,
    peers,
    planned,
    pod,
    pod_of,
    reported,
    revision,
    seen,
    stateful_set,
    status,
    unknown_member,
    unreachable,
    volumes,
)

Change = Callable[[ClusterView], ClusterView]
LEAVING = Leaving(done=False, jobs_left=5, rate=1.0, seconds_left=5.0, seconds_elapsed=10.0)
DONE = Leaving(done=True, jobs_left=0, rate=0.0, seconds_left=0.0, seconds_elapsed=10.0)


@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
def test_healthy_cluster_is_not_changed(replicas: int) -> None:
    view = at_rest(replicas)
    again = planned(view)
    assert (decided(view), again.events, again.again_s) == ([], (), 30.0)
    assert again.status == view.observed.status


# --- the disruption check ---------------------------------------------------------------------------------------------

FAILED_CHECKS: dict[str, tuple[Change, str]] = {
    "the controller is late": (
        lambda view: stateful_set(view, up_to_date=False),
        "has not processed the last change",
    ),
    "a pod is missing": (lambda view: gone(view, 1), "1 pods do not exist yet"),
    "a surplus pod exists": (lambda view: stateful_set(view, replicas=2), "mail-2 is not removed yet"),
    "a pod is stopping": (lambda view: pod(view, 1, terminating=True), "mail-1 is stopping"),
    "two members have the same ID": (
        lambda view: broker(view, 1, node_id=broker_of(view, 0).node_id),
        "the same node ID",
    ),
    "a broker does not answer": (lambda view: unreachable(view, 1), "mail-1 does not answer"),
    "a broker is loading": (lambda view: broker(view, 1, loading=True), "mail-1 is loading its jobs"),
    "a pod is not ready": (lambda view: pod(view, 1, ready=False), "mail-1 is not ready"),
    "another member is leaving": (lambda view: broker(view, 1, leaving=LEAVING), "mail-1 is transferring its jobs"),
    "a disk is full": (lambda view: broker(view, 1, refusing="No space left on device"), "mail-1 accepts no new jobs"),
    "two members are not connected": (
        lambda view: peers(view, broker_of(view, 1).node_id, connected=False),
        "mail-0 is not connected to mail-1",
    ),
    "a removed member is not forgotten": (unknown_member, "a removed member is not forgotten yet"),
    "copies are in flight": (
        lambda view: broker(view, 1, waiting_for_copies=101),
        "mail-1 has jobs waiting for copies",
    ),
    "copies are made again": (
        lambda view: broker(view, 1, repairs="jobs with lost copies: 7", repair_stuck_s=599.0),
        "mail-1 is making lost copies of jobs again",
    ),
    "copies are made again on the member itself": (
        lambda view: broker(view, 2, repairs="this node looks for lost copies"),
        "mail-2 is making lost copies of jobs again",
    ),
    "a pod has just become ready": (lambda view: pod(view, 1, ready_for_s=2.0), "mail-1 has just become ready"),
}


@pytest.mark.parametrize("case", FAILED_CHECKS)
def test_disruption_check_fails(case: str) -> None:
    change, said = FAILED_CHECKS[case]
    disruption = Disruption(change(at_rest()), "mail-2", soak_s=5.0, copies=True)
    assert said in blocker(disruption)


@pytest.mark.parametrize("case", FAILED_CHECKS)
def test_no_disruption_while_the_check_fails(case: str) -> None:
    change, _ = FAILED_CHECKS[case]
    actions = decided(revision(change(at_rest())))
    assert not [action for action in actions if action.startswith("replace")]


# --- stale IDs --------------------------------------------------------------------------------------------------------


def host(ordinal: int) -> str:
    return names.pod_host("mail", "prod", ordinal)


FORGOTTEN: dict[str, tuple[Change, bool]] = {
    "ordinal above the replicas, silent for a minute": (
        lambda view: unknown_member(view, host=host(7), silent_s=60.0),
        True,
    ),
    "ordinal above the replicas, silent for a moment": (
        lambda view: unknown_member(view, host=host(7), silent_s=59.0),
        False,
    ),
    "ordinal above the replicas, was leaving": (
        lambda view: unknown_member(view, host=host(7), silent_s=1.0, leaving=True),
        True,
    ),
    "a broker is connected to it": (lambda view: unknown_member(view, host=host(7), connected=True), False),
    "its pod answers with another ID": (lambda view: unknown_member(view, host=host(1)), True),
    "its pod answers with another ID, silent for a moment": (
        lambda view: unknown_member(view, host=host(1), silent_s=5.0),
        False,
    ),
    "its pod does not answer": (lambda view: unreachable(unknown_member(view, host=host(1)), 1), False),
    "its pod is loading": (lambda view: broker(unknown_member(view, host=host(1)), 1, loading=True), False),
    "its pod is expected": (lambda view: gone(unknown_member(view, host=host(1)), 1), False),
    "its pod hibernates": (lambda view: stateful_set(unknown_member(view, host=host(7)), hibernated_members=8), False),
    "unknown host name, all answer": (unknown_member, True),
    "unknown host name, one does not answer": (lambda view: unreachable(unknown_member(view), 1), False),
    "unknown host name, one is missing": (lambda view: gone(unknown_member(view), 1), False),
    "host name with the cluster domain": (
        lambda view: unknown_member(view, host=f"{host(7)}.cluster.local"),
        True,
    ),
    "host name of another cluster": (
        lambda view: unreachable(unknown_member(view, host="mail-7.other-members.prod.svc"), 2),
        False,
    ),
    "in the status for a pod that does not answer": (
        lambda view: unreachable(
            status(unknown_member(view, host=host(7)), members=[{"pod": "mail-1", "nodeId": "id-unknown"}]), 1
        ),
        False,
    ),
}


@pytest.mark.parametrize("case", FORGOTTEN)
def test_node_id_is_forgotten_when_no_pod_can_have_it(case: str) -> None:
    change, forgotten = FORGOTTEN[case]
    view = change(at_rest())
    forgets = [action for action in decided(view) if "FORGET" in action]
    everybody = [f"{member.name}: CLUSTER FORGET id-unknown" for member, _ in view.loaded]
    assert forgets == (everybody if forgotten else [])


def test_disconnected_members_are_connected() -> None:
    view = at_rest()
    lost = peers(view, broker_of(view, 1).node_id, connected=False, silent_s=20.0)
    assert decided(lost) == [
        f"mail-0: CLUSTER MEET {pod_of(view, 1).ip} 7711",
        f"mail-1: CLUSTER MEET {pod_of(view, 2).ip} 7711",
    ]
    assert decided(peers(view, broker_of(view, 1).node_id, connected=False, silent_s=14.0)) == []
    assert decided(broker(broker(lost, 1, uptime_s=14.0), 1, uptime_s=14.0)) == []


def unacquainted(view: ClusterView, ordinal: int) -> ClusterView:
    """Return the view with a member that lists nobody and that nobody lists."""
    new = broker_of(view, ordinal).node_id
    for member, found in view.loaded:
        kept = () if member.pod.ordinal == ordinal else tuple(peer for peer in found.peers if peer.node_id != new)
        view = broker(view, member.pod.ordinal, peers=kept)
    return view


INTRODUCED: dict[str, tuple[Change, list[str]]] = {
    "a new member answers": (lambda view: view, ["mail-0 meets mail-2"]),
    "it has just started": (lambda view: broker(view, 2, uptime_s=0.0), ["mail-0 meets mail-2"]),
    "it is the first pod": (lambda _view: unacquainted(at_rest(), 0), ["mail-1 meets mail-0"]),
    "nobody knows anybody": (lambda view: unacquainted(view, 1), ["mail-0 meets mail-1", "mail-0 meets mail-2"]),
    "a MEET is not answered yet": (
        lambda view: broker(view, 0, meeting=frozenset({pod_of(view, 2).ip})),
        [],
    ),
    "a member that is connected to it lists it": (
        lambda view: broker(broker(view, 1, peers=broker_of(at_rest(), 1).peers), 2, uptime_s=14.0),
        [],
    ),
    "it is loading": (lambda view: broker(view, 2, loading=True), []),
    "it is stopping": (lambda view: pod(view, 2, terminating=True), []),
    "it is removed": (lambda view: stateful_set(changed(view, replicas=2), replicas=2), []),
}


@pytest.mark.parametrize("case", INTRODUCED)
def test_new_member_is_introduced_once(case: str) -> None:
    change, expected = INTRODUCED[case]
    found = planned(change(unacquainted(at_rest(), 2)))
    met = [action for action in found.actions if isinstance(action, Command) and action.met]
    assert [f"{action.pod} meets {action.met[0]}" for action in met if action.met] == expected
    assert [
        event.message.partition(" (")[0] for event in found.events if event.reason == "MemberIntroduced"
    ] == expected


def test_duplicate_node_id_is_only_reported() -> None:
    view = broker(at_rest(), 1, node_id=broker_of(at_rest(), 0).node_id)
    assert [action for action in decided(view) if "FORGET" in action or action.startswith("replace")] == []
    assert reported(view, "Degraded") == ("True", "DuplicateNode")


def test_repair_without_progress_is_reported_and_no_longer_waited_for() -> None:
    view = broker(revision(at_rest()), 1, repairs="jobs with lost copies: 7", repair_stuck_s=600.0)
    assert [action for action in decided(view) if action.startswith("replace")] == ["replace mail-2"]
    assert reported(view, "Degraded") == ("True", "RepairStuck")


def test_member_whose_clock_is_ahead_is_only_reported() -> None:
    view = broker(at_rest(), 1, clock_ahead_ms=5000)
    assert [action for action in decided(view) if action.startswith("replace")] == []
    assert reported(view, "Degraded") == ("True", "ClockAhead")


# --- replicas ---------------------------------------------------------------------------------------------------------


SIZES: dict[str, tuple[Change, list[str]]] = {
    "scale up": (lambda view: changed(view, replicas=5), ["apply StatefulSet 5"]),
    "scale up to a claim that is being deleted": (
        lambda view: changed(
            seen(
                view,
                volumes=(
                    *view.observed.volumes,
                    replace(view.observed.volumes[0], name="data-mail-4", ordinal=4, terminating=True),
                ),
            ),
            replicas=6,
        ),
        ["apply StatefulSet 4"],
    ),
    "scale down": (lambda view: changed(view, replicas=1), ["mail-2: CLUSTER LEAVING yes"]),
    "scale down, not below the minimum": (lambda view: changed(view, replicas=1, min_replicas=3), []),
    "scale down, too few for the copies": (lambda view: changed(broker(view, 0, max_replicate=3), replicas=2), []),
    "scale down, the check fails": (lambda view: changed(broker(view, 0, loading=True), replicas=2), []),
    "scale down, transferring": (lambda view: changed(broker(view, 2, leaving=LEAVING), replicas=2), []),
    "scale down, transferred": (
        lambda view: changed(broker(view, 2, leaving=DONE), replicas=2),
        ["apply PersistentVolumeClaim data-mail-2"],
    ),
    "scale down, marked": (
        lambda view: volumes(changed(broker(view, 2, leaving=DONE), replicas=2), 2, drained=broker_of(view, 2).node_id),
        ["apply StatefulSet 2"],
    ),
    "scale down, marked for another ID": (
        lambda view: volumes(changed(broker(view, 2, leaving=DONE), replicas=2), 2, drained="id-other"),
        ["apply PersistentVolumeClaim data-mail-2"],
    ),
    "scale down, not the next one while the pod exists": (
        lambda view: changed(stateful_set(broker(view, 2, leaving=DONE), replicas=2), replicas=1),
        ["apply StatefulSet 2"],
    ),
    "scale down, a pod that does not run and is listed by others": (
        lambda view: volumes(
            changed(unreachable(view, 2, phase="Pending", trouble="Unschedulable", ready=False), replicas=2),
            2,
            bound=False,
        ),
        [],
    ),
    "scale down, cancelled": (lambda view: broker(view, 2, leaving=LEAVING), ["mail-2: CLUSTER LEAVING no"]),
    "scale down, cancelled when marked": (
        lambda view: volumes(broker(view, 2, leaving=DONE), 2, drained="id"),
        ["apply PersistentVolumeClaim data-mail-2", "mail-2: CLUSTER LEAVING no"],
    ),
    "hibernate": (lambda view: changed(view, hibernate=True), ["apply StatefulSet 0"]),
    "hibernate during a drain": (
        lambda view: changed(broker(view, 2, leaving=LEAVING), hibernate=True, replicas=1),
        ["apply StatefulSet 0"],
    ),
    "resume": (lambda view: stateful_set(view, replicas=0, hibernated_members=5), ["apply StatefulSet 5"]),
    "resume with fewer members": (
        lambda view: changed(stateful_set(view, replicas=0, hibernated_members=3), replicas=1),
        ["apply StatefulSet 3"],
    ),
    "manually scaled to zero": (lambda view: stateful_set(view, replicas=0), ["apply StatefulSet 3"]),
    "paused": (lambda view: changed(view, paused=True, replicas=5), []),
    "deleted": (lambda view: changed(view, deleting=True, replicas=5), []),
    "invalid spec": (lambda view: changed(view, replicas=5, config={"hz": "often"}), []),
}


@pytest.mark.parametrize("case", SIZES)
def test_replicas(case: str) -> None:
    change, expected = SIZES[case]
    actions = decided(change(at_rest()))
    assert [action for action in actions if "PodDisruptionBudget" not in action] == expected


def test_pod_that_never_was_a_member_is_removed_without_a_drain() -> None:
    view = at_rest(2)
    newcomer = replace(
        pod_of(view, 1), name="mail-2", ordinal=2, uid="new", phase="Pending", ready=False, trouble="Unschedulable"
    )
    view = stateful_set(seen(view, pods=(*view.observed.pods, newcomer)), replicas=3)
    assert [action for action in decided(view) if "Disruption" not in action] == ["apply StatefulSet 2"]
    assert reported(view, "Draining") == ("True", "PodStopping")


def test_cluster_without_a_statefulset_gets_all_its_members_back() -> None:
    view = changed(seen(at_rest(), stateful_set=None, children={}), replicas=1)
    assert decided(view)[-1] == "apply StatefulSet 3"


REFUSALS: dict[str, tuple[Change, str]] = {
    "the minimum": (
        lambda view: changed(view, replicas=1, min_replicas=3),
        "BelowMinimum",
    ),
    "the copies": (lambda view: changed(broker(view, 0, max_replicate=3), replicas=2), "NotEnoughMembers"),
    "the disruption check": (lambda view: changed(broker(view, 0, loading=True), replicas=2), "Waiting"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused_drain_is_reported_once(case: str) -> None:
    change, reason = REFUSALS[case]
    view = change(at_rest())
    first = planned(view)
    assert reported(view, "Draining") == ("False", reason)
    assert [event.reason for event in first.events if event.reason.startswith("Drain")] != []
    assert planned(seen(view, status=first.status)).events == ()


# --- overdue drains ---------------------------------------------------------------------------------------------------


def late(view: ClusterView, drain: Drain, **fields: object) -> ClusterView:
    """Return the view with an overdue drain of the highest pod."""
    return broker(changed(view, replicas=2, drain=drain, **fields), 2, leaving=replace(LEAVING, seconds_elapsed=100.0))


CONSENT = {names.ALLOW_JOB_LOSS: "true"}
OVERDUE: dict[str, tuple[Change, list[str], str]] = {
    "Wait": (lambda view: late(view, Drain(timeout_s=60, on_timeout="Wait")), [], "DrainOverdue"),
    "Retain": (lambda view: late(view, Drain(timeout_s=60, on_timeout="Retain")), ["apply StatefulSet 2"], "Healthy"),
    "Retain, the claim is being deleted": (
        lambda view: volumes(late(view, Drain(timeout_s=60, on_timeout="Retain")), 2, terminating=True),
        [],
        "DrainOverdue",
    ),
    "Force with consent": (
        lambda view: late(view, Drain(timeout_s=60, on_timeout="Force"), annotations=CONSENT),
        ["apply PersistentVolumeClaim data-mail-2"],
        "Healthy",
    ),
    "in time": (lambda view: late(view, Drain(timeout_s=200, on_timeout="Retain")), [], "Healthy"),
    "a broker that does not answer, Retain": (
        lambda view: status(
            unreachable(changed(view, replicas=2, drain=Drain(timeout_s=60, on_timeout="Retain")), 2),
            drain={"pod": "mail-2", "nodeId": "", "startedAt": "2020-01-01T00:00:00Z"},
        ),
        ["apply StatefulSet 2"],
        "Healthy",
    ),
}


@pytest.mark.parametrize("case", OVERDUE)
def test_overdue_drain(case: str) -> None:
    change, expected, reason = OVERDUE[case]
    view = change(at_rest())
    assert [action for action in decided(view) if "PodDisruptionBudget" not in action] == expected
    assert reported(view, "Degraded")[1] == reason


def test_restart_of_a_leaving_broker_does_not_reset_the_timeout() -> None:
    view = late(at_rest(), Drain(timeout_s=60, on_timeout="Wait"))
    first = planned(view).status["drain"]
    restarted = broker(status(view, drain=first), 2, leaving=replace(LEAVING, seconds_elapsed=1.0))
    assert planned(restarted).status["drain"]["startedAt"] == first["startedAt"]


def test_cluster_with_an_unready_pod_is_not_running() -> None:
    view = pod(at_rest(), 1, ready=False)
    found = planned(view).status
    assert (found["phase"], found["message"]) == ("Healing", "mail-1 has loaded its jobs and is not ready yet")
    assert reported(view, "Progressing") == ("True", "PodStarting")


# --- drain annotation -------------------------------------------------------------------------------------------------


def test_annotated_pod_is_drained_and_kept() -> None:
    view = pod(at_rest(), 1, drain=True)
    assert decided(view) == ["mail-1: CLUSTER LEAVING yes"]
    assert decided(broker(view, 1, leaving=LEAVING)) == []
    rests = pod(broker(view, 1, leaving=DONE), 1, ready=False)
    assert decided(rests) == []
    assert reported(rests, "Draining") == ("True", "Drained")
    assert planned(rests).status["members"][1]["safeToStop"]
    assert decided(pod(rests, 1, drain=False)) == ["mail-1: CLUSTER LEAVING no"]


def test_only_one_pod_is_drained_at_a_time() -> None:
    view = pod(pod(at_rest(), 1, drain=True), 0, drain=True)
    assert decided(view) == ["mail-0: CLUSTER LEAVING yes"]
    assert decided(broker(view, 0, leaving=LEAVING)) == []
    assert decided(changed(view, replicas=2)) == ["mail-2: CLUSTER LEAVING yes"]


# --- rollout ----------------------------------------------------------------------------------------------------------

ROLLED: dict[str, tuple[Change, list[str]]] = {
    "the highest first": (revision, ["replace mail-2"]),
    "the next": (lambda view: pod(revision(view), 2, revision="new"), ["replace mail-1"]),
    "the last": (lambda view: pod(pod(revision(view), 2, revision="new"), 1, revision="new"), ["replace mail-0"]),
    "a broken pod before all others": (
        lambda view: unreachable(revision(view), 0, ready=False, trouble="CrashLoopBackOff"),
        ["replace mail-0"],
    ),
    "a broken new pod stops the rollout": (
        lambda view: pod(unreachable(revision(view), 2, ready=False, trouble="ImagePullBackOff"), 2, revision="new"),
        [],
    ),
    "the controller is late": (lambda view: stateful_set(revision(view), up_to_date=False), []),
    "a member is being drained": (lambda view: changed(broker(revision(view), 2, leaving=LEAVING), replicas=2), []),
    "locked out": (lambda view: unreachable(view, 1, LOCKED), ["replace mail-1"]),
    "all locked out": (
        lambda view: unreachable(unreachable(unreachable(view, 0, LOCKED), 1, LOCKED), 2, LOCKED),
        ["replace mail-2"],
    ),
    "locked out, another one is not ready": (lambda view: pod(unreachable(view, 1, LOCKED), 0, ready=False), []),
    "locked out, its claim is being deleted": (
        lambda view: volumes(unreachable(unreachable(view, 1, LOCKED), 0, LOCKED), 1, terminating=True),
        ["replace mail-0"],
    ),
    "its claim is being deleted": (lambda view: volumes(view, 1, terminating=True), ["mail-1: CLUSTER LEAVING yes"]),
    "its claim is being deleted, it is drained": (
        lambda view: broker(volumes(view, 1, terminating=True), 1, leaving=DONE),
        ["replace mail-1"],
    ),
}


@pytest.mark.parametrize("case", ROLLED)
def test_pod_is_replaced(case: str) -> None:
    change, expected = ROLLED[case]
    assert decided(change(at_rest())) == expected


EPHEMERAL: dict[str, tuple[Change, list[str]]] = {
    "it is drained first": (revision, ["mail-2: CLUSTER LEAVING yes"]),
    "even if its jobs need more copies": (
        lambda view: broker(revision(view), 0, max_replicate=3),
        ["mail-2: CLUSTER LEAVING yes"],
    ),
    "it is transferring its jobs": (lambda view: broker(revision(view), 2, leaving=LEAVING), []),
    "it is drained": (lambda view: broker(revision(view), 2, leaving=DONE), ["replace mail-2"]),
    "the leaving one is next": (lambda view: broker(revision(view), 1, leaving=LEAVING), []),
    "it may still have jobs": (lambda view: unreachable(revision(view), 2, ready=False), []),
    "it crashed": (
        lambda view: unreachable(revision(view), 2, ready=False, trouble="CrashLoopBackOff", restarts=3),
        ["replace mail-2"],
    ),
    "locked out": (lambda view: unreachable(view, 1, LOCKED), []),
}


@pytest.mark.parametrize("case", EPHEMERAL)
def test_ephemeral_pod_is_replaced(case: str) -> None:
    change, expected = EPHEMERAL[case]
    assert decided(change(at_rest(ephemeral=True))) == expected


def test_single_ephemeral_member_keeps_its_jobs() -> None:
    view = revision(at_rest(1, ephemeral=True))
    assert decided(view) == ["replace mail-0"]
    busy = broker(view, 0, jobs=3)
    assert decided(busy) == []
    assert reported(busy, "Degraded") == ("True", "SingleMember")
    assert "Set spec.replicas to 2" in planned(busy).status["message"]
    assert decided(changed(busy, drain=Drain(timeout_s=60, on_timeout="Force"), annotations=CONSENT)) == [
        "replace mail-0"
    ]


def test_failed_upgrade_is_reported_with_advice() -> None:
    view = pod(unreachable(revision(at_rest()), 2, ready=False, trouble="ImagePullBackOff"), 2, revision="new")
    view = status(view, formerImage="disque:0")
    failed = planned(view).status
    assert failed["phase"] == "Degraded"
    assert "ImagePullBackOff" in failed["message"]
    assert any("set spec.image back to disque:0" in entry["message"] for entry in failed["conditions"])
