"""Schedules on one node: when each is due next, and the runs that begin here.

The node with the highest score for the name of a schedule fires it. Only that node has a timer for it. When the members
change, each node decides again which schedules are its own, a bounded number at a time. A run of a schedule with STRICT
begins when the majority has granted it (`grants`). Then its job is added, with an ID that is derived from the name and
the time, so two nodes that start the same run add one job.

After a gap only the latest time that has come is run: within LATE_MS, or however late with MISSED once. The others are
counted as missed. Nodes learn of runs at most once a minute, so the times of the last minute may be known to another
node only: they are not counted.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.clients.session import Session
from disqued.core.cluster.entrykinds import LAST_RUN
from disqued.core.cluster.rendezvous import score
from disqued.core.jobs.runs import RunOf
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.core.telemetry.loglimit import LogLimit
from disqued.core.timers.alarm import Alarm
from disqued.errors import ReplyError
from disqued.schedule.candidates import Candidates
from disqued.schedule.counters import FIRED, MISSED, REFUSED
from disqued.schedule.definition import LAST, Definition, Runs
from disqued.schedule.grants import Grants
from disqued.schedule.payload import ASK, GRANTED, OVER, WITHDRAW, Item
from disqued.schedule.timing import Timing

LATE_MS: Final = 60_000
"""A run may begin so late. With MISSED skip it is missed after that; a node that fails must be noticed before."""
PROMPT_MS: Final = 2000
SETTLE_MS: Final = 10_000
"""A run that is later than PROMPT_MS does not begin within SETTLE_MS after the start, or after a node came back: this
node learns meanwhile whether another one has fired."""
EARLY_MS: Final = 1000
"""A run is not granted if it is due so far in the future by the clock of this node."""
ASK_AGAIN_MS: Final = 500
SHARE_MS: Final = 60_000
"""How often the runs of one schedule are shared at most."""
BATCH_MS: Final = 5000
"""How often runs of any schedules are shared at most."""
MOST_COUNTED: Final = 100
"""At most so many times of one gap are counted as missed."""
PER_TURN: Final = 50
"""How many schedules are planned in one turn of the event loop."""
_PATIENT_ASKS: Final = 3
"""After so many questions, members that do not answer are not expected to grant a run."""
_RETRY_MS: Final = 1000
_MOST_RETRY_MS: Final = 10_000
_MOST_DOUBLINGS: Final = 4
_ITEMS_PER_FRAME: Final = 200
_MOST_PROBLEM_BYTES: Final = 200


@mypyc_attr(acyclic=True)
class Asking:
    """A run that waits until the majority grants it."""

    def __init__(self, due_ms: i64, now_ms: i64) -> None:
        self.due_ms: i64 = due_ms
        self.ask_at_ms: i64 = now_ms
        """When the voters that did not answer are asked again."""
        self.asked: i64 = 0
        """How often."""
        self.granted: dict[bytes, None] = {}
        """The members that granted it to this node."""
        self.refused: dict[bytes, bytes] = {}
        """The members that granted it to another node, and to which one."""


class Schedule(Alarm):
    """One schedule, as this node knows it; the alarm rings when it is due and this node fires it."""

    def __init__(self, name: bytes, touched: dict[bytes, Schedule]) -> None:
        # It refers to the schedules that wait, not to the node: the timer wheel would keep the node in the memory.
        super().__init__()
        self.name = name
        self._touched = touched
        self.definition: Definition | None = None
        self.timing: Timing | None = None
        """None if this node does not understand the definition."""
        self.set_ms: i64 = 0
        """When it was set: earlier times do not count."""
        self.paused: bool = False
        self.state_ms: i64 = 0
        """When it was paused or resumed: earlier times do not count."""
        self.runs = Runs()
        self.runs_are_own: bool = False
        """This node made the last of them: it knows all of them."""
        self.begun_ms: i64 = 0
        """The time of the last run that began, or was refused, on this node."""
        self.asking: Asking | None = None
        self.shared_ms: i64 = 0
        """When its runs were shared by this node."""
        self.by_hand_ms: i64 = 0
        """The time of the last run by hand."""

    def ring(self, state: NodeState) -> None:
        """Begin a run."""
        del state
        self._touched[self.name] = self

    @property
    def base_ms(self) -> i64:
        """Times up to this one are dealt with, or do not count."""
        return max(self.set_ms, self.state_ms, self.runs.through_ms, self.begun_ms)


class Adding:
    """A run whose job is being added."""

    def __init__(self, schedule: Schedule, definition: Definition, due_ms: i64) -> None:
        self.schedule = schedule
        self.definition = definition
        self.due_ms: i64 = due_ms
        self.session: Session | None = None
        """Gets the reply; None while the next attempt waits."""
        self.attempts: i64 = 0
        self.next_ms: i64 = 0


class Running:
    """The schedules of one node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self.schedules: dict[bytes, Schedule] = {}
        self.candidates = Candidates(state)
        self.grants = Grants()
        self.settled_ms: i64 = 0
        """When this node knows what the others know."""
        self._touched: dict[bytes, Schedule] = {}
        """Schedules to plan."""
        self._asking: dict[bytes, Schedule] = {}
        """Schedules that ask for a run, or did a moment ago."""
        self._adding: list[Adding] = []
        self._unshared: dict[bytes, Schedule] = {}
        self._next_share_ms: i64 = 0
        self._out: dict[bytes, list[bytes]] = {}
        """Items for other nodes, by node ID; they leave at the end of the turn."""
        self._sharing: bool = False
        self._log = LogLimit(3)

    # --- planning -----------------------------------------------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        """Whether schedules must be planned now."""
        return bool(self._touched)

    def add(self, name: bytes) -> Schedule:
        """Learn of a schedule that was not known."""
        schedule = Schedule(name, self._touched)
        self.schedules[name] = schedule
        return schedule

    def touch(self, schedule: Schedule) -> None:
        """Have a schedule planned soon."""
        self._touched[schedule.name] = schedule

    def touch_all(self) -> None:
        """Have all schedules planned soon."""
        self._touched.update(self.schedules)

    def settle(self) -> None:
        """This node may not know of runs of others for a while."""
        if self._state.view.size > 1:
            self.settled_ms = self._state.now_ms + SETTLE_MS

    def proceed(self) -> None:
        """Plan some schedules."""
        self._look()
        for name in list(self._touched)[:PER_TURN]:
            schedule = self._touched.pop(name)
            if self.schedules.get(name) is schedule:
                self._plan(schedule)
        self.flush()

    def visit(self) -> None:
        """Look at the members, repeat questions and attempts, and share runs."""
        if not self.schedules:
            return
        self._look()
        now_ms = self._state.now_ms
        for schedule in list(self._asking.values()):
            asking = schedule.asking
            if asking is None:
                del self._asking[schedule.name]
            elif asking.ask_at_ms <= now_ms:
                self._ask(schedule, asking)
        self._visit_adding()
        if self._unshared and self._next_share_ms <= now_ms:
            self.share(everything=False)
        self.flush()

    def _look(self) -> None:
        """Plan all schedules if the members have changed."""
        candidates = Candidates(self._state)
        if not candidates.is_like(self.candidates):
            self.candidates = candidates
            self.touch_all()

    def drop(self, schedule: Schedule) -> None:
        """A schedule is removed."""
        self._stop(schedule)
        self._state.lifecycle.timers.disarm(schedule)
        self.schedules.pop(schedule.name, None)
        self._touched.pop(schedule.name, None)
        self._unshared.pop(schedule.name, None)

    def _plan(self, schedule: Schedule) -> None:
        """Begin a run that is due, or set the timer to the next time."""
        state = self._state
        timers = state.lifecycle.timers
        timers.disarm(schedule)
        definition = schedule.definition
        timing = schedule.timing
        if definition is None or timing is None or not self._fires(schedule, definition):
            self._stop(schedule)
            return
        host = state.host
        now_ms = state.now_ms
        base_ms = schedule.base_ms
        due_ms = timing.latest_ms(host, base_ms, now_ms)
        if due_ms > 0:
            late_ms = now_ms - due_ms
            if late_ms > LATE_MS and not definition.missed_once:
                self._stop(schedule)
                self._miss(schedule, due_ms, 1 + self._gap(schedule, timing, due_ms), b"nothing ran it in time")
            elif late_ms > PROMPT_MS and now_ms < self.settled_ms:
                timers.arm(schedule, self.settled_ms)
                return
            else:
                self._begin(schedule, definition, timing, due_ms)
            base_ms = due_ms
        next_ms = timing.next_ms(host, base_ms)
        if next_ms > 0:
            timers.arm(schedule, next_ms)

    def _fires(self, schedule: Schedule, definition: Definition) -> bool:
        """Whether this node fires a schedule."""
        candidates = self.candidates
        if schedule.paused or candidates.unknown > 0 or (definition.strict and not candidates.have_majority):
            return False
        return candidates.first(schedule.name) == self._state.view.node_id

    def _begin(self, schedule: Schedule, definition: Definition, timing: Timing, due_ms: i64) -> None:
        """Begin the run of a time, unless it has begun."""
        asking = schedule.asking
        if asking is not None:
            if asking.due_ms == due_ms:
                return
            self._stop(schedule)
            self._miss(schedule, asking.due_ms, 1, b"no majority of the members agreed in time")
        gap = self._gap(schedule, timing, due_ms)
        if gap > 0:
            self._count_missed(schedule, gap)
        if not definition.strict or self.candidates.size == 1:
            self._start(schedule, definition, due_ms)
            return
        asking = Asking(due_ms, self._state.now_ms)
        schedule.asking = asking
        self._asking[schedule.name] = schedule
        self._ask(schedule, asking)

    def _gap(self, schedule: Schedule, timing: Timing, due_ms: i64) -> i64:
        """How many times were missed before one."""
        base_ms = schedule.base_ms
        if not schedule.runs_are_own:
            base_ms += SHARE_MS
        return timing.count(self._state.host, base_ms, due_ms, MOST_COUNTED) if base_ms < due_ms else 0

    def _stop(self, schedule: Schedule) -> None:
        """Ask no longer for a run."""
        asking = schedule.asking
        if asking is None:
            return
        schedule.asking = None
        self._withdraw(schedule, asking)

    # --- grants -------------------------------------------------------------------------------------------------------

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
            self._start(schedule, definition, asking.due_ms)
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
            self.touch(schedule)

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

    def asked(self, sender: bytes, incarnation: bytes, item: Item) -> None:
        """Another node wants to start a run, or does not want to any more."""
        if item.what == WITHDRAW:
            self.grants.withdraw(item.name, item.due_ms, sender)
            return
        now_ms = self._state.now_ms
        if item.what != ASK or item.due_ms > now_ms + EARLY_MS or self._is_young(item.due_ms):
            return
        schedule = self.schedules.get(item.name)
        holder = b""
        if schedule is None or schedule.runs.through_ms < item.due_ms:
            holder = self.grants.ask(item.name, item.due_ms, sender, incarnation, now_ms)
        if holder:
            self._say(sender, Item(GRANTED, item.due_ms, holder, item.name).packed())
        else:
            self._say(sender, Item(OVER, item.due_ms, sender, item.name).packed())

    def told(self, sender: bytes, item: Item) -> None:
        """Another node answers."""
        schedule = self.schedules.get(item.name)
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

    # --- adding the job -----------------------------------------------------------------------------------------------

    def _start(self, schedule: Schedule, definition: Definition, due_ms: i64) -> None:
        """Add the job of a run."""
        schedule.begun_ms = due_ms
        adding = Adding(schedule, definition, due_ms)
        if not self._try_adding(adding):
            self._adding.append(adding)

    def _try_adding(self, adding: Adding) -> bool:
        """Add a job; False if that is not over yet."""
        state = self._state
        session = Session(b"", state.now_ms)
        session.flushing = True  # no driver has its connection
        definition = adding.definition
        run = RunOf(adding.schedule.name, adding.due_ms, all_copies=adding.attempts == 0)
        adding.session = session
        try:
            state.events.job_wanted(session, definition.queue, definition.body, definition.words, run)
        except ReplyError as error:
            session.out.append(error.encode())
        return self._take_reply(adding, session)

    def _take_reply(self, adding: Adding, session: Session) -> bool:
        """Look for the reply of an attempt; True if the run is over."""
        if not session.out:
            return False
        reply = session.out[0]
        schedule = adding.schedule
        if reply.startswith(b"+"):
            self._fired(schedule, adding.due_ms, reply[1:-2])
            return True
        now_ms = self._state.now_ms
        problem = reply[1:-2][:_MOST_PROBLEM_BYTES]
        is_late = now_ms - adding.due_ms > LATE_MS and not adding.definition.missed_once
        if is_late or schedule.begun_ms > adding.due_ms or self.schedules.get(schedule.name) is not schedule:
            self._miss(schedule, adding.due_ms, 1, problem)
            return True
        if schedule.runs.problem != problem:
            schedule.runs.problem = problem
            self._must_share(schedule)
        adding.session = None
        adding.next_ms = now_ms + min(_RETRY_MS << min(adding.attempts, _MOST_DOUBLINGS), _MOST_RETRY_MS)
        adding.attempts += 1
        return False

    def _visit_adding(self) -> None:
        """Look for replies, and try again."""
        if not self._adding:
            return
        left: list[Adding] = []
        for adding in self._adding:
            session = adding.session
            if session is not None:
                is_over = self._take_reply(adding, session)
            else:
                is_over = adding.next_ms <= self._state.now_ms and self._try_adding(adding)
            if not is_over:
                left.append(adding)
        self._adding = left

    def _fired(self, schedule: Schedule, due_ms: i64, job_id: bytes) -> None:
        """The job of a run was added."""
        self._state.counters.add(FIRED)
        runs = schedule.runs
        runs.fired += 1
        if due_ms >= runs.fired_ms:
            runs.fired_ms = due_ms
            runs.job_id = job_id
            runs.problem = b""
        self._through(schedule, due_ms)

    def _miss(self, schedule: Schedule, due_ms: i64, count: i64, problem: bytes) -> None:
        """A time passed without a run, and so did others before it."""
        self._count_missed(schedule, count)
        schedule.runs.problem = problem
        schedule.begun_ms = max(schedule.begun_ms, due_ms)
        self._through(schedule, due_ms)
        if self._log.allows(schedule.name, int(self._state.now_ms)):
            name = schedule.name.decode("utf-8", "backslashreplace")
            why = problem.decode("utf-8", "backslashreplace")
            self._state.host.log("warning", f"Schedule missed: name={name!r} due_ms={due_ms} why={why!r}")

    def _count_missed(self, schedule: Schedule, count: i64) -> None:
        self._state.counters.add(MISSED, count)
        schedule.runs.missed += count
        self._must_share(schedule)

    def _through(self, schedule: Schedule, due_ms: i64) -> None:
        schedule.runs.through_ms = max(schedule.runs.through_ms, due_ms)
        schedule.runs_are_own = True
        self._must_share(schedule)

    def _must_share(self, schedule: Schedule) -> None:
        if self.schedules.get(schedule.name) is schedule:
            self._unshared[schedule.name] = schedule

    # --- sharing ------------------------------------------------------------------------------------------------------

    def share(self, *, everything: bool) -> None:
        """Share the runs of schedules, of each once a minute, unless all must be shared now."""
        now_ms = self._state.now_ms
        changes: list[tuple[int, bytes, bytes, bytes | None]] = []
        for schedule in list(self._unshared.values()):
            timing = schedule.timing
            if timing is None or (not everything and now_ms < schedule.shared_ms + SHARE_MS):
                continue
            schedule.shared_ms = now_ms
            forgotten_ms = timing.forgotten_ms
            changes.append((LAST_RUN, schedule.name, LAST, schedule.runs.packed(forgotten_ms)))
            del self._unshared[schedule.name]
        if not changes:
            return
        self._next_share_ms = now_ms + BATCH_MS
        self._sharing = True
        try:
            self._state.events.entries_wanted(changes)
        except ReplyError as error:
            self._state.host.log("warning", f"Last runs of schedules not shared: {error}")
        self._sharing = False

    def learn(self, schedule: Schedule, runs: Runs) -> None:
        """Take what a member knows about the runs of a schedule, unless this node knows more."""
        if self._sharing:
            return
        if runs.through_ms < schedule.runs.through_ms:
            self._must_share(schedule)
            return
        schedule.runs = runs
        schedule.runs_are_own = False
        self._unshared.pop(schedule.name, None)
        self.touch(schedule)
