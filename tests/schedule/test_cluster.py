"""Schedules in a cluster: each time runs once, whatever happens to the nodes."""

from __future__ import annotations

from typing import cast

import pytest

from disqued.bus import kinds
from disqued.core.cluster.rendezvous import ranked
from disqued.schedule.counters import FIRED
from disqued.schedule.payload import ASK, GRANTED, WITHDRAW, Item, unpack_items
from disqued.schedule.room import schedule_of
from disqued.testing.cluster import Cluster, Member
from schedule.scenes import START_MS, due_times, firing, set_schedule, shown
from support.fixtures import settled

SECOND_MS = 1000
TEN_MINUTES_MS = 600_000


def items_of(cluster: Cluster, what: int) -> list[Item]:
    """What nodes said about runs."""
    return [item for sent in cluster.sent("RUNS") for item in unpack_items(sent.frame.payload) if item.what == what]


def by_rank(cluster: Cluster) -> list[Member]:
    """The members in the order in which they fire the schedule `s`."""
    order = ranked(b"s", [member.id for member in cluster.members])
    return sorted(cluster.members, key=lambda member: order.index(member.id))


def minutes_from(cluster: Cluster, count: int, step_s: int = 10) -> list[int]:
    """The next times of an interval, in milliseconds after START_MS."""
    first = (cluster.members[0].net.now_ms - START_MS) // (step_s * SECOND_MS) + 1
    return [number * step_s * SECOND_MS for number in range(first, first + count)]


def test_one_node_fires_and_all_know_the_schedule(cluster: Cluster) -> None:
    set_schedule(cluster.members[0].admin, "every 10 s", "TTL", 3600)
    expected = minutes_from(cluster, 6)
    cluster.run(seconds=61)
    node = firing(cluster)
    assert shown(node.admin).runs == 6
    assert len({item.node_id for item in items_of(cluster, ASK)}) == 1
    assert due_times(cluster.members) == expected
    cluster.run(seconds=60)
    assert all(shown(member.admin).runs >= 6 for member in cluster.members)


def test_schedules_are_spread_over_the_nodes(cluster: Cluster) -> None:
    for number in range(30):
        set_schedule(cluster.members[0].admin, "@hourly", name=f"s{number}")
    cluster.run(seconds=1)
    nodes = [shown(cluster.members[1].admin, f"s{number}").node for number in range(30)]
    assert len(set(nodes)) == 3


@pytest.mark.parametrize("strict", ["yes", "no"])
def test_next_node_takes_over_when_the_firing_one_dies(cluster: Cluster, strict: str) -> None:
    set_schedule(cluster.members[0].admin, "every 10 s", "TTL", 3600, "RETRY", 30, "STRICT", strict)
    expected = minutes_from(cluster, 12)
    cluster.run(seconds=31)
    victim = firing(cluster)
    victim.crash()
    cluster.run(seconds=90)
    living = [member for member in cluster.members if member is not victim]
    assert firing(cluster) in living
    found = due_times(living)
    assert found == sorted(set(found))
    missing = set(expected) - set(found)
    assert not missing - set(expected[3:6]), missing  # those that passed until the node was known to have failed
    assert shown(firing(cluster).admin).runs_missed <= 2


def test_node_that_dies_after_the_run_of_a_rare_schedule_has_it_run_once(cluster: Cluster) -> None:
    set_schedule(cluster.members[0].admin, "every 1 m", "TTL", 3600, "MISSED", "once")
    (expected,) = minutes_from(cluster, 1, step_s=60)
    cluster.until(lambda: bool(cluster.sent("REPLJOB")), within_s=70)
    victim = firing(cluster)
    victim.crash()
    cluster.run(seconds=30)
    living = [member for member in cluster.members if member is not victim]
    cluster.run(seconds=330)  # the retry time of the job, if its node did not queue it before
    assert due_times(living).count(expected) <= 1


def test_leaving_node_hands_its_schedules_to_the_others(cluster: Cluster) -> None:
    set_schedule(cluster.members[0].admin, "every 10 s", "TTL", 3600)
    expected = minutes_from(cluster, 5)
    cluster.run(seconds=21)
    leaving = firing(cluster)
    leaving.admin.call("CLUSTER", "LEAVING", "yes")
    cluster.run(seconds=30)
    assert firing(cluster) is not leaving
    assert due_times(cluster.members) == expected


def test_minority_does_not_fire_a_strict_schedule_and_the_majority_fires_each_time_once(cluster: Cluster) -> None:
    set_schedule(cluster.members[0].admin, "every 10 s", "TTL", 3600)
    cluster.run(seconds=1)
    alone = firing(cluster)
    others = [member for member in cluster.members if member is not alone]
    expected = minutes_from(cluster, 30)
    cluster.partition([alone], others)
    cluster.run(seconds=200)
    assert shown(alone.admin).state == "no-majority"
    assert due_times([alone]) == []
    cluster.heal()
    cluster.until(cluster.is_whole)
    cluster.run(seconds=60)
    assert firing(cluster) is alone
    found = due_times(cluster.members)
    assert len(found) == len(set(found))
    assert not set(found) - set(expected)
    assert {time for time in expected if time > expected[3]} - set(found) <= set(expected[25:])


