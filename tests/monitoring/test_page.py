"""The page about monitoring: its configurations are valid, and its names exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from charts.helm import CLUSTER, OPERATOR
from dashboards.alerts.files import ROOT, RULES
from dashboards.all import BOARDS
from dashboards.model import Board

PAGE = ROOT / "docs" / "howto" / "monitoring.md"
TEXT = PAGE.read_text()
CONFIGURATIONS = [text for text in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL) if "scrape_configs" in text]


@pytest.mark.parametrize("text", CONFIGURATIONS, ids=["by hand", "on Kubernetes"])
def test_prometheus_accepts_the_configuration(text: str, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    configuration = yaml.safe_load(text)
    for job in configuration["scrape_configs"]:
        if job.pop("kubernetes_sd_configs", [{"role": "pod"}]) == [{"role": "pod"}]:  # Debian's build lacks Kubernetes
            job.setdefault("static_configs", [{"targets": ["10.0.0.1:9711"]}])
    path = tmp_path / "prometheus.yaml"
    path.write_text(yaml.safe_dump(configuration))
    (tmp_path / RULES.name).write_text(RULES.read_text())
    done = subprocess.run([promtool, "check", "config", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_configuration_for_kubernetes_sets_the_labels_that_alerts_use() -> None:
    (job,) = yaml.safe_load(CONFIGURATIONS[1])["scrape_configs"]
    targets = {rule["target_label"] for rule in job["relabel_configs"] if "target_label" in rule}
    assert targets == {"job", "namespace", "cluster", "instance"}
    assert job["honor_labels"] is True


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_every_dashboard_is_on_the_page(board: Board) -> None:
    assert f"| {board.title.removeprefix('Disque / ')} |" in TEXT


def test_values_on_the_page_are_values_of_the_charts() -> None:
    named = set(re.findall(r"[`=,\s](metrics\.\w+\.\w+|alerts\.\w+|dashboards\.\w+|monitoring\.\w+\.\w+)", TEXT))
    assert len(named) > 5
    tables = (OPERATOR / "README.md").read_text() + (CLUSTER / "README.md").read_text()
    assert [value for value in named if f"| `{value}` |" not in tables] == []
