"""A node that is used no more leaves the memory: tests and the simulator make thousands in one process."""

from __future__ import annotations

import gc

from disqued.core.runtime.state import NodeState
from support.fixtures import settled
from support.stories import added


def nodes_alive() -> int:
    gc.collect()
    return sum(isinstance(found, NodeState) for found in gc.get_objects())


def serve_jobs() -> None:
    """Three nodes have a schedule, and jobs: one fails, one ends, one waits for its acknowledgement."""
    cluster = settled(3)
    ending, failing = added(cluster), added(cluster)
    added(cluster)
    client = cluster.members[0].client()
    client.call("SCHEDULE", "daily", "SET", "0 3 * * *", "mail", "report")
    client.call("GETJOB", "COUNT", 3, "FROM", "mail")
    assert client.call("ACKJOB", ending) == 1
    client.send("NACK", failing, "DEAD")
    cluster.run(milliseconds=1000)
    assert client.next_reply() == 1


def test_nodes_that_are_used_no_more_leave_the_memory() -> None:
    # A compiled class that is declared to be in no cycle keeps whatever it refers to: one for each node is enough.
    before = nodes_alive()
    serve_jobs()
    assert nodes_alive() == before
