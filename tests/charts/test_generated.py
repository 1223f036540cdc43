"""The generated files of the charts are up to date."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from charts.helm import CHARTS, CLUSTER, OPERATOR, Json
from disqued import __version__
from support import yamltext

ROOT = CHARTS.parent
DEFINITION = ROOT / "manifests" / "crd" / "disqueclusters.yaml"


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all keys whose values are not mappings, or are empty mappings."""
    if isinstance(value, dict) and value:
        for name, child in value.items():
            yield from leaves(child, (*path, name))
    else:
        yield path


def fields(schema: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all fields in a schema; types of Kubernetes, which have no defaults, are one field."""
    for name, child in schema["properties"].items():
        if child.get("default") == {} and "properties" in child:
            yield from fields(child, (*path, name))
        else:
            yield (*path, name)


def spec_schema() -> Json:
    definition = yamltext.load(DEFINITION.read_text())
    schema: Json = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return schema


def test_generated_files_are_up_to_date() -> None:
    run = subprocess.run(
        [sys.executable, CHARTS / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert run.stdout == ""
    assert run.returncode == 0, run.stderr


def test_resource_definitions_equal_the_manifests() -> None:
    kept = {path.name: path.read_bytes() for path in (OPERATOR / "files" / "crd").iterdir()}
    assert kept == {path.name: path.read_bytes() for path in DEFINITION.parent.iterdir()}


def test_every_field_of_the_resource_is_a_value() -> None:
    values = yamltext.load((CLUSTER / "values.yaml").read_text())
    assert [path for path in fields(spec_schema()) if not has(values, path)] == []


def has(value: object, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


@pytest.mark.parametrize("chart", [OPERATOR, CLUSTER], ids=lambda chart: chart.name)
def test_every_value_is_in_the_readme(chart: Path) -> None:
    table = (chart / "README.md").read_text()
    values = yamltext.load((chart / "values.yaml").read_text())
    described = [".".join(path[: depth + 1]) for path in leaves(values) for depth in range(len(path))]
    missing = [
        path
        for path in (".".join(leaf) for leaf in leaves(values))
        if not any(f"| `{known}` |" in table for known in described if path == known or path.startswith(known + "."))
    ]
    assert missing == []


@pytest.mark.parametrize("chart", [OPERATOR, CLUSTER], ids=lambda chart: chart.name)
def test_chart_version_is_the_package_version(chart: Path) -> None:
    about = yamltext.load((chart / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (__version__, __version__)
