"""Mutations: the protocol broken on purpose, to test that the checkers detect it.

Most mutations replace the handler of a message, which also works with the compiled build. Those with `patched` replace
a function of a module, which works only with the interpreted build.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Final

from disqued.admission import addjob, scheduled
from disqued.admission.copyto import add_copies
from disqued.admission.options import AddJob, name_run
from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.clients.pipeline import Pipeline, Pipelined
from disqued.core.clients.session import Session
from disqued.core.cluster.holders import Holders
from disqued.core.cluster.peer import Link, Peer
from disqued.core.fates.fate import DEAD, DONE, UNKNOWN, WAITING, Fate
from disqued.core.host.disk import DiskWork
from disqued.core.host.host import Host
from disqued.core.jobs.claims import NODE_BITS
from disqued.core.jobs.codec import pack_for_bus, pack_plain
from disqued.core.jobs.job import DELIVERED, QUEUED, Job
from disqued.core.jobs.joblog import JobLog, LogLine
from disqued.core.jobs.template import BusJobs
from disqued.core.lifecycle.journal import Journal
from disqued.core.lifecycle.lifecycle import COUNT_DELIVERY, Lifecycle
from disqued.core.queues.bypriority import ByPriority
from disqued.core.queues.order import ByAge
from disqued.core.queues.purges import Purges
from disqued.core.runtime import claiming, outbox
from disqued.core.runtime.message import Message
from disqued.core.runtime.messageentry import MessageEntry
from disqued.core.runtime.state import NodeState
from disqued.core.telemetry.counter import Counters
from disqued.core.telemetry.traffic import Traffic
from disqued.delivery import claim
from disqued.delivery.queued import MESSAGE
from disqued.dependencies import parents
from disqued.dependencies.parent import Parent, is_alive, is_over
from disqued.fates.askers import Askers
from disqued.federation import jobbatch, yourjobs
from disqued.membership import authentication
from disqued.moves import successor
from disqued.moves.redriving import Redrives
from disqued.moves.reunion import Reunion
from disqued.moves.successor import successor_id
from disqued.node import Node
from disqued.persistence import load
from disqued.persistence.logfile import LogFile
from disqued.persistence.marker import RestartMarker
from disqued.persistence.rewrite import Rewrite
from disqued.persistence.wallclock import WallClock
from disqued.repair import rebuilding
from disqued.repair.liveness import Liveness
from disqued.replication.room import Replication, ReplicationRoom
from disqued.schedule.candidates import Candidates
from disqued.schedule.grants import Grants
from disqued.schedule.timing import Timing
from disqued.settings.entries import Entry
from disqued.testing.brokenrates import GIVEN_TWICE, NO_LEASES, ONE_MORE
from disqued.testing.rateload import has_rates
from disqued.testing.scheduleload import has_schedules


@dataclass(frozen=True)
class Mutation:
    """One way to break the protocol."""

    why: str
    """What goes wrong."""
    mix: str
    """The mix of faults that reveals it."""
    change: Callable[[Node], None] | None = None
    """Applied to every new node."""
    patched: tuple[tuple[ModuleType | type, str, Callable[..., Any]], ...] = ()
    """Functions of modules and classes, and their replacements."""

    uses: Callable[[int], bool] | None = None
    """Which seeds have the load that reveals it; None for all."""

    policy: str = ""
    """The value of `appendfsync`; empty to let the seed choose."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the patches while the context lasts."""
        originals = [(place, name, getattr(place, name)) for place, name, _ in self.patched]
        for place, name, replacement in self.patched:
            setattr(place, name, replacement)
        try:
            yield
        finally:
            for place, name, original in originals:
                setattr(place, name, original)


def _ignore(kind: int) -> Callable[[Node], None]:
    """Make a node ignore a message, and lists of it."""

    def change(node: Node) -> None:
        for number in {kind, kinds.LISTS.get(kind, kind)}:
            nothing = Message(number, "", kinds.OF_UNKNOWN, "", "")
            node.frames.messages[number] = MessageEntry(nothing, Traffic(Counters()))

    return change


def _one(self: Candidates) -> int:
    """Each node is the majority."""
    del self
    return 1


def _grant_to_all(self: Grants, name: bytes, due_ms: int, node_id: bytes, incarnation: bytes, now_ms: int) -> bytes:
    """Grant a run again."""
    del self, name, due_ms, incarnation, now_ms
    return node_id


