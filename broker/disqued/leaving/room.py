"""The leaving room of one node: its drain, while it leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import Job, NodeIds
from disqued.core.lifecycle.listener import NOT_FORWARDED
from disqued.core.runtime.outbox import send
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.leaving.drain import Drain
from disqued.leaving.progress import fields

if TYPE_CHECKING:
    from disqued.core.telemetry.fields import Fields

NAME: Final = "leaving"


class LeavingRoom(Room):
    """Drains the node while it leaves."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.drain: Drain | None = None

    def leaving_changed(self) -> None:
        """Begin to drain, or stop."""
        state = self.state
        drain = self.drain
        if state.view.leaving and drain is None:
            self._begin()
        elif not state.view.leaving and drain is not None:
            self.drain = None
            drain.cancel(state)

    def _begin(self) -> None:
        state = self.state
        self.drain = Drain(state.now_ms)
        jobs, nodes = state.lifecycle.table.count, len(state.view.reachable)
        state.host.log("notice", f"Leaving the cluster: jobs={jobs} nodes={nodes}")

    def cron(self) -> None:
        """Continue the drain; a node that was leaving when it stopped begins it here."""
        if self.state.view.leaving:
            if self.drain is None:
                self._begin()
            drain = self.drain
            assert drain is not None
            drain.run_round(self.state)

    def copy_confirmed(self, job: Job, peer: Peer, had: i64) -> None:  # noqa: ARG002 - it has the job
        """Note that a node took a job."""
        drain = self.drain
        if drain is not None:
            drain.note_confirmed(self.state, job, peer)

    def peer_restarted(self, peer: Peer) -> None:
        """The node must confirm again what it confirmed before."""
        drain = self.drain
        if drain is not None:
            lost: NodeIds = (peer.id,)
            for transfer in drain.in_flight.transfers.values():
                transfer.confirmed = self.state.holders.without(transfer.confirmed, lost)

    def forwarded(self, job_id: bytes, kind: i64, message_flags: i64, delay_s: i64) -> i64:
        """Forward the WORKING or ENQUEUE of a worker to the new holder of its job.

        `message_flags` say what a requeueing counts as. A QUEUED before the ENQUEUE carries them, since ENQUEUE counts
        nothing.
        """
        state = self.state
        drain = self.drain
        if drain is None:
            return NOT_FORWARDED
        entry = drain.forwarding.find(job_id)
        peer = None if entry is None else state.view.peers.get(entry.node_id)
        if entry is None or peer is None:
            return NOT_FORWARDED
        if kind == kinds.ENQUEUE:
            send(state, peer, state.bus.about_job(kinds.QUEUED, job_id, 0, message_flags))
            message_flags = kinds.TRANSFER
        if not send(state, peer, state.bus.about_job(kind, job_id, delay_s, message_flags)):
            return NOT_FORWARDED
        return entry.retry_s

    def leaving_status(self) -> Fields:
        """The progress of the drain (`progress.fields`)."""
        drain = self.drain
        if drain is not None:
            return fields(self.state, drain.progress, len(drain.in_flight.transfers))
        return fields(self.state, None, 0)


def leaving_of(state: NodeState) -> LeavingRoom:
    """The leaving room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, LeavingRoom)
    return room


def info(state: NodeState) -> Fields:
    """The status for INFO; no fields on a node that does not leave."""
    room = leaving_of(state)
    if room.drain is None:
        return []
    return [
        ("leaving_" + name.replace("-", "_") if name != "leaving" else name, value)
        for name, value in room.leaving_status()
    ]
