"""What TLS costs: the whole cycle of a job with and without it, here and in the other brokers that have TLS.

All connections are made before the clock starts, as those of clients that stay. Both sides of a connection use the
same version of OpenSSL and the cipher that it prefers with TLS 1.3.
"""

from __future__ import annotations

from collections.abc import Callable

from brokers import Broker, Running, encrypted
from generator import Measurement, offer
from workloads import Sizes, rotated, whole_cycle

PLAIN, TLS = "plain", "tls"
WITHOUT_TLS = {"beanstalkd"}

Encryption = dict[str, dict[str, list[Measurement]]]  # plain or tls -> broker -> one measurement a round


def compare(brokers: tuple[Broker, ...], sizes: Sizes, say: Callable[[str], None]) -> Encryption:
    """The whole cycle with and without TLS on all brokers that have it, `sizes.rounds` times."""
    able = tuple(broker for broker in brokers if broker.name not in WITHOUT_TLS)
    found: Encryption = {}
    for number in range(sizes.rounds):
        for broker in rotated(able, number):
            for name, way in ((PLAIN, broker), (TLS, encrypted(broker))):
                with Running(way) as server:
                    line = offer(server, whole_cycle(sizes))
                found.setdefault(name, {}).setdefault(broker.name, []).append(line)
                say(f"round {number + 1}  cycle {name:<5} {broker.name:<14} {line['jobs_per_s']:>10,.0f} jobs/s")
    return found