def _name_by_chance(options: AddJob, characters: bytes, schedule: bytes, due_ms: int) -> None:
    """Derive the ID from something else."""
    name_run(options, characters[::-1], schedule, due_ms)


def _next_one(self: Timing, host: Host, after_ms: int, now_ms: int) -> int:
    """The next time, although it has not come."""
    found = self.next_ms(host, max(after_ms, now_ms - 1000))
    return found if found <= now_ms + 1000 else 0


def _first_of_all(self: Liveness, job: Job) -> int:
    """Make each holder take itself for the one that makes lost copies."""
    del self, job
    return 0


def _send_plain(
    state: NodeState, job: Job, peers: list[Peer], listed: bytes, message_flags: int, *, joined: bool = False
) -> None:
    """Send a job without its attributes."""
    del joined
    for peer in peers:
        packed = pack_plain(job, state.now_ms, listed)
        outbox.send(state, peer, state.bus.jobs(kinds.REPLJOB, [packed], message_flags))


def _never_give_way(node: Node) -> None:
    """Make a node keep a job queued although a node with precedence has queued it too."""

    def handle_queued(state: NodeState, _peer: Peer, frame: Frame) -> None:
        job = state.lifecycle.table.get(frame.job_id)
        if job is not None:
            state.lifecycle.postpone(job, state.now_ms)

    node.frames.messages[kinds.QUEUED] = MessageEntry(replace(MESSAGE, handler=handle_queued), Traffic(Counters()))


def _no_cleanup(self: ReplicationRoom, job: Job) -> None:
    """Do not delete the copies of a refused job."""


def _no_introduction(state: NodeState, source: Peer, job: Job) -> None:
    """Do not announce an imported job."""
    del source
    job.delivered = tuple([node_id for node_id in job.delivered or () if node_id != state.view.node_id])


def _any_id(old_id: bytes, target: bytes, moves: int) -> bytes:
    """An ID that differs from the derived one."""
    return successor_id(old_id, target + b"?", moves)


def _forget_meeting(self: Reunion, peer: Peer) -> None:
    """Tell a node nothing that can be reached again."""
    del self, peer


def _forget_importer(self: BusJobs, job: Job, now_ms: int, holders: bytes) -> bytes:
    """Export a job without listing its receiver."""
    del self
    if job.retry_s > 0 and job.delivered is not None:
        job.delivered = job.delivered[:-1]
        holders = len(job.delivered).to_bytes(4, "little") + b"".join(job.delivered)
    return pack_for_bus(job, now_ms, holders)


_send_batch = jobbatch.JobBatch.send


def _send_and_keep(self: jobbatch.JobBatch, state: NodeState) -> None:
    """Export at-most-once jobs and keep them."""
    self._moved.clear()
    _send_batch(self, state)


_wait = ReplicationRoom._wait  # noqa: SLF001 - mutations patch internals


def _reply_early(self: ReplicationRoom, wait: Replication, chosen: list[Peer]) -> None:
    """Reply before the copies are confirmed."""
    wait.wanted = 1
    _wait(self, wait, chosen)


def _add_first(self: Pipeline, request: Pipelined) -> None:
    """Reply to a request before those that were sent earlier."""
    request.following = self.first
    self.first = request
    self.count += 1


_enqueue = Lifecycle.enqueue


def _enqueue_plain(self: Lifecycle, job: Job, now_ms: int, counting: int) -> bool:
    """Queue a job that was delivered before without its attributes."""
    if job.flags & DELIVERED:
        self.set_attributes(job, None)
    return _enqueue(self, job, now_ms, counting)


_forget = Journal.forget
_keep_loaded = Lifecycle.keep_loaded


def _forget_at_least_once(self: Journal, job: Job) -> None:
    """Do not log the delivery of at-most-once jobs."""
    if job.retry_s > 0 or not job.flags & DELIVERED:
        _forget(self, job)


def _queue_all(self: Lifecycle, job: Job, now_ms: int, *, stored: int, controlled: bool, complete: bool) -> bool:
    """Load a file as if the last run had recorded which jobs were queued."""
    del stored, controlled
    return _keep_loaded(self, job, now_ms, stored=QUEUED, controlled=True, complete=complete)


def _count_again(self: Lifecycle, job: Job, now_ms: int, ask_at_ms: int) -> None:
    """Count a delivery that never happened."""
    del ask_at_ms
    if self.table.get(job.id) is job:
        self.enqueue(job, now_ms, COUNT_DELIVERY)


