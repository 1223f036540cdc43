"""A job expires while its client still waits for copies, whichever timer fires first."""

from __future__ import annotations

import pytest

from disqued.replication.room import replication_of
from disqued.testing.cluster import Cluster
from replication.adding import REMOVED, TIMEOUT, adding, error_of, jobs


@pytest.mark.parametrize("offset_ms", range(0, 48, 4))
def test_no_node_is_asked_for_a_copy_after_the_job_has_expired(cluster: Cluster, offset_ms: int) -> None:
    cluster.run(milliseconds=1000 + offset_ms)
    first = cluster.members[0]
    cluster.lose("REPLJOB")
    client = adding(cluster, "REPLICATE", 3, "TTL", 1, "RETRY", 1)
    cluster.run(seconds=4)
    assert error_of(client) == REMOVED
    state = first.node.state
    assert (jobs(cluster), replication_of(state).waits) == ([0, 0, 0], {})


@pytest.mark.parametrize("timeout_ms", range(1980, 2020, 4))
def test_a_client_gets_one_reply_when_its_timeout_and_the_ttl_end_together(cluster: Cluster, timeout_ms: int) -> None:
    first = cluster.members[0]
    cluster.lose("REPLJOB")
    client = first.client()
    used_bytes = first.node.state.lifecycle.memory.used_bytes
    client.send("ADDJOB", "mail", "body", timeout_ms, "REPLICATE", 3, "RETRY", 1, "TTL", 1)
    cluster.run(seconds=4)
    assert error_of(client) in {TIMEOUT, REMOVED}
    assert client.silent
    state = first.node.state
    assert (jobs(cluster), replication_of(state).waits) == ([0, 0, 0], {})
    assert state.lifecycle.memory.used_bytes == used_bytes
