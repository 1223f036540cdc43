"""Which replicas the queues must have: the leader of group 0 decides, and writes it into the catalog.

It looks every few seconds, while all members that it knows are there or have been gone for long:

- a node that came back with an empty disk has another log: its former replicas are replaced by new ones on it;
- replicas on nodes that leave, or that are no members any more, move to other nodes;
- a queue that was recovered from one replica gets others;
- the replicas are spread evenly, to within one per node, and the nodes that should lead nearly so.

Few groups change at a time. Each change is one entry in the catalog, which the leader of the group carries out
(`changing`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from disqued.ordered.catalog import Catalog, OrderedQueue, decode
from disqued.ordered.choosing import Candidate, choose
from disqued.ordered.exchange import log_of, node_of

MOST_CHANGES: Final = 4
"""How many groups change their replicas at a time."""
MOST_PLANNED: Final = 1000
"""Where counting the changes ends."""


class Nodes(NamedTuple):
    """The nodes of the cluster, as the leader of group 0 sees them."""

    candidates: list[Candidate]
    """Those that can have replicas: they are there, know the catalog, and do not leave."""
    leaving: list[bytes]
    """The IDs of those that leave, or that are no members any more."""
    logs: dict[bytes, bytes]
    """The log of each node that is there."""


class Change(NamedTuple):
    """What to write into the catalog."""

    queue: OrderedQueue
    replicas: tuple[bytes, ...]
    lead: bytes


class Plan(NamedTuple):
    """How many changes there are until all replicas and leaders are where they should be."""

    under_way: int
    """Queues whose groups change their replicas now."""
    replicas: int
    """Queues whose replicas must change after these."""
    leaders: int
    """Queues that another node should lead, without changing their replicas."""


def planned(catalog: Catalog, nodes: Nodes) -> Plan:
    """Count the changes that are left while the nodes stay as they are."""
    copy = decode(catalog.encode())
    under_way = replicas = leaders = 0
    for queue in copy.by_group.values():
        under_way += not queue.settled
        queue.settled = True
    while changes := repairs(copy, nodes) or [change for change in [balance(copy, nodes)] if change is not None]:
        for change in changes:
            if sorted(change.replicas) == sorted(change.queue.replicas):
                leaders += 1
            else:
                replicas += 1
            change.queue.replicas, change.queue.lead = change.replicas, change.lead
        if replicas + leaders > MOST_PLANNED:
            break
    return Plan(under_way, replicas, leaders)


def replaced(replicas: tuple[bytes, ...], name: bytes, nodes: Nodes, *, moving: bool = False) -> tuple[bytes, ...]:
    """The replicas without those that are lost or must go, and with others in their places.

    A replica stays where no other node can take its place. One that is lost is replaced only if others are left,
    in the list or, if the group is `moving` to these replicas, where it comes from.
    """
    kept: list[bytes] = []
    gone: list[bytes] = []
    for replica in replicas:
        node_id = node_of(replica)
        if node_id in nodes.leaving:
            gone.append(replica)
        elif nodes.logs.get(node_id, log_of(replica)) != log_of(replica):
            if len(replicas) > 1 or moving:
                kept.append(node_id + nodes.logs[node_id])
            else:
                kept.append(replica)
        else:
            kept.append(replica)
    used = {node_of(replica) for replica in kept}
    for replica in gone:
        zones = [candidate.zone for candidate in nodes.candidates if node_of(candidate.replica) in used]
        free = [candidate for candidate in nodes.candidates if node_of(candidate.replica) not in used]
        if not free:
            kept.append(replica)
            continue
        fewest = min(zones.count(candidate.zone) if candidate.zone else 0 for candidate in free)
        best = [one for one in free if (zones.count(one.zone) if one.zone else 0) == fewest]
        chosen = choose(name, best, 1)[0]
        kept.append(chosen)
        used.add(node_of(chosen))
    return tuple(kept)


def extended(replicas: tuple[bytes, ...], name: bytes, count: int, nodes: Nodes) -> tuple[bytes, ...]:
    """The replicas, and others on free nodes up to `count`: after a group was recovered from one of them."""
    used = [node_of(replica) for replica in replicas]
    free = [candidate for candidate in nodes.candidates if node_of(candidate.replica) not in used]
    return replicas + choose(name, free, min(max(count - len(replicas), 0), len(free)))


def without_leaving(replicas: tuple[bytes, ...], nodes: Nodes) -> tuple[bytes, ...]:
    """The replicas of group 0 without those for which there is no other place: it gets smaller with the cluster."""
    staying = tuple([replica for replica in replicas if node_of(replica) not in nodes.leaving])
    return staying or replicas


def repairs(catalog: Catalog, nodes: Nodes) -> list[Change]:
    """The changes because replicas are lost or nodes leave."""
    changing = sum(1 for queue in catalog.by_group.values() if not queue.settled)
    found: list[Change] = []
    for queue in catalog.by_group.values():
        if changing + len(found) >= MOST_CHANGES:
            break
        replicas = replaced(queue.replicas, queue.name, nodes, moving=not queue.settled)
        if queue.settled:
            replicas = extended(replicas, queue.name, queue.count, nodes)
        if sorted(replicas) != sorted(queue.replicas):
            found.append(Change(queue, replicas, _lead_of(catalog, queue, replicas)))
    return found


def _lead_of(catalog: Catalog, queue: OrderedQueue, replicas: tuple[bytes, ...]) -> bytes:
    """The node that should lead: the same as before if it can."""
    ids = [node_of(replica) for replica in replicas]
    if queue.lead in ids:
        return queue.lead
    leads = _count([other.lead for other in catalog.by_group.values()])
    return min(ids, key=lambda node_id: leads.get(node_id, 0))


def _count(names: list[bytes]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return found


def balance(catalog: Catalog, nodes: Nodes) -> Change | None:
    """One change that makes the replicas or the leaders of the nodes more even; None if they are even."""
    queues = list(catalog.by_group.values())
    if any(not queue.settled for queue in queues):
        return None
    held = {node_of(candidate.replica): 0 for candidate in nodes.candidates}
    for queue in queues:
        for replica in queue.replicas:
            if node_of(replica) in held:
                held[node_of(replica)] += 1
    return _balance_replicas(catalog, nodes, held) or _balance_leads(catalog, held)


def _balance_replicas(catalog: Catalog, nodes: Nodes, held: dict[bytes, int]) -> Change | None:
    if len(held) < 2:
        return None
    fullest = max(held, key=lambda node_id: held[node_id])
    emptiest = min(held, key=lambda node_id: held[node_id])
    if held[fullest] - held[emptiest] < 2:
        return None
    zones = {node_of(candidate.replica): candidate.zone for candidate in nodes.candidates}
    identity = next(one.replica for one in nodes.candidates if node_of(one.replica) == emptiest)
    for queue in catalog.by_group.values():
        ids = [node_of(replica) for replica in queue.replicas]
        if fullest not in ids or emptiest in ids:
            continue
        others = [zones.get(node_id, b"") for node_id in ids if node_id != fullest]
        if zones[emptiest] and zones[emptiest] in others and zones[fullest] not in others:
            continue  # its zone would have two replicas where it had one
        replicas = tuple([identity if node_of(one) == fullest else one for one in queue.replicas])
        return Change(queue, replicas, _lead_of(catalog, queue, replicas))
    return None


def _balance_leads(catalog: Catalog, held: dict[bytes, int]) -> Change | None:
    leads = dict.fromkeys(held, 0)
    for queue in catalog.by_group.values():
        if queue.lead in leads:
            leads[queue.lead] += 1
    for queue in catalog.by_group.values():
        ids = [node_of(replica) for replica in queue.replicas if node_of(replica) in leads]
        if not ids or queue.lead not in leads:
            continue
        least = min(ids, key=lambda node_id: leads[node_id])
        if leads[queue.lead] - leads[least] >= 2:
            return Change(queue, queue.replicas, least)
    return None
