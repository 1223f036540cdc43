"""The events of a node: what happens in one room and is heard in another. Rooms do not know each other.

A room hears an event by overriding its method of `Listener`. Events come in the middle of a change and must not raise,
unless they say so. Those that return something are questions: the first room that knows answers.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.blocked import WaitForJob
from disqued.core.clients.session import Blocked, Session
from disqued.core.cluster.peer import Peer
from disqued.core.fates.fate import NOTHING, Fate
from disqued.core.jobs.job import WAIT_REPL, Job, NodeIds
from disqued.core.jobs.runs import RunOf
from disqued.core.queues.queue import Queue
from disqued.core.telemetry.fields import Fields

NOT_FORWARDED: Final = -1


@mypyc_attr(allow_interpreted_subclasses=True)
class Listener:
    """Hears nothing. Each method is one event."""

    # --- the node -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """The node starts: take up what was kept on disk, before anything else happens."""

    def log_changes(self) -> None:
        """A turn in which something changed ends: have the changes logged, before its output leaves."""

    def turn_ends(self) -> None:
        """A turn ends in which a room asked for this (`Ready.turn_work`): its output leaves now."""

    def persisted(self) -> None:
        """More changes reached the append-only file as `appendfsync` promises (`Ready.safe`)."""

    def deadline_ms(self) -> i64:
        """When `due` wants to be called, 0 for never; in the past for as soon as possible."""
        return 0

    def due(self) -> None:
        """The deadline has come, or the node was woken by another one."""

    def queues_ready(self) -> None:
        """Queues that clients wait for have jobs (`Lifecycle.ready`)."""

    def queues_wanted(self) -> None:
        """Queues that other nodes asked for have jobs (`Lifecycle.wanted`); the clients of this node were served."""

    def cron(self) -> None:
        """A tenth of a second has passed, about."""

    def config_changing(self, attribute: str, value: object) -> None:
        """CONFIG SET is about to change a directive. Raises ReplyError to refuse the value."""

    def config_changed(self, attribute: str) -> None:
        """CONFIG SET changed a directive."""

    def files_changed(self) -> None:
        """Files that directives name may have changed (SIGHUP): read them again."""

    def buffered_bytes(self) -> i64:
        """Memory that the room's buffers take, beyond what is counted for jobs, queues and clients."""
        return 0

    def name_found(self, name: bytes, addresses: list[bytes]) -> None:
        """A host name was resolved to literal addresses, none if it has none."""

    def last_records(self) -> str:
        """The node shuts down: write and sync all changes. Returns what failed."""
        return ""

    def last_rewrite(self, session: Session) -> None:
        """The node shuts down: rewrite the file in slices, then end the node or reply to the client with an error."""

    def reload(self, session: Session) -> str:  # noqa: ARG002 - nobody hears
        """Forget all jobs, load them from the append-only file, and reply to the client (DEBUG LOADAOF).

        Returns why that is impossible.
        """
        return ""

    def persistence_status(self) -> Fields:
        """The state of the append-only file, for INFO."""
        return []

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def job_checked(self, queue: bytes, words: list[bytes]) -> None:
        """Raises ReplyError if these words are no valid options of ADDJOB for a job of this queue."""

    def job_wanted(self, session: Session, queue: bytes, body: bytes, words: list[bytes], given: RunOf) -> None:
        """A schedule is due: add a job to a queue with these options of ADDJOB; the session gets the reply.

        Raises ReplyError if it is refused.
        """

    def copies_wanted(
        self, session: Session, job: Job, timeout_ms: i64, *, confirmed: i64, external: bool, with_copies: bool
    ) -> None:
        """A new job, not registered yet, needs `job.repl` holders, this node among them unless `external`.

        The client is answered when `confirmed` of them have it, at once if that is 0; `with_copies`: the reply says how
        many have it.
        """

    def complete(self, job: Job) -> bool:
        """A job that waits for its copies is done or known elsewhere: its client is answered as if all had confirmed.

        False when the job is not here any more. Jobs that wait for nothing are left alone (True).
        """
        return job.state != WAIT_REPL

    def copy_confirmed(self, job: Job, peer: Peer, had: i64) -> None:
        """A node confirmed (GOTJOB) that it has a job for which no client waits; `had`: HAD, RACED, or 0."""

    def is_done(self, job_id: bytes) -> bool:  # noqa: ARG002 - nobody hears
        """Whether this node heard lately that a job which it does not have was finished."""
        return False

    def forwarded(self, job_id: bytes, kind: i64, message_flags: i64, delay_s: i64) -> i64:  # noqa: ARG002 - nobody hears
        """A worker sent WORKING or ENQUEUE for a job that is not known here; the latter to be done after `delay_s`.

        If this node transferred the job to another one, the message is forwarded to it, and the job's retry time in
        seconds is returned; otherwise NOT_FORWARDED.
        """
        return NOT_FORWARDED

    def requeued(self, job: Job, counting: i64) -> None:
        """A job that other nodes may hold is queued here; they must be told (QUEUED)."""

    def about_to_requeue(self, job: Job) -> None:
        """A job that other nodes may hold will be queued here in half a second (WILLQUEUE)."""

    def attempt_failed(self, job: Job, counting: i64) -> bool:  # noqa: ARG002 - nobody hears
        """A job that was queued before is about to be queued again, after a failed attempt unless that is not counted.

        True if it must not be queued, because that was its last attempt: the room counted the attempt and has taken the
        job over.
        """
        return False

    def failed_elsewhere(self, job: Job) -> None:
        """An attempt failed, is counted, and the job is queued by a node that does not know limits of attempts."""

    def rejected(self, job: Job) -> bool:  # noqa: ARG002 - nobody hears
        """A worker wants a job to become a dead letter (NACK DEAD); False if that is impossible."""
        return False

    def expiring(self, job: Job) -> bool:  # noqa: ARG002 - nobody hears
        """The life of an unfinished job is over. True if a room has taken it over, so that it must not be dropped."""
        return False

    def purge_wanted(self, queue: bytes, phases: tuple[int, ...], before: i64) -> i64:  # noqa: ARG002 - nobody hears
        """A client wants the jobs of a queue deleted on all nodes that have one of these phases and a lower `ctime`.

        The room keeps and shares a mark. Returns its version. Raises ReplyError if there are too many marks.
        """
        return 0

    def entries_wanted(self, changes: list[tuple[int, bytes, bytes, bytes | None]]) -> None:
        """A room wants entries of its kinds kept and shared with all members: kind, name, key, and value.

        None as the value removes an entry. Raises ReplyError if there are too many.
        """

    def entry_changed(self, kind: int, name: bytes, key: bytes, value: bytes | None, version: int) -> None:
        """An entry that another room owns was set here or on another member; None as the value: it was removed."""

    def entries_unsaved(self) -> str | None:
        """Why shared entries are not on the disk of this node; None if they are, empty while they are written."""
        return None

    def settings_file(self) -> bytes:
        """The file with the settings that all members share, as it would be written now; empty if there is none."""
        return b""

    def parents_known(self, job_id: bytes) -> None:
        """All parents of a new job are known now."""

    def parent_ended(self, job: Job, why: bytes) -> bool:  # noqa: ARG002 - nobody hears
        """A parent of a job can no longer be done, and the job must become a dead letter; False if it cannot."""
        return False

    def keeps_queue(self, queue: bytes) -> bool:  # noqa: ARG002 - nobody hears
        """Whether the jobs of the queue of that name are not in the table of jobs: the queue is of another type."""
        return False

    def successor_wanted(self, job: Job) -> None:
        """A move made a job of such a queue: add it, and tell the moves room (`Moving.added_outside`)."""

    def copies_missing(self, job: Job, confirmed: NodeIds) -> None:
        """A job was placed before all of its copies were confirmed: the others must still be asked for."""

    def acknowledged(self, job: Job) -> None:
        """It is time to ask whether all holders of an acknowledged job know."""

    def ended(self, job: Job, outcome: i64, successor: bytes | None) -> None:
        """A job ends here, and it leaves a record, is watched, or is moved to `successor`; `outcome`: `core.fates`."""

    def fate_of(self, job_id: bytes) -> Fate:  # noqa: ARG002 - nobody hears
        """What this node knows about the end of a job, or about that of the newest link of its chain of moves."""
        return NOTHING

    def fate_outside(self, job_id: bytes) -> Fate:  # noqa: ARG002 - nobody hears
        """The same of links that are not in the table of jobs, because they are in queues of another type."""
        return NOTHING

    def queue_of(self, job_id: bytes) -> bytes:  # noqa: ARG002 - nobody hears
        """The queue of a job that is not in the table of jobs; empty if no room knows it."""
        return b""

    def named_job_ended(self, job: Job) -> None:
        """A finished job is dropped whose ID was given or derived, so that it may be added again."""

    def dropped_unplaced(self, job: Job) -> None:
        """A job is dropped before it had its copies: its client is told, and the copies are deleted."""

    def all_dropped(self) -> None:
        """All jobs and queues were dropped at once."""

    # --- queues and clients -------------------------------------------------------------------------------------------

    def queue_visited(self, queue: Queue, *, drained: bool) -> None:
        """In a cluster: clients came to a queue for jobs, found nothing, or took its last job (`drained`)."""

    def queue_limits(self, queue: Queue) -> None:
        """A queue with limits is made, or the settings of one changed that has, had or gets limits."""

    def queue_left(self, queue: Queue) -> None:
        """The last client that waited for a queue was served, or gave up."""

    def queue_gone(self, queue: Queue) -> None:
        """A queue is removed."""

    def wait_timed_out(self, blocked: WaitForJob) -> None:
        """A client waited for a job for as long as it asked for."""

    def consumer_gone(self, session: Session) -> None:
        """A client disconnected whose connection means something to a room (`Session.consumes`)."""

    def client_gone(self, blocked: Blocked) -> None:
        """A client disconnected while it was blocked."""

    # --- the cluster --------------------------------------------------------------------------------------------------

    def leaving_changed(self) -> None:
        """This node begins to leave the cluster, or stays after all."""

    def unsafe_to_stop(self) -> str:
        """Why the node should not be stopped now; empty if it can be. The caller is about to stop it."""
        return ""

    def still_needed(self) -> str:
        """Why a leaving node without jobs must not be stopped yet; empty if it can be."""
        return ""

    def leaving_status(self) -> Fields:
        """How far a leaving node is, for CLUSTER LEAVING STATUS."""
        return []

    def peer_up(self, peer: Peer) -> None:
        """A node answers on a new link, or again after it seemed to have failed."""

    def peer_connected(self, peer: Peer) -> None:
        """A node sends on a new link that it opened. What it sent on the one before may be lost."""

    def peer_restarted(self, peer: Peer) -> None:
        """A node started again, maybe without its jobs: what it confirmed before does not count. A new era began."""

    def peer_forgotten(self, peer: Peer) -> None:
        """A node is no longer a member."""

    def repair_status(self, *, now: bool) -> Fields:  # noqa: ARG002 - nobody hears
        """How many jobs have too few copies, for CLUSTER REPAIR; `now`: lost copies must be looked for."""
        return []

    def ordered_queues(self, session: Session, words: list[bytes]) -> None:
        """CLUSTER ORDERED: reply to the client. Raises ReplyError."""

    def cluster_reset(self) -> None:
        """CLUSTER RESET: this node forgets the cluster, and what its members share."""
