"""An alert: its expression, severity and messages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from dashboards.alerts.record import Record

RUNBOOKS: Final = "https://disque.dev/runbooks"
"""Where docs/runbooks is published. A value of the chart replaces it, for example with a wiki of yours."""

CLUSTER: Final = "{{ with $labels.cluster }}{{ $labels.namespace }}/{{ . }}{{ else }}the cluster{{ end }}"
"""The name of a cluster in a message, or "the cluster" if the targets have no label `cluster`."""
NODE: Final = "{{ $labels.instance }}"


class Severity(Enum):
    """How urgent an alert is."""

    CRITICAL = "critical"
    """Clients cannot add or fetch jobs, or jobs may be lost: page someone."""
    WARNING = "warning"
    """Someone should look at it today."""
    INFO = "info"
    """Nothing is broken, but someone may have forgotten something."""


def down(job: str, known_by: str) -> str:
    """Return the expression for targets that cannot be scraped.

    They have this job, or they exported the series within a day, whatever job your Prometheus gives them.
    """
    known = f"up == 0 and on (job, namespace, instance) max_over_time({known_by}[1d])"
    return f'up{{job="{job}"}} == 0\nor\n{known}'


@dataclass(frozen=True)
class Alert:
    """An alert. Its page is `docs/runbooks/<name>.md`, its tests are in `dashboards/alerts/tests`."""

    name: str
    severity: Severity
    lasting: str
    """How long the expression must hold before the alert fires; `0m`: immediately."""
    expr: str
    summary: str
    """One line: what is wrong, and where."""
    description: str
    """What it means for users, with the value."""
    board: str
    """The uid of the dashboard with details."""

    @property
    def rule(self) -> dict[str, object]:
        """The rule in Prometheus' format."""
        waits = {} if self.lasting == "0m" else {"for": self.lasting}
        return {
            "alert": self.name,
            "expr": self.expr,
            **waits,
            "labels": {"severity": self.severity.value},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": f"{RUNBOOKS}/{self.name}.md",
                "dashboard": self.board,
            },
        }


@dataclass(frozen=True)
class Group:
    """Rules that Prometheus evaluates together, first the records."""

    name: str
    title: str
    alerts: tuple[Alert, ...]
    records: tuple[Record, ...] = ()
