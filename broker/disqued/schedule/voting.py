"""Asks the members for the runs of schedules with STRICT, and answers those that ask.

A run begins when the majority has granted it (`grants`).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.rendezvous import score
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.schedule.adding import Adding
from disqued.schedule.candidates import Candidates
from disqued.schedule.counters import REFUSED
from disqued.schedule.grants import Grants
from disqued.schedule.known import Asking, Schedule
from disqued.schedule.payload import ASK, GRANTED, OVER, WITHDRAW, Item

SETTLE_MS: Final = 10_000
"""For this long after its start, or after a node came back, a node may not know which runs there were."""
EARLY_MS: Final = 1000
"""A run is not granted if it is due so far in the future by the clock of this node."""
ASK_AGAIN_MS: Final = 500
_PATIENT_ASKS: Final = 3
"""After so many questions, members that do not answer are not expected to grant a run."""
_ITEMS_PER_FRAME: Final = 200


class Voting:
    """The questions and answers of one node."""

    def __init__(self, state: NodeState, adding: Adding) -> None:
        self._state = state
        self._adding = adding
        self.candidates = Candidates(state)
        self.grants = Grants()
        self._asking: dict[bytes, Schedule] = {}
        """Schedules that ask for a run, or did a moment ago."""
        self._out: dict[bytes, list[bytes]] = {}
        """Items for other nodes, by node ID; they leave at the end of the turn."""

    def begin(self, schedule: Schedule, due_ms: i64) -> None:
        """Ask for a run."""
        asking = Asking(due_ms, self._state.now_ms)
        schedule.asking = asking
        self._asking[schedule.name] = schedule
        self._ask(schedule, asking)

    def stop(self, schedule: Schedule) -> None:
        """Ask no longer for a run."""
        asking = schedule.asking
        if asking is None:
            return
        schedule.asking = None
        self._withdraw(schedule, asking)

    def visit(self) -> None:
        """Repeat questions that have no answer."""
        now_ms = self._state.now_ms
        for schedule in list(self._asking.values()):
            asking = schedule.asking
            if asking is None:
                del self._asking[schedule.name]
            elif asking.ask_at_ms <= now_ms:
                self._ask(schedule, asking)

    def _ask(self, schedule: Schedule, asking: Asking) -> None:
        """Ask the voters that did not grant the run to this node."""
        state = self._state
        own = state.view.node_id
        asking.ask_at_ms = state.now_ms + ASK_AGAIN_MS
        asking.asked += 1
        asking.refused.clear()
        item = Item(ASK, asking.due_ms, own, schedule.name).packed()
        for node_id in self.candidates.voters:
            if node_id not in asking.granted:
                self._say(node_id, item)
        if own not in asking.granted and not self._is_young(asking.due_ms):
            holder = self.grants.ask(schedule.name, asking.due_ms, own, state.incarnation, state.now_ms)
            self._note(schedule, asking, own, holder)
        self._decide(schedule, asking)

    def _note(self, schedule: Schedule, asking: Asking, voter: bytes, holder: bytes) -> None:
        """Take an answer; an empty holder: a later run was granted."""
        if not holder:
            self._over(schedule, asking)
        elif holder == self._state.view.node_id:
            asking.granted[voter] = None
            asking.refused.pop(voter, None)
        else:
            asking.refused[voter] = holder

    def _decide(self, schedule: Schedule, asking: Asking) -> None:
        """Start the run if the majority has granted it; leave it to another node if that has the majority."""
        definition = schedule.definition
        if schedule.asking is not asking or definition is None:
            return
        candidates = self.candidates
        if candidates.lenient + len(asking.granted) >= candidates.needed():
            schedule.asking = None
            self._adding.start(schedule, definition, asking.due_ms)
            return
        if not asking.refused:
            return
        if candidates.size - len(asking.refused) >= candidates.needed() and asking.asked < _PATIENT_ASKS:
            return
        counts: dict[bytes, int] = {}
        for holder in asking.refused.values():
            counts[holder] = counts.get(holder, 0) + 1
        if max(counts.values()) + candidates.lenient >= candidates.needed():
            self._over(schedule, asking)
            return
        own_score = score(schedule.name, self._state.view.node_id)
        if any(score(schedule.name, holder) > own_score for holder in counts):
            self._withdraw(schedule, asking)
            asking.granted.clear()
            asking.ask_at_ms = self._state.now_ms + 2 * ASK_AGAIN_MS

    def _over(self, schedule: Schedule, asking: Asking) -> None:
        """Another node has started the run."""
        if schedule.asking is asking:
            schedule.asking = None
            schedule.begun_ms = max(schedule.begun_ms, asking.due_ms)
            self._state.counters.add(REFUSED)
            schedule.touch()

    def _withdraw(self, schedule: Schedule, asking: Asking) -> None:
        """Give back what was granted, and what may have been."""
        own = self._state.view.node_id
        self.grants.withdraw(schedule.name, asking.due_ms, own)
        item = Item(WITHDRAW, asking.due_ms, own, schedule.name).packed()
        for node_id in self.candidates.voters:
            self._say(node_id, item)

    def _is_young(self, due_ms: i64) -> bool:
        """Whether this node may have granted a run before it restarted; it learns meanwhile whether there was one."""
        state = self._state
        return due_ms <= state.started_ms + EARLY_MS and state.now_ms < state.started_ms + SETTLE_MS

    def asked(self, schedule: Schedule | None, sender: bytes, incarnation: bytes, item: Item) -> None:
        """Another node wants to start a run, or does not want to any more."""
        if item.what == WITHDRAW:
            self.grants.withdraw(item.name, item.due_ms, sender)
            return
        now_ms = self._state.now_ms
        if item.what != ASK or item.due_ms > now_ms + EARLY_MS or self._is_young(item.due_ms):
            return
        holder = b""
        if schedule is None or schedule.runs.through_ms < item.due_ms:
            holder = self.grants.ask(item.name, item.due_ms, sender, incarnation, now_ms)
        if holder:
            self._say(sender, Item(GRANTED, item.due_ms, holder, item.name).packed())
        else:
            self._say(sender, Item(OVER, item.due_ms, sender, item.name).packed())

    def told(self, schedule: Schedule | None, sender: bytes, item: Item) -> None:
        """Another node answers."""
        asking = None if schedule is None else schedule.asking
        if schedule is None or asking is None or asking.due_ms != item.due_ms or sender not in self.candidates.voters:
            return
        if item.what == OVER:
            self._over(schedule, asking)
        elif item.what == GRANTED and item.node_id:
            self._note(schedule, asking, sender, item.node_id)
            self._decide(schedule, asking)

    def _say(self, node_id: bytes, item: bytes) -> None:
        self._out.setdefault(node_id, []).append(item)

    def flush(self) -> None:
        """Send the items of this turn."""
        if not self._out:
            return
        out = self._out
        self._out = {}
        state = self._state
        for node_id, items in out.items():
            peer = state.view.peers.get(node_id)
            if peer is None:
                continue
            for at in range(0, len(items), _ITEMS_PER_FRAME):
                send(state, peer, state.bus.other(kinds.RUNS, b"".join(items[at : at + _ITEMS_PER_FRAME])))