def _not_strict(self: LogFile, rewriting: bool) -> bool:
    """Treat written data as synced."""
    del self, rewriting
    return False


_drop: Final = Lifecycle.drop
_sync_done = LogFile._sync_done  # noqa: SLF001 - mutations patch internals


def _ignore_sync_error(self: LogFile, work: DiskWork) -> None:
    """Ignore a failed sync."""
    work.error = ""
    _sync_done(self, work)


def _silent(self: object, *what: object) -> None:
    """Do nothing."""


def _drop_record(self: Lifecycle, job: Job) -> None:
    """Drop a job, and its record too."""
    _drop(self, job)
    record = self.records.get(job.id)
    if record is not None:
        self.records.remove(record)
    self.watches.changed.pop(job.id, None)


def _once_more(state: NodeState, marker: RestartMarker, name: str, *, found: bool) -> str:
    """Leave the marker as it is for the next start."""
    del state, marker, name, found
    return ""


def _at_once(state: NodeState, link: Link, frame: bytes) -> None:
    """Confirm a change before it is logged."""
    state.ready.put(link, frame)


_wait_for_some = ReplicationRoom._wait_for_some  # noqa: SLF001 - the mutation calls what it replaces


def _wait_for_fewer(
    self: ReplicationRoom,
    session: Session,
    job: Job,
    chosen: list[Peer],
    deadline_ms: int,
    confirmed: int,
    *,
    with_copies: bool,
) -> None:
    """Wait for one copy less than the client asked for."""
    _wait_for_some(self, session, job, chosen, deadline_ms, max(confirmed - 1, 1), with_copies=with_copies)


def _trust(secrets: tuple[bytes, ...], *_proof: object) -> bytes:
    """Accept any proof."""
    return secrets[0]


def _by_arrival(self: Entry, other: Entry) -> bool:
    """Let the setting that arrives last win."""
    return self.wire != other.wire


def _catch_nothing(self: Purges, job: Job) -> bool:
    """Queue jobs that were purged."""
    del self, job
    return False


def _not_cancelled(self: Redrives, queue: bytes) -> bool:
    """Say that a REDRIVE is cancelled, and continue."""
    return self.is_running(queue)


def _count_only(known: int, now_ms: int, node_number: int) -> int:
    """Make claims from the claims before alone."""
    del now_ms
    return ((known >> NODE_BITS) + 1) << NODE_BITS | node_number


def _all_lines(self: JobLog) -> list[LogLine]:
    """Show entries behind a gap."""
    return sorted(self.lines())


def _never_stale(job: Job, number: int) -> None:
    """Accept any claim."""
    del job, number


def _to_the_first(state: NodeState, session: Session, targets: tuple[bytes, ...], job: Job, ttl_s: int) -> None:
    """Add the copy for the first of several queues only."""
    add_copies(state, session, targets[:1], job, ttl_s)


_told = parents.Parents.told


def _free_on_unknown(self: parents.Parents, job_id: bytes, fate: Fate, node_id: bytes) -> None:
    """Take the answer of a node that does not know a parent for the news that it is done."""
    _told(self, job_id, Fate(DONE) if fate.outcome == UNKNOWN else fate, node_id)


def _not_waiting(fate: Fate) -> bool:
    """Take any answer for the end of a chain, unless the parent waits at that node."""
    return not is_alive(fate)


def _end_at_once(self: parents.Parents, parent: Parent) -> None:
    """Ask no other node whether a parent can still be done."""
    parent.gone = b"one node said so"
    self._tell_children(parent)


def _waits(fate: Fate) -> bool:
    """Do not count dead letters as alive."""
    return fate.outcome == WAITING


def _is_over_or_dead(fate: Fate) -> bool:
    """Count dead letters as ends."""
    return fate.outcome == DEAD or is_over(fate)


