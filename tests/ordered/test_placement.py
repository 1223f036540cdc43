"""Which replicas the leader of group 0 wants the queues to have."""

from __future__ import annotations

from collections import Counter

from disqued.ordered.catalog import Catalog, QueueOptions, pack_create, pack_replicas
from disqued.ordered.choosing import Candidate
from disqued.ordered.exchange import node_of
from disqued.ordered.placement import MOST_CHANGES, Change, Nodes, balance, repairs, without_leaving


def replica(number: int, log: str = "log-0000") -> bytes:
    return b"%040d" % number + log.encode()


def nodes(*numbers: int, leaving: tuple[int, ...] = (), logs: dict[int, str] | None = None, zones: str = "") -> Nodes:
    logs = logs or {}
    candidates = [
        Candidate(replica(number, logs.get(number, "log-0000")), zones[at].encode() if zones else b"")
        for at, number in enumerate(numbers)
        if number not in leaving
    ]
    known = {b"%040d" % number: logs.get(number, "log-0000").encode() for number in numbers}
    return Nodes(candidates, [b"%040d" % number for number in leaving], known)


def catalog(*queues: tuple[int, ...]) -> Catalog:
    """A catalog with a queue on each of these lists of nodes, led by the first one."""
    found = Catalog()
    for number, on in enumerate(queues):
        lead = b"%040d" % on[0]
        replicas = tuple([replica(one) for one in on])
        found.apply(number + 1, pack_create(b"q%d" % number, QueueOptions(), replicas, lead, bytes(16)))
    return found


def carry_out(found: Catalog, change: Change) -> None:
    """Write a change into the catalog, and have the group settle."""
    found.apply(found.version + 1, pack_replicas(change.queue, change.replicas, change.lead))
    change.queue.settled = True


def test_nothing_changes_while_all_replicas_are_where_they_must_be() -> None:
    assert repairs(catalog((1, 2, 3)), nodes(1, 2, 3)) == []


def test_a_replica_on_a_leaving_node_moves_to_another_node() -> None:
    (change,) = repairs(catalog((1, 2, 3)), nodes(1, 2, 3, 4, leaving=(1,)))
    assert sorted(change.replicas) == [replica(2), replica(3), replica(4)]
    assert change.lead in {node_of(one) for one in change.replicas}


def test_a_replica_stays_on_a_leaving_node_if_no_other_node_can_take_it() -> None:
    assert repairs(catalog((1, 2, 3)), nodes(1, 2, 3, leaving=(1,))) == []


def test_the_catalog_loses_the_replicas_on_leaving_nodes_that_have_no_other_place() -> None:
    assert without_leaving((replica(1), replica(2)), nodes(1, 2, leaving=(2,))) == (replica(1),)
    assert without_leaving((replica(1),), nodes(1, leaving=(1,))) == (replica(1),), "the last one stays"


def test_a_node_with_a_new_log_gets_a_new_replica() -> None:
    (change,) = repairs(catalog((1, 2, 3)), nodes(1, 2, 3, logs={2: "log-0001"}))
    assert sorted(change.replicas) == [replica(1), replica(2, "log-0001"), replica(3)]


def test_the_only_replica_of_a_queue_is_not_replaced_by_an_empty_one() -> None:
    assert repairs(catalog((2,)), nodes(1, 2, 3, logs={2: "log-0001"})) == []


def test_a_replica_that_moves_to_a_node_with_a_new_log_moves_to_that_log() -> None:
    found = catalog((1,))
    (queue,) = found.by_group.values()
    found.apply(found.version + 1, pack_replicas(queue, (replica(2),), node_of(replica(2))))
    (change,) = repairs(found, nodes(1, 2, logs={2: "log-1111"}))
    assert change.replicas == (replica(2, "log-1111"),)


def test_few_groups_change_at_a_time() -> None:
    changes = repairs(catalog(*[(1, 2, 3)] * 10), nodes(1, 2, 3, 4, leaving=(1,)))
    assert len(changes) == MOST_CHANGES


def test_a_moved_replica_goes_to_a_zone_without_one() -> None:
    for number in range(20):
        found = catalog(*[(1, 2, 3)] * (number + 1))
        changes = repairs(found, nodes(1, 2, 3, 4, 5, leaving=(1,), zones="abcba"))
        assert replica(5) in changes[-1].replicas


def test_new_nodes_get_their_share_of_replicas_and_leaders() -> None:
    found = catalog(*[(1, 2, 3)] * 30)
    all_nodes = nodes(1, 2, 3, 4, 5)
    for _ in range(200):
        change = balance(found, all_nodes)
        if change is None:
            break
        carry_out(found, change)
    replicas = Counter(node_of(one) for queue in found.by_group.values() for one in queue.replicas)
    leads = Counter(queue.lead for queue in found.by_group.values())
    assert sorted(replicas.values()) == [18] * 5
    assert max(leads.values()) - min(leads.values()) <= 2
    assert all(queue.lead in {node_of(one) for one in queue.replicas} for queue in found.by_group.values())


def test_balancing_never_puts_two_replicas_of_a_queue_on_one_node() -> None:
    found = catalog(*[(1, 2, 3)] * 7, (4, 1, 2))
    for _ in range(50):
        change = balance(found, nodes(1, 2, 3, 4, 5))
        if change is None:
            break
        carry_out(found, change)
        assert all(len({node_of(one) for one in queue.replicas}) == 3 for queue in found.by_group.values())


def test_nothing_is_balanced_while_a_group_changes() -> None:
    found = catalog(*[(1, 2, 3)] * 9)
    found.by_group[1].settled = False
    assert balance(found, nodes(1, 2, 3, 4, 5)) is None
