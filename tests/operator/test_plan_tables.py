"""What `plan` answers to what it sees: one row for each case that the concerns' headers list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from disque_operator import names
from disque_operator.disruption import Disruption, blocker
from disque_operator.members import ClusterView
from disque_operator.observed import LOCKED, Leaving
from disque_operator.spec import Drain
from support.kubeworld.values import (
    at_rest,
    broker,
    broker_of,
    changed,
    done,
    gone,
    peers,
    planned,
    pod,
    pod_of,
    revision,
    seen,
    stateful_set,
    status,
    told,
    unknown_member,
    unreachable,
    volumes,
)

Change = Callable[[ClusterView], ClusterView]
HANDING = Leaving(done=False, jobs_left=5, rate=1.0, seconds_left=5.0, seconds_elapsed=10.0)
DONE = Leaving(done=True, jobs_left=0, rate=0.0, seconds_left=0.0, seconds_elapsed=10.0)


@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
def test_nothing_is_done_for_a_cluster_at_rest(replicas: int) -> None:
    view = at_rest(replicas)
    again = planned(view)
    assert (done(view), again.events, again.again_s) == ([], (), 30.0)
    assert again.status == view.observed.status


# --- the gate ---------------------------------------------------------------------------------------------------------

CLOSED: dict[str, tuple[Change, str]] = {
    "the controller is behind": (
        lambda view: stateful_set(view, up_to_date=False),
        "has not processed the last change",
    ),
    "a pod is missing": (lambda view: gone(view, 1), "1 pods do not exist yet"),
    "a pod is to go": (lambda view: stateful_set(view, replicas=2), "mail-2 is not removed yet"),
    "a pod is being stopped": (lambda view: pod(view, 1, terminating=True), "mail-1 is stopping"),
    "two have one ID": (lambda view: broker(view, 1, node_id=broker_of(view, 0).node_id), "the same node ID"),
    "a broker does not answer": (lambda view: unreachable(view, 1), "mail-1 does not answer"),
    "a broker loads": (lambda view: broker(view, 1, loading=True), "mail-1 is loading its jobs"),
    "a pod is not ready": (lambda view: pod(view, 1, ready=False), "mail-1 is not ready"),
    "another node leaves": (lambda view: broker(view, 1, leaving=HANDING), "mail-1 is handing over its jobs"),
    "a disk is full": (lambda view: broker(view, 1, refusing="No space left on device"), "mail-1 accepts no new jobs"),
    "two are not connected": (
        lambda view: peers(view, broker_of(view, 1).node_id, connected=False),
        "mail-0 is not connected to mail-1",
    ),
    "somebody is not forgotten": (unknown_member, "a removed member is not forgotten yet"),
    "copies are under way": (
        lambda view: broker(view, 1, waiting_for_copies=101),
        "mail-1 has jobs waiting for copies",
    ),
    "a pod is ready for a moment": (lambda view: pod(view, 1, ready_for_s=2.0), "mail-1 has just become ready"),
}


@pytest.mark.parametrize("case", CLOSED)
def test_the_gate_is_closed(case: str) -> None:
    change, said = CLOSED[case]
    disruption = Disruption(change(at_rest()), "mail-2", soak_s=5.0, copies=True)
    assert said in blocker(disruption)


@pytest.mark.parametrize("case", CLOSED)
def test_nobody_is_disturbed_while_the_gate_is_closed(case: str) -> None:
    change, _ = CLOSED[case]
    actions = done(revision(change(at_rest())))
    assert not [action for action in actions if action.startswith("replace")]


# --- who is who -------------------------------------------------------------------------------------------------------


def host(ordinal: int) -> str:
    return names.pod_host("mail", "prod", ordinal)


FORGOTTEN: dict[str, tuple[Change, bool]] = {
    "its pod is above all, silent for a minute": (lambda view: unknown_member(view, host=host(7), silent_s=60.0), True),
    "its pod is above all, silent for a moment": (
        lambda view: unknown_member(view, host=host(7), silent_s=59.0),
        False,
    ),
    "its pod is above all, it was leaving": (
        lambda view: unknown_member(view, host=host(7), silent_s=1.0, leaving=True),
        True,
    ),
    "somebody is connected with it": (lambda view: unknown_member(view, host=host(7), connected=True), False),
    "its pod answers with another ID": (lambda view: unknown_member(view, host=host(1)), True),
    "its pod answers with another ID, since a moment": (
        lambda view: unknown_member(view, host=host(1), silent_s=5.0),
        False,
    ),
    "its pod does not answer": (lambda view: unreachable(unknown_member(view, host=host(1)), 1), False),
    "its pod loads": (lambda view: broker(unknown_member(view, host=host(1)), 1, loading=True), False),
    "its pod is to come back": (lambda view: gone(unknown_member(view, host=host(1)), 1), False),
    "its pod sleeps": (lambda view: stateful_set(unknown_member(view, host=host(7)), hibernated_members=8), False),
    "its name says nothing, all answer": (unknown_member, True),
    "its name says nothing, one does not answer": (lambda view: unreachable(unknown_member(view), 1), False),
    "its name says nothing, one is missing": (lambda view: gone(unknown_member(view), 1), False),
    "its name has the domain of the cluster": (
        lambda view: unknown_member(view, host=f"{host(7)}.cluster.local"),
        True,
    ),
    "another cluster's name": (
        lambda view: unreachable(unknown_member(view, host="mail-7.other-members.prod.svc"), 2),
        False,
    ),
    "the status has it for a pod that does not answer": (
        lambda view: unreachable(
            status(unknown_member(view, host=host(7)), members=[{"pod": "mail-1", "nodeId": "id-stranger"}]), 1
        ),
        False,
    ),
}


@pytest.mark.parametrize("case", FORGOTTEN)
def test_a_node_is_forgotten_when_no_pod_can_be_it(case: str) -> None:
    change, forgotten = FORGOTTEN[case]
    view = change(at_rest())
    forgets = [action for action in done(view) if "FORGET" in action]
    everybody = [f"{member.name}: CLUSTER FORGET id-stranger" for member, _ in view.loaded]
    assert forgets == (everybody if forgotten else [])


def test_members_that_do_not_find_each_other_are_introduced() -> None:
    view = at_rest()
    lost = peers(view, broker_of(view, 1).node_id, connected=False, silent_s=20.0)
    assert done(lost) == [
        f"mail-0: CLUSTER MEET {pod_of(view, 1).ip} 7711",
        f"mail-1: CLUSTER MEET {pod_of(view, 2).ip} 7711",
    ]
    assert done(peers(view, broker_of(view, 1).node_id, connected=False, silent_s=14.0)) == []
    assert done(broker(broker(lost, 1, uptime_s=14.0), 1, uptime_s=14.0)) == []


def test_nobody_guesses_which_of_two_nodes_with_one_id_is_right() -> None:
    view = broker(at_rest(), 1, node_id=broker_of(at_rest(), 0).node_id)
    assert [action for action in done(view) if "FORGET" in action or action.startswith("replace")] == []
    assert told(view, "Degraded") == ("True", "DuplicateNode")


# --- how many ---------------------------------------------------------------------------------------------------------


SIZES: dict[str, tuple[Change, list[str]]] = {
    "grow": (lambda view: changed(view, replicas=5), ["apply StatefulSet 5"]),
    "grow up to a claim that is being deleted": (
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
    "shrink": (lambda view: changed(view, replicas=1), ["mail-2: CLUSTER LEAVING yes"]),
    "shrink, not below the minimum": (lambda view: changed(view, replicas=1, min_replicas=3), []),
    "shrink, too few for the copies": (lambda view: changed(broker(view, 0, max_replicate=3), replicas=2), []),
    "shrink, the gate is closed": (lambda view: changed(broker(view, 0, loading=True), replicas=2), []),
    "shrink, handing over": (lambda view: changed(broker(view, 2, leaving=HANDING), replicas=2), []),
    "shrink, handed over": (
        lambda view: changed(broker(view, 2, leaving=DONE), replicas=2),
        ["apply PersistentVolumeClaim data-mail-2"],
    ),
    "shrink, marked": (
        lambda view: volumes(changed(broker(view, 2, leaving=DONE), replicas=2), 2, drained=broker_of(view, 2).node_id),
        ["apply StatefulSet 2"],
    ),
    "shrink, marked for another node": (
        lambda view: volumes(changed(broker(view, 2, leaving=DONE), replicas=2), 2, drained="id-other"),
        ["apply PersistentVolumeClaim data-mail-2"],
    ),
    "shrink, not the next one while the pod is still there": (
        lambda view: changed(stateful_set(broker(view, 2, leaving=DONE), replicas=2), replicas=1),
        ["apply StatefulSet 2"],
    ),
    "shrink, a pod that does not run and is known to others": (
        lambda view: volumes(
            changed(unreachable(view, 2, phase="Pending", trouble="Unschedulable", ready=False), replicas=2),
            2,
            bound=False,
        ),
        [],
    ),
    "shrink, undone": (lambda view: broker(view, 2, leaving=HANDING), ["mail-2: CLUSTER LEAVING no"]),
    "shrink, undone when it was marked": (
        lambda view: volumes(broker(view, 2, leaving=DONE), 2, drained="id"),
        ["apply PersistentVolumeClaim data-mail-2", "mail-2: CLUSTER LEAVING no"],
    ),
    "hibernate": (lambda view: changed(view, hibernate=True), ["apply StatefulSet 0"]),
    "hibernate while a node leaves": (
        lambda view: changed(broker(view, 2, leaving=HANDING), hibernate=True, replicas=1),
        ["apply StatefulSet 0"],
    ),
    "wake": (lambda view: stateful_set(view, replicas=0, hibernated_members=5), ["apply StatefulSet 5"]),
    "wake, smaller": (
        lambda view: changed(stateful_set(view, replicas=0, hibernated_members=3), replicas=1),
        ["apply StatefulSet 3"],
    ),
    "lowered to nothing by hand": (lambda view: stateful_set(view, replicas=0), ["apply StatefulSet 3"]),
    "paused": (lambda view: changed(view, paused=True, replicas=5), []),
    "deleted": (lambda view: changed(view, deleting=True, replicas=5), []),
    "a spec that can not be done": (lambda view: changed(view, replicas=5, config={"hz": "often"}), []),
}


@pytest.mark.parametrize("case", SIZES)
def test_how_many_pods_there_are_to_be(case: str) -> None:
    change, expected = SIZES[case]
    actions = done(change(at_rest()))
    assert [action for action in actions if "PodDisruptionBudget" not in action] == expected


def test_a_pod_that_never_was_a_member_goes_without_a_drain() -> None:
    view = at_rest(2)
    newcomer = replace(
        pod_of(view, 1), name="mail-2", ordinal=2, uid="new", phase="Pending", ready=False, trouble="Unschedulable"
    )
    view = stateful_set(seen(view, pods=(*view.observed.pods, newcomer)), replicas=3)
    assert [action for action in done(view) if "Disruption" not in action] == ["apply StatefulSet 2"]
    assert told(view, "Draining") == ("True", "PodStopping")


def test_a_cluster_without_its_statefulset_gets_back_all_its_members() -> None:
    view = changed(seen(at_rest(), stateful_set=None, children={}), replicas=1)
    assert done(view)[-1] == "apply StatefulSet 3"


REFUSALS: dict[str, tuple[Change, str]] = {
    "the minimum": (
        lambda view: changed(view, replicas=1, min_replicas=3),
        "BelowMinimum",
    ),
    "the copies": (lambda view: changed(broker(view, 0, max_replicate=3), replicas=2), "NotEnoughMembers"),
    "the gate": (lambda view: changed(broker(view, 0, loading=True), replicas=2), "Waiting"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_drain_that_can_not_be_says_why_once(case: str) -> None:
    change, reason = REFUSALS[case]
    view = change(at_rest())
    first = planned(view)
    assert told(view, "Draining") == ("False", reason)
    assert [event.reason for event in first.events if event.reason.startswith("Drain")] != []
    assert planned(seen(view, status=first.status)).events == ()


# --- when the time for a drain is over --------------------------------------------------------------------------------


def late(view: ClusterView, drain: Drain, **fields: object) -> ClusterView:
    """The drain of the highest pod has taken too long."""
    return broker(changed(view, replicas=2, drain=drain, **fields), 2, leaving=replace(HANDING, seconds_elapsed=100.0))


CONSENT = {names.ALLOW_JOB_LOSS: "true"}
OVERDUE: dict[str, tuple[Change, list[str], str]] = {
    "Wait": (lambda view: late(view, Drain(timeout_s=60, on_timeout="Wait")), [], "DrainOverdue"),
    "Handoff": (lambda view: late(view, Drain(timeout_s=60, on_timeout="Handoff")), ["apply StatefulSet 2"], "Healthy"),
    "Handoff, the claim is being deleted": (
        lambda view: volumes(late(view, Drain(timeout_s=60, on_timeout="Handoff")), 2, terminating=True),
        [],
        "DrainOverdue",
    ),
    "Force with consent": (
        lambda view: late(view, Drain(timeout_s=60, on_timeout="Force"), annotations=CONSENT),
        ["apply PersistentVolumeClaim data-mail-2"],
        "Healthy",
    ),
    "in time": (lambda view: late(view, Drain(timeout_s=200, on_timeout="Handoff")), [], "Healthy"),
    "a broker that does not answer, Handoff": (
        lambda view: status(
            unreachable(changed(view, replicas=2, drain=Drain(timeout_s=60, on_timeout="Handoff")), 2),
            drain={"pod": "mail-2", "nodeId": "", "startedAt": "2020-01-01T00:00:00Z"},
        ),
        ["apply StatefulSet 2"],
        "Healthy",
    ),
}


@pytest.mark.parametrize("case", OVERDUE)
def test_what_happens_when_a_drain_takes_too_long(case: str) -> None:
    change, expected, reason = OVERDUE[case]
    view = change(at_rest())
    assert [action for action in done(view) if "PodDisruptionBudget" not in action] == expected
    assert told(view, "Degraded")[1] == reason


def test_a_node_that_restarts_while_it_leaves_does_not_begin_its_time_anew() -> None:
    view = late(at_rest(), Drain(timeout_s=60, on_timeout="Wait"))
    first = planned(view).status["drain"]
    restarted = broker(status(view, drain=first), 2, leaving=replace(HANDING, seconds_elapsed=1.0))
    assert planned(restarted).status["drain"]["startedAt"] == first["startedAt"]


def test_a_cluster_with_a_pod_that_is_not_ready_does_not_say_that_it_runs() -> None:
    view = pod(at_rest(), 1, ready=False)
    found = planned(view).status
    assert (found["phase"], found["message"]) == ("Healing", "mail-1 has loaded its jobs and is not ready yet")
    assert told(view, "Progressing") == ("True", "PodStarting")


# --- pods that people want empty --------------------------------------------------------------------------------------


def test_a_pod_that_somebody_wants_empty_is_drained_and_not_deleted() -> None:
    view = pod(at_rest(), 1, drain=True)
    assert done(view) == ["mail-1: CLUSTER LEAVING yes"]
    assert done(broker(view, 1, leaving=HANDING)) == []
    rests = pod(broker(view, 1, leaving=DONE), 1, ready=False)
    assert done(rests) == []
    assert told(rests, "Draining") == ("True", "Drained")
    assert planned(rests).status["members"][1]["safeToStop"]
    assert done(pod(rests, 1, drain=False)) == ["mail-1: CLUSTER LEAVING no"]


def test_only_one_pod_is_drained_at_a_time() -> None:
    view = pod(pod(at_rest(), 1, drain=True), 0, drain=True)
    assert done(view) == ["mail-0: CLUSTER LEAVING yes"]
    assert done(broker(view, 0, leaving=HANDING)) == []
    assert done(changed(view, replicas=2)) == ["mail-2: CLUSTER LEAVING yes"]


# --- roll-out ---------------------------------------------------------------------------------------------------------

ROLLED: dict[str, tuple[Change, list[str]]] = {
    "the highest first": (revision, ["replace mail-2"]),
    "the next": (lambda view: pod(revision(view), 2, revision="new"), ["replace mail-1"]),
    "the last": (lambda view: pod(pod(revision(view), 2, revision="new"), 1, revision="new"), ["replace mail-0"]),
    "a broken one before all others": (
        lambda view: unreachable(revision(view), 0, ready=False, trouble="CrashLoopBackOff"),
        ["replace mail-0"],
    ),
    "a new one that is broken stops it": (
        lambda view: pod(unreachable(revision(view), 2, ready=False, trouble="ImagePullBackOff"), 2, revision="new"),
        [],
    ),
    "the controller is behind": (lambda view: stateful_set(revision(view), up_to_date=False), []),
    "a node is drained": (lambda view: changed(broker(revision(view), 2, leaving=HANDING), replicas=2), []),
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
    "its claim is being deleted, it is empty": (
        lambda view: broker(volumes(view, 1, terminating=True), 1, leaving=DONE),
        ["replace mail-1"],
    ),
}


@pytest.mark.parametrize("case", ROLLED)
def test_which_pod_is_replaced(case: str) -> None:
    change, expected = ROLLED[case]
    assert done(change(at_rest())) == expected


EPHEMERAL: dict[str, tuple[Change, list[str]]] = {
    "it hands its jobs over first": (revision, ["mail-2: CLUSTER LEAVING yes"]),
    "also when its jobs ask for more copies": (
        lambda view: broker(revision(view), 0, max_replicate=3),
        ["mail-2: CLUSTER LEAVING yes"],
    ),
    "it hands over": (lambda view: broker(revision(view), 2, leaving=HANDING), []),
    "it is empty": (lambda view: broker(revision(view), 2, leaving=DONE), ["replace mail-2"]),
    "the one that leaves is the next": (lambda view: broker(revision(view), 1, leaving=HANDING), []),
    "it may still have jobs": (lambda view: unreachable(revision(view), 2, ready=False), []),
    "it crashed": (
        lambda view: unreachable(revision(view), 2, ready=False, trouble="CrashLoopBackOff", restarts=3),
        ["replace mail-2"],
    ),
    "locked out": (lambda view: unreachable(view, 1, LOCKED), []),
}


@pytest.mark.parametrize("case", EPHEMERAL)
def test_which_pod_without_a_volume_is_replaced(case: str) -> None:
    change, expected = EPHEMERAL[case]
    assert done(change(at_rest(ephemeral=True))) == expected


def test_a_node_alone_without_a_volume_keeps_its_jobs() -> None:
    view = revision(at_rest(1, ephemeral=True))
    assert done(view) == ["replace mail-0"]
    busy = broker(view, 0, jobs=3)
    assert done(busy) == []
    assert told(busy, "Degraded") == ("True", "SingleMember")
    assert "Set spec.replicas to 2" in planned(busy).status["message"]
    assert done(changed(busy, drain=Drain(timeout_s=60, on_timeout="Force"), annotations=CONSENT)) == ["replace mail-0"]


def test_an_upgrade_that_failed_says_what_to_do() -> None:
    view = pod(unreachable(revision(at_rest()), 2, ready=False, trouble="ImagePullBackOff"), 2, revision="new")
    view = status(view, formerImage="disque:0")
    failed = planned(view).status
    assert failed["phase"] == "Degraded"
    assert "ImagePullBackOff" in failed["message"]
    assert any("set spec.image back to disque:0" in entry["message"] for entry in failed["conditions"])
