"""Jobs that schedules add: as ADDJOB does, with an ID that is derived from the schedule and the time."""

from __future__ import annotations

from typing import Final

from disqued.admission.addjob import add
from disqued.admission.options import complete_for, name_run, parse_options, settings_of
from disqued.core.clients.session import Session
from disqued.core.jobs.runs import RunOf
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState

COPIES_MS: Final = 5000
"""How long a run waits for the copies of its job."""


class AdmissionRoom(Room):
    """Adds the jobs of schedules on one node."""

    def __init__(self, state: NodeState) -> None:
        # Without its own `__init__`, an instance of a compiled class never leaves the memory if the class inherits one.
        super().__init__(state)

    def job_checked(self, queue: bytes, words: list[bytes]) -> None:
        """Refuse options that ADDJOB would refuse."""
        options = parse_options(words, 0)
        complete_for(options, settings_of(self.state, queue), self.state.view.size)

    def job_wanted(self, session: Session, queue: bytes, body: bytes, words: list[bytes], given: RunOf) -> None:
        """Add a job. It waits for as many copies as nodes can be reached, if at all."""
        state = self.state
        options = parse_options(words, 0)
        name_run(options, given.characters(), given.name, int(given.due_ms))
        complete_for(options, settings_of(state, queue), state.view.size)
        options.confirmed = min(options.replicate, 1 + len(state.view.reachable)) if given.all_copies else 1
        add(state, session, queue, body, COPIES_MS, options)
