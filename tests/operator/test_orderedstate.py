"""Replies to CLUSTER ORDERED STATUS, and what several of them say together."""

from __future__ import annotations

import pytest

from disque_operator.orderedstate import UNKNOWN_JOBS, Ordered, OrderedGroup, OrderedStatus, parsed


def row(name: bytes, leader: bytes, *replicas: bytes, jobs: int = 0) -> list[object]:
    fields = [b"queue", name, b"group", 1, b"leader", leader, b"settled", 1, b"replicas", list(replicas)]
    return [*fields, b"single", b"no", b"prefetch", 0, b"pause", b"none", b"jobs", jobs]


REPLY = [
    *(b"catalog", b"c1", b"version", 9, b"conflict", b"", b"error", b"disk full"),
    *(b"members", row(b"", b"a", b"a", b"b")[:10], b"queues", [row(b"q", b"b", b"a", b"b", jobs=4)]),
]


def group(name: str, leader: str, *replicas: str, jobs: int = 0, pause: str = "none") -> OrderedGroup:
    return OrderedGroup(name, leader, replicas, pause=pause, jobs=jobs)


def says(*groups: OrderedGroup, version: int = 1, catalog: str = "c1") -> OrderedStatus:
    return OrderedStatus(catalog, version, queues={one.queue: one for one in groups})


def test_reply_of_a_broker_is_read() -> None:
    found = parsed(REPLY)
    assert (found.catalog, found.version, found.error) == ("c1", 9, "disk full")
    assert found.members == OrderedGroup("", "a", ("a", "b"))
    assert found.queues == {"q": group("q", "b", "a", "b", jobs=4)}


@pytest.mark.parametrize("reply", [[], REPLY[:-1], [*REPLY[:-1], 7], [*REPLY[:-1], [row(b"q", b"b")[:-2]]]])
def test_reply_of_another_form_is_refused(reply: list[object]) -> None:
    with pytest.raises((ValueError, LookupError)):
        parsed(reply)


def test_newest_catalog_counts() -> None:
    old, new = says(group("q", "", "a", "b")), says(group("q", "", "a", "c"), group("p", "", "a"), version=2)
    found = Ordered({"a": old, "b": new})
    assert set(found.queues) == {"p", "q"}
    assert found.queues["q"].replicas == ("a", "c")


def test_broker_that_says_it_leads_is_the_leader() -> None:
    behind, leads = group("q", "a", "a", "b", jobs=9), group("q", "b", "a", "b", jobs=4)
    found = Ordered({"a": says(leads), "b": says(leads), "c": says(behind)}).queues["q"]
    assert (found.leader, found.jobs) == ("b", 4)


def test_leader_that_denies_it_is_none() -> None:
    denies, follows = group("q", "", "a", "b"), group("q", "a", "a", "b")
    assert Ordered({"a": says(denies), "b": says(follows)}).leaderless == ("q",)


def test_leader_that_does_not_answer_is_known_by_its_followers() -> None:
    assert Ordered({"b": says(group("q", "a", "a", "b"))}).queues["q"].leader == "a"


def test_broker_without_a_replica_knows_neither_leader_nor_jobs() -> None:
    elsewhere = group("q", "", "a", jobs=UNKNOWN_JOBS, pause="")
    found = Ordered({"b": says(elsewhere), "a": says(group("q", "a", "a", jobs=2, pause="in"))}).queues["q"]
    assert (found.leader, found.jobs, found.pause) == ("a", 2, "in")
    assert Ordered({"b": says(elsewhere)}).queues["q"].jobs == UNKNOWN_JOBS


def test_all_catalogs_are_found_also_those_that_brokers_only_met() -> None:
    met = OrderedStatus("c1", conflict="c2")
    assert Ordered({"a": met, "b": OrderedStatus()}).catalogs == ("c1", "c2")
    assert list(Ordered({"b": OrderedStatus()}).groups) == []
