"""The workflow that publishes a release: every image is signed and has an SBOM, and nothing unverified runs in it."""

from __future__ import annotations

import re
from typing import Any

import yaml

from release.version import ROOT

Json = dict[str, Any]
WORKFLOW: Json = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yaml").read_text())
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


def commands(job: str) -> str:
    return "\n".join(step["run"] for step in WORKFLOW["jobs"][job]["steps"])


def test_every_image_of_the_dockerfile_with_a_title_is_published() -> None:
    stages = (ROOT / "Dockerfile").read_text().split("FROM runtime AS ")[1:]
    titles = [
        (stage.split()[0], found[1]) for stage in stages if (found := re.search(r'image\.title="([\w-]+)"', stage))
    ]
    published = [(one["target"], one["name"]) for one in WORKFLOW["jobs"]["images"]["strategy"]["matrix"]["include"]]
    assert sorted(published) == sorted(titles)


def test_images_are_signed_by_digest_with_sbom_and_provenance() -> None:
    text = commands("images")
    assert "--sbom=true --provenance=mode=max" in text
    assert 'cosign sign --yes --recursive "$pushed"' in text
    assert "containerimage.digest" in text
    assert "cosign attest --yes --type spdxjson" in text


def test_checksums_are_made_after_all_files_and_signed() -> None:
    text = commands("files")
    assert text.index("make dist") < text.index("release.krew dist") < text.index("sha256sum") < text.index("sign-blob")
    assert text.index("sbom.spdx.json") < text.index("sha256sum")


def test_workflow_has_only_the_permissions_that_it_needs_and_runs_no_actions() -> None:
    assert WORKFLOW["permissions"] == {}
    assert not [step for step in STEPS if "uses" in step]
    assert {name: job["permissions"] for name, job in WORKFLOW["jobs"].items()} == {
        "images": {"contents": "read", "id-token": "write"},
        "files": {"contents": "write", "id-token": "write"},
    }


def test_tools_have_exact_versions() -> None:
    for name in ("COSIGN", "SYFT"):
        assert re.fullmatch(r"github\.com/[\w./-]+@v\d+\.\d+\.\d+", WORKFLOW["env"][name])


def test_end_to_end_tests_run_on_the_oldest_version_that_the_charts_support() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "kubernetes.yaml").read_text())
    chart = yaml.safe_load((ROOT / "charts" / "disque-operator" / "Chart.yaml").read_text())
    oldest, *_ = workflow["jobs"]["e2e"]["strategy"]["matrix"]["version"]
    assert oldest.removeprefix("v").split(".")[:2] == chart["kubeVersion"].removeprefix(">=").split(".")[:2]
