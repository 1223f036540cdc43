"""Jobs about which a node was not asked, or not told, because its link had no room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

MOST_PER_TICK: Final = 1000
"""Jobs for one node in one tick of the cron."""


class Skipped:
    """The jobs that each node still must be sent, until its link has room."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._jobs: dict[bytes, dict[bytes, None]] = {}
        """The IDs of the jobs, by node ID."""

    def add(self, peer: Peer, job_ids: list[bytes]) -> None:
        """The link of a node has no room for something about these jobs."""
        self._jobs.setdefault(peer.id, {}).update(dict.fromkeys(job_ids))

    def ready(self) -> list[tuple[Peer, list[bytes]]]:
        """The nodes whose links have room again, and the next jobs for each; a node that went away is forgotten."""
        found: list[tuple[Peer, list[bytes]]] = []
        for node_id, jobs in list(self._jobs.items()):
            peer = self._state.view.peers.get(node_id)
            if peer is None or not peer.reachable:
                del self._jobs[node_id]
            elif not has_no_room(peer):
                job_ids = list(jobs)[:MOST_PER_TICK]
                for job_id in job_ids:
                    del jobs[job_id]
                if not jobs:
                    del self._jobs[node_id]
                found.append((peer, job_ids))
        return found


def has_no_room(peer: Peer) -> bool:
    """Whether the link of a node takes nothing that can wait."""
    return peer.link is not None and peer.link.congested
