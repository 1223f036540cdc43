"""Fixtures for the tests of the server."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def plain_user() -> list[str]:
    """A launcher whose programs have to respect the permissions of files, as everybody but root has to."""
    if os.geteuid():
        return []
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
