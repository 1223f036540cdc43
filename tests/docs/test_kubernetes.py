"""The pages about Kubernetes name what there is: reasons of conditions, phases, metrics, commands, fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_operator.decisions import PHASES
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.main import COMMANDS
from disque_operator.metrics import Metrics
from disque_operator.sections import field_name
from disque_operator.spec import SpecFields

ROOT = Path(__file__).parents[2]
OPERATOR = ROOT / "operator" / "disque_operator"
PAGE = (ROOT / "docs" / "operations" / "kubernetes.md").read_text(encoding="utf-8")
HOWTO = (ROOT / "docs" / "howto" / "kubernetes.md").read_text(encoding="utf-8")
INSIDE = (ROOT / "docs" / "architecture" / "operator.md").read_text(encoding="utf-8")
REASONS = PAGE.split("<!-- reasons")[1].split("<!-- end of reasons -->")[0]
MAKERS = {
    **dict.fromkeys(("problem", "progress", "_later", "FailedError", "Missing"), 0),
    "Note": 1,
    "Verdict": 1,
    "condition": 2,
}
"""Functions that make a condition, and which of their arguments is the reason."""
REASON = re.compile(r"[A-Z][A-Za-z]+")


def reasons() -> Iterator[tuple[str, str]]:
    """All reasons that stand in the code as they are, with their files."""
    for path in sorted(OPERATOR.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
                place = MAKERS[node.func.id]
                for found in ast.walk(node.args[place]) if len(node.args) > place else ():
                    if isinstance(found, ast.Constant) and REASON.fullmatch(str(found.value)):
                        yield str(found.value), path.name
        tables = re.findall(r"^_(?:ADVICE|REASONS|QUIET)[^{]*\{(.*?)^\}", path.read_text(), re.MULTILINE | re.DOTALL)
        for table in tables:
            for found in re.findall(r"(?:: \(|: )\"([A-Z][A-Za-z]+)\"", table):
                yield found, path.name


def test_the_reasons_are_found() -> None:
    found = {reason for reason, _ in reasons()}
    assert {
        "UpgradeFailed",
        "RollingOut",
        "NotEnoughMembers",
        "AllMembersConnected",
        "ImageMissing",
        "Settled",
    } <= found


@pytest.mark.parametrize("reason", sorted({reason for reason, _ in reasons()}))
def test_a_reason_is_explained(reason: str) -> None:
    assert re.search(rf"^\| .*\b{reason}\b.*? \|", REASONS, re.MULTILINE), "docs/operations/kubernetes.md says nothing"


def test_no_reason_is_explained_that_does_not_exist() -> None:
    first = [cell for cell in re.findall(r"^\| ([A-Z][A-Za-z, ]+) \|", REASONS, re.MULTILINE) if "---" not in cell]
    named = {reason for cell in first for reason in cell.split(", ")}
    conditions = {"Ready", "ClusterFormed", "AllMembersReachable", "Progressing", "Draining", "Degraded", "SpecValid"}
    sources = "\n".join(path.read_text(encoding="utf-8") for path in OPERATOR.glob("*.py"))
    assert [reason for reason in named - conditions - {"ReconcileSuccess"} if f'"{reason}"' not in sources] == []


@pytest.mark.parametrize("phase", PHASES)
def test_a_phase_is_explained(phase: str) -> None:
    assert re.search(rf"^\| [\w, ]*\b{phase}\b[\w, ]* \|", PAGE.split("## Conditions")[0], re.MULTILINE)


def test_the_metrics_are_the_operators() -> None:
    metrics = Metrics()
    metrics.watch(queue=lambda: 0.0, overdue_s=lambda: 0.0, lease=lambda: 0.0)
    kinds = {"counter": "_total"}
    ours = {
        family.name + kinds.get(family.type, "")
        for family in metrics.registry.collect()
        if family.name.startswith("disque_operator_")
    }
    assert set(re.findall(r"`(disque_operator_\w+)`", PAGE)) == ours


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_plugin_is_on_its_page(command: str) -> None:
    assert re.search(rf"^\| .*`{command}\b", HOWTO.split("## Command reference")[1], re.MULTILINE)


def test_the_exit_statuses_are_those_of_the_plugin() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", HOWTO, re.MULTILINE)
    assert [(int(status), meaning.replace("`", "")) for status, meaning in rows] == [
        (one.value, one.meaning) for one in Exit
    ]


def test_fields_that_are_named_are_fields() -> None:
    known = {field_name(name) for name in SpecFields.model_fields}
    paths = re.findall(r"`((?:[a-z]\w+\.)+[a-z]\w+)(?:: \w+)?`", PAGE, re.IGNORECASE)
    named = {path.removeprefix("spec.").partition(".")[0] for path in paths}
    others = {"status", "nodes", "crds", "rbac", "watch", "ca", "NAME"}
    """The status, files, values of the chart, host names."""
    assert named - others <= known


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(\w+\.py)`", INSIDE))))
def test_a_file_of_the_operator_that_is_named_exists(name: str) -> None:
    assert (OPERATOR / name).exists()
