from __future__ import annotations

import pytest

from disqued.testing.cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes that know each other, nothing sent yet."""
    return settled(3)


@pytest.fixture
def pair() -> Cluster:
    """Two of them."""
    return settled(2)


def settled(count: int) -> Cluster:
    """Nodes that have nothing more to tell each other."""
    cluster = Cluster(count)
    cluster.run(seconds=10)
    cluster.forget_sent()
    return cluster
