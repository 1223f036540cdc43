"""The answer that completes a handshake counts as a sign of life."""

from __future__ import annotations

from disqued.config import Config
from disqued.testing.cluster import Cluster


def short_node_timeout() -> Config:
    """The configuration of nodes that suspect each other after a second."""
    config = Config()
    config.cluster_node_timeout = 1000
    return config


def test_a_new_member_that_answered_is_not_suspected() -> None:
    cluster = Cluster(3, config=short_node_timeout)
    cluster.run(seconds=5)
    lines = [line for member in cluster.members for _, line in member.host.log_lines]
    assert [line for line in lines if "does not answer" in line] == []
