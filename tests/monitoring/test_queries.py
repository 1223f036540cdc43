"""Dashboards and alerts use only series that exist, and every series is used somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from dashboards.alerts.files import ROOT
from dashboards.all import BOARDS
from dashboards.model import Board
from monitoring.queries import (
    FOREIGN,
    FOREIGN_LABELS,
    TARGET_LABELS,
    declared,
    names_in,
    of_all,
    of_dashboards,
    with_choices,
    without_texts,
)

SERIES = declared()
LABELS = SERIES | {name: FOREIGN_LABELS[name] for name in FOREIGN}
NOT_SHOWN = {"process_virtual_memory_bytes", "process_start_time_seconds", "python_info"}
"""Series of prometheus-client's collectors that are not used."""
NO_METRICS = {"disque_history", "disque_operator", "disque_version"}
"""Names that look like series: a file, a package, a field of INFO."""
NOT_A_RATE = {"disque_aof_damaged_records_total"}
"""Counters whose absolute value matters."""


def labels_of(query: str) -> set[str]:
    """Return the labels of the series of a query."""
    return TARGET_LABELS.union(*(LABELS[name] for name in names_in(query)))


def test_every_queried_series_exists() -> None:
    assert [place for place, query in of_all() if not names_in(query)] == []
    assert {name: place for place, query in of_all() for name in names_in(query) - LABELS.keys()} == {}


def test_every_series_is_queried() -> None:
    asked = {name for _place, query in of_all() for name in names_in(query)}
    forgotten = []
    for name in SERIES.keys() - NOT_SHOWN:
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        if not asked & {name, f"{family}_bucket", f"{family}_count"}:
            forgotten.append(name)
    assert sorted(forgotten) == []


def test_selectors_use_labels_that_the_series_have() -> None:
    for place, query in of_all():
        for name, selector in re.findall(r"\b([\w:]+)\{([^}]*)\}", without_texts(with_choices(query))):
            chosen = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", selector))
            assert chosen <= LABELS[name] | TARGET_LABELS, f"{place}: {name}"


def test_joins_use_labels_that_the_series_have() -> None:
    for place, query in of_all():
        for labels in re.findall(r"\b(?:by|on|ignoring) \(([\w, ]*)\)", query):
            assert set(labels.split(", ")) <= labels_of(query), place


def test_nodes_and_queues_of_different_tenants_are_never_added() -> None:
    """Pods and queues of other namespaces and clusters may have the same names."""
    for place, query in of_dashboards():
        for found in re.findall(r"\bby \(([\w, ]*)\)", query):
            labels = set(found.split(", "))
            if labels & {"instance", "queue"} and "disque_operator" not in query and "metrics_" not in query:
                assert {"namespace", "cluster"} <= labels, place


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_legends_use_labels_that_the_series_have(board: Board) -> None:
    for panel in board.panels():
        for query in panel.queries:
            assert set(re.findall(r"{{(\w+)}}", query.label)) <= labels_of(query.expr), panel.title


def test_counters_are_queried_as_rates() -> None:
    for place, query in of_all():
        for name in names_in(query) - NOT_A_RATE:
            if re.search(r"_(total|bucket|count)$", name):
                assert len(re.findall(rf"\b(?:rate|increase)\({name}\b", query)) == query.count(name), place


def test_prometheus_accepts_every_query_of_the_dashboards(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    records = [
        {"record": f"query_{number}", "expr": with_choices(query), "labels": {"place": place}}
        for number, (place, query) in enumerate(of_dashboards())
    ]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": records}]}))
    done = subprocess.run([promtool, "check", "rules", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_metrics_on_pages_exist() -> None:
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in SERIES} | SERIES.keys()
    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("charts/*/README.md"), ROOT / "README.md"]
    named = {(name, page.name) for page in pages for name in re.findall(r"\bdisque_[a-z_]+", page.read_text())}
    assert len(named) > len(SERIES) / 2
    assert {(name, page) for name, page in named if name not in families | NO_METRICS} == set()
