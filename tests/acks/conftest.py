from __future__ import annotations

import pytest

from disqued.testing.cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes that know each other, nothing sent yet."""
    cluster = Cluster(3)
    cluster.run(seconds=1)
    cluster.forget_sent()
    return cluster
