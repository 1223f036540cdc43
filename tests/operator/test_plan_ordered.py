"""Ordered queues of a cluster: founding their catalog, OrderedReady, and what waits for majorities."""

from __future__ import annotations

from dataclasses import replace

import pytest

from disque_operator import ordered
from disque_operator.apivalues import Json, condition_of
from disque_operator.disruption import Disruption, blocker, safe_to_stop
from disque_operator.members import ClusterView
from disque_operator.observed import Kept, Leaving
from disque_operator.orderedspec import OrderedQueues
from disque_operator.orderedstate import OrderedGroup, OrderedStatus
from support.kubeworld.values import (
    at_rest,
    broker,
    broker_of,
    changed,
    decided,
    planned,
    pod,
    reported,
    seen,
    unreachable,
)
from support.kubeworld.values import status as status_with

ENABLED = OrderedQueues(enabled=True)


def enabled(view: ClusterView, *, uptime_s: float = 60) -> ClusterView:
    """Return the view of a cluster that can have ordered queues, whose brokers run for some time."""
    view = changed(view, ordered=ENABLED)
    for ordinal in range(len(view.members)):
        view = broker(view, ordinal, uptime_s=uptime_s)
    return view


def ids(view: ClusterView, *ordinals: int) -> tuple[str, ...]:
    return tuple(broker_of(view, ordinal).node_id for ordinal in ordinals)


def group(view: ClusterView, name: str, *ordinals: int, leader: int | None = 0, jobs: int = 0) -> OrderedGroup:
    """Return a group with replicas on these members; the leader is the ordinal of one, None for none."""
    led = "" if leader is None else broker_of(view, leader).node_id
    return OrderedGroup(name, led, ids(view, *ordinals), pause="none", jobs=jobs)


def with_queues(view: ClusterView, *groups: OrderedGroup, catalog: str = "c1", members: int | None = 0) -> ClusterView:
    """Return the view in which every member knows these queues, and a catalog on the first three members."""
    first = group(view, "", 0, 1, 2, leader=members)
    known = OrderedStatus(catalog, 7, members=first, queues={one.queue: one for one in groups})
    for ordinal in range(len(view.members)):
        view = broker(view, ordinal, ordered=known)
    return view


def commands(view: ClusterView) -> list[str]:
    return [text for text in decided(view) if ": CLUSTER ORDERED" in text]


def message(view: ClusterView, kind: str = "OrderedReady") -> str:
    return str(condition_of(planned(view).status, kind)["message"])


def shown(view: ClusterView) -> Json:
    found: Json = planned(view).status["ordered"]
    return found


# --- founding ---------------------------------------------------------------------------------------------------------


def test_catalog_is_founded_when_the_cluster_is_whole() -> None:
    view = enabled(at_rest())
    one, two, three = ids(view, 0, 1, 2)
    assert commands(view) == [f"mail-0: CLUSTER ORDERED INIT {one} {two} {three}"]
    assert reported(view, "OrderedReady") == ("False", "Founding")
    assert reported(view, "Progressing") == ("True", "FoundingCatalog")


def test_cluster_without_ordered_queues_has_no_condition_and_founds_nothing() -> None:
    view = at_rest()
    assert commands(view) == []
    assert condition_of(planned(view).status, "OrderedReady") == {}
    assert "ordered" not in planned(view).status


