"""The fates room of one node: keeps records of finished jobs, tells those who watch jobs, and asks other nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.fates.fate import UNKNOWN
from disqued.core.fates.keeper import FateKeeper
from disqued.core.fates.watches import WATCH_BYTES
from disqued.core.runtime.outbox import send_when_logged
from disqued.core.runtime.parts import first_keys
from disqued.core.runtime.room import Room
from disqued.core.runtime.skipped import Skipped, has_no_room
from disqued.fates.askers import Askers
from disqued.fates.asking import MOST_PER_TURN, Asking
from disqued.fates.keeping import Keeping, origin_of
from disqued.fates.knowing import fate_here
from disqued.fates.payload import MOST_ASKED, pack_answer
from disqued.fates.waiting import JobsWait

if TYPE_CHECKING:
    from disqued.core.clients.session import Blocked
    from disqued.core.cluster.peer import Peer
    from disqued.core.fates.fate import Fate
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState

NAME: Final = "fates"
_FRAME_BYTES: Final = 256 << 10
"""Answers are sent in messages of about this size: a node may get no longer ones than 1 MiB."""


class _Keeper(FateKeeper):
    """Keeps what acks of other nodes and of workers say about the ends of jobs."""

    def __init__(self, room: FatesRoom) -> None:
        self._room = room

    def receive(self, job_id: bytes, fate: Fate, keep_ms: i64) -> None:
        """Keep what another node knows about the end of a job that this node has, or whose record it has."""
        if fate.outcome != UNKNOWN:
            self._room.keeping.note_received(job_id, fate, keep_ms)
            self._room.state.watches.note_change(job_id)

    def take_result(self, job_id: bytes, result: bytes, claim: i64) -> bool:
        """Keep the result of a job that is acknowledged next; False if no record of the job would be kept."""
        return self._room.keeping.note_result(job_id, result, claim)

    def ask_now(self) -> None:
        """Ask other nodes at once; this node is asked at the end of the turn."""
        for job_id in self._room.asking.ask_fresh():
            self._room.state.watches.note_change(job_id)


class FatesRoom(Room):
    """Knows what becomes of jobs."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.keeping = Keeping(state)
        self.asking = Asking(state)
        self.askers = Askers(state)
        self._untold = Skipped(state)
        self._frees: bool = False
        """Records were dropped at once, and their memory is not freed yet."""
        state.watches.keeper = _Keeper(self)

    def ended(self, job: Job, outcome: i64, successor: bytes | None) -> None:
        """Keep a record, and have those told who watch the job or its chain."""
        self.keeping.note_end(job, outcome, successor)
        if self.state.lifecycle.watched:
            self.state.watches.note_change(job.id)
            self.state.watches.note_change(origin_of(job))

    def fate_of(self, job_id: bytes) -> Fate:
        """What this node knows about the end of a job or of its chain."""
        return fate_here(self.state, job_id)

    def is_done(self, job_id: bytes) -> bool:
        """Whether there is a record of the job which says that it must not be delivered."""
        record = self.state.records.get(job_id)
        return record is not None and record.is_final

    def all_dropped(self) -> None:
        """Forget all records."""
        self.state.records.drop_all()
        self._frees = True
        self.state.lifecycle.memory.used_bytes += WATCH_BYTES * len(self.state.lifecycle.watched)

    def client_gone(self, blocked: Blocked) -> None:
        """Watch nothing any more for a client that disconnected."""
        if isinstance(blocked, JobsWait):
            blocked.stop()

    def deadline_ms(self) -> i64:
        """At once if somebody must be told, or a node asked."""
        return self.state.now_ms if self.state.watches.has_work or self._frees else 0

    def due(self) -> None:
        """Tell those who watch jobs whose fates changed, and ask about jobs that are watched since this turn."""
        state = self.state
        if self._frees:
            self._frees = state.records.free_part()
        if state.loading or state.ending:
            return
        self._tell_changes()
        for job_id in self.asking.ask_fresh():
            state.watches.tell(job_id, fate_here(state, job_id), state.view.node_id)

    def cron(self) -> None:
        """Repeat questions, send what links had no room for, and forget old questions."""
        self.asking.ask_skipped()
        for peer, job_ids in self._untold.ready():
            self._send(peer, job_ids)
        for job_id in self.asking.repeat():
            self.state.watches.tell(job_id, fate_here(self.state, job_id), self.state.view.node_id)
        self.askers.forget_old()
        self.keeping.make_room()

    def answer(self, asker: Peer, job_ids: list[bytes]) -> None:
        """Answer a node that asks about jobs, and remember it."""
        for job_id in job_ids:
            self.askers.remember(job_id, asker.id)
        self._send(asker, job_ids)

    def _tell_changes(self) -> None:
        """Tell this node and others about jobs whose fates may have changed."""
        state = self.state
        changed = state.watches.changed
        by_node: dict[bytes, list[bytes]] = {}
        told = first_keys(changed, MOST_PER_TURN)
        for job_id in told:
            del changed[job_id]
            watched = state.lifecycle.watched.get(job_id)
            for node_id in () if watched is None else watched.askers:
                by_node.setdefault(node_id, []).append(job_id)
        for node_id, job_ids in by_node.items():
            peer = state.view.peers.get(node_id)
            if peer is not None:
                self._send(peer, job_ids)
        for job_id in told:
            state.watches.tell(job_id, fate_here(state, job_id), state.view.node_id)
        confirmed, state.watches.confirmed = state.watches.confirmed, []
        for job_id, node_id in confirmed:
            state.watches.tell(job_id, fate_here(state, job_id), node_id)

    def _send(self, peer: Peer, job_ids: list[bytes]) -> None:
        """Send JOBTOLD about jobs; a node whose link is congested gets the rest when there is room again."""
        state = self.state
        parts: list[bytes] = []
        size = 0
        for index, job_id in enumerate(job_ids):
            if has_no_room(peer):
                self._untold.add(peer, job_ids[index:])
                break
            part = pack_answer(job_id, fate_here(state, job_id))
            if parts and (size + len(part) > _FRAME_BYTES or len(parts) == MOST_ASKED):
                send_when_logged(state, peer, state.bus.other(kinds.JOBTOLD, b"".join(parts)))
                parts, size = [], 0
            parts.append(part)
            size += len(part)
        if parts:
            send_when_logged(state, peer, state.bus.other(kinds.JOBTOLD, b"".join(parts)))


def fates_of(state: NodeState) -> FatesRoom:
    """The fates room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, FatesRoom)
    return room
