"""Checks every call of a lifecycle verb against the table of transitions.

`TransitionCheck` wraps the verbs of `Lifecycle` while it is entered, on the interpreted build only: functions that are
compiled cannot be replaced. Each call must do exactly what one row of the table says. What verbs or event handlers do
that are called in between is left out, because they are checked by themselves. Nor may anything but a verb change the
state or the flags of a job between two calls. Violations are collected, not raised, so that a run continues.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self
from weakref import WeakKeyDictionary

from disqued.core.jobs.job import BCAST_WILLQUEUE, MAX_COUNTER, STATE_NAMES, Job
from disqued.core.lifecycle import lifecycle as module
from disqued.core.lifecycle.lifecycle import Lifecycle
from disqued.core.lifecycle.transitions import (
    ADDITIONAL_DELIVERIES,
    NACKS,
    OUTSIDE,
    QUESTIONS,
    TO_HOLDERS,
    TRANSITIONS,
    VERBS,
    Transition,
)

POSSIBLE: Final = str(module.__file__).endswith(".py")
"""Whether the verbs can be wrapped."""
_SHOWN: Final = 20
"""Violations that are kept; more of them say nothing new."""


def state_name(state: int) -> str:
    """The name of a state, as people read it."""
    return "outside" if state == OUTSIDE else STATE_NAMES[state].decode()


class _Call:
    """One call of a verb: what it did itself so far."""

    def __init__(self, verb: str, lifecycle: Lifecycle, job: Job) -> None:
        self.verb = verb
        self.lifecycle = lifecycle
        self.job = job
        self.before = self._state()
        self.after = self.before
        self.flags_before = int(job.flags)
        self.is_set = 0
        self.is_cleared = 0
        self.counted: list[str] = []
        self.records: list[str] = []
        self.events: list[str] = []
        self.then: list[str] = []
        self.resume()

    def _state(self) -> int:
        job = self.job
        return int(job.state) if self.lifecycle.table.get(job.id) is job else OUTSIDE

    def resume(self) -> None:
        """Begin to observe: what changed before was done by somebody else."""
        job = self.job
        self._state_seen = self._state()
        self._flags_seen = int(job.flags)
        self._counters_seen = (int(job.nacks), int(job.additional_deliveries))

    def pause(self) -> None:
        """Note what the verb changed since `resume`."""
        job = self.job
        state = self._state()
        if state != self._state_seen:
            self.after = state
        flags = int(job.flags)
        self.is_set |= flags & ~self._flags_seen
        self.is_cleared |= self._flags_seen & ~flags
        if job.nacks != self._counters_seen[0]:
            self.counted.append(NACKS)
        if job.additional_deliveries != self._counters_seen[1]:
            self.counted.append(ADDITIONAL_DELIVERIES)

    def obeys(self, row: Transition) -> bool:
        """Whether this is exactly what the row says."""
        job = self.job
        flags = int(job.flags)
        sets = row.sets | (BCAST_WILLQUEUE if row.announces and job.retry_s > 0 else 0)
        events = [row.event] if row.event and (row.event not in TO_HOLDERS or job.delivered is not None) else []
        counted = [row.counts] if row.counts else []
        if row.counts and getattr(job, row.counts) == MAX_COUNTER:
            counted = self.counted
        return (
            row.verb == self.verb
            and self.before in row.before
            and self.after == (self.before if row.after is None else row.after)
            and (row.retried is None or row.retried == (job.retry_s > 0))
            and self.flags_before & row.needs == row.needs
            and not self.flags_before & row.lacks
            and flags & sets == sets
            and not flags & row.clears & ~sets
            and not self.is_set & ~sets
            and not self.is_cleared & ~row.clears
            and self.counted == counted
            and self.records == ([row.record] if row.record else [])
            and self.events == events
            and tuple(self.then) == row.then
        )

    @property
    def did_nothing(self) -> bool:
        """Whether the job is as it was before, and nobody heard anything."""
        return (
            self.after == self.before
            and not (self.is_set or self.is_cleared)
            and not (self.counted or self.records or self.events or self.then)
        )

    def __str__(self) -> str:
        """What was done, for a person who compares it with the table."""
        return (
            f"{self.verb}: {state_name(self.before)} -> {state_name(self.after)}, flags {self.flags_before:#x}, "
            f"set {self.is_set:#x}, cleared {self.is_cleared:#x}, counted {self.counted}, records {self.records}, "
            f"events {self.events}, then {self.then}, retry {self.job.retry_s} s, job {self.job.id!r}"
        )


class _Recorder:
    """Stands in for the journal or the events of a lifecycle during a call, and notes which methods are called."""

    def __init__(self, check: TransitionCheck, real: object, notes: str) -> None:
        self._check = check
        self._real = real
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        """A method of the real one, noted in the call under way when it is called about the job of that call."""
        value = getattr(self._real, name)
        if not callable(value):
            return value

        def noted(about: object, *args: object, **options: object) -> object:
            call = self._check.current
            if call is None or about is not call.job:
                return value(about, *args, **options)
            call.pause()
            self._check.calls.append(None)
            result: object = None
            try:
                result = value(about, *args, **options)
                return result
            finally:
                if name not in QUESTIONS or result:
                    getattr(call, self._notes).append(name)
                self._check.calls.pop()
                call.resume()

        return noted


class TransitionCheck:
    """Holds the verbs to the table as long as it is entered."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.used: set[Transition] = set()
        """Rows that were obeyed."""
        self.calls: list[_Call | None] = []
        """The calls under way, the innermost last; None while an event is handled."""
        self._known: WeakKeyDictionary[Job, tuple[int, int]] = WeakKeyDictionary()
        """State and flags of jobs after their last verb."""
        self._originals = {verb: getattr(Lifecycle, verb) for verb in VERBS}
        self._rows = {verb: [row for row in TRANSITIONS if row.verb == verb] for verb in VERBS}

    @property
    def current(self) -> _Call | None:
        """The call under way."""
        return self.calls[-1] if self.calls else None

    def __enter__(self) -> Self:
        """Wrap the verbs."""
        if POSSIBLE:
            for verb, original in self._originals.items():
                setattr(Lifecycle, verb, self._wrapped(verb, original))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Unwrap the verbs."""
        if POSSIBLE:
            for verb, original in self._originals.items():
                setattr(Lifecycle, verb, original)

    def _violate(self, text: str) -> None:
        if len(self.violations) < _SHOWN:
            self.violations.append(text)

    def _wrapped(self, verb: str, original: Callable[..., object]) -> Callable[..., object]:
        def checked(lifecycle: Lifecycle, subject: Any, *args: object, **options: object) -> object:
            job = subject.order.first() if verb == "take" else subject
            if job is None:
                return original(lifecycle, subject, *args, **options)
            return self._checked(verb, lifecycle, job, lambda: original(lifecycle, subject, *args, **options))

        return checked

    def _checked(self, verb: str, lifecycle: Lifecycle, job: Job, act: Callable[[], object]) -> object:
        """Call a verb and compare what it did with its rows."""
        call = _Call(verb, lifecycle, job)
        outer = self.current
        if outer is not None and outer.job is job:
            outer.pause()
            outer.then.append(verb)
        elif not self._is_as_left(call):
            self._violate(f"something other than a verb changed {job.id!r} before {verb}")
        journal, events = lifecycle.journal, lifecycle.events
        if not isinstance(journal, _Recorder):
            anything: Any = lifecycle
            anything.journal = _Recorder(self, journal, "records")
            anything.events = _Recorder(self, events, "events")
        self.calls.append(call)
        try:
            result = act()
            call.pause()
        finally:
            self.calls.pop()
            lifecycle.journal, lifecycle.events = journal, events
            if outer is not None and outer.job is job:
                outer.resume()
        self._judge(call)
        return result

    def _is_as_left(self, call: _Call) -> bool:
        """Whether the job is as its last verb left it."""
        job = call.job
        if call.before == OUTSIDE or any(other is not None and other.job is job for other in self.calls):
            return True
        seen = (int(job.state), int(job.flags))
        return self._known.get(job, seen) == seen

    def _judge(self, call: _Call) -> None:
        job = call.job
        obeyed = [row for row in self._rows[call.verb] if call.obeys(row)]
        self.used.update(obeyed)
        applies = any(call.before in row.before for row in self._rows[call.verb])
        if not obeyed and (applies or not call.did_nothing):
            self._violate(f"no row of the table of transitions says {call}")
        if call.lifecycle.table.get(job.id) is not job:
            self._known.pop(job, None)
        else:
            self._known[job] = (int(job.state), int(job.flags))