def test_both_sides_of_a_partition_fire_without_strict(cluster: Cluster) -> None:
    set_schedule(cluster.members[0].admin, "every 10 s", "TTL", 3600, "STRICT", "no")
    cluster.run(seconds=1)
    alone = firing(cluster)
    others = [member for member in cluster.members if member is not alone]
    cluster.partition([alone], others)
    cluster.run(seconds=61)
    one_side, other_side = due_times([alone]), due_times(others)
    assert len(one_side) >= 4
    assert len(set(one_side) & set(other_side)) >= 3


def test_run_that_began_just_before_a_partition_is_not_repeated_by_the_majority(cluster: Cluster) -> None:
    """The majority granted the run to the node that is cut off now, and does not start it again."""
    set_schedule(cluster.members[0].admin, "every 1 m", "TTL", 3600, "REPLICATE", 1)
    (expected,) = minutes_from(cluster, 1, step_s=60)
    cluster.until(lambda: len(items_of(cluster, GRANTED)) == 2, within_s=70)
    alone = firing(cluster)
    others = [member for member in cluster.members if member is not alone]
    cluster.partition([alone], others)
    cluster.run(seconds=50)
    assert firing_of(others) is not alone
    assert due_times(cluster.members).count(expected) <= 1


def firing_of(members: list[Member]) -> Member:
    node = shown(members[0].admin).node
    return next(member for member in members if member.id.decode() == node)


