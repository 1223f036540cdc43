"""Passes events on to the rooms that hear them (`lifecycle.listener`).

`Events` calls the rooms in the order in which they are listed in `disqued.node.rooms`.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.blocked import WaitForJob
from disqued.core.clients.session import Blocked, Session
from disqued.core.cluster.peer import Peer
from disqued.core.fates.fate import NOTHING, Fate
from disqued.core.jobs.job import WAIT_REPL, Job, NodeIds
from disqued.core.jobs.runs import RunOf
from disqued.core.lifecycle.listener import NOT_FORWARDED, Listener
from disqued.core.queues.queue import Queue
from disqued.core.telemetry.fields import Fields

EVENTS: Final = tuple(name for name in vars(Listener) if not name.startswith("_"))
"""The names of all events."""


class Events(Listener):
    """Passes each event to the rooms that hear it."""

    def __init__(self) -> None:
        self._start: list[Listener] = []
        self._log_changes: list[Listener] = []
        self._turn_ends: list[Listener] = []
        self._persisted: list[Listener] = []
        self._deadline_ms: list[Listener] = []
        self._due: list[Listener] = []
        self._queues_ready: list[Listener] = []
        self._queues_wanted: list[Listener] = []
        self._cron: list[Listener] = []
        self._config_changing: list[Listener] = []
        self._config_changed: list[Listener] = []
        self._files_changed: list[Listener] = []
        self._buffered_bytes: list[Listener] = []
        self._name_found: list[Listener] = []
        self._last_records: list[Listener] = []
        self._last_rewrite: list[Listener] = []
        self._reload: list[Listener] = []
        self._persistence_status: list[Listener] = []
        self._job_checked: list[Listener] = []
        self._job_wanted: list[Listener] = []
        self._copies_wanted: list[Listener] = []
        self._complete: list[Listener] = []
        self._copy_confirmed: list[Listener] = []
        self._is_done: list[Listener] = []
        self._forwarded: list[Listener] = []
        self._requeued: list[Listener] = []
        self._about_to_requeue: list[Listener] = []
        self._attempt_failed: list[Listener] = []
        self._failed_elsewhere: list[Listener] = []
        self._rejected: list[Listener] = []
        self._expiring: list[Listener] = []
        self._purge_wanted: list[Listener] = []
        self._entries_wanted: list[Listener] = []
        self._entry_changed: list[Listener] = []
        self._entries_unsaved: list[Listener] = []
        self._settings_file: list[Listener] = []
        self._parents_known: list[Listener] = []
        self._parent_ended: list[Listener] = []
        self._keeps_queue: list[Listener] = []
        self._successor_wanted: list[Listener] = []
        self._copies_missing: list[Listener] = []
        self._acknowledged: list[Listener] = []
        self._ended: list[Listener] = []
        self._fate_of: list[Listener] = []
        self._fate_outside: list[Listener] = []
        self._queue_of: list[Listener] = []
        self._named_job_ended: list[Listener] = []
        self._dropped_unplaced: list[Listener] = []
        self._all_dropped: list[Listener] = []
        self._queue_visited: list[Listener] = []
        self._queue_limits: list[Listener] = []
        self._queue_left: list[Listener] = []
        self._queue_gone: list[Listener] = []
        self._wait_timed_out: list[Listener] = []
        self._consumer_gone: list[Listener] = []
        self._client_gone: list[Listener] = []
        self._leaving_changed: list[Listener] = []
        self._unsafe_to_stop: list[Listener] = []
        self._still_needed: list[Listener] = []
        self._leaving_status: list[Listener] = []
        self._peer_up: list[Listener] = []
        self._peer_connected: list[Listener] = []
        self._peer_restarted: list[Listener] = []
        self._peer_forgotten: list[Listener] = []
        self._repair_status: list[Listener] = []
        self._ordered_queues: list[Listener] = []
        self._cluster_reset: list[Listener] = []

    def add(self, listener: Listener) -> None:
        """Have a room hear the events that it overrides, after those that were added before."""
        for name in EVENTS:
            if getattr(type(listener), name) is not getattr(Listener, name):
                getattr(self, f"_{name}").append(listener)

    def start(self) -> None:
        """Pass the event on."""
        for listener in self._start:
            listener.start()

    def log_changes(self) -> None:
        """Pass the event on."""
        for listener in self._log_changes:
            listener.log_changes()

    def turn_ends(self) -> None:
        """Pass the event on."""
        for listener in self._turn_ends:
            listener.turn_ends()

    def persisted(self) -> None:
        """Pass the event on."""
        for listener in self._persisted:
            listener.persisted()

    def deadline_ms(self) -> i64:
        """Return the earliest deadline of all rooms, 0 when there is none."""
        earliest_ms: i64 = 0
        for listener in self._deadline_ms:
            deadline_ms = listener.deadline_ms()
            if deadline_ms != 0 and (earliest_ms == 0 or deadline_ms < earliest_ms):
                earliest_ms = deadline_ms
        return earliest_ms

    def due(self) -> None:
        """Pass the event on."""
        for listener in self._due:
            listener.due()

    def queues_ready(self) -> None:
        """Pass the event on."""
        for listener in self._queues_ready:
            listener.queues_ready()

    def queues_wanted(self) -> None:
        """Pass the event on."""
        for listener in self._queues_wanted:
            listener.queues_wanted()

    def cron(self) -> None:
        """Pass the event on."""
        for listener in self._cron:
            listener.cron()

    def config_changing(self, attribute: str, value: object) -> None:
        """Pass the event on."""
        for listener in self._config_changing:
            listener.config_changing(attribute, value)

    def config_changed(self, attribute: str) -> None:
        """Pass the event on."""
        for listener in self._config_changed:
            listener.config_changed(attribute)

    def files_changed(self) -> None:
        """Pass the event on."""
        for listener in self._files_changed:
            listener.files_changed()

    def buffered_bytes(self) -> i64:
        """Return the sum of all rooms."""
        total: i64 = 0
        for listener in self._buffered_bytes:
            total += listener.buffered_bytes()
        return total

    def name_found(self, name: bytes, addresses: list[bytes]) -> None:
        """Pass the event on."""
        for listener in self._name_found:
            listener.name_found(name, addresses)

    def last_records(self) -> str:
        """Ask until a room fails."""
        for listener in self._last_records:
            error = listener.last_records()
            if error:
                return error
        return ""

    def last_rewrite(self, session: Session) -> None:
        """Pass the event on."""
        for listener in self._last_rewrite:
            listener.last_rewrite(session)

    def reload(self, session: Session) -> str:
        """Ask until a room fails."""
        for listener in self._reload:
            error = listener.reload(session)
            if error:
                return error
        return ""

    def persistence_status(self) -> Fields:
        """Collect the fields of all rooms."""
        fields: Fields = []
        for listener in self._persistence_status:
            fields += listener.persistence_status()
        return fields

    def job_checked(self, queue: bytes, words: list[bytes]) -> None:
        """Pass the event on."""
        for listener in self._job_checked:
            listener.job_checked(queue, words)

    def job_wanted(self, session: Session, queue: bytes, body: bytes, words: list[bytes], given: RunOf) -> None:
        """Pass the event on."""
        for listener in self._job_wanted:
            listener.job_wanted(session, queue, body, words, given)

    def copies_wanted(
        self, session: Session, job: Job, timeout_ms: i64, *, confirmed: i64, external: bool, with_copies: bool
    ) -> None:
        """Pass the event on."""
        for listener in self._copies_wanted:
            listener.copies_wanted(
                session, job, timeout_ms, confirmed=confirmed, external=external, with_copies=with_copies
            )

    def complete(self, job: Job) -> bool:
        """Ask; without a room that answers, a job that waits is not here any more."""
        for listener in self._complete:
            return listener.complete(job)
        return job.state != WAIT_REPL

    def copy_confirmed(self, job: Job, peer: Peer, had: i64) -> None:
        """Pass the event on."""
        for listener in self._copy_confirmed:
            listener.copy_confirmed(job, peer, had)

    def is_done(self, job_id: bytes) -> bool:
        """Ask until a room knows."""
        for listener in self._is_done:  # noqa: SIM110 - a generator costs more than the loop
            if listener.is_done(job_id):
                return True
        return False

    def forwarded(self, job_id: bytes, kind: i64, message_flags: i64, delay_s: i64) -> i64:
        """Ask until a room forwarded the message."""
        for listener in self._forwarded:
            retry_s = listener.forwarded(job_id, kind, message_flags, delay_s)
            if retry_s != NOT_FORWARDED:
                return retry_s
        return NOT_FORWARDED

    def requeued(self, job: Job, counting: i64) -> None:
        """Pass the event on."""
        for listener in self._requeued:
            listener.requeued(job, counting)

    def about_to_requeue(self, job: Job) -> None:
        """Pass the event on."""
        for listener in self._about_to_requeue:
            listener.about_to_requeue(job)

    def attempt_failed(self, job: Job, counting: i64) -> bool:
        """Ask until a room takes the job over."""
        for listener in self._attempt_failed:  # noqa: SIM110 - a generator costs more than the loop
            if listener.attempt_failed(job, counting):
                return True
        return False

    def failed_elsewhere(self, job: Job) -> None:
        """Pass the event on."""
        for listener in self._failed_elsewhere:
            listener.failed_elsewhere(job)

    def rejected(self, job: Job) -> bool:
        """Ask until a room takes the job over."""
        for listener in self._rejected:  # noqa: SIM110 - as above
            if listener.rejected(job):
                return True
        return False

    def expiring(self, job: Job) -> bool:
        """Ask until a room takes the job over."""
        for listener in self._expiring:  # noqa: SIM110 - as above
            if listener.expiring(job):
                return True
        return False

    def purge_wanted(self, queue: bytes, phases: tuple[int, ...], before: i64) -> i64:
        """Pass the event on; without a room that keeps marks, 0."""
        for listener in self._purge_wanted:
            return listener.purge_wanted(queue, phases, before)
        return 0

    def entries_wanted(self, changes: list[tuple[int, bytes, bytes, bytes | None]]) -> None:
        """Pass the event on."""
        for listener in self._entries_wanted:
            listener.entries_wanted(changes)

    def entry_changed(self, kind: int, name: bytes, key: bytes, value: bytes | None, version: int) -> None:
        """Pass the event on."""
        for listener in self._entry_changed:
            listener.entry_changed(kind, name, key, value, version)

    def entries_unsaved(self) -> str | None:
        """Ask the room that keeps them."""
        for listener in self._entries_unsaved:
            return listener.entries_unsaved()
        return None

    def settings_file(self) -> bytes:
        """Ask; without a room that keeps settings there are none."""
        for listener in self._settings_file:
            return listener.settings_file()
        return b""

    def parents_known(self, job_id: bytes) -> None:
        """Pass the event on."""
        for listener in self._parents_known:
            listener.parents_known(job_id)

    def parent_ended(self, job: Job, why: bytes) -> bool:
        """Ask until a room takes the job over."""
        return any(listener.parent_ended(job, why) for listener in self._parent_ended)

    def keeps_queue(self, queue: bytes) -> bool:
        """Ask the first room that has queues of another type."""
        for listener in self._keeps_queue:
            return listener.keeps_queue(queue)
        return False

    def successor_wanted(self, job: Job) -> None:
        """Pass the event on."""
        for listener in self._successor_wanted:
            listener.successor_wanted(job)

    def copies_missing(self, job: Job, confirmed: NodeIds) -> None:
        """Pass the event on."""
        for listener in self._copies_missing:
            listener.copies_missing(job, confirmed)

    def acknowledged(self, job: Job) -> None:
        """Pass the event on."""
        for listener in self._acknowledged:
            listener.acknowledged(job)

    def ended(self, job: Job, outcome: i64, successor: bytes | None) -> None:
        """Pass the event on."""
        for listener in self._ended:
            listener.ended(job, outcome, successor)

    def fate_of(self, job_id: bytes) -> Fate:
        """Ask the first room that knows fates."""
        for listener in self._fate_of:
            return listener.fate_of(job_id)
        return NOTHING

    def fate_outside(self, job_id: bytes) -> Fate:
        """Ask the first room that has queues of another type."""
        for listener in self._fate_outside:
            return listener.fate_outside(job_id)
        return NOTHING

    def queue_of(self, job_id: bytes) -> bytes:
        """Ask the first room that knows jobs of its own."""
        for listener in self._queue_of:
            return listener.queue_of(job_id)
        return b""

    def named_job_ended(self, job: Job) -> None:
        """Pass the event on."""
        for listener in self._named_job_ended:
            listener.named_job_ended(job)

    def dropped_unplaced(self, job: Job) -> None:
        """Pass the event on."""
        for listener in self._dropped_unplaced:
            listener.dropped_unplaced(job)

    def all_dropped(self) -> None:
        """Pass the event on."""
        for listener in self._all_dropped:
            listener.all_dropped()

    def queue_visited(self, queue: Queue, *, drained: bool) -> None:
        """Pass the event on."""
        for listener in self._queue_visited:
            listener.queue_visited(queue, drained=drained)

    def queue_limits(self, queue: Queue) -> None:
        """Pass the event on."""
        for listener in self._queue_limits:
            listener.queue_limits(queue)

    def queue_left(self, queue: Queue) -> None:
        """Pass the event on."""
        for listener in self._queue_left:
            listener.queue_left(queue)

    def queue_gone(self, queue: Queue) -> None:
        """Pass the event on."""
        for listener in self._queue_gone:
            listener.queue_gone(queue)

    def wait_timed_out(self, blocked: WaitForJob) -> None:
        """Pass the event on."""
        for listener in self._wait_timed_out:
            listener.wait_timed_out(blocked)

    def consumer_gone(self, session: Session) -> None:
        """Pass the event on."""
        for listener in self._consumer_gone:
            listener.consumer_gone(session)

    def client_gone(self, blocked: Blocked) -> None:
        """Pass the event on."""
        for listener in self._client_gone:
            listener.client_gone(blocked)

    def leaving_changed(self) -> None:
        """Pass the event on."""
        for listener in self._leaving_changed:
            listener.leaving_changed()

    def unsafe_to_stop(self) -> str:
        """Ask until a room has a reason."""
        for listener in self._unsafe_to_stop:
            why = listener.unsafe_to_stop()
            if why:
                return why
        return ""

    def still_needed(self) -> str:
        """Ask until a room has a reason."""
        for listener in self._still_needed:
            why = listener.still_needed()
            if why:
                return why
        return ""

    def leaving_status(self) -> Fields:
        """Collect the fields of all rooms."""
        fields: Fields = []
        for listener in self._leaving_status:
            fields += listener.leaving_status()
        return fields

    def peer_up(self, peer: Peer) -> None:
        """Pass the event on."""
        for listener in self._peer_up:
            listener.peer_up(peer)

    def peer_connected(self, peer: Peer) -> None:
        """Pass the event on."""
        for listener in self._peer_connected:
            listener.peer_connected(peer)

    def peer_restarted(self, peer: Peer) -> None:
        """Pass the event on."""
        for listener in self._peer_restarted:
            listener.peer_restarted(peer)

    def repair_status(self, *, now: bool) -> Fields:
        """Return the fields of all rooms."""
        return [field for listener in self._repair_status for field in listener.repair_status(now=now)]

    def peer_forgotten(self, peer: Peer) -> None:
        """Pass the event on."""
        for listener in self._peer_forgotten:
            listener.peer_forgotten(peer)

    def ordered_queues(self, session: Session, words: list[bytes]) -> None:
        """Pass the event on."""
        for listener in self._ordered_queues:
            listener.ordered_queues(session, words)

    def cluster_reset(self) -> None:
        """Pass the event on."""
        for listener in self._cluster_reset:
            listener.cluster_reset()
