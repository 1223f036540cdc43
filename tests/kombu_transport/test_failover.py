"""Leases in a cluster of more nodes than a job has copies, when the node of the worker dies."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from kombu import Connection, Exchange, Queue

from disqued.client import Client
from disqued.testing.processes import ServerProcess, form_cluster
from kombu_transport.messages import Messages, until

RETRY_S = 5


@pytest.mark.slow
def test_held_messages_are_renewed_at_nodes_with_copies_when_their_node_dies(tmp_path: Path) -> None:
    with ExitStack() as stack:
        nodes = []
        for number in range(5):
            directory = tmp_path / str(number)
            directory.mkdir()
            nodes.append(stack.enter_context(ServerProcess(directory)))
        form_cluster(nodes)
        queue = Queue("held", Exchange("held"), routing_key="held")
        url = "disque://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        options = {"retry": RETRY_S, "replicate": 2}
        with Connection(url, transport_options=options) as publisher:
            for number in range(20):
                publisher.Producer().publish(number, exchange=queue.exchange, routing_key="held", declare=[queue])
        holder = Messages(stack.enter_context(Connection(url, transport_options=options)), queue, prefetch=20)
        held = holder.take(20)
        address = holder.connection.default_channel.client.node
        [node] = [node for node in nodes if f"127.0.0.1:{node.port}" == address]

        node.kill()

        other = Messages(stack.enter_context(Connection(url)), queue)
        deadline_s = time.monotonic() + 3 * RETRY_S
        while time.monotonic() < deadline_s:
            other.drain(1)
            holder.drain(0.1)
        assert (other.received, holder.received) == ([], [])
        for message in held:
            message.ack()
        with Client([f"127.0.0.1:{one.port}" for one in nodes if one is not node]) as client:
            until(lambda: client.qcount("held").leased == 0, "all are acknowledged")
