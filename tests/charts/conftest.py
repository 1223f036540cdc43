"""Fixtures of the chart tests. Tests that need Helm are skipped if it is not installed."""

from __future__ import annotations

import shutil

import pytest

from charts.helm import Helm


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    program = shutil.which("helm")
    if program is None:
        pytest.skip("helm is not installed")
    return Helm(program, tmp_path_factory.mktemp("helm"))
