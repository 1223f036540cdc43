"""The status of a `DisqueCluster` as table columns and one-line summaries.

Every field may be missing: an object that was just created has no status.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from disque_operator.apivalues import Json
from disqued.cli.units import human_bytes, human_duration
from disqued.cli.views.columns import Column

PHASE_STYLES = {"Running": "green", "Degraded": "bold red", "Hibernated": "dim", "Paused": "yellow"}
NEGATIVE_POLARITY = {"Progressing", "Draining", "Degraded"}
"""Conditions that are False in a healthy cluster."""
FAULTS = {"Degraded", "SpecValid", "ReconcileSuccess"}
"""Conditions that require action by the user when they are not healthy."""
REFUSALS = {"NotEnoughMembers", "BelowMinimum"}
"""Reasons of the condition Draining when the drain was refused."""
DRAINED = "Drained"
"""Reason of the condition Draining when the drain has finished."""
STATE_STYLES = {"ready": "green", "unreachable": "bold red", "leaving": "yellow"}


def status(cluster: Json) -> Json:
    """Return the status of the cluster, empty if it has none."""
    found: Json = cluster.get("status") or {}
    return found


def condition(cluster: Json, kind: str) -> Json:
    """Return the condition of that type, empty if the cluster has none."""
    found: Sequence[Json] = status(cluster).get("conditions") or ()
    return next((each for each in found if each["type"] == kind), {})


def member(cluster: Json, pod: str) -> Json:
    """Return the entry of a pod in `status.members`, empty if there is none."""
    found: Sequence[Json] = status(cluster).get("members") or ()
    return next((each for each in found if each["pod"] == pod), {})


def desired_replicas(cluster: Json) -> int:
    """Return the number of nodes in the spec."""
    found: int = cluster["spec"].get("replicas", 3)
    return found


def is_ready(cluster: Json) -> bool:
    """Whether the operator has observed the current spec and the cluster is Ready."""
    return has_seen_spec(cluster) and condition(cluster, "Ready").get("status") == "True"


def has_seen_spec(cluster: Json) -> bool:
    """Whether the status describes the current generation of the spec."""
    return bool(status(cluster).get("observedGeneration", -1) >= cluster["metadata"].get("generation", 0))


@dataclass(frozen=True)
class DrainCondition:
    """The condition Draining of a cluster."""

    reason: str
    message: str
    pod: str
    """The pod that the message is about; empty if it names none."""

    @property
    def is_refused(self) -> bool:
        """Whether the operator refused the drain; it does not start until the user changes something."""
        return self.reason in REFUSALS


def drain_condition(cluster: Json) -> DrainCondition:
    """Return the condition Draining. It does not tell a drain by scaling in from one by the pod's annotation."""
    found = condition(cluster, "Draining")
    message = str(found.get("message", ""))
    first_word = message.partition(" ")[0]
    return DrainCondition(str(found.get("reason", "")), message, first_word if member(cluster, first_word) else "")


def age_s(timestamp: str | None, now: datetime) -> float | None:
    """Return the seconds since a Kubernetes timestamp."""
    if not timestamp:
        return None
    return max(0.0, (now - datetime.fromisoformat(timestamp)).total_seconds())


def headline(cluster: Json) -> str:
    """Return the phase and message of the cluster as one line."""
    state = status(cluster)
    return f"{state.get('phase', 'Pending')}: {state.get('message') or 'not reconciled by the operator yet'}"


def drain_line(cluster: Json) -> str:
    """Return the progress of the running drain as one line, empty if no pod is draining."""
    drain: Json = status(cluster).get("drain") or {}
    if not drain.get("pod"):
        return ""
    left = drain.get("jobsLeft", -1)
    words = [f"{left:,} jobs left" if left >= 0 else "starting"]
    if replicas := drain.get("orderedReplicasLeft"):
        words.append(f"{replicas:,} replicas of ordered queues left")
    if (rate := drain.get("rate") or 0) > 0:
        words.append(f"{rate:,.0f} jobs/s")
    if (seconds := drain.get("secondsLeft", -1)) > 0:
        words.append(f"about {human_duration(seconds)} remaining")
    words.append(f"{human_duration(drain.get('secondsElapsed') or 0)} elapsed")
    if waits_for := drain.get("waitsFor"):
        words.append(f"stalled: {waits_for}")
    return f"Draining {drain['pod']}: {', '.join(words)}"


def _shown(value: object) -> str:
    return "-" if value is None else str(value)


def _memory(member: Json) -> str:
    used, most = member.get("usedMemory"), member.get("maxMemory")
    if used is None:
        return "-"
    return human_bytes(used) + (f"/{human_bytes(most)}" if most else "")