def test_missed_once_is_made_up_for_when_the_majority_returns(cluster: Cluster) -> None:
    for name, missed in (("o", "once"), ("s", "skip")):
        set_schedule(cluster.members[0].admin, "every 10 m", "TTL", 3600, "MISSED", missed, name=name)
    cluster.run(seconds=1)
    first, second, third = cluster.members
    cluster.partition([first], [second], [third])
    cluster.run(seconds=TEN_MINUTES_MS // 1000 + 120)
    assert due_times(cluster.members) == []
    cluster.heal()
    cluster.until(cluster.is_whole)
    cluster.run(seconds=90)
    assert due_times(cluster.members) == [TEN_MINUTES_MS]
    made_up, skipped = shown(first.admin, "o"), shown(first.admin, "s")
    assert (made_up.runs, made_up.runs_missed) == (1, 0)
    assert (skipped.runs, skipped.runs_missed) == (0, 1)


def test_node_that_returns_after_a_run_does_not_repeat_it(cluster: Cluster) -> None:
    set_schedule(cluster.members[0].admin, "every 20 m", "TTL", 7200, "MISSED", "once", "REPLICATE", 1)
    cluster.run(seconds=1)
    absent = firing(cluster)
    absent.crash()
    cluster.run(seconds=1210)
    living = [member for member in cluster.members if member is not absent]
    assert due_times(living) == [2 * TEN_MINUTES_MS]
    cluster.run(seconds=700)  # longer than IDs of finished jobs are remembered
    absent.restart()
    cluster.until(cluster.is_whole)
    cluster.run(seconds=60)
    assert firing(cluster) is absent
    assert due_times(cluster.members) == []
    assert shown(absent.admin).last_ms == START_MS + 2 * TEN_MINUTES_MS


def test_all_nodes_are_down_at_the_time_and_the_run_is_made_up_for_once(cluster: Cluster) -> None:
    set_schedule(cluster.members[0].admin, "every 10 m", "TTL", 7200, "MISSED", "once")
    cluster.run(seconds=1)
    for member in cluster.members:
        member.crash()
    cluster.run(seconds=TEN_MINUTES_MS // 1000 + 300)
    for member in cluster.members:
        member.restart()
    cluster.until(cluster.is_whole)
    cluster.run(seconds=40)
    assert due_times(cluster.members) == [TEN_MINUTES_MS]


def test_two_nodes_that_fire_the_same_time_add_one_job() -> None:
    cluster = settled(4)
    set_schedule(cluster.members[0].admin, "every 1 m", "TTL", 3600, "STRICT", "no", "REPLICATE", 2)
    cluster.run(seconds=1)
    first, blind = by_rank(cluster)[:2]
    cluster.cut(first, blind)
    cluster.cut(blind, first)
    (expected,) = minutes_from(cluster, 1, step_s=60)
    cluster.run(milliseconds=expected - 500 - (cluster.members[0].net.now_ms - START_MS))
    assert shown(blind.admin).node != shown(first.admin).node == first.id.decode()
    cluster.run(seconds=5)
    fired = sum(member.node.state.counters.value(FIRED) for member in cluster.members)
    assert fired == 2
    cluster.heal()
    cluster.run(seconds=20)
    assert due_times(cluster.members) == [expected]


def test_clock_that_is_ahead_does_not_make_a_run_early(cluster: Cluster) -> None:
    set_schedule(cluster.members[0].admin, "every 1 m", "TTL", 3600)
    cluster.run(seconds=1)
    fast = firing(cluster)
    fast.skew_ms = 20_000
    (expected,) = minutes_from(cluster, 1, step_s=60)
    times: list[int] = []
    for _ in range(700):
        cluster.run(milliseconds=100)
        times += [cluster.members[0].net.now_ms - START_MS for member in cluster.members if member.admin.take("q")]
        if times:
            break
    assert expected - 1100 <= times[0] <= expected + 2000


def test_node_with_half_of_the_grants_waits_until_the_other_one_gives_them_back() -> None:
    cluster = settled(4)
    set_schedule(cluster.members[0].admin, "every 1 m", "TTL", 3600)
    cluster.run(seconds=1)
    first = firing(cluster)
    second, third, _ = (member for member in cluster.members if member is not first)
    due_ms = START_MS + minutes_from(cluster, 1, step_s=60)[0]
    for voter in (second, third):
        grants = schedule_of(voter.node.state).running.voting.grants
        incarnation = second.node.state.incarnation
        assert grants.ask(b"s", due_ms, second.id, incarnation, voter.node.state.now_ms) == second.id
    cluster.until(lambda: bool(items_of(cluster, GRANTED)), within_s=70)
    cluster.run(seconds=2)
    assert due_times(cluster.members) == []
    for voter in (second, third):
        schedule_of(voter.node.state).running.voting.grants.withdraw(b"s", due_ms, second.id)
    cluster.run(seconds=2)
    assert due_times(cluster.members) == [due_ms - START_MS]


def test_of_two_nodes_that_each_have_half_of_the_grants_the_first_one_starts_the_run() -> None:
    cluster = settled(4)
    set_schedule(cluster.members[0].admin, "every 1 m", "TTL", 3600)
    cluster.run(seconds=1)
    first, second, third, fourth = by_rank(cluster)
    cluster.cut(first, second)
    cluster.cut(second, first)
    due_ms = START_MS + minutes_from(cluster, 1, step_s=60)[0]
    cluster.lose("RUNS", by=first, to=fourth, count=1)
    cluster.lose("RUNS", by=second, to=third, count=1)
    cluster.until(lambda: cluster.members[0].net.now_ms > due_ms + 5000, within_s=70)
    assert {item.node_id for item in items_of(cluster, GRANTED)} == {first.id, second.id}
    assert items_of(cluster, WITHDRAW)
    assert due_times(cluster.members) == [due_ms - START_MS]
    assert first.node.state.counters.value(FIRED) == 1


@pytest.mark.parametrize(
    "payload",
    [
        b"\x01",
        Item(ASK, 1, b"0" * 40, b"name").packed()[:-1],
        b"\x09" + Item(ASK, 1, b"0" * 40, b"name").packed()[1:],
        Item(ASK, (1 << 63) - 1, b"0" * 40, b"name").packed(),
        Item(ASK, 1, b"0" * 40, b"").packed(),
        Item(ASK, 1, b"0" * 40, b"n" * 257).packed(),
    ],
)
def test_malformed_frames_are_ignored(pair: Cluster, payload: bytes) -> None:
    one, two = pair.members
    with pytest.raises(ValueError, match="item"):
        unpack_items(payload)
    link = one.node.state.view.peers[two.id].link
    assert link is not None
    one.node.state.ready.put(link, one.node.state.bus.other(kinds.RUNS, payload))
    one.flush()
    pair.run(seconds=1)
    assert not [sent for sent in pair.sent("RUNS") if sent.sender is two]
    assert two.sees == 1


def test_members_without_schedules_send_nothing(cluster: Cluster) -> None:
    cluster.run(seconds=60)
    assert not cluster.sent("RUNS")


def test_changes_reach_all_nodes_and_the_last_one_wins(cluster: Cluster) -> None:
    first, second, third = cluster.members
    set_schedule(first.admin, "every 10 m")
    cluster.run(milliseconds=10)
    assert third.admin.call("SCHEDULE", "s", "PAUSE") == b"OK"
    cluster.run(milliseconds=10)
    assert {shown(member.admin).state for member in cluster.members} == {"paused"}
    set_schedule(second.admin, "every 2 h")
    second.admin.call("SCHEDULE", "s", "RESUME")
    cluster.run(milliseconds=10)
    assert {(shown(member.admin).when, shown(member.admin).state) for member in cluster.members} == {
        ("every 2 h", "active")
    }
    first.admin.call("SCHEDULE", "s", "DEL")
    cluster.run(milliseconds=10)
    assert [cast("list[object]", member.admin.call("SCHEDULE", "*", "SHOW")) for member in cluster.members] == [[]] * 3
