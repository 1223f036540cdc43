"""Loads the append-only file slice by slice; clients that connect meanwhile are told to wait (-LOADING).

The disk reads the next chunk while one is parsed, and after each slice the event loop serves everything else. Timers
stand still meanwhile, and other nodes are not told about the jobs. A node either has all sound records of its file or
does not serve: after an error that the configuration does not allow, it ends with a line that says what to do.
`filedamage` says which damage is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import DiskOwner, DiskWork
from disqued.core.jobs.codec import CTIMES_PER_S, CorruptJob
from disqued.core.jobs.job import QUEUED
from disqued.core.jobs.jobid import is_made_by
from disqued.core.lifecycle.records import SUM_BYTES, SUM_MARK
from disqued.core.lifecycle.times import EXPIRY_GRACE_MS
from disqued.persistence.check import fault_of, unknown_format
from disqued.persistence.filedamage import FileDamage
from disqued.persistence.marker import RestartMarker
from disqued.persistence.parse import DELJOB, FORMAT, LOADJOB, Damage, Entry, job_of
from disqued.persistence.progress import Progress
from disqued.persistence.reader import EntryReader
from disqued.persistence.recent import Recent
from disqued.persistence.restart import Requeue, conclude

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

CHUNK_BYTES: Final = 1 << 20
SLICE_NS: Final = 1_000_000
SLICE_ENTRIES: Final = 1000
"""A slice ends at the first of these two limits. DEBUG LOADAOF takes several slices in a turn of the event loop."""
_LOOK_ENTRIES: Final = 32
"""The clock is read once per this many records."""


class Loaded:
    """What a load that succeeded says of the file."""

    def __init__(self, size_bytes: i64, *, rewrite: bool, counts: bool) -> None:
        self.size_bytes: i64 = size_bytes
        self.rewrite = rewrite
        """Whether the file must be rewritten at once."""
        self.counts = counts
        """Whether records that are appended to the file as it is will be found there."""


class Loader(DiskOwner):
    """Loads one file, once. Without a `marker` it reloads the file (DEBUG LOADAOF), and waits for each read."""

    def __init__(self, state: NodeState, name: str, total_bytes: i64, marker: RestartMarker | None) -> None:
        super().__init__()
        self._state = state
        self._name = name
        self._marker = marker
        self._controlled: bool = marker is not None and (marker.counts or state.config.aof_enqueue_jobs_once)
        self._complete: bool = marker is not None and marker.counts
        """Whether the file has all holders of each job. Only a marker proves it: no record says that a list grew."""
        self._at_once: bool = marker is None
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
        self._outdated: bool = False
        """Whether the file says that at-most-once jobs are queued, which becomes wrong when they are delivered."""
        self._marked: bool = False
        """Whether a job has a checksum that is wrong."""
        self._stopped: bool = False
        self.damage = FileDamage(state, name)
        self.progress = Progress(state, name, total_bytes)
        self.result: Loaded | None = None
        """Set when everything is loaded."""

    @property
    def ready(self) -> bool:
        """Whether the next slice need not wait for the disk."""
        return not self._stopped and not self._waiting

    @property
    def failed(self) -> bool:
        """Whether the file could not be loaded; the node ends."""
        return self._stopped and self.result is None

    def begin(self) -> None:
        """Start to read the file."""
        state = self._state
        total_bytes = self.progress.total_bytes
        if state.config.appendonly and total_bytes == 0:
            self._conclude()
            return
        state.loading = True
        if total_bytes > 0:
            state.host.log("notice", f"Loading the append only file {self._name}, {total_bytes} bytes")
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
        if work.missing and self._read_bytes == 0 and self._controlled:
            self._missing = True
            self._all_read = True
        elif work.error:
            self._fail(
                f"Can't read the append only file {self._name}: {work.error}. Make it readable for the user that the "
                "server runs as, or see why the disk does not read, then start again. Nothing was changed."
            )
        else:
            data = b"".join(work.data)
            self.progress.total_bytes = max(work.file_bytes, self.progress.total_bytes)
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
        self.progress.loaded_bytes = self._reader.offset
        if not self._stopped:
            self.progress.log_if_due()

    def _take_in(self) -> bool:
        """Load the next record; return False if the disk must read it first."""
        found = self._reader.next()
        if isinstance(found, Entry):
            self._do(found)
            return True
        if isinstance(found, Damage):
            self.damage.skip(found)
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
        why = unknown_format(entry)
        if why:
            self._fail(
                f"Can't load the append only file {self._name}: {why}. Start the release that wrote it. Nothing was "
                "changed."
            )
            return
        fault = fault_of(entry)
        if fault is not None:
            self.damage.skip(fault)
        elif command == FORMAT:
            lifecycle.journal.file_format = max(lifecycle.journal.file_format, int(words[1]))
        else:
            known = entry.format
            assert known is not None
            opened = known.opened(words)
            assert opened is not None
            lifecycle.journal.kinds[command].load(opened)

    def _load_job(self, entry: Entry) -> None:
        """Keep a job, unless it has expired. Of a known job, the record may have newer attributes."""
        state = self._state
        lifecycle = state.lifecycle
        try:
            unpacked = job_of(entry)
        except CorruptJob as error:
            self._marked = self._marked or SUM_MARK in entry.words[-1][-SUM_BYTES:]
            self.damage.skip(Damage(entry.offset, entry.end, 0, str(error)))
            return
        job = unpacked.job
        if state.wall_ahead_s != 0:  # the node loads its file again, after its wall clock was set
            job.expire_at_s -= state.wall_ahead_s
            job.ctime -= state.wall_ahead_s * CTIMES_PER_S
        if job.expire_at_s * 1000 + EXPIRY_GRACE_MS <= state.now_ms:
            self.progress.expired += 1
            return
        known = lifecycle.table.get(job.id)
        if known is not None:
            lifecycle.merge_attributes(known, job.extra)
            return
        name_kept = self._names.get(job.queue)
        if name_kept is None:
            self._names[job.queue] = job.queue
        else:
            job.queue = name_kept
        node_id = state.view.node_id
        listed = state.holders.plus(state.holders.unpack(unpacked.holders), node_id)
        alone = len(listed) == 1 and (self._complete or state.view.size == 1)
        job.delivered = None if alone else listed
        self.progress.jobs += 1
        if self._controlled and unpacked.state == QUEUED and job.retry_s == 0:
            self._outdated = True
        if lifecycle.keep_loaded(
            job, state.now_ms, stored=unpacked.state, controlled=self._controlled, complete=self._complete
        ):
            self._requeue.add(job)
        if is_made_by(job.id, node_id):
            self._recent.note(job, state.now_ms)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Decide at the end of the file whether its damage is allowed."""
        self._parsed = True
        self._names = {}
        why = self.damage.why_refused(has_sums=self._reader.sums > 0 or self._marked)
        if why:
            self._fail(why)

    def _conclude(self) -> None:
        """End loading."""
        state = self._state
        why = self.damage.repair()
        marker = self._marker
        if marker is not None and not why:
            why = conclude(state, marker, self._name, found=self._controlled and not self._missing)
        if why:
            self._fail(why)
            return
        self._stopped = True
        if not self._missing and self._read_bytes > 0:
            self.progress.loaded_bytes = self._read_bytes
            self.progress.log_end()
            self.damage.log_end()
        state.loading = False
        self.result = Loaded(
            self.damage.sound_bytes(self._read_bytes),
            rewrite=self.damage.kept or self._outdated,
            counts=not self.damage.ends_badly,
        )


def open_log(state: NodeState, name: str) -> Loader | None:
    """Open the file if the log is on, and return its loader; None if nothing must be loaded.

    After an error the node must not serve.
    """
    config = state.config
    marker = RestartMarker(state, name)
    error = marker.look()
    if error:
        state.loading = True
        state.host.fail(
            f"Can't tell whether the last shutdown was a controlled one: {error}. Let the user that the server runs as "
            "read the file, then start again. Nothing was changed."
        )
        return None
    if not config.appendonly and not config.aof_enqueue_jobs_once and not marker.counts:
        marker.use_up()  # no job is loaded or queued, so the marker must not become valid again
        return None
    size_bytes: i64 = 0
    if config.appendonly:
        work = DiskWork(disk.OPEN, name)
        state.host.disk.perform(work)
        if work.error:
            state.loading = True
            state.host.fail(
                f"Can't open the append only file {name}: {work.error}. Let the user that the server runs as write "
                "to it and to its directory, then start again."
            )
            return None
        size_bytes = work.size
    return Loader(state, name, size_bytes, marker)
