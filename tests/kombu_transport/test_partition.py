"""A producer at a node that is cut off from the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from kombu import Connection

from disqued.client import NotReplicated
from kombu_transport.messages import Messages
from support.wires import WiredCluster, Wires

pytestmark = pytest.mark.slow


def test_a_message_goes_to_the_larger_part_of_a_partition(tmp_path: Path) -> None:
    with Wires() as wires, WiredCluster(tmp_path, wires, 3) as cluster:
        one, two, three = cluster.nodes
        impatient = {"publish_patience": 0}
        with (
            Connection(f"disque://{one.address}") as connection,
            Connection(f"disque://{one.address}", transport_options=impatient) as other,
        ):
            for producer in (connection.Producer(), other.Producer()):
                producer.publish("before", routing_key="mail", retry=False)
            wires.halve([one], [two, three])
            cluster.wait_until(
                lambda: len(one.view()) - 1 == unreachable(one.view()), "the first node misses the others"
            )
            with pytest.raises(connection.channel_errors, match="NOREPL") as raised:
                other.Producer().publish("refused", routing_key="mail", retry=False)
            assert isinstance(raised.value, NotReplicated)
            connection.Producer().publish("during", routing_key="mail", retry=False)
            assert two.call("QLEN", "mail") + three.call("QLEN", "mail") > 0
        wires.repair()
        cluster.wait_whole()
        with Connection(f"disque://{two.address}") as connection:
            bodies = [message.payload for message in Messages(connection, connection.SimpleQueue("mail").queue).take(3)]
        assert sorted(bodies) == ["before", "before", "during"]


def unreachable(view: dict[str, set[str]]) -> int:
    return sum(bool(flags & {"fail", "fail?"}) for flags in view.values())
