"""Service level objectives of each cluster, and alerts about how fast its error budgets are used.

| objective | good | of |
|---|---|---|
| adds | jobs that were added | those, and adds that the cluster refused: too few copies, no memory, no disk |
| delivery | deliveries within DELIVERY_S of the creation of the job | all deliveries |
| expiry | jobs that did not expire before they were done; each copy counts, so the real share is higher | jobs added |

An error budget is the share that may be bad over 30 days. The burn rate is how many times faster than that it is
used. Two windows are compared: the long one shows that it matters, the short one that it still happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dashboards import uids
from dashboards.alerts.alert import CLUSTER, Alert, Group, Severity
from dashboards.alerts.record import Record

DELIVERY_S: Final = 60
_TENANT: Final = ("namespace", "cluster")
_BY: Final = "sum by (namespace, cluster)"


@dataclass(frozen=True)
class Objective:
    """What is promised, with expressions for a window."""

    name: str
    budget: float
    bad: str
    """Bad events per second; WINDOW stands for the window."""
    total: str
    """All events per second."""

    def ratio(self, window: str) -> str:
        """Return the share of bad events within a window. There is none without events."""
        return f"(\n  {self.bad}\n)\n/ (\n  {self.total}\n> 0)".replace("WINDOW", window)


_ADDED: Final = f"{_BY} (rate(disque_jobs_added_total[WINDOW]))"
_REFUSED: Final = (
    f"{_BY} (rate(disque_replication_failures_total[WINDOW]))\n"
    f'  + {_BY} (rate(disque_requests_refused_total{{reason=~"memory|disk"}}[WINDOW]))'
)
_DELIVERED: Final = f"{_BY} (rate(disque_job_delivery_age_seconds_count[WINDOW]))"
OBJECTIVES: Final = (
    Objective("adds", 0.001, _REFUSED, f"{_ADDED}\n  + {_REFUSED}"),
    Objective(
        "delivery",
        0.01,
        f'{_DELIVERED}\n  - {_BY} (rate(disque_job_delivery_age_seconds_bucket{{le="{DELIVERY_S:.1f}"}}[WINDOW]))',
        _DELIVERED,
    ),
    Objective("expiry", 0.0001, f"{_BY} (rate(disque_jobs_expired_total[WINDOW]))", _ADDED),
)
WINDOWS: Final = ("5m", "30m", "1h", "6h", "3d")
BUDGET: Final = "disque:slo_budget:ratio"


def bad_share(window: str) -> str:
    """Return the name of the record of the share of bad events."""
    return f"disque:slo_errors:ratio_rate{window}"


def _burns(times: float, long: str, short: str, choice: str = "") -> str:
    """Return a condition: the budget burns this many times too fast, in both windows."""
    selected = f"{{{choice}}}" if choice else ""
    return "\nand ".join(
        f"{bad_share(window)}{selected} > on (slo) group_left () ({times:g} * {BUDGET})" for window in (long, short)
    )


SLO: Final = Group(
    "disque-slo",
    "Service level objectives",
    (
        Alert(
            "DisqueErrorBudgetBurningFast",
            Severity.CRITICAL,
            "2m",
            _burns(14.4, "1h", "5m", 'slo="adds"'),
            f"{CLUSTER} refuses so many jobs that its error budget is gone in two days",
            "{{ $value | humanizePercentage }} of the adds of the last hour were refused because of "
            "too few copies, memory "
            "or disk, and it continues. The objective allows 0.1 % within 30 days.",
            uids.SLO,
        ),
        Alert(
            "DisqueErrorBudgetBurning",
            Severity.WARNING,
            "15m",
            f"{_burns(6, '6h', '30m')}\nor\n{_burns(1, '3d', '6h')}",
            f"{CLUSTER} will miss its objective for {{{{ $labels.slo }}}}",
            "{{ $value | humanizePercentage }} were bad, and it continues: the error budget of 30 days will be used up "
            "before their end.",
            uids.SLO,
        ),
    ),
    tuple(Record(BUDGET, f"vector({objective.budget:g})", (), (("slo", objective.name),)) for objective in OBJECTIVES)
    + tuple(
        Record(bad_share(window), objective.ratio(window), _TENANT, (("slo", objective.name),))
        for objective in OBJECTIVES
        for window in WINDOWS
    ),
)
