"""What the tests of the charts share: the real Helm. Where there is none, the tests that need it are left out."""

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
