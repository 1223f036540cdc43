"""The settings room of one node: keeps the set of entries, and has it saved, shared and applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.cluster.entrykinds import LAST_RUN, PURGE, SCHEDULE, SETTING
from disqued.core.jobs.job import CTIMES_PER_MS
from disqued.core.jobs.phases import PHASES
from disqued.core.queues.settings import SETTINGS, fault
from disqued.core.runtime.room import Room
from disqued.errors import ReplyError
from disqued.settings.applying import Applying
from disqued.settings.counters import RECEIVED
from disqued.settings.entries import (
    LEAST_MARK_MS,
    MOST_KEPT,
    MOST_MARK_MS,
    MOST_MARKS,
    Entries,
    Entry,
    fault_of,
    make,
    mark_of,
    mark_value,
)
from disqued.settings.file import encode
from disqued.settings.saving import SettingsFile
from disqued.settings.sharing import Peers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_extensions import i64

    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

NAME: Final = "settings"
SAVE_RUNS_MS: Final = 5000
"""How long changes about the last runs of schedules may wait until the file is written, unless others change too."""
_BYTES_PER_ENTRY: Final = 900
"""The memory of an entry besides three times its bytes, measured."""


class SettingsRoom(Room):
    """The settings of queues on one node."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.entries = Entries()
        self.file = SettingsFile(state, self.entries)
        self.applying = Applying(state)
        self.peers = Peers(state, self.entries)
        self._save_by_ms = 0
        """When the file must be written because of changes that may wait; 0 if there are none."""

    # --- events -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load the file."""
        state = self.state
        try:
            found = self.file.load()
        except ValueError as error:
            state.host.fail(str(error))
            return
        for entry in found:
            if self.entries.put(entry):
                self._apply(entry)
        if found:
            name = state.config.cluster_settings_file
            state.host.log("notice", f"Settings of queues loaded: file={name} entries={len(found)}")

    def cron(self) -> None:
        """Compare with the other nodes, save what is not saved, and forget old removals."""
        now_ms = int(self.state.now_ms)
        if 0 < self.entries.expires_ms <= now_ms:
            for entry in self.entries.expire(now_ms):
                if entry.is_mark:
                    self._unmark(entry)
                elif entry.is_scheduled:
                    self.state.events.entry_changed(entry.kind, entry.name, entry.key, None, entry.version)
            self.file.changed()
        if 0 < self._save_by_ms <= now_ms:
            self._save_by_ms = 0
            self.file.changed()
        self.peers.visit()
        self.file.visit()

    def deadline_ms(self) -> i64:
        """At once while queues must follow changed settings."""
        return self.state.now_ms if self.applying.active else 0

    def due(self) -> None:
        """Have more queues follow."""
        self.applying.proceed()

    def buffered_bytes(self) -> i64:
        """The memory of the entries, and of the patterns among them."""
        entries = self.entries
        patterns: i64 = self.state.lifecycle.queues.index.pattern_bytes
        return 3 * entries.wire_bytes + _BYTES_PER_ENTRY * len(entries) + patterns

    def peer_forgotten(self, peer: Peer) -> None:
        """Forget its digest."""
        self.peers.forget(peer)

    def cluster_reset(self) -> None:
        """Forget all settings: they are the cluster's."""
        index = self.state.lifecycle.queues.index
        for entry in self.entries.all():
            if entry.kind == SETTING:
                index.unset(entry.name, entry.key)
        self.state.lifecycle.queues.purges.clear()
        self.entries.clear()
        self.file.changed()

    def purge_wanted(self, queue: bytes, phases: tuple[int, ...], before: i64) -> i64:
        """Keep and share a mark for each phase, until the jobs that this node knows have expired."""
        entries, now_ms = self.entries, int(self.state.now_ms)
        new = sum(entries.get(PURGE, queue, PHASES[phase]) is None for phase in phases)
        if entries.marks + new > MOST_MARKS:
            raise ReplyError(
                f"ERR there are {entries.marks} marks of QPURGE of {MOST_MARKS} that are possible; they are kept until "
                "the jobs of their time have expired"
            )
        longest_ms = int(self.state.lifecycle.table.latest_expiry_s) * 1000 - now_ms
        kept_ms = min(max(longest_ms, LEAST_MARK_MS), MOST_MARK_MS)
        values: dict[bytes, bytes | None] = {}
        for phase in phases:
            known = entries.get(PURGE, queue, PHASES[phase])
            mark = None if known is None else mark_of(known.value)
            values[PHASES[phase]] = mark_value(max(int(before), 0 if mark is None else mark[0]), kept_ms)
        version = entries.next_version(now_ms)
        self.change(PURGE, queue, values)
        self.file.save()
        return version

    def entries_wanted(self, changes: list[tuple[int, bytes, bytes, bytes | None]]) -> None:
        """Keep and share entries that belong to another room."""
        entries = self.entries
        new = sum(entries.get(kind, name, key) is None for kind, name, key, _ in changes)
        if new and len(entries) + new > MOST_KEPT:
            raise ReplyError("ERR too many schedules or settings were removed in the last 7 days")
        self._put(changes)
        if any(kind != LAST_RUN for kind, _, _, _ in changes):
            self.file.save()

    def entries_unsaved(self) -> str | None:
        """Why the file does not have all entries."""
        return None if self.file.saved == self.file.changes else self.file.error

    def settings_file(self) -> bytes:
        """The entries as the file has them."""
        return encode(self.entries.all())

    def last_records(self) -> str:
        """Write what is not written. A node ends without that, because the other nodes have it too."""
        if self._save_by_ms:
            self.file.changed()
        error = self.file.save_now()
        if error:
            self.state.host.log("warning", f"Settings of queues not saved: {error}")
        return ""

    # --- changes ------------------------------------------------------------------------------------------------------

    def change(self, kind: int, name: bytes, values: dict[bytes, bytes | None]) -> None:
        """Set the keys of a name to values, or remove those without one, here and on all nodes."""
        self._put([(kind, name, key, value) for key, value in values.items()])

    def _put(self, changes: list[tuple[int, bytes, bytes, bytes | None]]) -> None:
        """Set entries, given as kind, name, key and value, here and on all nodes."""
        state = self.state
        version = self.entries.next_version(int(state.now_ms))
        changed = [
            make(kind, name, key, value or b"", version, state.view.node_id, removed=value is None)
            for kind, name, key, value in changes
        ]
        for entry in changed:
            self._keep(entry)
        self.applying.proceed()
        self.peers.send(changed)

    def receive(self, sender: Peer, entries: Sequence[Entry]) -> None:
        """Take what another node has and this one does not. What is not acceptable is refused one by one."""
        now_ms = int(self.state.now_ms)
        taken = 0
        for entry in entries:
            before = self.entries.get(entry.kind, entry.name, entry.key)
            if before is not None and not entry.wins(before):
                continue
            if before is None and 0 < entry.expires_ms() <= now_ms:
                continue
            why = fault_of(entry, now_ms)
            if not why and before is None and len(self.entries) >= MOST_KEPT:
                why = f"this node keeps {len(self.entries)} already"
            if why:
                self.peers.refuse(sender, why)
                continue
            self._keep(entry)
            taken += 1
        if taken:
            self.state.counters.add(RECEIVED, taken)
            self.applying.proceed()

    def _keep(self, entry: Entry) -> None:
        if not self.entries.put(entry):
            return
        self._apply(entry)
        if entry.kind != LAST_RUN:
            self.file.changed()
        elif not self._save_by_ms:
            self._save_by_ms = int(self.state.now_ms) + SAVE_RUNS_MS

    def _apply(self, entry: Entry) -> None:
        """Have an entry take effect, unless this release does not know it."""
        if entry.kind == PURGE:
            self._mark(entry)
            return
        if entry.kind in {SCHEDULE, LAST_RUN}:
            value = None if entry.removed else entry.value
            self.state.events.entry_changed(entry.kind, entry.name, entry.key, value, entry.version)
            return
        setting = SETTINGS.get(entry.key)
        if entry.kind != SETTING or setting is None:
            return
        why = "" if entry.removed else fault(setting, entry.value)
        index = self.state.lifecycle.queues.index
        if entry.removed or why:
            index.unset(entry.name, entry.key)
        else:
            index.set(entry.name, entry.key, entry.value, min(self.state.now_ms, entry.version))
        if why:
            self.state.host.log(
                "warning",
                f"Setting has no effect on this node: name={entry.name[:100]!r} setting={entry.key.decode()} "
                f"node={entry.node_id.decode()}: it {why}",
            )
        self.applying.changed(entry.name)

    def _mark(self, entry: Entry) -> None:
        """Have a mark of a purge, or its removal, take effect."""
        mark = mark_of(entry.value)
        if mark is None:
            self._unmark(entry)
        elif entry.key in PHASES:
            purges = self.state.lifecycle.queues.purges
            now_ctime = int(self.state.now_ms * CTIMES_PER_MS)
            purges.set(entry.name, PHASES.index(entry.key), mark[0], entry.version, now_ctime)

    def _unmark(self, entry: Entry) -> None:
        if entry.key in PHASES:
            self.state.lifecycle.queues.purges.unset(entry.name, PHASES.index(entry.key))


def settings_of(state: NodeState) -> SettingsRoom:
    """The settings room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, SettingsRoom)
    return room