@pytest.mark.parametrize(("members", "count"), [(1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (6, 5)])
def test_founders_are_an_odd_number_of_at_most_five(members: int, count: int) -> None:
    assert len(ordered.founders(enabled(at_rest(members)))) == count


def test_founders_are_in_different_zones_first_and_lowest_ordinals_among_equals() -> None:
    four = enabled(at_rest(4))
    for ordinal, zone in enumerate(("a", "a", "b", "c")):
        four = pod(four, ordinal, zone=zone)
    assert [one.pod.ordinal for one in ordered.founders(four)] == [0, 2, 3]


def test_members_that_a_scale_down_removes_are_no_founders() -> None:
    view = changed(enabled(at_rest(5)), replicas=3)
    assert [one.pod.ordinal for one in ordered.founders(view)] == [0, 1, 2]


def test_nothing_is_founded_while_a_member_does_not_answer() -> None:
    view = unreachable(enabled(at_rest()), 2)
    assert commands(view) == []
    assert reported(view, "OrderedReady") == ("False", "Waiting")


def test_nothing_is_founded_while_members_may_not_have_read_their_logs() -> None:
    view = enabled(at_rest(), uptime_s=3)
    assert commands(view) == []
    assert reported(view, "OrderedReady") == ("False", "Waiting")


def test_nothing_is_founded_while_a_member_is_too_old_or_leaves() -> None:
    old = broker(enabled(at_rest()), 1, ordered=None)
    assert commands(old) == []
    assert reported(old, "OrderedReady") == ("False", "MembersTooOld")
    assert "mail-1" in message(old)
    leaving = broker(enabled(at_rest()), 1, leaving=Leaving(False, 3, 1.0, 3.0, 1.0))
    assert commands(leaving) == []


def test_nothing_is_founded_if_one_member_knows_a_catalog() -> None:
    view = enabled(at_rest())
    known = OrderedStatus("c1", 3, members=group(view, "", 2, leader=2))
    assert commands(broker(view, 2, ordered=known)) == []


def test_lost_catalog_is_never_founded_again() -> None:
    view = status_with(enabled(at_rest()), ordered={"catalog": "c1", "queues": 4})
    assert commands(view) == []
    assert reported(view, "OrderedReady") == ("False", "CatalogLost")
    assert reported(view, "Degraded") == ("True", "CatalogLost")
    assert shown(view)["catalog"] == "c1"


def test_catalog_is_not_lost_while_members_that_may_know_it_do_not_answer() -> None:
    view = unreachable(status_with(enabled(at_rest()), ordered={"catalog": "c1"}), 0)
    assert reported(view, "OrderedReady") == ("False", "Waiting")
    assert condition_of(planned(view).status, "Degraded")["reason"] != "CatalogLost"


def test_two_catalogs_are_reported_and_none_is_founded() -> None:
    view = with_queues(enabled(at_rest()))
    other = replace(view.observed.brokers["mail-2"].ordered or OrderedStatus(), catalog="c2")
    both = broker(view, 2, ordered=other)
    assert commands(both) == []
    assert reported(both, "OrderedReady") == ("False", "TwoCatalogs")
    assert reported(both, "Degraded") == ("True", "TwoCatalogs")
    met = broker(view, 1, ordered=replace(view.observed.brokers["mail-1"].ordered or OrderedStatus(), conflict="c2"))
    assert reported(met, "OrderedReady") == ("False", "TwoCatalogs")


def test_cluster_whose_status_was_lost_takes_the_catalog_of_its_members() -> None:
    view = with_queues(enabled(at_rest()), group(enabled(at_rest()), "orders", 0, 1, 2))
    assert commands(view) == []
    assert shown(view) == {
        "catalog": "c1",
        "leader": "mail-0",
        "members": ["mail-0", "mail-1", "mail-2"],
        "queues": 1,
        "withoutLeader": [],
        "waitingToDrop": [],
    }
    assert reported(view, "OrderedReady") == ("True", "AllLed")


def test_switching_off_keeps_a_catalog_and_its_condition() -> None:
    view = changed(with_queues(enabled(at_rest())), ordered=OrderedQueues())
    assert commands(view) == []
    assert reported(view, "OrderedReady") == ("True", "AllLed")


def test_ephemeral_cluster_with_ordered_queues_is_invalid() -> None:
    view = changed(at_rest(ephemeral=True), ordered=ENABLED)
    assert commands(view) == []
    assert reported(view, "SpecValid") == ("False", "Invalid")


# --- leaders ----------------------------------------------------------------------------------------------------------


def test_queues_without_a_leader_are_named() -> None:
    base = enabled(at_rest())
    view = with_queues(base, group(base, "orders", 0, 1, 2), group(base, "mails", 0, 1, 2, leader=None))
    assert reported(view, "OrderedReady") == ("False", "NoLeader")
    assert "mails" in message(view)
    assert "orders" not in message(view)
    assert shown(view)["withoutLeader"] == ["mails"]
    assert planned(view).status["phase"] == "Running", "an election is no reason to do anything"


def test_only_some_of_many_queues_without_a_leader_are_named() -> None:
    base = enabled(at_rest())
    view = with_queues(base, *(group(base, f"q{number:02}", 0, 1, 2, leader=None) for number in range(30)))
    assert message(view).endswith("q00, q01, q02 and others")
    assert len(shown(view)["withoutLeader"]) == 20


def test_catalog_without_a_leader_is_reported() -> None:
    view = with_queues(enabled(at_rest()), members=None)
    assert reported(view, "OrderedReady") == ("False", "NoLeader")
    assert "catalog" in message(view)


def test_leader_that_does_not_say_so_of_itself_is_none() -> None:
    view = enabled(at_rest())
    led = with_queues(view, group(view, "orders", 0, 1, 2))
    lost = OrderedStatus(
        "c1", 7, members=group(view, "", 0, 1, 2), queues={"orders": group(view, "orders", 0, 1, 2, leader=None)}
    )
    assert reported(broker(led, 0, ordered=lost), "OrderedReady") == ("False", "NoLeader")


def test_leader_that_does_not_answer_here_counts_while_its_followers_follow_it() -> None:
    view = enabled(at_rest())
    led = unreachable(with_queues(view, group(view, "orders", 0, 1, 2)), 0)
    assert led.ordered.leaderless == ()


def test_member_that_cannot_write_is_named() -> None:
    view = with_queues(enabled(at_rest()))
    found = broker(
        view, 1, ordered=replace(view.observed.brokers["mail-1"].ordered or OrderedStatus(), error="disk full")
    )
    assert reported(found, "OrderedReady") == ("False", "WritesRefused")
    assert "mail-1" in message(found)


def test_queues_that_wait_to_be_dropped_are_named() -> None:
    base = enabled(at_rest())
    view = with_queues(base, group(base, "orders", 0, 1, 2, jobs=3))
    kept = {"orders": Kept("uid-orders", False, removed_at="2027-01-15T08:00:00Z", ordered=True)}
    view = seen(view, kept_queues=kept)
    assert reported(view, "OrderedReady") == ("True", "AllLed")
    assert "orders" in message(view)
    assert shown(view)["waitingToDrop"] == ["orders"]


# --- majorities -------------------------------------------------------------------------------------------------------


def blocked(view: ClusterView, ordinal: int) -> str:
    return blocker(Disruption(view, f"mail-{ordinal}", copies=True))


def test_member_is_not_stopped_while_another_replica_is_lost() -> None:
    base = enabled(at_rest())
    queue = replace(group(base, "orders", 0, 1), replicas=(*ids(base, 0, 1), "id-lost"))
    view = with_queues(base, queue)
    assert blocked(view, 0) == "the ordered queue orders would lose its majority"
    assert not safe_to_stop(view, view.members[0])
    assert blocked(view, 2) == "", "it has no replica of the queue"
    assert safe_to_stop(view, view.members[2])


def test_member_is_stopped_when_a_majority_of_every_group_remains() -> None:
    base = enabled(at_rest())
    assert blocked(with_queues(base, group(base, "orders", 0, 1, 2)), 0) == ""


def test_member_is_not_stopped_while_a_group_has_no_leader() -> None:
    base = enabled(at_rest())
    assert blocked(with_queues(base, group(base, "orders", 0, 1, 2, leader=None)), 1) == (
        "the ordered queue orders has no leader"
    )
    assert blocked(with_queues(base, members=None), 1) == "the catalog of ordered queues has no leader"


def test_queue_with_one_replica_blocks_no_upgrade() -> None:
    base = enabled(at_rest())
    assert blocked(with_queues(base, group(base, "orders", 1, leader=1)), 1) == ""


def test_replica_that_cannot_write_does_not_count() -> None:
    base = enabled(at_rest())
    view = with_queues(base, group(base, "orders", 0, 1, 2))
    failed = replace(view.observed.brokers["mail-2"].ordered or OrderedStatus(), error="disk full")
    assert blocked(broker(view, 2, ordered=failed), 0) == "the catalog of ordered queues would lose its majority"


def test_drain_is_refused_if_fewer_members_than_replicas_would_remain() -> None:
    base = enabled(at_rest())
    view = changed(with_queues(base, group(base, "orders", 0, 1, 2)), replicas=2)
    assert decided(view) == []
    assert reported(view, "Draining") == ("False", "NotEnoughMembers")
    assert "ordered queue orders has 3 replicas" in message(view, "Draining")


def test_member_that_has_replicas_left_is_not_removed() -> None:
    base = changed(enabled(at_rest(4)), replicas=3)
    view = with_queues(base, group(base, "orders", 0, 1, 3))
    waits = broker(view, 3, leaving=Leaving(False, 0, 0.0, 0.0, 5.0, replicas_left=1))
    assert not any("StatefulSet" in text or "PersistentVolumeClaim" in text for text in decided(waits))
    assert planned(waits).status["drain"]["orderedReplicasLeft"] == 1
    assert reported(waits, "Draining") == ("True", "Transferring")


# --- moving replicas --------------------------------------------------------------------------------------------------


def test_replicas_that_move_are_reported_and_no_member_is_stopped_meanwhile() -> None:
    base = enabled(at_rest(4))
    view = with_queues(base, replace(group(base, "orders", 0, 1, 2), settled=False))
    assert reported(view, "OrderedReady") == ("True", "MovingReplicas")
    assert reported(view, "Ready") == ("True", "AllMembersConnected")
    assert blocked(view, 3) == "the ordered queue orders gets other replicas", "it may still have one"
    assert commands(view) == []


def test_lost_replica_is_reported_until_it_is_replaced() -> None:
    base = enabled(at_rest(4))
    view = with_queues(base, replace(group(base, "orders", 0, 1), replicas=(*ids(base, 0, 1), "id-lost")))
    assert reported(view, "OrderedReady") == ("True", "MovingReplicas")
    assert commands(view) == [], "the brokers replace it"


# --- rounds -----------------------------------------------------------------------------------------------------------


def test_next_round_comes_sooner_while_brokers_change_what_no_watch_reports() -> None:
    base = enabled(at_rest(4))
    settled = with_queues(base, group(base, "orders", 0, 1, 2))
    moving = with_queues(base, replace(group(base, "orders", 0, 1, 2), settled=False))
    leaderless = with_queues(base, group(base, "orders", 0, 1, 2, leader=None))
    starting = enabled(at_rest(), uptime_s=3)
    assert [planned(view).again_s for view in (settled, moving, leaderless, starting)] == [30.0, 5.0, 5.0, 5.0]
