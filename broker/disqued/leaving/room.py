"""The leaving room of one node: its drain, while it leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import Job
from disqued.core.lifecycle.events import NOT_FORWARDED
from disqued.core.runtime.outbox import send
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.leaving.handoff import Handoff
from disqued.leaving.progress import fields

if TYPE_CHECKING:
    from disqued.core.telemetry.fields import Fields

NAME: Final = "leaving"


class LeavingRoom(Room):
    """Drains the node while it leaves."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.handoff: Handoff | None = None

    def leaving_changed(self) -> None:
        """Begin to drain, or stop."""
        state = self.state
        handoff = self.handoff
        if state.view.leaving and handoff is None:
            self._begin()
        elif not state.view.leaving and handoff is not None:
            self.handoff = None
            handoff.end(state)

    def _begin(self) -> None:
        state = self.state
        self.handoff = Handoff(state.now_ms)
        count = state.lifecycle.table.count
        state.host.log(
            "notice", f"Leaving the cluster: {count} jobs are to be handed to {len(state.view.reachable)} nodes"
        )

    def cron(self) -> None:
        """Continue to drain; a node that was leaving when it was stopped begins here."""
        if self.state.view.leaving:
            if self.handoff is None:
                self._begin()
            handoff = self.handoff
            assert handoff is not None
            handoff.round(self.state)

    def copy_confirmed(self, job: Job, peer: Peer) -> None:
        """A node took a job."""
        handoff = self.handoff
        if handoff is not None:
            handoff.confirm(self.state, job, peer)

    def forwarded(self, job_id: bytes, kind: i64, message_flags: i64) -> i64:
        """Forward to the new holder of a job what its worker says, WORKING or ENQUEUE.

        `message_flags` say what a requeueing counts as. They go with a QUEUED before it, since ENQUEUE counts nothing.
        """
        state = self.state
        handoff = self.handoff
        if handoff is None:
            return NOT_FORWARDED
        address = handoff.moved.find(job_id)
        peer = None if address is None else state.view.peers.get(address.node_id)
        if address is None or peer is None:
            return NOT_FORWARDED
        if kind == kinds.ENQUEUE:
            send(state, peer, state.bus.about_job(kinds.QUEUED, job_id, 0, message_flags))
            message_flags = kinds.HANDOVER
        if not send(state, peer, state.bus.about_job(kind, job_id, 0, message_flags)):
            return NOT_FORWARDED
        return address.retry_s

    def leaving_status(self) -> Fields:
        """How far this node is; see `progress`."""
        handoff = self.handoff
        if handoff is not None:
            return fields(self.state, handoff.progress, len(handoff.offers))
        return fields(self.state, None, 0)


def leaving_of(state: NodeState) -> LeavingRoom:
    """The leaving room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, LeavingRoom)
    return room


def info(state: NodeState) -> Fields:
    """The status as INFO shows it; nothing of a node that stays."""
    room = leaving_of(state)
    if room.handoff is None:
        return []
    return [
        ("leaving_" + name.replace("-", "_") if name != "leaving" else name, value)
        for name, value in room.leaving_status()
    ]
