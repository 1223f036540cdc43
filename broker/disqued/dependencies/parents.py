"""Watches the parents of the held jobs of one node, and takes note of their ends.

Only a node that says that a parent is done frees its children. Other news lead to a doubt: all nodes that can be
reached are asked whether they know a link of the chain that still waits. Only when all of them have answered and none
does, the parent can no longer be done (ELSE).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.bus.kinds import FEATURE_FATES
from disqued.core.fates.fate import DONE, Fate
from disqued.core.fates.record import Record
from disqued.core.fates.watches import Watcher
from disqued.core.jobs.attributes import AFTER, changed
from disqued.core.jobs.job import NOBODY, WAIT_REPL, Job
from disqued.core.jobs.jobid import ttl_range_s
from disqued.core.jobs.parents import parents_of, unmet_of, with_met
from disqued.core.lifecycle.held import Held
from disqued.core.runtime.parts import first_keys
from disqued.dependencies.otherwise import Otherwise
from disqued.dependencies.parent import Parent, chain_ends_ms, is_alive, is_over, reason

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

PARENT_BYTES: Final = 700
"""The memory of a watched parent, beside that of the watch."""
CHILD_BYTES: Final = 300
"""The memory of a held job, beside the job."""
PER_TURN: Final = 100
"""How many jobs learn news of their parents in one turn of the event loop."""
FRESH_MS: Final = 10_000
"""For this long, nodes that said that a parent waits count for further jobs that wait for it."""
ASK_AGAIN_MS: Final = 3000
"""How soon nodes are asked again that did not say whether a parent can still be done."""
CHECK_AGAIN_MS: Final = 60_000
"""How soon a parent is asked about again whose life should be over, and which lives."""
NEWS_KEPT_MS: Final = 600_000
"""How long this node can tell others that a parent is done: other holders of its children may have missed it."""
_GRACE_MS: Final = 2000
"""A job lives a little longer than its ID says: nodes send one second more, and round."""


class Parents(Watcher):
    """The parents of the held jobs of one node."""

    def __init__(self, state: NodeState, otherwise: Otherwise) -> None:
        self._state = state
        self._held = state.lifecycle.held
        self._otherwise = otherwise
        self._news: dict[bytes, Parent] = {}
        """Parents with children that must still learn something, by ID."""

    @property
    def has_work(self) -> bool:
        """Whether there is something to do in this turn."""
        return bool(self._news)

    # --- children -----------------------------------------------------------------------------------------------------

    def take_up(self, held: Held) -> None:
        """Watch the parents of a job that is held since this turn."""
        job = held.job
        self._state.lifecycle.memory.used_bytes += CHILD_BYTES
        is_new = job.state == WAIT_REPL
        for parent_id in unmet_of(job.after):
            parent = self._parent(parent_id, job)
            parent.children[job.id] = None
            if is_new:
                parent.adding[job.id] = None
                if parent.asked_ms < self._state.now_ms - FRESH_MS:
                    self._ask(parent)
            if parent.is_met or parent.gone:
                self._tell_children(parent)
        if is_new:
            self._check_known(held)

    def let_go(self, job: Job) -> None:
        """Watch the parents of a job no longer."""
        self._state.lifecycle.memory.used_bytes -= CHILD_BYTES
        for parent_id in parents_of(job.after):
            parent = self._held.parents.get(parent_id)
            if isinstance(parent, Parent) and job.id in parent.children:
                del parent.children[job.id]
                parent.adding.pop(job.id, None)
                if not parent.children:
                    self._forget(parent)

    def forget_all(self) -> None:
        """All jobs were dropped."""
        parents = list(self._held.parents.values())
        self._held.parents.clear()
        self._news.clear()
        self._otherwise.clear()
        for parent in parents:
            self._state.lifecycle.timers.disarm(parent)
            self._state.watches.unwatch(parent.id, self)

    def _parent(self, parent_id: bytes, child: Job) -> Parent:
        parent = self._held.parents.get(parent_id)
        if isinstance(parent, Parent):
            return parent
        state = self._state
        lives_ms: i64 = i64(ttl_range_s(parent_id)[1]) * 1000 + _GRACE_MS
        parent = Parent(parent_id, min(child.created_ms, state.now_ms) + lives_ms, self.doubt)
        self._held.parents[parent_id] = parent
        state.lifecycle.memory.used_bytes += PARENT_BYTES
        self._ask(parent)
        state.lifecycle.timers.arm(parent, max(parent.until_ms, state.now_ms + ASK_AGAIN_MS))
        return parent

    def _ask(self, parent: Parent) -> None:
        """Ask all nodes what they know, at the end of this turn."""
        parent.asked_ms = self._state.now_ms
        parent.waiting_at = NOBODY
        self._state.watches.watch(parent.id, self)

    def _forget(self, parent: Parent) -> None:
        state = self._state
        del self._held.parents[parent.id]
        self._news.pop(parent.id, None)
        state.lifecycle.timers.disarm(parent)
        state.lifecycle.memory.used_bytes -= PARENT_BYTES
        state.watches.unwatch(parent.id, self)

    # --- news ---------------------------------------------------------------------------------------------------------

    def told(self, job_id: bytes, fate: Fate, node_id: bytes) -> None:
        """Take note of what a node says about a parent."""
        parent = self._held.parents.get(job_id)
        if not isinstance(parent, Parent) or parent.is_met:
            return
        if fate.outcome == DONE:
            parent.is_met = True
            parent.gone = b""
            if node_id != self._state.view.node_id:
                self._keep_news(parent.id, fate)
            self._tell_children(parent)
        elif is_alive(fate):
            parent.gone = b""
            parent.copies = fate.copies
            parent.waiting_at = self._state.holders.plus(parent.waiting_at, node_id)
            if parent.answers is not None:
                self._settle(parent)
            self._note_known(parent)
        elif parent.answers is not None:
            parent.answers[node_id] = fate
            self._judge(parent)
        elif is_over(fate) and not parent.gone:
            self.doubt(parent)

    def _keep_news(self, parent_id: bytes, fate: Fate) -> None:
        """Remember that a parent is done: this node may be the last that knows."""
        state = self._state
        if state.records.get(parent_id) is None:
            known = Fate(DONE, fate.ended_ms, fate.claim, fate.moves)
            state.records.add(Record(parent_id, b"", parent_id, known, state.now_ms + NEWS_KEPT_MS))

    def _note_known(self, parent: Parent) -> None:
        """More nodes say that a parent waits: see which new jobs can be added now."""
        if not parent.adding:
            return
        if not parent.is_known:
            self.refresh_reason(parent)
        else:
            for child_id in list(parent.adding):
                held = self._held.jobs.get(child_id)
                if held is not None:
                    self._check_known(held)

    def _check_known(self, held: Held) -> None:
        """Have a new job added if enough nodes know each of its parents; otherwise note which one is missing."""
        for parent_id in unmet_of(held.job.after):
            parent = self._held.parents.get(parent_id)
            if isinstance(parent, Parent) and not parent.is_known and not parent.is_met:
                held.why = parent.unknown_because
                return
        self._added(held.job)

    def _added(self, job: Job) -> None:
        """All parents of a new job are known, or met."""
        for parent_id in parents_of(job.after):
            parent = self._held.parents.get(parent_id)
            if isinstance(parent, Parent):
                parent.adding.pop(job.id, None)
        self._state.events.parents_known(job.id)

    def refresh_reason(self, parent: Parent) -> None:
        """Note for new jobs why they cannot be added yet."""
        for child_id in parent.adding:
            held = self._held.jobs.get(child_id)
            if held is not None:
                held.why = parent.unknown_because

    # --- what children learn ------------------------------------------------------------------------------------------

    def _tell_children(self, parent: Parent) -> None:
        parent.todo = list(parent.children)
        self._news[parent.id] = parent

    def proceed(self) -> None:
        """Have some children learn that a parent is met, or can no longer be done."""
        left: i64 = PER_TURN
        for parent_id in first_keys(self._news, PER_TURN):
            parent = self._news.get(parent_id)
            if parent is not None and left > 0:
                left = self._tell_some(parent, left)

    def _tell_some(self, parent: Parent, left: i64) -> i64:
        """Have at most `left` children learn the news of a parent; returns how many more can learn something."""
        while parent.todo and left > 0:
            left -= 1
            held = self._held.jobs.get(parent.todo.pop())
            if held is None or held.job.id not in parent.children:
                continue
            if parent.is_met:
                self._meet(held.job, parent)
            elif parent.gone:
                self._otherwise.begin(held.job, parent)
        if not parent.todo:
            self._news.pop(parent.id, None)
            if parent.is_met and parent.id in self._held.parents and not parent.children:
                self._forget(parent)
        return left

    def _meet(self, job: Job, parent: Parent) -> None:
        """A parent of a held job is done."""
        is_new = job.id in parent.adding
        parent.children.pop(job.id, None)
        parent.adding.pop(job.id, None)
        extra = changed(job.extra, {AFTER: with_met(job.after, parent.id)})
        self._state.lifecycle.set_attributes(job, extra)
        if is_new:
            held = self._held.jobs.get(job.id)
            if held is None:
                self._added(job)
            else:
                self._check_known(held)

    # --- doubt --------------------------------------------------------------------------------------------------------

    def doubt(self, parent: Parent) -> None:
        """Ask all nodes whether a parent can still be done."""
        if parent.is_met:
            return
        parent.answers = {}
        self._state.watches.watch(parent.id, self)
        self._state.lifecycle.timers.arm(parent, self._state.now_ms + ASK_AGAIN_MS)

    def _settle(self, parent: Parent) -> None:
        """The parent can still be done: look again when its life should be over."""
        parent.answers = None
        now_ms = self._state.now_ms
        self._state.lifecycle.timers.arm(parent, max(parent.until_ms, now_ms + CHECK_AGAIN_MS))

    def _judge(self, parent: Parent) -> None:
        """Decide whether a parent can still be done, once all nodes that can be reached have answered."""
        state = self._state
        answers = parent.answers
        assert answers is not None
        if state.view.node_id not in answers:
            return
        for peer in state.view.reachable:
            if peer.features & FEATURE_FATES and peer.id not in answers:
                return
        best = parent.best()
        ends_ms = chain_ends_ms(parent, best)
        if not is_over(best) and state.now_ms < ends_ms:
            parent.answers = None
            state.lifecycle.timers.arm(parent, max(ends_ms, state.now_ms + CHECK_AGAIN_MS))
            return
        parent.answers = None
        parent.gone = reason(parent.id, best)
        self.refresh_reason(parent)
        state.lifecycle.timers.arm(parent, state.now_ms + CHECK_AGAIN_MS)
        self._tell_children(parent)
