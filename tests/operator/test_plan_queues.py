"""Decisions about DisqueQueues: settings on brokers, drift, deletion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from disque_operator import names, queues
from disque_operator.actions import WriteStatus
from disque_operator.apivalues import Json, condition_of
from disque_operator.members import ClusterView
from disque_operator.observed import Declared, Kept
from disque_operator.orderedspec import OrderedQueues
from disque_operator.orderedstate import OrderedGroup, OrderedStatus
from support.kubeworld.values import at_rest, broker, broker_of, changed, decided, planned, seen, unreachable


def resource(name: str = "orders", *, status: Json | None = None, generation: int = 1, **spec: Any) -> Json:
    metadata = {"name": name, "namespace": "prod", "uid": f"uid-{name}", "generation": generation}
    return {
        "kind": names.QUEUE_KIND,
        "metadata": metadata,
        "spec": {"clusterRef": {"name": "mail"}, **spec},
        "status": status or {},
    }


def declared(view: ClusterView, *several: Json) -> ClusterView:
    return seen(view, queues=tuple(Declared(one) for one in several))


def pauses(view: ClusterView, *states: str, queue: str = "orders") -> ClusterView:
    """Return the view with the pause of a queue on each broker."""
    for ordinal, state in enumerate(states):
        view = broker(view, ordinal, pauses={queue: state})
    return view


def commands(view: ClusterView) -> list[str]:
    return [text for text in decided(view) if ": PAUSE " in text]


def status_of(view: ClusterView) -> Json:
    [written] = [action.status for action in planned(view).actions if isinstance(action, WriteStatus)]
    return written


def condition(view: ClusterView, kind: str) -> tuple[str, str]:
    found = condition_of(status_of(view), kind)
    return found["status"], found["reason"]


def test_new_settings_are_set_on_all_members() -> None:
    view = pauses(declared(at_rest(), resource(pause="Out")), "none", "none", "out")
    assert commands(view) == ["mail-0: PAUSE orders out", "mail-1: PAUSE orders out"]
    assert condition(view, "Ready") == ("False", "Applying")
    assert condition(view, "Drifted") == ("True", "OtherSettings")
    done = pauses(view, "out", "out", "out")
    assert commands(done) == []
    assert condition(done, "Ready") == ("True", "Applied")
    assert condition(done, "Drifted") == ("False", "InSync")
    assert status_of(done)["appliedGeneration"] == 1


def test_queue_can_have_another_name_than_its_resource() -> None:
    view = pauses(declared(at_rest(), resource(pause="All", queueName="Order Mail")), *["none"] * 3, queue="Order Mail")
    assert commands(view)[0] == "mail-0: PAUSE Order Mail all"


def test_drift_is_restored() -> None:
    settled = {"appliedGeneration": 1}
    view = pauses(declared(at_rest(), resource(pause="In", status=settled)), "in", "none", "in")
    assert commands(view) == ["mail-1: PAUSE orders in"]
    assert condition(view, "Ready") == ("True", "Applied")


def test_drift_is_only_reported_on_request_until_the_spec_changes() -> None:
    settled = {"appliedGeneration": 1}
    view = pauses(declared(at_rest(), resource(pause="In", status=settled, onDrift="Report")), "in", "none", "in")
    assert commands(view) == []
    assert condition(view, "Drifted") == ("True", "OtherSettings")
    edited = resource(pause="In", status=settled, onDrift="Report", generation=2)
    assert commands(pauses(declared(at_rest(), edited), "in", "none", "in")) == ["mail-1: PAUSE orders in"]


def test_settings_are_not_applied_before_every_member_has_had_them() -> None:
    view = unreachable(pauses(declared(at_rest(), resource(pause="In")), "in", "in", "in"), 2)
    assert condition(view, "Ready") == ("False", "Applying")
    assert condition(view, "Drifted") == ("False", "InSync")


def test_queue_of_a_deleted_resource_is_resumed() -> None:
    kept = {"orders": Kept("uid-orders", False)}
    view = seen(pauses(at_rest(), "in", "in", "in"), kept_queues=kept)
    assert commands(view) == []
    noted = queues.decide(view).kept
    assert noted["orders"].removed_at
    after = seen(view, kept_queues=noted)
    assert commands(after) == [f"mail-{ordinal}: PAUSE orders none" for ordinal in range(3)]


def test_settings_of_a_retained_queue_stay() -> None:
    view = seen(pauses(at_rest(), "in", "in", "in"), kept_queues={"orders": Kept("uid-orders", True)})
    assert commands(view) == []
    assert queues.decide(view).kept == {"orders": Kept("uid-orders", True)}


def test_deletion_policy_is_kept_for_when_the_resource_is_gone() -> None:
    view = pauses(declared(at_rest(), resource(deletionPolicy="Retain")), "none", "none", "none")
    assert queues.decide(view).kept == {"orders": Kept("uid-orders", True)}


SETTINGS = {"retrySeconds": 30, "overflow": "DropOldest", "copyTo": ["a", "b"]}
VALUES = {"retry": "30", "overflow": "drop-oldest", "copy-to": "a b"}


def settings(view: ClusterView, *values: dict[str, str] | None, queue: str = "orders") -> ClusterView:
    """Return the view with what is set for a queue on each broker, None for one without QCONF."""
    for ordinal, found in enumerate(values):
        view = broker(view, ordinal, pauses={queue: "none"}, settings={} if found is None else {queue: found})
    return view


def changes(view: ClusterView) -> list[str]:
    return [text for text in decided(view) if ": QCONF " in text]


def test_settings_are_set_on_one_member_and_shared_by_all() -> None:
    view = settings(declared(at_rest(), resource(settings=SETTINGS)), {}, {}, {})
    assert changes(view) == ["mail-0: QCONF orders SET retry 30 overflow drop-oldest copy-to a b"]
    assert condition(view, "Ready") == ("False", "Applying")
    assert condition(view, "Drifted") == ("True", "OtherSettings")
    done = settings(view, VALUES, VALUES, VALUES)
    assert changes(done) == []
    assert condition(done, "Ready") == ("True", "Applied")
    assert condition(done, "Drifted") == ("False", "InSync")


def test_changed_settings_are_restored_and_others_removed() -> None:
    applied = resource(settings=SETTINGS, status={"appliedGeneration": 1})
    view = settings(declared(at_rest(), applied), VALUES, VALUES | {"retry": "9", "limit": "3"}, VALUES)
    assert changes(view) == ["mail-1: QCONF orders SET retry 30", "mail-1: QCONF orders UNSET limit"]
    reported = resource(settings=SETTINGS, status={"appliedGeneration": 1}, onDrift="Report")
    assert changes(settings(declared(view, reported), VALUES, VALUES | {"retry": "9"}, VALUES)) == []


def test_settings_of_a_queue_whose_resource_has_none_are_left_alone() -> None:
    view = settings(declared(at_rest(), resource()), {"retry": "9"}, {"retry": "9"}, {"retry": "9"})
    assert changes(view) == []
    assert condition(view, "Ready") == ("True", "Applied")


def test_members_without_settings_are_named() -> None:
    view = settings(declared(at_rest(), resource(settings=SETTINGS)), VALUES, None, VALUES)
    assert condition(view, "Ready") == ("False", "MembersTooOld")
    assert changes(view) == []


def test_settings_of_a_deleted_resource_are_removed() -> None:
    kept = {"orders": Kept("uid-orders", False, has_settings=True)}
    view = seen(settings(at_rest(), VALUES, VALUES, VALUES), kept_queues=kept)
    assert changes(view) == []
    after = seen(view, kept_queues=queues.decide(view).kept)
    assert changes(after) == ["mail-0: QCONF orders UNSET retry overflow copy-to"]
    by_hand = {"orders": Kept("uid-orders", False, removed_at=queues.decide(view).kept["orders"].removed_at)}
    assert changes(seen(view, kept_queues=by_hand)) == []


# --- ordered queues ---------------------------------------------------------------------------------------------------


def group(view: ClusterView, *, leader: int | None = 1, **fields: Any) -> OrderedGroup:
    """Return the queue `orders` with replicas on all members, led by one."""
    nodes = tuple(broker_of(view, ordinal).node_id for ordinal in range(3))
    given: dict[str, Any] = {"pause": "none", "jobs": 0} | fields
    return OrderedGroup("orders", "" if leader is None else nodes[leader], nodes, **given)


def catalog(view: ClusterView, *queues: OrderedGroup) -> ClusterView:
    """Return the view in which all members know a catalog with these queues."""
    nodes = tuple(broker_of(view, ordinal).node_id for ordinal in range(3))
    members = OrderedGroup("", nodes[0], nodes)
    known = OrderedStatus("c1", 3, members=members, queues={one.queue: one for one in queues})
    for ordinal in range(3):
        view = broker(view, ordinal, ordered=known, settings={"orders": {}}, pauses={})
    return view


def made(view: ClusterView) -> list[str]:
    return [text for text in decided(view) if ": QNEW " in text or ": QDROP " in text or ": PAUSE " in text]


ORDERED: Json = {"type": "ordered", "ordered": {"replicas": 3, "single": True, "prefetch": 4}}


def test_ordered_queue_is_made_with_its_options() -> None:
    view = catalog(declared(at_rest(), resource(pause="Out", **ORDERED)))
    assert made(view) == ["mail-0: QNEW orders ORDERED REPLICAS 3 SINGLE PREFETCH 4"]
    assert condition(view, "Ready") == ("False", "Creating")
    done = catalog(view, group(view, single=True, prefetch=4, pause="out"))
    assert made(done) == []
    assert condition(done, "Ready") == ("True", "Applied")
    assert status_of(done)["ordered"] == {"leader": "mail-1", "replicas": ["mail-0", "mail-1", "mail-2"]}


def test_ordered_queue_has_as_many_replicas_as_the_cluster_says() -> None:
    view = changed(catalog(declared(at_rest(), resource(type="ordered"))), ordered=OrderedQueues(replicas=1))
    assert made(view) == ["mail-0: QNEW orders ORDERED REPLICAS 1"]


def test_ordered_queue_is_paused_at_its_leader() -> None:
    view = catalog(declared(at_rest(), resource(pause="In", type="ordered")))
    paused = catalog(view, group(view))
    assert made(paused) == ["mail-1: PAUSE orders in"]
    assert condition(paused, "Drifted") == ("True", "OtherSettings")


def test_no_command_waits_for_an_ordered_queue_without_a_leader() -> None:
    view = catalog(declared(at_rest(), resource(pause="In", type="ordered")))
    without = catalog(view, group(view, leader=None))
    assert made(without) == []
    assert condition(without, "Ready") == ("False", "NoLeader")


@pytest.mark.parametrize("queue", [{"single": True}, {"prefetch": 2}])
def test_ordered_queue_with_other_options_is_left_alone(queue: dict[str, Any]) -> None:
    view = catalog(declared(at_rest(), resource(type="ordered")))
    view = catalog(view, group(view, **queue))
    assert made(view) == []
    assert condition(view, "Ready") == ("False", "OtherOptions")


def test_ordered_queue_that_moves_a_replica_is_ready() -> None:
    view = catalog(declared(at_rest(), resource(**ORDERED)))
    moving = replace(
        group(view, single=True, prefetch=4), replicas=("id-new", *group(view).replicas[1:]), settled=False
    )
    assert condition(catalog(view, moving), "Ready") == ("True", "Applied")


def test_ordered_queue_needs_a_catalog_and_enough_members() -> None:
    view = declared(at_rest(), resource(type="ordered"))
    assert made(view) == []
    assert condition(view, "Ready") == ("False", "NoCatalog")
    many = catalog(declared(at_rest(), resource(type="ordered", ordered={"replicas": 5})))
    assert made(many) == []
    assert condition(many, "Ready") == ("False", "TooFewMembers")
    old = broker(catalog(view), 1, ordered=None)
    assert made(old) == []
    assert condition(old, "Ready") == ("False", "MembersTooOld")
    silent = unreachable(catalog(view), 2)
    assert made(silent) == []
    assert condition(silent, "Ready") == ("False", "Waiting")


def test_resource_of_a_queue_of_jobs_does_not_match_an_ordered_queue() -> None:
    view = catalog(declared(at_rest(), resource()))
    assert condition(catalog(view, group(view)), "Ready") == ("False", "OtherType")


def test_ordered_queue_of_a_deleted_resource_is_dropped_when_its_jobs_are_finished() -> None:
    kept = {"orders": Kept("uid-orders", False, ordered=True)}
    view = seen(catalog(at_rest(), group(at_rest(), jobs=2)), kept_queues=kept)
    assert made(view) == [], "it is noted first"
    noted = queues.decide(view).kept
    assert made(seen(view, kept_queues=noted)) == [], "it has jobs"
    empty = seen(catalog(view, group(view)), kept_queues=noted)
    assert made(empty) == ["mail-1: QDROP orders"]
    ago = {"orders": replace(noted["orders"], removed_s_ago=5000)}
    assert queues.decide(seen(empty, kept_queues=ago)).kept == ago, "it is remembered while it exists"
    assert queues.decide(seen(catalog(view), kept_queues=ago)).kept == {}


def test_ordered_queue_is_dropped_with_its_jobs_only_if_the_resource_said_so() -> None:
    view = catalog(declared(at_rest(), resource(type="ordered", deleteJobs=True)))
    kept = queues.decide(catalog(view, group(view, jobs=2))).kept
    assert kept == {"orders": Kept("uid-orders", False, ordered=True, drops_jobs=True)}
    without = seen(catalog(at_rest(), group(at_rest(), jobs=2)), kept_queues=kept)
    after = seen(without, kept_queues=queues.decide(without).kept)
    assert made(after) == ["mail-1: QDROP orders FORCE"]


def test_ordered_queue_that_is_retained_or_was_made_by_hand_is_not_dropped() -> None:
    view = catalog(at_rest(), group(at_rest()))
    removed = Kept("uid-orders", True, ordered=True)
    assert made(seen(view, kept_queues={"orders": removed})) == []
    by_hand = Kept("uid-orders", False, removed_at="2027-01-15T08:00:00Z")
    assert made(seen(view, kept_queues={"orders": by_hand})) == []


def test_ordered_queue_without_a_leader_is_not_dropped_yet() -> None:
    kept = {"orders": Kept("uid-orders", False, removed_at="2027-01-15T08:00:00Z", ordered=True, drops_jobs=True)}
    assert made(seen(catalog(at_rest(), group(at_rest(), leader=None)), kept_queues=kept)) == []
