"""What dashboards and alerts ask for is what the programs show, and all that they show is asked for somewhere."""

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
"""What prometheus-client's collectors show beside what is of use."""
NO_METRICS = {"disque_history", "disque_operator", "disque_version"}
"""What else is called like one: a file, a package, a field of INFO."""
NOT_A_RATE = {"disque_aof_damaged_records_total"}
"""Counters whose number itself matters."""


def labels_of(query: str) -> set[str]:
    """The labels that one of its series has."""
    return TARGET_LABELS.union(*(LABELS[name] for name in names_in(query)))


def test_what_is_asked_for_is_declared() -> None:
    assert [place for place, query in of_all() if not names_in(query)] == []
    assert {name: place for place, query in of_all() for name in names_in(query) - LABELS.keys()} == {}


def test_what_is_declared_is_asked_for() -> None:
    asked = {name for _place, query in of_all() for name in names_in(query)}
    forgotten = []
    for name in SERIES.keys() - NOT_SHOWN:
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        if not asked & {name, f"{family}_bucket", f"{family}_count"}:
            forgotten.append(name)
    assert sorted(forgotten) == []


def test_series_have_the_labels_that_they_are_chosen_by() -> None:
    for place, query in of_all():
        for name, selector in re.findall(r"\b(\w+)\{([^}]*)\}", without_texts(with_choices(query))):
            chosen = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", selector))
            assert chosen <= LABELS[name] | TARGET_LABELS, f"{place}: {name}"


def test_series_have_the_labels_that_they_are_joined_by() -> None:
    for place, query in of_all():
        for labels in re.findall(r"\b(?:by|on|ignoring) \(([\w, ]*)\)", query):
            assert set(labels.split(", ")) <= labels_of(query), place


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_legends_name_labels(board: Board) -> None:
    for panel in board.panels():
        for query in panel.queries:
            assert set(re.findall(r"{{(\w+)}}", query.legend)) <= labels_of(query.expr), panel.title


def test_counters_are_looked_at_as_rates() -> None:
    for place, query in of_all():
        for name in names_in(query) - NOT_A_RATE:
            if re.search(r"_(total|bucket|count)$", name):
                assert len(re.findall(rf"\b(?:rate|increase)\({name}\b", query)) == query.count(name), place


def test_prometheus_understands_every_query_of_the_dashboards(tmp_path: Path) -> None:
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


def test_metrics_that_pages_speak_of_exist() -> None:
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in SERIES} | SERIES.keys()
    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("charts/*/README.md"), ROOT / "README.md"]
    spoken_of = {(name, page.name) for page in pages for name in re.findall(r"\bdisque_[a-z_]+", page.read_text())}
    assert len(spoken_of) > len(SERIES) / 2
    assert {(name, page) for name, page in spoken_of if name not in families | NO_METRICS} == set()
