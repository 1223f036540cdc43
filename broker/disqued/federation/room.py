"""The federation room of one node: hears which queues have clients and no jobs, or jobs that other nodes asked for."""

from __future__ import annotations

from typing import Final

from disqued.core.cluster.peer import Peer
from disqued.core.queues.queue import Queue
from disqued.core.runtime.room import Room
from disqued.federation import handover, needs

NAME: Final = "federation"


class FederationRoom(Room):
    """Moves jobs to the nodes whose clients wait for them."""

    def queues_wanted(self) -> None:
        """Send jobs to the nodes that asked for them."""
        handover.hand_over(self.state)

    def cron(self) -> None:
        """Continue to tell nodes that came back what is wanted here."""
        needs.go_on_greeting(self.state)

    def queue_visited(self, queue: Queue, *, drained: bool) -> None:
        """Ask other nodes for jobs, if it is time."""
        needs.queue_empty(self.state, queue, drained=drained)

    def queue_left(self, queue: Queue) -> None:
        """Soon check whether jobs of the queue are still wanted."""
        needs.queue_left(self.state, queue)

    def queue_gone(self, queue: Queue) -> None:
        """Forget what was asked of others and by others."""
        needs.queue_gone(self.state, queue)
        handover.forget_all(self.state, queue)

    def peer_up(self, peer: Peer) -> None:
        """Tell the node what is wanted here."""
        needs.peer_up(self.state, peer)

    def peer_forgotten(self, peer: Peer) -> None:
        """Tell the node nothing more."""
        handover.peer_forgotten(self.state, peer)
