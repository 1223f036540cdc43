"""Ordered queues of a cluster: founding their catalog, and the condition OrderedReady.

| observed | decision |
|---|---|
| `ordered.enabled`, the cluster is whole, no member knows a catalog, none in the status | CLUSTER ORDERED INIT |
| no member knows a catalog, and the status has one | found nothing: CatalogLost. Somebody must restore the volumes |
| members know different catalogs | found nothing: TwoCatalogs |
| a member does not know ordered queues, or not all members are connected, or some have just started | wait |

A catalog is founded once in the life of a cluster, so its identity is in the status, and the broker refuses a second
one. A broker that has just started may not have read its log yet; INIT therefore waits for it.

Replicas on lost volumes and on members that leave are replaced by the brokers themselves; meanwhile the condition says
so. The founders are an odd number of members, at most five: those with the lowest ordinals, in different zones first.
They are the last ones that a scale-down removes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from disque_operator.actions import Command
from disque_operator.apivalues import Json
from disque_operator.decisions import IDLE_S, NOTHING, Decision, Note, problem, progress
from disque_operator.declared import Verdict
from disque_operator.members import ClusterView, Member

MOST_FOUNDERS: Final = 5
STARTED_S: Final = 10.0
"""How long a broker must have run before it counts as one that knows no catalog."""
MOST_NAMED: Final = 3
"""How many queues a message names."""
MOST_LISTED: Final = 20
"""How many queues the status lists."""
_PROBLEMS: Final = frozenset({"CatalogLost", "TwoCatalogs"})
"""Reasons for which an administrator must act."""
_PASSING: Final = frozenset({"Waiting", "NoLeader", "MovingReplicas"})
"""Reasons that brokers end, which no watch reports."""
_PASSING_S: Final = 5.0
"""Seconds until the next round meanwhile."""


def founders(view: ClusterView) -> tuple[Member, ...]:
    """Return the members that will keep the catalog, in the order of their ordinals."""
    left = [member for member, _ in view.loaded if member.pod.ordinal < view.spec.replicas]
    count = min(len(left), MOST_FOUNDERS)
    chosen: list[Member] = []
    while len(chosen) < count - (count + 1) % 2:
        zones = [member.pod.zone for member in chosen if member.pod.zone]
        best = min(left, key=lambda member: (zones.count(member.pod.zone), member.pod.ordinal))
        left.remove(best)
        chosen.append(best)
    return tuple(sorted(chosen, key=lambda member: member.pod.ordinal))


def known_catalog(view: ClusterView) -> str:
    """Return the identity of the catalog for the status: what members say, otherwise what they said last."""
    before = str((view.observed.status.get("ordered") or {}).get("catalog") or "")
    found = view.ordered.catalogs
    return before if before in found or not found else found[0]


def waiting_to_drop(view: ClusterView) -> tuple[str, ...]:
    """Return the ordered queues without a resource that still have jobs, sorted."""
    kept = view.observed.kept_queues.items()
    gone = (name for name, entry in kept if entry.ordered and entry.removed_at and not entry.drops_jobs)
    return tuple(sorted(name for name in gone if name in view.ordered.queues and view.ordered.queues[name].jobs))


def verdict(view: ClusterView) -> Verdict | None:
    """Return the condition OrderedReady; None for a cluster without ordered queues."""
    if not view.spec.ordered.enabled and not known_catalog(view):
        return None
    if not view.loaded:
        return Verdict(False, "NoMembers", "no member of the cluster answers")
    if len(view.ordered.catalogs) > 1:
        text = (
            "members know different catalogs of ordered queues: delete the volumes of the members that know one of them"
        )
        return Verdict(False, "TwoCatalogs", text)
    if not view.ordered.catalogs:
        return _without_catalog(view)
    return _with_catalog(view)


def _without_catalog(view: ClusterView) -> Verdict:
    old = [member.name for member, broker in view.loaded if broker.ordered is None]
    if old:
        return Verdict(False, "MembersTooOld", f"these members do not know ordered queues: {', '.join(old)}")
    if not view.formed or view.expected < view.spec.replicas or _just_started(view) or _leaving(view):
        return Verdict(False, "Waiting", "waiting until all members are connected, and none starts or leaves")
    if known_catalog(view):
        text = (
            "no member knows the catalog of ordered queues, which the status names: its volumes are lost or were "
            "exchanged. Restore one of them, or delete the resource and create another cluster"
        )
        return Verdict(False, "CatalogLost", text)
    return Verdict(False, "Founding", "the catalog of ordered queues is founded")


def _just_started(view: ClusterView) -> bool:
    return any(broker.uptime_s < STARTED_S for _, broker in view.loaded)


def _leaving(view: ClusterView) -> bool:
    return any(broker.leaving is not None or member.pod.terminating for member, broker in view.loaded)


def _with_catalog(view: ClusterView) -> Verdict:
    ordered = view.ordered
    if ordered.errors:
        pods = ", ".join(view.pod_of(node_id) for node_id in ordered.errors)
        return Verdict(False, "WritesRefused", f"{pods} cannot write ordered queues: see its log")
    if ordered.leaderless:
        return Verdict(False, "NoLeader", f"these ordered queues have no leader: {_named(ordered.leaderless)}")
    if not ordered.members.leader:
        return Verdict(False, "NoLeader", "the catalog has no leader, so ordered queues cannot be made or dropped")
    reason, text = "AllLed", "the catalog and all ordered queues have a leader"
    if any(not group.settled or set(group.replicas) - view.ids.keys() for group in ordered.groups):
        reason, text = "MovingReplicas", f"{text}, and some of them get other replicas"
    if waiting := waiting_to_drop(view):
        text = f"{text}. Without a DisqueQueue, and dropped when their jobs are finished: {_named(waiting)}"
    return Verdict(True, reason, text)


def _named(queues: Sequence[str]) -> str:
    return ", ".join(queues[:MOST_NAMED]) + (" and others" if len(queues) > MOST_NAMED else "")


def decide(view: ClusterView) -> Decision:
    """Decide whether to found the catalog, and report what an administrator must do."""
    found = verdict(view)
    if found is None:
        return NOTHING
    if found.reason in _PROBLEMS:
        return Decision(notes=(problem(found.reason, found.message),))
    if found.reason != "Founding" or not view.spec.ordered.enabled:
        return NOTHING
    chosen = founders(view)
    ids = tuple(member.loaded.node_id for member in chosen if member.loaded is not None)
    command = Command(chosen[0].name, ids[0], ("CLUSTER", "ORDERED", "INIT", *ids), "no member knows a catalog")
    note: Note = progress("FoundingCatalog", found.message, "Applying")
    return Decision((command,), (note,))


def again_s(view: ClusterView) -> float:
    """Return the seconds until the next round, as far as ordered queues are concerned."""
    found = verdict(view)
    return _PASSING_S if found is not None and found.reason in _PASSING else IDLE_S


def state(view: ClusterView) -> Json:
    """Return the field `ordered` of the status; empty for a cluster without ordered queues."""
    catalog = known_catalog(view)
    if not catalog:
        return {}
    if not view.ordered.catalogs:
        return {**(view.observed.status.get("ordered") or {}), "catalog": catalog}
    members = view.ordered.members
    return {
        "catalog": catalog,
        "leader": view.pod_of(members.leader),
        "members": sorted(view.pod_of(node_id) for node_id in members.replicas),
        "queues": len(view.ordered.queues),
        "withoutLeader": view.ordered.leaderless[:MOST_LISTED],
        "waitingToDrop": waiting_to_drop(view)[:MOST_LISTED],
    }
