"""An alert: when it fires, how grave it is, and what people read then."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

RUNBOOKS: Final = "docs/runbooks"
"""Where the pages are: in this repository, until somebody serves them. The chart has a value for that place."""

CLUSTER: Final = "{{ with $labels.cluster }}{{ $labels.namespace }}/{{ . }}{{ else }}the cluster{{ end }}"
"""A cluster in a message; without a name where Prometheus gives its targets no label `cluster`."""
NODE: Final = "{{ $labels.instance }}"


class Severity(Enum):
    """Who is to know."""

    CRITICAL = "critical"
    """Jobs can not be added or fetched, or may be lost: somebody is woken."""
    WARNING = "warning"
    """Somebody looks at it today."""
    INFO = "info"
    """Nothing is wrong; somebody may have forgotten something."""


@dataclass(frozen=True)
class Alert:
    """An alert. Its page is `docs/runbooks/<name>.md`, its tests are in `dashboards/alerts/tests`."""

    name: str
    severity: Severity
    lasting: str
    """For how long the expression has to hold; `0m`: at once."""
    expr: str
    summary: str
    """A line: what is wrong, and where."""
    description: str
    """What it means for users, with the figure."""
    board: str
    """The uid of the dashboard that shows more."""

    @property
    def rule(self) -> dict[str, object]:
        """As Prometheus reads it."""
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
    """Alerts that are worked out together."""

    name: str
    title: str
    alerts: tuple[Alert, ...]
