"""What the tests of the charts share: the real Helm. Where there is none, the tests that need it are left out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from charts.helm import Helm


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    program = shutil.which("helm")
    if program is None:
        pytest.skip("helm is not installed")
    return Helm(program, tmp_path)
