"""The acks room of one node: remembers finished jobs, and collects acknowledged ones."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.acks.copieswait import CopiesWait
from disqued.acks.counters import FORGOTTEN_EARLY
from disqued.acks.done import ID_BYTES, MOST_BYTES, NAMED_SPAN_MS, RecentlyDone, limit
from disqued.acks.gc import collect
from disqued.core.clients.session import Blocked
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACKED, Job
from disqued.core.jobs.walk import Walk
from disqued.core.lifecycle.times import MAX_COLLECTIONS
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState

NAME: Final = "acks"
JOBS_PER_VISIT: Final = 2000
"""Jobs checked per cron tick after a change of the members."""
REPORT_MS: Final = 60_000
"""The shortest time between two log lines about IDs that were forgotten early."""


class AcksRoom(Room):
    """Collects acknowledged jobs when their wake time comes, and all of them when another node can be asked again.

    By their wake times, jobs that wait for a node would ask it again within three minutes. Until then a node that has
    returned could deliver them again. A round through all jobs therefore starts when the members change, when a node
    connects, and when a link has room again on which jobs could not ask. While a round is running, another one follows
    it, so that no job is left out while nodes come and go.
    """

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.done = RecentlyDone()
        self.named_done = RecentlyDone(NAMED_SPAN_MS)
        """Finished jobs whose IDs were given or derived."""
        self._report_ms: i64 = 0
        """When a lack of room for IDs may be logged again."""
        self._walk = Walk()
        """The round that is running, or over."""
        self._another: bool = False
        """Whether another round follows."""

    def acknowledged(self, job: Job) -> None:
        """Ask the other holders, or forget the job. Only these attempts count for the time of the next one.

        Rounds and clients may ask any number of times in between, which says nothing about how long a holder is away.
        """
        if 0 < job.gc_retry < MAX_COLLECTIONS:
            job.gc_retry += 1
        collect(self.state, job)

    def is_done(self, job_id: bytes) -> bool:
        """Whether a job that this node does not have was finished recently."""
        return self.done.has(job_id) or self.named_done.has(job_id)

    def named_job_ended(self, job: Job) -> None:
        """Remember a finished job that may be added again."""
        self.named_done.note(job.id, self.state.now_ms)

    def client_gone(self, blocked: Blocked) -> None:
        """Watch nothing any more for a client that disconnected."""
        if isinstance(blocked, CopiesWait):
            blocked.stop()

    def buffered_bytes(self) -> i64:
        """The memory that the IDs of finished jobs take."""
        return self.done.used_bytes + self.named_done.used_bytes

    def _tend_done(self) -> None:
        """Forget IDs whose time is over, and report those that had to be forgotten before."""
        state = self.state
        done = self.done
        done.most = limit(state.lifecycle.memory.maximum_bytes)
        done.visit(state.now_ms)
        self.named_done.most = done.most
        self.named_done.visit(state.now_ms)
        early = done.forgotten_early
        if early > 0:
            done.forgotten_early = 0
            state.counters.add(FORGOTTEN_EARLY, early)
            if state.now_ms >= self._report_ms:
                self._report_ms = state.now_ms + REPORT_MS
                state.host.log(
                    "warning",
                    f"More than {done.most} jobs were finished within a minute, so their IDs are remembered for less "
                    "than half a minute, and a later copy is delivered. A higher maxmemory allows for more, "
                    f"up to {MOST_BYTES // ID_BYTES} IDs (finished_jobs_forgotten_early in INFO).",
                )

    def peer_up(self, _peer: Peer) -> None:
        """Start another round."""
        self._another = True

    def peer_connected(self, _peer: Peer) -> None:
        """Start another round: answers of the node may be lost."""
        self._another = True

    def peer_forgotten(self, _peer: Peer) -> None:
        """Start another round."""
        self._another = True

    def _notice_room(self) -> None:
        """Start another round if a link has room again for acknowledgements that were not sent."""
        for peer in self.state.view.peers.values():
            link = peer.link
            if link is not None and link.acks_skipped and not link.congested:
                link.acks_skipped = False
                self._another = True

    def cron(self) -> None:
        """Check some more acknowledged jobs of the current round, and forget IDs of finished jobs."""
        state = self.state
        self._tend_done()
        self._notice_room()
        walk = self._walk
        for _ in range(JOBS_PER_VISIT):
            job = walk.next(state.lifecycle.table)
            if job is not None:
                if job.state == ACKED and job.delivered is not None:
                    collect(state, job)
            elif self._another:
                self._another = False
                walk.begin()
            else:
                return


def acks_of(state: NodeState) -> AcksRoom:
    """The acks room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, AcksRoom)
    return room
