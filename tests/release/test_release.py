"""Releases: one version everywhere, and the files that users install."""

from __future__ import annotations

import hashlib
import re
import tarfile
import zipfile
from pathlib import Path

import pytest

from disqued import __version__
from release import dist, version
from support import yamltext


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files of a release by name."""
    built = dist.build(tmp_path_factory.mktemp("release") / "dist")
    return {path.name: path for path in built}


def test_all_files_name_the_version_of_the_sources() -> None:
    assert version.current() == __version__
    assert version.outdated() == [], "run python -m release.version"


@pytest.mark.slow
def test_a_file_with_another_version_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert version.main([]) == 0
    monkeypatch.setattr(version, "current", lambda: "99.0.0")
    assert "charts/disque-operator/Chart.yaml" in version.outdated()
    assert "manifests/operator/deployment.yaml" in version.outdated()
    assert version.main([]) == 1
    assert "charts/disque-operator/Chart.yaml names another version than 99.0.0" in capsys.readouterr().err


def test_the_last_release_is_a_section_of_the_changelog() -> None:
    number, commit = version.last_release()
    assert re.search(rf"^## {re.escape(number)} - ", (version.ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert re.fullmatch(r"[0-9a-f]{40}", commit)


def test_package_contains_the_commands_and_the_license(files: dict[str, Path]) -> None:
    with zipfile.ZipFile(files[f"disqued-{__version__}-py3-none-any.whl"]) as wheel:
        names = wheel.namelist()
    assert "disqued/server/main.py" in names
    assert "disque_operator/main.py" in names
    assert f"disqued-{__version__}.dist-info/licenses/LICENSE" in names
    with tarfile.open(files[f"disqued-{__version__}.tar.gz"]) as sources:
        assert f"disqued-{__version__}/pyproject.toml" in sources.getnames()


def test_manifests_install_the_definitions_and_an_operator_of_this_version(files: dict[str, Path]) -> None:
    text = files[f"disque-operator-{__version__}.yaml"].read_text()
    objects = [item for item in yamltext.load_all(text) if item]
    kinds = [item["kind"] for item in objects]
    assert kinds[0] == "Namespace"
    assert {"CustomResourceDefinition", "Deployment", "ClusterRole"} <= set(kinds)
    [deployment] = [item for item in objects if item["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"disqued-operator:{__version__}"


def test_checksums_cover_all_other_files(files: dict[str, Path]) -> None:
    lines = [line.split("  ") for line in files[dist.SUMS].read_text().splitlines()]
    assert {name for _, name in lines} == files.keys() - {dist.SUMS}
    assert all(hashlib.sha256(files[name].read_bytes()).hexdigest() == digest for digest, name in lines)


def test_a_release_is_refused_while_files_name_different_versions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dist, "outdated", lambda: ["manifests/operator/deployment.yaml"])
    with pytest.raises(SystemExit, match=r"manifests/operator/deployment\.yaml"):
        dist.build(tmp_path / "dist")
    assert not (tmp_path / "dist").exists()
