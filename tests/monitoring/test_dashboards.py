"""The dashboards are complete, and their files are current."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboards.all import BOARDS
from dashboards.build import ALL, json_of
from dashboards.model import WIDTH, Board, Kind

ROOT = Path(__file__).parents[2]
UNITS = {"short", "s", "bytes", "Bps", "ops", "percentunit"}
"""The units of Grafana that the dashboards use. Any other unit is a mistake."""
each_board = pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects in a JSON value."""
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from walk(child)
    elif isinstance(value, list):
        for child in value:
            yield from walk(child)


def test_files_are_up_to_date() -> None:
    command = [sys.executable, "-m", "dashboards", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_outdated_and_unknown_files_are_reported(tmp_path: Path) -> None:
    copy = tmp_path / "dashboards"
    shutil.copytree(ROOT / "dashboards", copy, ignore=shutil.ignore_patterns("json", "__pycache__"))
    command = [sys.executable, "-m", "dashboards"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    (copy / "json" / BOARDS[0].file).write_text("{}")
    (copy / "json" / "unknown.json").write_text("{}")
    done = subprocess.run([*command, "--check"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"outdated: {BOARDS[0].file}",
        "outdated: unknown.json",
        "run: python -m dashboards",
    ]


def test_uids_and_titles_are_unique() -> None:
    assert [uid for uid, times in Counter(board.uid for board in BOARDS).items() if times > 1] == []
    assert [title for title, times in Counter(board.title for board in BOARDS).items() if times > 1] == []


@each_board
def test_every_panel_has_a_title_a_text_and_a_unit(board: Board) -> None:
    titles = Counter(panel.title for panel in board.panels())
    assert [title for title, times in titles.items() if times > 1] == []
    for panel in board.panels():
        assert panel.text.endswith("."), panel.title
        assert panel.unit in UNITS, panel.title
        assert {query.unit for query in panel.queries} <= UNITS | {""}, panel.title
        assert panel.queries, panel.title
        if len(panel.queries) > 1 or panel.kind is Kind.TABLE:
            assert all(query.legend for query in panel.queries), panel.title


@each_board
def test_every_query_has_its_own_unit_if_it_names_one(board: Board) -> None:
    wanted = [query.unit for panel in board.panels() for query in panel.queries if query.unit]
    assert [part["value"] for part in walk(json.loads(json_of(board))) if part.get("id") == "unit"] == wanted
    assert set(wanted) <= UNITS


@each_board
def test_panels_fill_their_rows(board: Board) -> None:
    for row in board.rows:
        used = 0
        for panel in row.panels:
            used += panel.width
            assert used <= WIDTH, f"{panel.title} does not fit into its line"
            used %= WIDTH
        assert used == 0, f"{row.title} ends with half a line"


@each_board
def test_panels_of_a_line_have_the_same_height(board: Board) -> None:
    lines: dict[int, set[int]] = {}
    for panel in json.loads(json_of(board))["panels"]:
        lines.setdefault(panel["gridPos"]["y"], set()).add(panel["gridPos"]["h"])
    assert [y for y, heights in lines.items() if len(heights) > 1] == []


@each_board
def test_panel_ids_are_unique(board: Board) -> None:
    numbers = [panel["id"] for panel in json.loads(json_of(board))["panels"]]
    assert len(set(numbers)) == len(numbers)
    assert 0 not in numbers


@each_board
def test_every_query_uses_the_selected_data_source(board: Board) -> None:
    sources = [value["datasource"] for value in walk(json.loads(json_of(board))) if "datasource" in value]
    assert sources
    assert [source for source in sources if source != {"type": "prometheus", "uid": "$datasource"}] == []


@each_board
def test_variables_default_to_all_and_depend_on_the_previous_ones(board: Board) -> None:
    variables = json.loads(json_of(board))["templating"]["list"]
    assert variables[0]["type"] == "datasource"
    before: set[str] = set()
    for variable in variables[1:]:
        assert variable["current"]["value"] == ALL
        assert variable["allValue"] == ".*", "matches series without the label"
        query = variable["query"]["query"]
        assert {name for name in before if f"${name}" in query} == before, "ignores previous variables"
        before.add(variable["name"])


@each_board
def test_queries_use_only_variables_of_their_dashboard(board: Board) -> None:
    known = {variable.name for variable in board.variables}
    for panel in board.panels():
        for query in panel.queries:
            used = {
                name for name in ("namespace", "cluster", "instance", "queue", "app") if f'"${name}"' in query.promql
            }
            assert used <= known, panel.title


@each_board
def test_links_point_to_existing_dashboards(board: Board) -> None:
    assert {panel.leads_to for panel in board.panels()} - {""} <= {other.uid for other in BOARDS}
    (menu,) = json.loads(json_of(board))["links"]
    assert menu["tags"] == json.loads(json_of(board))["tags"]
