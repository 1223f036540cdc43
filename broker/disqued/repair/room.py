"""The repair room of one node: notices that copies were lost, and has them made again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.clients.session import Session
from disqued.core.cluster.holders import lists
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACKED, Job
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import note_holder, send_setack
from disqued.repair.backlog import Backlog
from disqued.repair.comparing import Comparing
from disqued.repair.counters import REBUILT
from disqued.repair.dataidfile import DataIdFile
from disqued.repair.liveness import Liveness
from disqued.repair.rebuilding import Rebuilding
from disqued.repair.survey import Survey

if TYPE_CHECKING:
    from disqued.core.telemetry.fields import Fields

NAME: Final = "repair"
MOST_FREE: Final = 1 << 60
"""The free memory of a node without a limit, in bytes, less what it uses."""
ANNOUNCE_MS: Final = 1000
"""The shortest time between two announcements of free memory."""
_CHANGE: Final = 8
"""It is announced when it changed by more than this part."""
PAUSE_MS: Final = 1000
"""The shortest time between two surveys, unless a node lost its jobs."""
SHORT_MS: Final = 60_000
"""The time between two surveys while jobs have too few copies that no node can keep."""


class RepairRoom(Room):
    """Keeps the copies of the jobs of one node complete."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.data = DataIdFile(state)
        self.liveness = Liveness(state)
        self.backlog = Backlog()
        self.rebuilding = Rebuilding(state, self.liveness, self.backlog)
        self.survey = Survey(state, self.liveness, self.backlog)
        self.comparing = Comparing(state, self.liveness, self.backlog, self.rebuilding.rebuilds)
        self._losses: dict[bytes, int] = {}
        """The nodes that lost their jobs since the last survey began, and the eras in which they came back."""
        self._restarted: dict[bytes, int] = {}
        """The nodes that started again and have not announced their data ID yet, and the eras in which they did."""
        self._wanted: bool = False
        """Whether another survey must begin."""
        self._wanted_at_ms: i64 = 0
        self._progress_ms: i64 = 0
        """When fewer jobs were left than before, or none."""
        self._least: i64 = 0
        """How many were left then."""
        self._told_free: i64 = -1
        self._told_ms: i64 = 0

    # --- the data ID of this node -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Decide the data ID, unless the jobs are still being loaded."""
        self._decide()

    def _decide(self) -> None:
        if not self.data.data_id and not self.state.loading:
            self.data.decide()
            self.comparing.soon = self.state.lifecycle.table.count > 0
            self._announce()
            self._want(PAUSE_MS)

    def _announce(self) -> None:
        """Have the data ID and the free memory announced, if that changed."""
        state = self.state
        memory = state.lifecycle.memory
        free: i64 = 0
        if memory.level() == 0:
            most: i64 = memory.maximum_bytes if memory.maximum_bytes > 0 else MOST_FREE
            free = max(most - memory.counted_bytes, 0)
        told = self._told_free
        changed: i64 = free - told if free > told else told - free
        if told >= 0 and (state.now_ms - self._told_ms < ANNOUNCE_MS or changed * _CHANGE <= told):
            return
        self._told_free = free
        self._told_ms = state.now_ms
        state.view.data = self.data.data_id + int(free).to_bytes(8, "big")

    def config_changed(self, attribute: str) -> None:
        """Keep the data ID beside the append-only file, and count what must be repaired again."""
        if attribute == "dir":
            self.data.moved()
        elif attribute in ("repair", "repair_after"):
            self._want(0)

    def last_rewrite(self, session: Session) -> None:  # noqa: ARG002 - the file is for the next start
        """The node writes all its jobs to a file and ends: the next start has them."""
        if self.state.view.size > 1:
            self.data.save_now()

    # --- what other nodes have ----------------------------------------------------------------------------------------

    def learn(self, peer: Peer, data_id: bytes) -> None:
        """A node says which data ID it has."""
        before = peer.data_id
        peer.data_id = data_id
        peer.data_known = True
        era = self._restarted.pop(peer.id, -1)
        if before and data_id != before:
            table = self.state.lifecycle.table
            if era < 0:
                table.begin_era(peer.id)
                era = int(table.era)
            self._losses[peer.id] = era
            self.state.host.log("notice", f"Node {peer.id.decode('ascii', 'replace')} came back without its jobs")
            self._want(0)
        elif era >= 0:
            self._want(PAUSE_MS)

    def peer_restarted(self, peer: Peer) -> None:
        """It will say whether it has its jobs."""
        if peer.features & kinds.FEATURE_REPAIR:
            self._restarted[peer.id] = int(self.state.lifecycle.table.era)

    def peer_forgotten(self, peer: Peer) -> None:
        """Its copies do not count any more."""
        self._restarted.pop(peer.id, None)
        self._losses.pop(peer.id, None)
        self.comparing.forget(peer)
        self._want(0)

    def peer_up(self, peer: Peer) -> None:  # noqa: ARG002 - whichever it is
        """It may take copies for which there was no other node."""
        self._want(PAUSE_MS)

    def copy_confirmed(self, job: Job, peer: Peer, had: i64) -> None:  # noqa: ARG002 - it has the job
        """Note that a node has a copy; if the job is done, tell it so."""
        table = self.state.lifecycle.table
        if table.settling:
            table.note_seen(job, (peer.id,))
        self.liveness.absent.remove(job.id, peer.id)
        if peer.features & kinds.FEATURE_REPAIR and not job.is_dummy:
            delivered = job.delivered
            if delivered is None or not lists(delivered, peer.id):
                note_holder(self.state, job, peer)
                if job.state == ACKED:
                    send_setack(self.state, job, peer)
        self.rebuilding.note_confirmed(job, peer)

    # --- what drives it -----------------------------------------------------------------------------------------------

    def _want(self, after_ms: i64) -> None:
        """Have a survey begin after a time, or at the time that was set before if that comes first."""
        at_ms: i64 = self.state.now_ms + after_ms
        if not self._wanted or at_ms < self._wanted_at_ms:
            self._wanted_at_ms = at_ms
        self._wanted = True

    def deadline_ms(self) -> i64:
        """At once while a survey or a comparison runs; otherwise when the next jobs are sent."""
        if self.survey.active or self.comparing.active:
            return self.state.now_ms
        return self.rebuilding.next_ms

    def due(self) -> None:
        """Look at more jobs."""
        self._decide()
        if self.survey.active and self.survey.proceed(self.rebuilding.rebuilds) and self.survey.without_node > 0:
            self._want(SHORT_MS)
        self.comparing.proceed()
        if 0 < self.rebuilding.next_ms <= self.state.now_ms:
            self.rebuilding.step()

    def cron(self) -> None:
        """Begin a survey if one is wanted, and make copies."""
        state = self.state
        self._decide()
        self._announce()
        self.data.visit()
        if self.liveness.refresh():
            self._want(0)
        if state.lifecycle.table.settling and not (self._restarted or self._losses or self.survey.active):
            state.lifecycle.table.settle()
        left: i64 = self.under_replicated
        if left < self._least or not self.waits_for():
            self._progress_ms = state.now_ms
        self._least = left
        if self.survey.active:
            return
        if self._wanted and state.now_ms >= self._wanted_at_ms:
            self._wanted = False
            losses, self._losses = self._losses, {}
            self.survey.begin(losses, self._restarted)
            return
        self.backlog.clean(state, self.liveness)
        self.liveness.absent.clean(state.lifecycle.table)
        self.rebuilding.next_ms = 0
        if state.config.repair and not state.view.leaving:
            self.comparing.visit()
            self.rebuilding.run_round()

    def all_dropped(self) -> None:
        """Forget what had to be repaired."""
        self.rebuilding.clear()
        self.backlog.clear()
        self.liveness.absent.clear()
        self.comparing.clear()
        if self.survey.active:
            self.survey.end()
        self._want(0)

    def leaving_changed(self) -> None:
        """A leaving node makes no copies: it transfers its jobs."""
        self.rebuilding.clear()
        self._want(0)

    # --- what it shows ------------------------------------------------------------------------------------------------

    @property
    def under_replicated(self) -> i64:
        """Unfinished jobs of this node with fewer live copies than REPLICATE, as far as this node knows."""
        found: i64 = self.backlog.count + self.survey.without_node
        if self.survey.active:
            found = max(found, self.survey.before)
        return found + len(self.rebuilding.rebuilds)

    def waits_for(self) -> str:
        """Why this node cannot say that all jobs have their copies; empty if they do, or if that is impossible now."""
        state = self.state
        if not state.config.repair or state.view.size == 1:
            return ""
        for peer in state.view.reachable:
            if peer.features & kinds.FEATURE_REPAIR and not peer.data_known:
                return f"node {peer.id.decode('ascii', 'replace')} has not said yet which jobs it has"
        if self.survey.active or (self._wanted and (self._losses or self._wanted_at_ms <= state.now_ms)):
            return "this node looks for lost copies"
        left: i64 = self.backlog.count + len(self.rebuilding.rebuilds)
        return f"jobs with lost copies: {left}" if left else ""

    def repair_status(self, *, now: bool) -> Fields:
        """The progress of the repair, after another survey was wanted if it must begin `now`."""
        state = self.state
        if now:
            self._want(0)
            self.comparing.hurry()
        why = self.waits_for()
        return [
            ("enabled", "yes" if state.config.repair else "no"),
            ("done", "no" if why else "yes"),
            ("waits-for", why),
            ("seconds-without-progress", int(state.now_ms - self._progress_ms) // 1000 if why else 0),
            ("jobs-under-replicated", int(self.under_replicated)),
            ("jobs-in-flight", len(self.rebuilding.rebuilds)),
            ("jobs-without-node", int(self.survey.without_node)),
            ("copies-rebuilt", sum([int(state.counters.value(counter)) for counter in REBUILT])),
        ]


def repair_of(state: NodeState) -> RepairRoom:
    """The repair room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, RepairRoom)
    return room
