"""What a log must have after each operation, to compare it with what a start finds."""

from __future__ import annotations

from random import Random

from disqued.raft.entry import Entry
from raftlog.stage import Stage, entry, hard


class Shadow:
    """One group."""

    def __init__(self) -> None:
        self.hard = (0, b"")
        self.snapshot = (0, 0, b"")
        self.entries: dict[int, Entry] = {}
        self.needed: set[int] = set()
        self.last = 0

    def copy(self) -> Shadow:
        """The state as it is now."""
        other = Shadow()
        other.hard = self.hard
        other.snapshot = self.snapshot
        other.entries = dict(self.entries)
        other.needed = set(self.needed)
        other.last = self.last
        return other

    def fits(self, stage: Stage, group: int) -> bool:
        """Whether the log has exactly this, but for released entries up to the snapshot, which may still be there."""
        recovered = stage.owner.groups[group]
        snapshot = (int(recovered.snapshot_index), int(recovered.snapshot_term), recovered.snapshot_state)
        found = {int(entry.index): entry for entry in stage.fetch(group, 1, 1 << 40)}
        return (
            (int(recovered.hard.term), recovered.hard.vote) == self.hard
            and snapshot == self.snapshot
            and int(recovered.last_index) == self.last
            and all(self.entries.get(index) == entry for index, entry in found.items())
            and all(index in found for index in self.needed)
            and all(index in found for index in self.entries if index > self.snapshot[0])
        )


class History:
    """Runs random operations on a log, and keeps the state after each."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self.chance = Random(seed)
        self.groups: dict[int, Shadow] = {}
        self.states: list[dict[int, Shadow]] = [{}]
        """The states after each operation."""
        self.tickets: list[tuple[int, int]] = []
        """Ticket, and how many operations it covers."""

    @property
    def safe(self) -> int:
        """How many operations are persisted."""
        return max([count for ticket, count in self.tickets if ticket <= self.stage.log.safe], default=0)

    def operate(self) -> None:
        """Do something."""
        number = self.chance.randint(1, 3)
        group = self.groups.setdefault(number, Shadow())
        draw = self.chance.random()
        if draw < 0.15:
            self._vote(number, group)
        elif draw < 0.6 or group.last < 3:
            self._append(number, group)
        elif draw < 0.8:
            self._release(number, group)
        elif draw < 0.95:
            self._snapshot(number, group)
        elif draw < 0.97:
            self._remove(number)
        else:
            self._install(number, group)
        self.note()

    def note(self) -> None:
        """Keep the state as it is now: a frame may end here."""
        self.states.append({number: group.copy() for number, group in self.groups.items()})

    def _vote(self, number: int, group: Shadow) -> None:
        group.hard = (group.hard[0] + 1, self.chance.choice([b"", b"candidate"]))
        self.stage.log.save_hard(number, hard(*group.hard))

    def _append(self, number: int, group: Shadow) -> None:
        first = group.last + 1
        if self.chance.random() < 0.2:
            first = max(group.snapshot[0] + 1, group.last - 2, 1)
            group.hard = (group.hard[0] + 1, b"")
            self.stage.log.save_hard(number, hard(*group.hard))
            self.note()
        term = max(group.hard[0], 1)
        for index in range(first, first + self.chance.randint(1, 4)):
            added = entry(index, term, self.chance.randbytes(self.chance.randint(0, 200)))
            self.stage.log.append(number, [added])
            for replaced in range(index, group.last + 1):
                group.entries.pop(replaced, None)
                group.needed.discard(replaced)
            group.entries[index] = added
            group.needed.add(index)
            group.last = index
            self.note()

    def _release(self, number: int, group: Shadow) -> None:
        for index in sorted(group.needed)[: self.chance.randint(1, 6)]:
            if self.chance.random() < 0.8:
                self.stage.log.release(number, index)
                group.needed.discard(index)

    def _snapshot(self, number: int, group: Shadow) -> None:
        index = self.chance.randint(group.snapshot[0], group.last)
        if index > group.snapshot[0]:
            term = int(group.entries[index].term)
            state = self.chance.randbytes(self.chance.randint(0, 500))
            self.stage.log.save_snapshot(number, index, term, b"members", state)
            self.stage.log.flush(self.stage.host.now_ms)
            group.snapshot = (index, term, state)
            needed = group.needed
            group.entries = {at: kept for at, kept in group.entries.items() if at > index or at in needed}

    def _remove(self, number: int) -> None:
        self.stage.log.remove_group(number)
        del self.groups[number]

    def _install(self, number: int, group: Shadow) -> None:
        term = max(group.hard[0], group.snapshot[1], 1)
        first = group.last + self.chance.randint(1, 3)
        received = [entry(index, term, self.chance.randbytes(50)) for index in (first, first + 3)]
        state = self.chance.randbytes(self.chance.randint(0, 500))
        self.stage.log.receive_entries(number, received)
        self.stage.log.install_snapshot(number, first + 5, term, b"members", state)
        self.stage.log.flush(self.stage.host.now_ms)
        group.snapshot = (first + 5, term, state)
        group.last = first + 5
        group.entries = {int(new.index): new for new in received}
        group.needed = set(group.entries)

    def flush(self) -> None:
        """End the turn."""
        self.tickets.append((int(self.stage.log.flush(self.stage.host.now_ms)), len(self.states) - 1))

    def fitting(self, from_count: int) -> int | None:
        """After how many operations, from this number on, everything was as the log says now; None if it never was."""
        found = {  # a new segment lists a group that is about to begin
            number: group for number, group in self.stage.owner.groups.items() if group.last_index or group.hard.term
        }
        for count in range(len(self.states) - 1, from_count - 1, -1):
            state = self.states[count]
            if found.keys() == state.keys() and all(shadow.fits(self.stage, group) for group, shadow in state.items()):
                return count
        return None
