"""Alerts: Prometheus accepts them, each one has tests, complete texts and a runbook."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dashboards.alerts.alert import Alert, Severity
from dashboards.alerts.all import ALERTS, RECORDS
from dashboards.alerts.files import BEGIN, PAGES, ROOT, RULES, between
from dashboards.all import BOARDS
from disque_operator.kubectl.main import COMMANDS as KUBECTL_COMMANDS
from disqued.cli.main import VIEWS
from disqued.config.options import OPTIONS
from disqued.node import ROOMS
from support import yamltext

TESTS = sorted((ROOT / "dashboards" / "alerts" / "tests").glob("*.yaml"))
SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation")
each_alert = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)


def promtool(*arguments: str | Path) -> str:
    """Run promtool and return its output; fails if promtool reports an error."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def scenarios() -> list[dict[str, Any]]:
    return [test for path in TESTS for test in yamltext.load(path.read_text())["tests"]]


def test_files_are_up_to_date() -> None:
    command = [sys.executable, "-m", "dashboards.alerts", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_prometheus_accepts_the_rules() -> None:
    assert f"SUCCESS: {len(ALERTS) + len(RECORDS)} rules found" in promtool("check", "rules", RULES)


@pytest.mark.slow
@pytest.mark.long
def test_alerts_fire_in_the_tests_of_promtool_as_expected() -> None:
    assert promtool("test", "rules", *TESTS).count("SUCCESS") == len(TESTS)


@each_alert
def test_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not(alert: Alert) -> None:
    fired = set()
    for scenario in scenarios():
        cases = [case for case in scenario.get("promql_expr_test", ()) if f'alertname="{alert.name}"' in case["expr"]]
        fired |= {bool(case["exp_samples"]) for case in cases}
        cases = [case for case in scenario.get("alert_rule_test", ()) if case["alertname"] == alert.name]
        fired |= {bool(case["exp_alerts"]) for case in cases}
    assert fired == {True, False}


def test_names_of_alerts_are_unique() -> None:
    assert [name for name, times in Counter(alert.name for alert in ALERTS).items() if times > 1] == []


@each_alert
def test_texts_of_an_alert_are_complete(alert: Alert) -> None:
    assert alert.name.startswith("Disque")
    assert alert.summary
    assert not alert.summary.endswith(".")
    assert "\n" not in alert.summary
    assert alert.description.endswith(".")
    assert re.fullmatch(r"\d+[mh]", alert.lasting)
    assert alert.board in {board.uid for board in BOARDS}
    assert alert.severity is not Severity.CRITICAL or alert.lasting != "0m", (
        "a critical alert must persist before it pages someone"
    )


@each_alert
def test_texts_use_labels_that_the_alert_has(alert: Alert) -> None:
    """An aggregation keeps only the labels that it lists. Without one, all labels of the series are available."""
    kept = re.findall(r"\bby \(([\w, ]+)\)", alert.expr)
    named = set(re.findall(r"\$labels\.(\w+)", alert.summary + alert.description))
    outer = set(kept[0].split(", ")) if kept and not alert.expr.startswith(("label_replace", "disque_")) else None
    if outer is not None:
        assert named <= outer


@each_alert
def test_runbook_has_all_sections(alert: Alert) -> None:
    text = (PAGES / f"{alert.name}.md").read_text()
    assert text.startswith(f"# {alert.name}\n\n{BEGIN}")
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    assert tuple(parts[1::2]) == SECTIONS
    assert all(len(part.split()) > 5 for part in parts[2::2])


def test_every_runbook_belongs_to_an_alert() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} - {"README"} == {alert.name for alert in ALERTS}


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_commands_and_directives_of_a_runbook_exist(page: Path) -> None:
    text = page.read_text()
    known = {command.name for command in ROOMS.commands} | set(VIEWS)
    assert set(re.findall(r"`disque(?: -h \w+)? ([a-z]+)", text)) <= known
    assert set(re.findall(r"`kubectl disque ([a-z]+)", text)) <= set(KUBECTL_COMMANDS)
    directives = {option.name for option in OPTIONS}
    assert set(re.findall(r"config (?:set|get) ([a-z-]+)", text)) <= directives
    like_directives = set(re.findall(r"`((?:cluster|maxmemory|auto-aof|slowlog|tcp)-[a-z-]+)(?: \w+)?`", text))
    assert like_directives <= directives


def test_page_without_markers_is_an_error() -> None:
    with pytest.raises(ValueError, match="restore them"):
        between("# Title\n", ("<!-- begin -->\n", "<!-- end -->\n"), "new")
