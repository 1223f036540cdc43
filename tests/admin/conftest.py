from __future__ import annotations

import pytest

from disqued.testing.local import LocalClient, LocalNode


@pytest.fixture
def local() -> LocalNode:
    """A node in virtual time."""
    return LocalNode()


@pytest.fixture
def client(local: LocalNode) -> LocalClient:
    """Its first client."""
    return local.client()
