"""Loads the append-only file slice by slice; clients that connect meanwhile are told to wait (-LOADING).

The disk reads the next chunk while one is parsed, and after each slice the event loop serves everything else. Timers
stand still meanwhile, and other nodes are not told about the jobs. A node either has all sound records of its file or
does not serve: after an error that the configuration does not allow, it ends with a line that says what to do.

Allowed are an end that is cut off (`aof-load-truncated`), and damage in a file whose jobs have checksums, because then
only the damaged records are lost. They are skipped, counted and logged with their place, and the file is kept under
another name before anything is written over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import DiskOwner, DiskWork
from disqued.core.jobs.codec import CorruptJob
from disqued.core.jobs.job import QUEUED
from disqued.core.jobs.jobid import is_made_by
from disqued.core.lifecycle.lifecycle import EXPIRY_GRACE_MS
from disqued.persistence.check import fault_of
from disqued.persistence.mark import RestartMark
from disqued.persistence.parse import DELJOB, GARBAGE, LOADJOB, SKIPPED, TORN, Damage, Entry, job_of
from disqued.persistence.reader import EntryReader
from disqued.persistence.recent import Recent
from disqued.persistence.records import SUM_BYTES, SUM_MARK
from disqued.persistence.restart import Requeue, conclude

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields
    from disqued.persistence.aof import Aof

CHUNK_BYTES: Final = 1 << 20
SLICE_NS: Final = 8_000_000
SLICE_ENTRIES: Final = 1000
"""A slice ends at the first of these two limits."""
_LOOK_ENTRIES: Final = 32
"""The clock is read once per this many records."""
TELL_MS: Final = 3000
"""How often the progress is logged."""
MAX_TOLD: Final = 100
"""How many damaged places are logged one by one."""


class Loader(DiskOwner):
    """Loads one file, once. Without a `mark` it reloads the file (DEBUG LOADAOF), and waits for each read."""

    def __init__(self, aof: Aof, state: NodeState, total_bytes: i64, mark: RestartMark | None) -> None:
        super().__init__()
        self._aof = aof
        self._state = state
        self._name: str = aof.name
        self._mark = mark
        self._handed_on: bool = mark is not None and (mark.counts or state.config.aof_enqueue_jobs_once)
        self._at_once: bool = mark is None
        self._reader = EntryReader(state.lifecycle.journal.formats)
        self._requeue = Requeue()
        self._recent = Recent()
        self._names: dict[bytes, bytes] = {}
        """Names of queues, so that each is in memory once."""
        self._reading: DiskWork | None = None
        self._chunk: bytes | None = None
        """The chunk that was read and not yet parsed."""
        self._read_bytes: i64 = 0
        self._all_read: bool = False
        self._waiting: bool = True
        """Whether the loader waits for the disk."""
        self._ended: bool = False
        """Whether the reader knows that the file has no more bytes."""
        self._parsed: bool = False
        self._missing: bool = False
        self._torn: Damage | None = None
        self._first_damage: Damage | None = None
        self._outdated: bool = False
        """Whether the file says that at-most-once jobs are queued, which becomes wrong when they are delivered."""
        self._ends_badly: bool = False
        """Whether the file ends with garbage, which may hide the records that are appended to it."""
        self._marked: bool = False
        """Whether a job has a checksum that is wrong."""
        self._stopped: bool = False
        self._began_ms: i64 = state.now_ms
        self._began_s: int = state.host.wall_us() // 1_000_000
        self._told_ms: i64 = state.now_ms
        self.total_bytes: i64 = total_bytes
        self.jobs: i64 = 0
        self.expired: i64 = 0
        """The number of expired jobs."""
        self.damaged: i64 = 0
        """The number of damaged places that were skipped."""

    @property
    def ready(self) -> bool:
        """Whether the next slice need not wait for the disk."""
        return not self._stopped and not self._waiting

    @property
    def loaded_bytes(self) -> int:
        """The number of bytes loaded so far."""
        return int(self._reader.offset)

    def begin(self) -> None:
        """Start to read the file."""
        state = self._state
        if state.config.appendonly and self.total_bytes == 0:
            self._conclude()
            return
        state.loading = True
        if self.total_bytes > 0:
            state.host.log("notice", f"Loading the append only file {self._name}, {self.total_bytes} bytes")
        self._read()

    def _read(self) -> None:
        """Start to read the next chunk."""
        work = DiskWork(disk.READ, self._name, self)
        work.offset = self._read_bytes
        work.size = CHUNK_BYTES
        self._reading = work
        if self._at_once:
            self._state.host.disk.perform(work)
        else:
            self._state.host.disk.start(work)
        if work.finished:
            self.disk_done(work)

    def disk_done(self, work: DiskWork) -> None:
        """Continue with the chunk that was read, or fail."""
        if work is not self._reading:
            return
        self._reading = None
        self._waiting = False
        if work.missing and self._read_bytes == 0 and self._handed_on:
            self._missing = True
            self._all_read = True
        elif work.error:
            self._fail(
                f"Can't read the append only file {self._name}: {work.error}. Make it readable for the user that the "
                "server runs as, or see why the disk does not read, then start again. Nothing was changed."
            )
        else:
            data = b"".join(work.data)
            self.total_bytes = max(work.file_bytes, self.total_bytes)
            self._read_bytes += len(data)
            self._all_read = len(data) < CHUNK_BYTES
            self._chunk = data

    def _fail(self, why: str) -> None:
        """Stop loading; the node must not serve."""
        self._stopped = True
        self._state.host.fail(why)

    # --- a slice ------------------------------------------------------------------------------------------------------

    def slice(self) -> None:
        """Load for a short time."""
        stopwatch_ns = self._state.host.stopwatch_ns
        until_ns: i64 = i64(stopwatch_ns()) + SLICE_NS
        taken: i64 = 0
        while not self._stopped and taken < SLICE_ENTRIES:
            if self._parsed:
                state = self._state
                if not self._requeue.part(state, _LOOK_ENTRIES) and not self._recent.part(state, _LOOK_ENTRIES):
                    self._conclude()
                    return
                taken += _LOOK_ENTRIES
            elif self._take_in():
                taken += 1
            else:
                break
            if taken % _LOOK_ENTRIES == 0 and i64(stopwatch_ns()) >= until_ns:
                break
        self._tell()

    def _take_in(self) -> bool:
        """Load the next record; return False if the disk must read it first."""
        found = self._reader.next()
        if isinstance(found, Entry):
            self._do(found)
            return True
        if isinstance(found, Damage):
            self._pass_over(found)
            return True
        chunk = self._chunk
        if chunk is not None:
            self._chunk = None
            if not self._all_read:
                self._read()
            self._reader.feed(chunk)
        elif not self._all_read:
            self._waiting = True
            return False
        elif not self._ended:
            self._ended = True
            self._reader.end()
        else:
            self._judge()
        return True

    def _do(self, entry: Entry) -> None:
        """Do what a record says. A record of an unknown kind, or with wrong words, is damage."""
        words = entry.words
        command = words[0]
        if command == LOADJOB:
            self._load_job(entry)
            return
        lifecycle = self._state.lifecycle
        if command == DELJOB:
            job = lifecycle.table.get(words[1])
            if job is not None:
                lifecycle.drop(job)
            return
        fault = fault_of(entry)
        if fault is not None:
            self._pass_over(fault)
        else:
            lifecycle.journal.kinds[command].load(words)

    def _load_job(self, entry: Entry) -> None:
        """Keep a job, unless it has expired or is already known."""
        state = self._state
        lifecycle = state.lifecycle
        try:
            unpacked = job_of(entry)
        except CorruptJob as error:
            self._marked = self._marked or SUM_MARK in entry.words[-1][-SUM_BYTES:]
            self._pass_over(Damage(entry.offset, entry.end, 0, str(error)))
            return
        job = unpacked.job
        if job.expire_at_s * 1000 + EXPIRY_GRACE_MS <= state.now_ms:
            self.expired += 1
            return
        if lifecycle.table.get(job.id) is not None:
            return
        name_kept = self._names.get(job.queue)
        if name_kept is None:
            self._names[job.queue] = job.queue
        else:
            job.queue = name_kept
        node_id = state.view.node_id
        listed = state.holders.plus(state.holders.unpack(unpacked.holders), node_id)
        job.delivered = None if len(listed) == 1 else listed
        self.jobs += 1
        if self._handed_on and unpacked.state == QUEUED and job.retry_s == 0:
            self._outdated = True
        if lifecycle.keep_loaded(job, state.now_ms, stored=unpacked.state, handed_on=self._handed_on):
            self._requeue.add(job)
        if is_made_by(job.id, node_id):
            self._recent.note(job, state.now_ms)

    def _pass_over(self, damage: Damage) -> None:
        """Skip damage. Whether it is allowed is decided at the end of the file."""
        if damage.kind == TORN:
            self._torn = damage
            return
        self.damaged += 1
        self._ends_badly = damage.kind == GARBAGE
        if self._first_damage is None:
            self._first_damage = damage
        if self.damaged <= MAX_TOLD:
            self._state.host.log(
                "warning",
                f"Damage in the append only file {self._name} from byte {damage.offset} to {damage.end}: {damage.why}",
            )

    # --- the end ------------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Decide at the end of the file whether its damage is allowed."""
        reader = self._reader
        self._parsed = True
        self._names = {}
        damage = self._first_damage
        torn = self._torn
        check = f"disque-check-aof {self._name} shows what is wrong, with --fix it cuts the file off there"
        if damage is not None and reader.sums == 0 and not self._marked and not self._is_hole(damage):
            self._fail(
                f"Bad file format reading the append only file {self._name} at byte {damage.offset}: {damage.why}. "
                f"Make a copy of the file first. {check}. Then start again."
            )
        elif torn is not None and not self._state.config.aof_load_truncated:
            self._fail(
                f"Unexpected end of the append only file {self._name}: its last record, from byte {torn.offset} on, is "
                f"cut off. Set aof-load-truncated to yes to start without that record; or {check}."
            )

    def _is_hole(self, damage: Damage) -> bool:
        """Whether the only damage is a run of zeros, left by a power loss, with records after it."""
        if self.damaged > 1 or damage.kind != SKIPPED or damage.end - damage.offset > CHUNK_BYTES:
            return False
        work = DiskWork(disk.READ, self._name)
        work.offset = damage.offset
        work.size = damage.end - damage.offset
        self._state.host.disk.perform(work)
        return not work.error and not b"".join(work.data).strip(b"\0")

    def _conclude(self) -> None:
        """End loading and begin to log."""
        state = self._state
        appendonly = state.config.appendonly
        kept = self.damaged > 0 and appendonly and self._keep_damaged()
        if self._ends_badly and appendonly and not kept:
            self._fail(
                f"Can't keep the damaged file {self._name} under another name, and nothing could be written behind its "
                f"damaged end. Move it away and start again, or mend it: disque-check-aof --fix {self._name}"
            )
            return
        torn = self._torn
        size_bytes: i64 = self._read_bytes
        if torn is not None:
            state.host.log(
                "warning",
                f"The end of the append only file {self._name} was cut off: {torn.end - torn.offset} bytes from "
                f"{torn.offset} on are no whole record, and are lost (aof-load-truncated)",
            )
            if appendonly:
                work = DiskWork(disk.TRUNCATE, self._name)
                work.size = torn.offset
                state.host.disk.perform(work)
                if work.error:
                    self._fail(
                        f"Can't cut the append only file {self._name} off at byte {torn.offset}: {work.error}. Nothing "
                        "could be written behind its torn end. Make it writable, then start again."
                    )
                    return
                size_bytes = torn.offset
        mark = self._mark
        if mark is not None:
            why = conclude(state, mark, self._name, found=self._handed_on and not self._missing)
            if why:
                self._fail(why)
                return
        self._stopped = True
        if not self._missing and self._read_bytes > 0:
            self._tell_all()
        state.loading = False
        self._aof.loaded(size_bytes, rewrite=kept or self._outdated, counts=not self._ends_badly)

    def _keep_damaged(self) -> bool:
        """Keep the file under another name, so that it can be inspected after the rewrite."""
        state = self._state
        work = DiskWork(disk.KEEP, self._name)
        work.other = f"{self._name}.damaged-{state.host.wall_us() // 1_000_000}"
        state.host.disk.perform(work)
        if work.error:
            state.host.log("warning", f"Can't keep the damaged file as {work.other}: {work.error}")
            return False
        state.host.log("warning", f"The damaged file is kept as {work.other}, and is rewritten without the damage")
        return True

    # --- in words and figures -----------------------------------------------------------------------------------------

    def _tell(self) -> None:
        """Log the progress every few seconds."""
        state = self._state
        if state.now_ms - self._told_ms >= TELL_MS and not self._stopped:
            self._told_ms = state.now_ms
            state.host.log("notice", self.progress())

    def progress(self) -> str:
        """The progress in one line."""
        return f"Loading {self._name}: {self._percent():.0f} %, {self.jobs} jobs, about {self._left_s()} s left"

    def _percent(self) -> float:
        return float(self.loaded_bytes) * 100 / float(max(self.total_bytes, 1))

    def _left_s(self) -> int:
        """The estimated time left in seconds; 1 while it is unknown."""
        elapsed_s = (self._state.now_ms - self._began_ms) // 1000
        loaded_bytes = self.loaded_bytes
        if elapsed_s == 0 or loaded_bytes == 0:
            return 1
        return int(elapsed_s * (self.total_bytes - loaded_bytes) // loaded_bytes)

    def _tell_all(self) -> None:
        """Log what was loaded."""
        state = self._state
        seconds = float(state.now_ms - self._began_ms) / 1000
        text = f"DB loaded from append only file: {seconds:.3f} seconds, {self.jobs} jobs, {self._read_bytes} bytes"
        if self.expired > 0:
            text += f"; {self.expired} jobs left out, whose time is over"
        state.host.log("notice", text)
        if self.damaged > 0:
            state.host.log(
                "warning", f"{self.damaged} damaged places in {self._name} were left out: jobs may be missing"
            )

    def status(self) -> Fields:
        """The progress, for INFO."""
        return [
            ("loading_start_time", self._began_s),
            ("loading_total_bytes", int(self.total_bytes)),
            ("loading_loaded_bytes", self.loaded_bytes),
            ("loading_loaded_perc", f"{self._percent():.2f}"),
            ("loading_eta_seconds", self._left_s()),
        ]


def open_log(aof: Aof, state: NodeState) -> Loader | None:
    """Open the file if the log is on, and return its loader; None if nothing must be loaded.

    After an error the node must not serve.
    """
    config = state.config
    mark = RestartMark(state, aof.name)
    error = mark.look()
    if error:
        state.loading = True
        state.host.fail(
            f"Can't tell whether the last run handed on its queues: {error}. Let the user that the server runs as read "
            "the file, then start again. Nothing was changed."
        )
        return None
    if not config.appendonly and not config.aof_enqueue_jobs_once and not mark.counts:
        mark.use_up()  # no job is loaded or queued, so the mark must not become valid again
        return None
    size_bytes: i64 = 0
    if config.appendonly:
        work = DiskWork(disk.OPEN, aof.name)
        state.host.disk.perform(work)
        if work.error:
            state.loading = True
            state.host.fail(
                f"Can't open the append only file {aof.name}: {work.error}. Let the user that the server runs as write "
                "to it and to its directory, then start again."
            )
            return None
        size_bytes = work.size
    return Loader(aof, state, size_bytes, mark)