MUTATIONS: Final[dict[str, Mutation]] = {
    "rate-overdrawn": Mutation(
        "a home grants a token that the rate did not give", "calm", patched=ONE_MORE, uses=has_rates
    ),
    "rate-given-twice": Mutation(
        "two homes grant tokens by the same part of a rate", "partitions", patched=GIVEN_TWICE, uses=has_rates
    ),
    "cap-without-leases": Mutation(
        "a cap does not count the jobs of workers", "calm", patched=NO_LEASES, uses=has_rates
    ),
    "token-without-clock": Mutation(
        "claims of nodes that do not hear each other do not grow",
        "partitions",
        patched=((claim, "next_claim", _count_only),),
    ),
    "log-without-gap-check": Mutation(
        "readers of a progress log see entries without those before them",
        "calm",
        patched=((JobLog, "visible", _all_lines),),
    ),
    "accept-stale": Mutation(
        "a node accepts commands of workers whose job was delivered again",
        "calm",
        patched=((claiming, "refusal", _never_stale),),
    ),
    "free-on-unknown": Mutation(
        "a job runs when a node does not know its parent",
        "calm",
        patched=((parents.Parents, "told", _free_on_unknown),),
    ),
    "else-at-once": Mutation(
        "the first node that does not have a parent decides that it can no longer be done",
        "calm",
        patched=((parents, "is_over", _not_waiting), (parents.Parents, "doubt", _end_at_once)),
    ),
    "else-on-dead": Mutation(
        "a parent that became a dead letter can no longer be done",
        "calm",
        patched=((parents, "is_alive", _waits), (parents, "is_over", _is_over_or_dead)),
    ),
    "ignore-purge-mark": Mutation(
        "jobs that were purged are queued when they come back",
        "partitions",
        patched=((Purges, "catches", _catch_nothing),),
    ),
    "ignore-cancel": Mutation(
        "a REDRIVE that was cancelled moves more jobs", "calm", patched=((Redrives, "cancel", _not_cancelled),)
    ),
    "copy-to-one": Mutation(
        "only the first of the queues that `copy-to` names gets its copy",
        "calm",
        patched=((addjob, "add_copies", _to_the_first),),
    ),
    "skip-proof": Mutation(
        "a node accepts answers that were made with another cluster secret",
        "secrets",
        patched=((authentication, "proven_with", _trust),),
    ),
    "settings-by-arrival": Mutation(
        "of two settings, the one that arrives last wins", "partitions", patched=((Entry, "wins", _by_arrival),)
    ),
    "successor-by-chance": Mutation(
        "the ID of a dead letter is not derived from its job", "calm", patched=((successor, "successor_id", _any_id),)
    ),
    "skip-postpone": Mutation(
        "other holders do not learn that a job was given back for later", "calm", _ignore(kinds.POSTPONE)
    ),
    "skip-reunion": Mutation(
        "nodes that reach each other again both keep a dead letter queued",
        "partitions",
        patched=((Reunion, "begin", _forget_meeting),),
    ),
    "repair-by-all-holders": Mutation(
        "all holders make a lost copy at once", "calm", patched=((Liveness, "rank", _first_of_all),)
    ),
    "repair-forgets-hard-attributes": Mutation(
        "a copy that is made again has no attributes", "calm", patched=((rebuilding, "send_repljob", _send_plain),)
    ),
    "schedule-without-majority": Mutation(
        "a schedule runs without the majority of the members",
        "partitions",
        patched=((Candidates, "needed", _one),),
        uses=has_schedules,
    ),
    "schedule-granted-twice": Mutation(
        "a node grants a run to every node that asks",
        "partitions",
        patched=((Grants, "ask", _grant_to_all),),
        uses=has_schedules,
    ),
    "schedule-id-by-chance": Mutation(
        "the ID of the job of a schedule is not derived",
        "calm",
        patched=((scheduled, "name_run", _name_by_chance),),
        uses=has_schedules,
    ),
    "schedule-early": Mutation("a schedule runs before its time", "calm", patched=((Timing, "latest_ms", _next_one),)),
    "skip-setack": Mutation("acknowledgements do not reach other holders", "calm", _ignore(kinds.SETACK)),
    "skip-gotack": Mutation("completed jobs are never deleted", "calm", _ignore(kinds.GOTACK)),
    "skip-deljob": Mutation("other holders never delete completed jobs", "calm", _ignore(kinds.DELJOB)),
    "skip-queued": Mutation("a job that waits in a queue is queued elsewhere as well", "calm", _ignore(kinds.QUEUED)),
    "skip-willqueue": Mutation(
        "a node that asks whether a job is queued gets no reply",
        "calm",
        _ignore(kinds.WILLQUEUE),
        uses=has_schedules,
    ),
    "skip-queuename": Mutation(
        "clients that wait for a pattern get no jobs of queues that only other nodes know",
        "calm",
        _ignore(kinds.QUEUENAME),
    ),
    "forget-watchers": Mutation(
        "a node does not notify the nodes that asked about a job", "calm", patched=((Askers, "remember", _silent),)
    ),
    "record-dropped-with-job": Mutation(
        "the record of a job is dropped when the job is forgotten", "calm", patched=((Lifecycle, "drop", _drop_record),)
    ),
    "answer-too-early": Mutation(
        "SYNC is answered when one copy less is confirmed",
        "delays",
        patched=((ReplicationRoom, "_wait_for_some", _wait_for_fewer),),
    ),
    "skip-working": Mutation("workers cannot extend the retry time", "calm", _ignore(kinds.WORKING)),
    "ignore-id-rule": Mutation("two nodes that queue a job both keep it", "delays", _never_give_way),
    "skip-cleanup": Mutation(
        "refused jobs are delivered", "delays", patched=((ReplicationRoom, "_delete_copies", _no_cleanup),)
    ),
    "forget-importer": Mutation(
        "a node that imports a job is not among its holders",
        "calm",
        patched=((yourjobs, "_introduce", _no_introduction), (BusJobs, "pack", _forget_importer)),
    ),
    "keep-at-most-once": Mutation(
        "an at-most-once job stays where it was when it moves",
        "calm",
        patched=((jobbatch.JobBatch, "send", _send_and_keep),),
    ),
    "answer-out-of-order": Mutation(
        "the replies of a pipeline are not in the order of its requests",
        "pipelines",
        patched=((Pipeline, "add", _add_first),),
    ),
    "answer-early": Mutation(
        "clients get a reply before there are copies", "far", patched=((ReplicationRoom, "_wait", _reply_early),)
    ),
    "skip-log": Mutation("new jobs are not logged", "logged kills", patched=((Journal, "keep", _silent),)),
    "skip-log-of-ends": Mutation(
        "the completion of jobs is not logged", "logged kills", patched=((Journal, "forget", _silent),)
    ),
    "skip-log-of-takes": Mutation(
        "an at-most-once job that was delivered stays on disk",
        "logged kills",
        patched=((Journal, "forget", _forget_at_least_once),),
    ),
    "skip-log-of-pauses": Mutation("pauses are not logged", "logged kills", patched=((Journal, "note", _silent),)),
    "reply-before-sync": Mutation(
        "with `always`, clients get a reply before the sync",
        "logged power",
        patched=((LogFile, "_is_strict", _not_strict),),
        policy="always",
    ),
    "end-without-sync": Mutation(
        "with `everysec`, the end of a delayed at-most-once job is confirmed before it is synced",
        "logged power",
        patched=((LogFile, "must_sync", _silent),),
        policy="everysec",
    ),
    "confirm-before-log": Mutation(
        "copies are confirmed before they are logged",
        "logged power",
        patched=((outbox, "_put_when_logged", _at_once),),
        policy="always",
    ),
    "trust-after-failed-sync": Mutation(
        "data that a sync failed to write is considered safe",
        "logged disks",
        patched=((LogFile, "_sync_done", _ignore_sync_error),),
        policy="always",
    ),
    "forget-groups": Mutation(
        "changes during a rewrite are missing in the new file", "logged kills", patched=((Rewrite, "follow", _silent),)
    ),
    "trust-loaded-lists": Mutation(
        "jobs that are loaded after a crash are acknowledged at the listed holders only",
        "logged kills",
        patched=((Holders, "complete", _silent),),
    ),
    "keep-wrong-times": Mutation(
        "the times on disk do not follow a clock that is corrected",
        "logged clocks",
        patched=((WallClock, "follow", _silent),),
    ),
    "queue-at-any-load": Mutation(
        "at-most-once jobs are queued again after a crash",
        "logged power",
        patched=((Lifecycle, "keep_loaded", _queue_all),),
    ),
    "count-at-restart": Mutation(
        "a controlled restart counts as a delivery", "restarts", patched=((Lifecycle, "requeue_loaded", _count_again),)
    ),
    "requeue-without-priority": Mutation(
        "jobs that come back lose their priority", "calm", patched=((Lifecycle, "enqueue", _enqueue_plain),)
    ),
    "ignore-priorities": Mutation(
        "jobs are delivered by age alone",
        "calm",
        patched=((ByPriority, "insert", ByAge.insert), (ByPriority, "remove", ByAge.remove)),
    ),
    "restart-twice": Mutation(
        "the file of a controlled restart is loaded again", "restarts", patched=((load, "conclude", _once_more),)
    ),
}
"""By name."""
