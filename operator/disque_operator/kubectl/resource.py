"""A `DisqueCluster` as its status shows it: rows for tables and sentences for people.

A status may lack anything: an object that was just made has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from disque_operator.apivalues import Json
from disqued.cli.units import human_bytes, human_duration
from disqued.cli.views.columns import Column

PHASE_STYLES = {"Running": "green", "Degraded": "bold red", "Hibernated": "dim", "Paused": "yellow"}
OF_NO_CONCERN = {"Progressing", "Draining", "Degraded"}
"""Conditions that are False when all is well."""
FAULTS = {"Degraded", "SpecValid", "ReconcileSuccess"}
"""Those with which somebody has to do something."""
REFUSALS = {"NotEnoughMembers", "BelowMinimum"}
"""Reasons of the condition Draining: it does not begin."""
DRAINED = "Drained"
"""The one for: it is over."""
STATE_STYLES = {"ready": "green", "unreachable": "bold red", "leaving": "yellow"}


def status(cluster: Json) -> Json:
    """Its status, empty when it has none."""
    found: Json = cluster.get("status") or {}
    return found


def condition(cluster: Json, kind: str) -> Json:
    """A condition, empty when it has none of that type."""
    found: Sequence[Json] = status(cluster).get("conditions") or ()
    return next((each for each in found if each["type"] == kind), {})


def member(cluster: Json, pod: str) -> Json:
    """What the status says of the member in that pod, empty when nothing."""
    found: Sequence[Json] = status(cluster).get("members") or ()
    return next((each for each in found if each["pod"] == pod), {})


def wanted_replicas(cluster: Json) -> int:
    """How many nodes its spec asks for."""
    found: int = cluster["spec"].get("replicas", 3)
    return found


def is_ready(cluster: Json) -> bool:
    """Whether the operator has seen its spec, and made all of it true."""
    return has_seen_spec(cluster) and condition(cluster, "Ready").get("status") == "True"


def has_seen_spec(cluster: Json) -> bool:
    """Whether the status is about the spec as it is now."""
    return bool(status(cluster).get("observedGeneration", -1) >= cluster["metadata"].get("generation", 0))


@dataclass(frozen=True)
class DrainSaid:
    """What the operator says of a drain."""

    reason: str
    message: str
    pod: str
    """Whose drain it is; empty when it is said of none in particular."""

    @property
    def is_refused(self) -> bool:
        """Nothing happens until somebody changes something."""
        return self.reason in REFUSALS


def drain_said(cluster: Json) -> DrainSaid:
    """The condition Draining. Whether a shrink asks for the drain or the pod's annotation it does not say."""
    said = condition(cluster, "Draining")
    message = str(said.get("message", ""))
    first_word = message.partition(" ")[0]
    return DrainSaid(str(said.get("reason", "")), message, first_word if member(cluster, first_word) else "")


def age_s(timestamp: str | None, now: datetime) -> float | None:
    """Seconds since a time as Kubernetes writes it."""
    if not timestamp:
        return None
    return max(0.0, (now - datetime.fromisoformat(timestamp)).total_seconds())


def headline(cluster: Json) -> str:
    """What it is doing, on one line."""
    state = status(cluster)
    return f"{state.get('phase', 'Pending')}: {state.get('message') or 'the operator has not looked at it yet'}"


def drain_line(cluster: Json) -> str:
    """How far the pod that is being emptied is; nothing when none is."""
    drain: Json = status(cluster).get("drain") or {}
    if not drain.get("pod"):
        return ""
    left = drain.get("jobsLeft", -1)
    words = [f"{left:,} jobs left" if left >= 0 else "it has just been asked to leave"]
    if (rate := drain.get("rate") or 0) > 0:
        words.append(f"{rate:,.0f} jobs/s")
    if (seconds := drain.get("secondsLeft", -1)) > 0:
        words.append(f"about {human_duration(seconds)} to go")
    words.append(f"{human_duration(drain.get('secondsElapsed') or 0)} so far")
    if waits_for := drain.get("waitsFor"):
        words.append(f"it waits: {waits_for}")
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
    Column("node_id", lambda row: row.get("nodeId"), "NODE", lambda row: (row.get("nodeId") or "-")[:8]),
    Column("address", lambda row: row.get("address")),
    Column("version", lambda row: row.get("version"), "VERSION"),
    Column("jobs", lambda row: row.get("jobs"), "JOBS", lambda row: _shown(row.get("jobs"))),
    Column("queued", lambda row: row.get("queued"), "QUEUED", lambda row: _shown(row.get("queued"))),
    Column("queues", lambda row: row.get("queues"), "QUEUES", lambda row: _shown(row.get("queues"))),
    Column("used_memory_bytes", lambda row: row.get("usedMemory"), "MEMORY", _memory),
    Column("max_memory_bytes", lambda row: row.get("maxMemory")),
    Column("safe_to_stop", lambda row: row.get("safeToStop"), "SAFE TO STOP", lambda row: _yes(row.get("safeToStop"))),
    Column("machine", lambda row: row.get("node"), "MACHINE", yields=True),
    Column("message", lambda row: row.get("message"), "MESSAGE", folds=True, sparse=True),
)
"""Of `status.members`."""


def _status_style(row: Json) -> str:
    if row["status"] == ("False" if row["type"] in OF_NO_CONCERN else "True"):
        return "green"
    return "bold red" if row["type"] in FAULTS else "yellow"


def conditions(now: datetime) -> tuple[Column[Json], ...]:
    """Columns for `status.conditions`."""
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


def clusters(now: datetime) -> tuple[Column[Json], ...]:
    """Columns for several clusters."""
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
    return f"{status(row).get('readyReplicas') or 0}/{wanted_replicas(row)}"


def now_utc() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)
