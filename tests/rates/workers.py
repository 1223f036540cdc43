"""Workers of a cluster in virtual time, and what they were given when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.core.cluster.rendezvous import ranked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from disqued.testing.cluster import Cluster, Member


class Workers:
    """Clients that take jobs of a queue one by one, hold each for a while, acknowledge it and take the next."""

    def __init__(self, cluster: Cluster, queue: str, *, busy_ms: int = 0) -> None:
        self.cluster = cluster
        self.queue = queue
        self.busy_ms = busy_ms
        self.times: list[int] = []
        """When jobs were delivered, unix milliseconds of the network."""
        self.by_member: dict[Member, int] = {}
        self.in_flight: dict[bytes, int] = {}
        """The jobs that workers have, and since when."""
        self.most_in_flight = 0
        self.acking = True

    def start(self, member: Member, count: int = 1) -> None:
        """Have workers of a node begin."""
        for _ in range(count):
            _Worker(self, member).ask()

    def delivered(self, member: Member, job_id: bytes) -> None:
        """A job was delivered."""
        self.times.append(self.cluster.network.now_ms)
        self.by_member[member] = self.by_member.get(member, 0) + 1
        self.in_flight[job_id] = self.cluster.network.now_ms
        self.most_in_flight = max(self.most_in_flight, len(self.in_flight))

    def run(self, *, seconds: float) -> None:
        """Let time pass, and workers finish their jobs."""
        self.cluster.run(seconds=seconds)

    def since(self, start_ms: int) -> int:
        """How many jobs were delivered since then."""
        return sum(at_ms >= start_ms for at_ms in self.times)


class _Worker:
    def __init__(self, workers: Workers, member: Member) -> None:
        self._workers = workers
        self._member = member
        self._client = member.client()
        self._client.listener = self._hear
        self._acked = False

    def ask(self) -> None:
        self._client.send("GETJOB", "FROM", self._workers.queue)

    def _hear(self) -> None:
        while not self._client.silent:
            reply = self._client.next_reply()
            if isinstance(reply, list) and isinstance(reply[0], list):
                job_id = reply[0][1]
                assert isinstance(job_id, bytes)
                self._workers.delivered(self._member, job_id)
                self._finish(job_id)

    def _finish(self, job_id: bytes) -> None:
        workers = self._workers
        if not workers.acking:
            return
        workers.cluster.network.later(max(workers.busy_ms, 1), lambda: self._acknowledge(job_id))

    def _acknowledge(self, job_id: bytes) -> None:
        if self._client.closed or not self._member.running:
            return
        self._workers.in_flight.pop(job_id, None)
        self._client.send("ACKJOB", job_id)
        self.ask()


def excess(times: Iterable[int], rate_per_s: float) -> float:
    """The burst that the busiest window needs: the greatest number of deliveries minus rate * time in any window."""
    most = 0.0
    bound = 0.0
    last = 0
    for at_ms in sorted(times):
        # the bucket that admits just these: how far it is overdrawn
        bound = max(bound - (at_ms - last) * rate_per_s / 1000, 0.0) + 1
        last = at_ms
        most = max(most, bound)
    return most


def home_of(cluster: Cluster, queue: str) -> Member:
    """The rate home of a queue among the running nodes."""
    running = [member for member in cluster.members if member.running]
    first = ranked(queue.encode(), [member.id for member in running])[0]
    return next(member for member in running if member.id == first)


def add_jobs(member: Member, queue: str, count: int, *options: str | int) -> list[bytes]:
    """Add jobs that only this node holds."""
    return [member.admin.add(queue, b"%d" % number, "REPLICATE", 1, *options) for number in range(count)]
