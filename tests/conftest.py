"""Fixtures every room's tests may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.server import ServerProcess


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A fresh broker node, alone in its cluster."""
    with ServerProcess(tmp_path) as process:
        yield process
