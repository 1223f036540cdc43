"""The log of one node: makes groups of records from its changes, and keeps the append-only file up to date.

At the end of each turn of the event loop the changes of the turn become one group of records (`turn`). Groups are
numbered by `ready.logged`; all groups up to `ready.safe` are as safe as the sync policy promises. `LogFile` writes and
syncs the groups, `Rewrite` replaces the file by a shorter one, and `Loader` reads it at the start of the node.
"""

from __future__ import annotations

from collections.abc import Iterator

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.session import Session
from disqued.core.commands.longcommand import LongWork
from disqued.core.host import disk
from disqued.core.host.disk import DiskOwner, DiskWork
from disqued.core.runtime.flush import flush_all
from disqued.core.runtime.shutdown import conclude_end
from disqued.core.runtime.slices import run_long
from disqued.core.runtime.state import NodeState
from disqued.core.timers.alarm import Alarm
from disqued.persistence.backup import Backup
from disqued.persistence.load import Loader, open_log
from disqued.persistence.logfile import OFF, ON, WAIT_REWRITE, LogFile
from disqued.persistence.recordwriter import RecordWriter
from disqued.persistence.rewrite import Rewrite


class NextSync(Alarm):
    """Rings when the next sync is due."""

    def __init__(self, aof: Aof) -> None:
        super().__init__()
        self._aof = aof

    def ring(self, _state: NodeState) -> None:
        """Start the sync."""
        self._aof.advance()


class Aof(DiskOwner):
    """The log of one node."""

    def __init__(self, state: NodeState) -> None:
        super().__init__()
        self._state = state
        self._records = RecordWriter(state.holders)
        self.file = LogFile(state, self, NextSync(self))
        self.rewrite = Rewrite(state, self.file, self)
        self.backup = Backup(state)
        self.loader: Loader | None = None
        """Loads the file; None when that is done."""
        self.damaged_places: i64 = 0
        """The number of damaged places that loading skipped, in all loads."""

    @property
    def buffer_bytes(self) -> i64:
        """The size of all records that are not yet in a file."""
        return self.file.groups.buffer_bytes + self.rewrite.buffer_bytes + self.backup.buffer_bytes

    # --- loading ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load the file, if there must be one. The node must not serve before that is done."""
        self._load(open_log(self._state, self.file.name))

    def _load(self, loader: Loader | None) -> None:
        self.loader = loader
        if loader is not None:
            loader.begin()
            self._take_over(loader)

    def load_slice(self) -> None:
        """Load for a short time."""
        loader = self.loader
        if loader is not None:
            loader.slice()
            self._take_over(loader)

    def _take_over(self, loader: Loader) -> None:
        """Begin to log once everything in the file is in memory."""
        loaded = loader.result
        if loaded is None:
            return
        state = self._state
        self.damaged_places += loader.damage.places
        self.loader = None
        if not state.config.appendonly:
            return
        self.rewrite.base_bytes = loaded.size_bytes
        self.file.begin(loaded.size_bytes, counts=loaded.counts)
        state.lifecycle.journal.on = True
        if loaded.rewrite:
            self.rewrite.start()
        self.advance()

    def reload(self, session: Session) -> str:
        """Write and sync all records, drop all jobs and queues, and load the file (DEBUG LOADAOF).

        Meanwhile other clients get the replies of a node that is loading. Returns the error, empty if the reload has
        begun; after an error nothing is dropped. Damage that the configuration does not allow ends the node, as at the
        start.

        The node waits for the disk until the records are synced, because nothing may change between that and the drop:
        a command for tests is not worth the states that waiting without blocking would need.
        """
        state = self._state
        file = self.file
        error = self.end()
        if error:
            return error
        look = DiskWork(disk.READ, file.name)
        state.host.disk.perform(look)
        if look.error:
            return f"can't read {file.name}: {look.error}"
        if look.file_bytes == 0:
            return f"{file.name} is empty"
        self.backup.fail("the node loads its file again")
        state.lifecycle.journal.on = False
        file.status = OFF  # what is dropped now must stay in the file
        flush_all(state)
        self._load(Loader(state, file.name, look.file_bytes, None))
        run_long(state, session, Reload(self))
        return ""

    # --- on and off ---------------------------------------------------------------------------------------------------

    def switch(self) -> None:
        """Begin or stop logging, or apply the sync policy, after a change of the configuration."""
        state = self._state
        file = self.file
        file.follow_policy()
        if state.config.appendonly and not file.enabled:
            file.status = WAIT_REWRITE
            state.lifecycle.journal.on = True
            self.rewrite.restart()
        elif file.enabled and not state.config.appendonly:
            self.turn()
            file.stop()
            self.rewrite.stop()
            state.lifecycle.journal.on = self.rewrite.running
        self.advance()

    def move(self) -> None:
        """Rewrite the file in the new working directory."""
        self._restart_rewrite()

    def correct_times(self) -> None:
        """Rewrite the file, because the times of its jobs are too early."""
        self._restart_rewrite()

    def drop_all(self) -> None:
        """Rewrite the file after all jobs were dropped at once without records; until then it does not count."""
        self._state.lifecycle.journal.changes.clear()
        self.backup.fail("all jobs were dropped")
        if self.file.status == ON:
            self._log(b"")
            self.file.distrust(self._state.ready.logged)
        self._restart_rewrite()

    def _restart_rewrite(self) -> None:
        if self.file.enabled or self.rewrite.running:
            self.rewrite.restart()
            self.advance()

    # --- what changed -------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Give the changes of the turn to the disk, before any output that depends on them."""
        state = self._state
        journal = state.lifecycle.journal
        if journal.changes:
            self._records.ahead_s = state.wall_ahead_s
            must_sync = journal.must_sync
            journal.must_sync = False
            group = self._records.group(journal, state.view.node_id, with_sum=state.config.aof_checksums)
            if self.backup.following:
                self.backup.follow(group, journal.moved)
                journal.moved.clear()
            if group and journal.on:
                self._log(group)
                if must_sync:
                    self.file.must_sync(state.ready.logged)
        self.advance()

    def _log(self, group: bytes) -> None:
        """Log one more group."""
        state = self._state
        rewrite = self.rewrite
        state.ready.logged += 1
        if rewrite.running and not rewrite.closing:
            rewrite.follow(group)
        if rewrite.closing or self.file.status == ON:
            self.file.groups.add(group, state.now_ms)

    def rewrite_slice(self) -> None:
        """Rewrite for a short time."""
        self.rewrite.slice()
        self.advance()

    # --- the disk -----------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Start the next disk work, and publish which groups are safe."""
        rewrite = self.rewrite
        self._advance_file()
        while rewrite.running and rewrite.advance():
            self._advance_file()

    def _advance_file(self) -> None:
        file = self.file
        rewrite = self.rewrite
        if file.status != ON:
            self._publish(self._state.ready.logged)
            return
        if not rewrite.closing:
            file.advance(rewriting=rewrite.running)
        if file.counts:
            self._publish(file.safe_group(rewriting=rewrite.running))
        else:
            rewrite.start_if_due()

    def _publish(self, group: i64) -> None:
        """Publish that all groups up to this one are safe."""
        state = self._state
        grew = group > state.ready.safe
        state.ready.safe = group
        if grew:
            state.events.persisted()

    def disk_done(self, work: DiskWork) -> None:
        """Continue after finished disk work; ignore work that nobody waits for any more."""
        if self.file.done(work, rewriting=self.rewrite.running) or self.rewrite.done(work):
            self.advance()

    def cron(self) -> None:
        """Retry a failed write, detect slow disk work, and start a rewrite if one is due."""
        self.backup.cron()
        if self.file.status == OFF and not self.rewrite.running:
            return
        self.file.retry_if_due()
        if self.file.status == ON:
            self.file.judge()
        self.rewrite.start_if_due()
        self.advance()

    def end(self) -> str:
        """Put everything on disk at shutdown. Returns the error, empty on success."""
        file = self.file
        if self._state.loading:
            return ""  # the file is as it was
        if file.status == WAIT_REWRITE:
            return "the append only file is still being written for the first time"
        self.turn()
        self.rewrite.settle()
        error = ""
        if file.incomplete:
            for work in self.rewrite.last(controlled=False):
                self._state.host.disk.perform(work)
            error = self.rewrite.last_error
        elif file.status == ON:
            error = file.write_all()
        self.advance()
        return error

    def end_controlled(self, session: Session) -> None:
        """Write the file of a controlled shutdown, then end the node; the client waits."""
        self.turn()
        run_long(self._state, session, ControlledShutdown(self))


