"""Begins to leave, and stays: on request of a client, and before the process ends (`shutdown-on-sigterm drain`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.bus import kinds
from disqued.core.clients.blocked import WaitForJob
from disqued.core.runtime.waiting import release
from disqued.errors import NodeLeaving
from disqued.membership.announcing import announce
from disqued.membership.kept import membership_of

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState


def tell(state: NodeState) -> None:
    """Tell other nodes, the rooms and the clients that `leaving` has changed.

    A leaving node keeps no client waiting for jobs: these get LEAVING. Clients in ADDJOB still wait for their copies.
    """
    announce(membership_of(state))
    state.events.leaving_changed()
    if not state.view.leaving:
        return
    reply = NodeLeaving().encode()
    for session in list(state.sessions.values()):
        blocked = session.blocked
        if isinstance(blocked, WaitForJob):
            release(state, blocked, reply)


def leave_to_end(state: NodeState) -> None:
    """Leave because the process ends. The cluster configuration file does not say so: the next start stays."""
    if not state.view.leaving:
        state.view.leaving = state.view.leaves_to_end = True
        tell(state)


def nobody_stays(state: NodeState) -> bool:
    """Whether all other members are leaving too, so that none takes a job. One that does not answer may come back."""
    return all(peer.in_handshake or peer.flags & kinds.NODE_LEAVING for peer in state.view.peers.values())
