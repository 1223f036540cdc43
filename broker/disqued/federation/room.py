"""The federation room of one node: hears which queues have clients and no jobs, or jobs that other nodes asked for."""

from __future__ import annotations

from disqued.core.cluster.peer import Peer
from disqued.core.queues.queue import Queue
from disqued.federation import exporting, importing
from disqued.federation.interest import InterestRoom


class FederationRoom(InterestRoom):
    """Moves jobs to the nodes whose clients wait for them."""

    def queues_wanted(self) -> None:
        """Send jobs to the nodes that asked for them."""
        exporting.export(self.state)

    def cron(self) -> None:
        """Continue the peer syncs."""
        importing.continue_syncs(self.state)

    def queue_visited(self, queue: Queue, *, drained: bool) -> None:
        """Ask other nodes for jobs, if it is time."""
        importing.queue_empty(self.state, queue, drained=drained)

    def queue_left(self, queue: Queue) -> None:
        """Soon check whether jobs of the queue are still wanted."""
        importing.queue_left(self.state, queue)

    def queue_gone(self, queue: Queue) -> None:
        """Forget what was asked of others and by others."""
        importing.queue_gone(self.state, queue)
        exporting.forget_all(self.state, queue)

    def peer_up(self, peer: Peer) -> None:
        """Tell the node what is wanted here."""
        importing.peer_up(self.state, peer)

    def peer_forgotten(self, peer: Peer) -> None:
        """Tell the node nothing more."""
        exporting.peer_forgotten(self.state, peer)
