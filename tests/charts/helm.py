"""Runs Helm on the charts and returns the rendered objects."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from support import yamltext

Json = dict[str, Any]

CHARTS = Path(__file__).parents[2] / "charts"
OPERATOR = CHARTS / "disque-operator"
CLUSTER = CHARTS / "disque-cluster"
KUBERNETES = "1.34.0"
MONITORS = tuple(f"monitoring.coreos.com/v1/{kind}" for kind in ("PodMonitor", "PrometheusRule", "ServiceMonitor"))


def ci_values() -> list[Path]:
    """Return the value files of all modes, sorted by chart."""
    return sorted(CHARTS.glob("*/ci/*-values.yaml"))


def chart_of(values: Path) -> Path:
    return values.parents[1]


@dataclass(frozen=True)
class Objects:
    """The objects that a chart renders to."""

    all: list[Json]

    def of(self, kind: str) -> list[Json]:
        return [item for item in self.all if item["kind"] == kind]

    def one(self, kind: str) -> Json:
        (only,) = self.of(kind)
        return only


class Helm:
    """Runs Helm without a cluster and without the user's settings."""

    def __init__(self, program: str, home: Path) -> None:
        self._program = program
        self._home = home
        self._rendered: dict[tuple[object, ...], Objects] = {}
        self._environ = {"PATH": os.environ["PATH"], "HOME": str(home), "HELM_NO_PLUGINS": "1"}

    def template(
        self,
        chart: Path,
        values: Mapping[str, Any] | Path | None = None,
        *,
        release: str = "demo",
        namespace: str = "here",
        apis: tuple[str, ...] = MONITORS,
    ) -> Objects:
        """Return the objects of a release, rendered once. Raises `AssertionError` with Helm's error if it fails."""
        key = (chart, values if isinstance(values, Path) else json.dumps(values), release, namespace, apis)
        if key not in self._rendered:
            done = self._template(chart, values, release, namespace, apis)
            assert done.returncode == 0, done.stderr
            self._rendered[key] = Objects([item for item in yamltext.load_all(done.stdout) if item])
        return self._rendered[key]

    def error(self, chart: Path, values: Mapping[str, Any], *, apis: tuple[str, ...] = MONITORS) -> str:
        """Return Helm's error for invalid values."""
        done = self._template(chart, values, "demo", "here", apis)
        assert done.returncode != 0, "these values were accepted"
        return done.stderr

    def lint(self, chart: Path, values: Path) -> str:
        """Return the findings of `helm lint`; empty if there are none."""
        done = self._run("lint", "--strict", "--quiet", str(chart), "--values", str(values))
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def notes(self, chart: Path, values: Mapping[str, Any]) -> str:
        """Return the notes shown after an installation. They are rendered as part of an object, to need no cluster."""
        copy = self._home / "notes" / chart.name
        shutil.copytree(chart, copy, dirs_exist_ok=True)
        text = (chart / "templates" / "NOTES.txt").read_text()
        (copy / "templates" / "_notes.tpl").write_text(f'{{{{ define "notes" }}}}{text}{{{{ end }}}}')
        (copy / "templates" / "notes.yaml").write_text('{kind: Notes, text: {{ include "notes" . | toJson }}}')
        return str(self.template(copy, values).one("Notes")["text"])

    def violations(self, schema: Json, value: Json) -> str:
        """Return the violations of a JSON Schema, found by Helm's validator; empty if there are none."""
        chart = self._home / "schema"
        chart.mkdir(exist_ok=True)
        (chart / "Chart.yaml").write_text("{apiVersion: v2, name: schema, version: 0.1.0}")
        (chart / "values.schema.json").write_text(json.dumps(schema))
        done = self._template(chart, value, "demo", "here", ())
        return done.stderr if done.returncode else ""

    def _template(
        self, chart: Path, values: Mapping[str, Any] | Path | None, release: str, namespace: str, apis: tuple[str, ...]
    ) -> subprocess.CompletedProcess[str]:
        known = [f"--api-versions={api}" for api in apis]
        return self._run("template", release, str(chart), "--namespace", namespace, *known, *self._given(values))

    def _given(self, values: Mapping[str, Any] | Path | None) -> list[str]:
        if values is None:
            return []
        if isinstance(values, Path):
            return ["--values", str(values)]
        given = self._home / "given.yaml"
        given.write_text(yaml.safe_dump(dict(values)))
        return ["--values", str(given)]

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self._program, *arguments]
        if arguments[0] in {"template", "lint"}:
            command.append(f"--kube-version={KUBERNETES}")
        return subprocess.run(command, env=self._environ, capture_output=True, text=True, timeout=60, check=False)