def _yes(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "-"}[value]


MEMBERS: tuple[Column[Json], ...] = (
    Column("pod", lambda row: row["pod"], "POD"),
    Column(
        "state", lambda row: row.get("state"), "STATE", style=lambda row: STATE_STYLES.get(row.get("state", ""), "")
    ),
    Column("node_id", lambda row: row.get("nodeId"), "NODE ID", lambda row: (row.get("nodeId") or "-")[:8]),
    Column("address", lambda row: row.get("address")),
    Column("version", lambda row: row.get("version"), "VERSION"),
    Column("jobs", lambda row: row.get("jobs"), "JOBS", lambda row: _shown(row.get("jobs"))),
    Column("queued", lambda row: row.get("queued"), "QUEUED", lambda row: _shown(row.get("queued"))),
    Column("queues", lambda row: row.get("queues"), "QUEUES", lambda row: _shown(row.get("queues"))),
    Column("used_memory_bytes", lambda row: row.get("usedMemory"), "MEMORY", _memory),
    Column("max_memory_bytes", lambda row: row.get("maxMemory")),
    Column("safe_to_stop", lambda row: row.get("safeToStop"), "SAFE TO STOP", lambda row: _yes(row.get("safeToStop"))),
    Column("kubernetes_node", lambda row: row.get("node"), "KUBERNETES NODE", yields=True),
    Column("message", lambda row: row.get("message"), "MESSAGE", folds=True, sparse=True),
)
"""Columns for `status.members`."""
OUTSIDE: tuple[Column[Json], ...] = (
    Column("pod", lambda row: row["pod"], "POD"),
    Column("address", lambda row: row.get("address"), "ADDRESS OUTSIDE OF KUBERNETES"),
)
"""Columns for `status.exposure.addresses`."""


def _status_style(row: Json) -> str:
    if row["status"] == ("False" if row["type"] in NEGATIVE_POLARITY else "True"):
        return "green"
    return "bold red" if row["type"] in FAULTS else "yellow"


def conditions(now: datetime) -> tuple[Column[Json], ...]:
    """Return the columns for `status.conditions`."""
    return (
        Column("type", lambda row: row["type"], "CONDITION"),
        Column("status", lambda row: row["status"], "STATUS", style=_status_style),
        Column("reason", lambda row: row.get("reason"), "REASON"),
        Column(
            "since_s",
            lambda row: age_s(row.get("lastTransitionTime"), now),
            "SINCE",
            lambda row: human_duration(age_s(row.get("lastTransitionTime"), now) or 0),
        ),
        Column("message", lambda row: row.get("message"), "MESSAGE", folds=True),
    )


def tables(cluster: Json, now: datetime) -> tuple[tuple[tuple[Column[Json], ...], list[Json]], ...]:
    """Return the tables of a status, as columns and rows: conditions, members, addresses for clients outside."""
    state = status(cluster)
    outside: Json = state.get("exposure") or {}
    return (
        (conditions(now), state.get("conditions") or []),
        (MEMBERS, state.get("members") or []),
        *(((OUTSIDE, addresses),) if (addresses := outside.get("addresses")) else ()),
    )


def clusters(now: datetime) -> tuple[Column[Json], ...]:
    """Return the columns for a list of clusters."""
    return (
        Column("namespace", lambda row: row["metadata"]["namespace"], "NAMESPACE"),
        Column("name", lambda row: row["metadata"]["name"], "NAME"),
        Column(
            "phase",
            lambda row: status(row).get("phase"),
            "PHASE",
            style=lambda row: PHASE_STYLES.get(status(row).get("phase", ""), ""),
        ),
        Column("replicas", lambda row: row["spec"].get("replicas")),
        Column("ready", lambda row: status(row).get("readyReplicas"), "READY", _ready),
        Column("jobs", lambda row: (status(row).get("jobs") or {}).get("registered"), "JOBS"),
        Column("queued", lambda row: (status(row).get("jobs") or {}).get("queued"), "QUEUED"),
        Column("version", lambda row: status(row).get("version"), "VERSION"),
        Column(
            "age_s",
            lambda row: age_s(row["metadata"]["creationTimestamp"], now),
            "AGE",
            lambda row: human_duration(age_s(row["metadata"]["creationTimestamp"], now) or 0),
        ),
        Column("message", lambda row: status(row).get("message"), "MESSAGE", folds=True),
    )


def _ready(row: Json) -> str:
    return f"{status(row).get('readyReplicas') or 0}/{desired_replicas(row)}"


def now_utc() -> datetime:
    """Return the local clock's time in UTC."""
    return datetime.now(UTC)
