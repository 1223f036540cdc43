"""Service level objectives: what share of requests was good, how much error budget is left, how fast it is used."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.alerts.slo import BUDGET, DELIVERY_S, bad_share
from dashboards.model import BAD, OF_BROKERS, RISK, Board, Kind, Panel, Query, Row, stat

_TENANT: Final = "{{namespace}}/{{cluster}} {{slo}}"
_NONE: Final = "nothing was added or delivered in this time, or this Prometheus does not have the rules"
_OBJECTIVES: Final = (
    (
        "adds",
        "Adds answered",
        "Share of the adds of the last hour that were not refused because of copies, memory or disk.",
    ),
    (
        "delivery",
        "Delivered in time",
        f"Share of the deliveries of the last hour within {DELIVERY_S} s of the creation of the job.",
    ),
    ("expiry", "Not expired", "Share of the jobs of the last hour that did not expire. Each copy that expires counts."),
)


def _good(slo: str) -> str:
    return f'min(1 - {bad_share("1h")}{{<clusters>,slo="{slo}"}})'


_NOW: Final = Row(
    "The worst cluster now",
    (
        *(stat(title, text, "percentunit", _good(slo), empty=_NONE) for slo, title, text in _OBJECTIVES),
        stat(
            "Fastest burn",
            "How many times faster than allowed the error budget was used in the last hour. 1 uses it up in 30 days.",
            "short",
            f"max({bad_share('1h')}{{<clusters>}} / on (slo) group_left () {BUDGET})",
            steps=((1, RISK), (14.4, BAD)),
            empty=_NONE,
        ),
        stat(
            "Least budget left",
            "Of the error budget of 30 days. Below 0 the objective is missed.",
            "percentunit",
            f"min(1 - avg_over_time({bad_share('1h')}{{<clusters>}}[30d]) / on (slo) group_left () {BUDGET})",
            empty=_NONE,
        ),
        stat(
            "Firing alerts",
            "Alerts about error budgets.",
            "short",
            'count(ALERTS{alertname=~"DisqueErrorBudget.*",alertstate="firing",<clusters>}) or vector(0)',
            steps=((1, BAD),),
        ),
    ),
)

_BUDGETS: Final = Row(
    "Error budgets",
    (
        Panel(
            "Objectives",
            "The share that was bad in the last hour and in three days, what is allowed, and how "
            "much of the budget of 30 "
            "days is left.",
            "percentunit",
            (
                Query(f"{bad_share('1h')}{{<clusters>}}", "bad, 1 h"),
                Query(f"{bad_share('3d')}{{<clusters>}}", "bad, 3 d"),
                Query(f"{bad_share('1h')}{{<clusters>}} * 0 + on (slo) group_left () {BUDGET}", "allowed"),
                Query(
                    f"1 - avg_over_time({bad_share('1h')}{{<clusters>}}[30d]) / on (slo) group_left () {BUDGET}",
                    "budget left",
                ),
            ),
            Kind.TABLE,
            width=24,
            empty=_NONE,
        ),
        Panel(
            "Burn rate over an hour",
            "How many times faster than allowed the error budget is used. From 14.4 on, it is gone in two days.",
            "short",
            (Query(f"{bad_share('1h')}{{<clusters>}} / on (slo) group_left () {BUDGET}", _TENANT),),
            width=12,
            steps=((1, RISK), (14.4, BAD)),
            empty=_NONE,
        ),
        Panel(
            "Burn rate over six hours",
            "From 6 on, the error budget is gone in five days.",
            "short",
            (Query(f"{bad_share('6h')}{{<clusters>}} / on (slo) group_left () {BUDGET}", _TENANT),),
            width=12,
            steps=((1, RISK), (6, BAD)),
            empty=_NONE,
        ),
        Panel(
            "Bad share now",
            "Over five and over thirty minutes, as the alerts see it.",
            "percentunit",
            (
                Query(f"{bad_share('5m')}{{<clusters>}}", f"{_TENANT}, 5 min"),
                Query(f"{bad_share('30m')}{{<clusters>}}", f"{_TENANT}, 30 min"),
            ),
            width=24,
            empty=_NONE,
        ),
    ),
)

SLO: Final = Board(
    uids.SLO,
    "Disque / Service levels",
    "Objectives of each cluster: adds answered, delivery in time, jobs that do not expire.",
    OF_BROKERS[:2],
    (_NOW, _BUDGETS),
)