@mypyc_attr(acyclic=True)
class Reload(LongWork):
    """Loads the file while the client that asked for it waits."""

    def __init__(self, aof: Aof) -> None:
        super().__init__()
        self.runs_while_loading = True
        self.ends_without_client = True
        self._aof = aof

    def step(self, state: NodeState, session: Session) -> bool:
        """Load for a short time."""
        del state
        loader = self._aof.loader
        if loader is None:
            session.reply_ok()
            return False
        self._aof.load_slice()
        return not loader.failed


@mypyc_attr(acyclic=True)
class ControlledShutdown(LongWork):
    """Writes the file of a controlled shutdown while the client that asked for it waits.

    Nothing changes meanwhile (`state.ending`).
    """

    def __init__(self, aof: Aof) -> None:
        super().__init__()
        self.ends_without_client = True
        self._aof = aof
        self._works: Iterator[DiskWork] | None = None
        self._work: DiskWork | None = None
        """The disk work that was begun last."""

    def waits(self) -> bool:
        """Whether disk work is under way."""
        if self._works is None:
            return self._aof.rewrite.replacing
        work = self._work
        return work is not None and not work.finished

    def step(self, state: NodeState, session: Session) -> bool:
        """Begin the next disk work."""
        aof = self._aof
        works = self._works
        if works is None:
            aof.rewrite.stop()
            if aof.rewrite.running:
                return True
            works = aof.rewrite.last(controlled=True)
            self._works = works
        work = next(works, None)
        if work is not None:
            self._work = work
            work.owner = aof
            state.host.disk.start(work)
            return True
        conclude_end(state, aof.rewrite.last_error)
        aof.advance()
        session.closing = True
        return False
