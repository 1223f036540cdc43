"""The jobs of a connection, when a signal interrupts the thread that tells the node what happened to them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from disqued.client import Client
from disqued.kombu.leases import Leases
from disqued.kombu.nodeclients import NodeClients
from disqued.testing.processes import ServerProcess


class Interrupted(Client):
    """A client whose thread gets a signal when it begins to acknowledge."""

    def ack(self, *ids: str, **options: Any) -> int:
        signal.raise_signal(signal.SIGUSR1)
        return super().ack(*ids, **options)


@contextmanager
def handled(what: Callable[[], None]) -> Iterator[None]:
    """Do something when the signal arrives."""
    former = signal.signal(signal.SIGUSR1, lambda *_: what())
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, former)


def test_jobs_that_a_signal_handler_returns_while_others_are_acknowledged_are_returned(server: ServerProcess) -> None:
    def make_client() -> Client:
        return Interrupted((f"127.0.0.1:{server.port}",), discover=False)

    leases = Leases(make_client, lambda client: NodeClients(client, lambda _: make_client(), discover=False))
    with make_client() as client:
        done, returned = (client.add("q", body, retry_s=600) for body in ("done", "returned"))
        leases.hold(client.get("q", count=2, with_requeue=True))
        leases.close()

        def shut_down() -> None:
            leases.give_back(returned)
            leases.flush()

        with handled(shut_down):
            leases.acknowledge(done)
        assert client.show(done) is None
        (again,) = client.get("q", timeout_ms=5000, with_counters=True)
    assert (again.id, again.nacks, len(leases)) == (returned, 0, 0)
