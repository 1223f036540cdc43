"""The protocol broken on purpose, to see that the checkers notice.

Most mutations change how a node hears a message, which works on the compiled build as well; those marked `patched`
replace a function of a module and work only where modules are interpreted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Final

from disqued.build import COMPILED
from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.host.disk import DiskWork
from disqued.core.jobs.codec import pack_for_bus
from disqued.core.jobs.job import DELIVERED, QUEUED, Job
from disqued.core.lifecycle.journal import Journal
from disqued.core.lifecycle.lifecycle import COUNT_DELIVERY, Lifecycle
from disqued.core.runtime import outbox
from disqued.core.runtime.message import Message
from disqued.core.runtime.messageentry import MessageEntry
from disqued.core.runtime.state import NodeState
from disqued.core.telemetry.counter import Counters
from disqued.core.telemetry.traffic import Traffic
from disqued.delivery.queued import MESSAGE
from disqued.federation import parcel, yourjobs
from disqued.node import Node
from disqued.persistence import load
from disqued.persistence.aof import Aof
from disqued.persistence.mark import RestartMark
from disqued.persistence.rewrite import Rewrite
from disqued.replication import copies
from disqued.replication.repljob import repljob


@dataclass(frozen=True)
class Mutation:
    """One way to be wrong."""

    why: str
    """What is wrong then."""
    mix: str
    """The faults under which it shows."""
    hear: Callable[[Node], None] | None = None
    """Changes a node that was just made."""
    patched: tuple[tuple[ModuleType | type, str, Callable[..., Any]], ...] = ()
    """Functions of modules and classes, and what stands in for them."""

    policy: str = ""
    """When append only files are synced, if not as the seed says."""

    @property
    def possible(self) -> bool:
        """Whether what is to be patched is interpreted."""
        return not self.patched or not COMPILED

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Be wrong for a while."""
        originals = [(place, name, getattr(place, name)) for place, name, _ in self.patched]
        for place, name, replacement in self.patched:
            setattr(place, name, replacement)
        try:
            yield
        finally:
            for place, name, original in originals:
                setattr(place, name, original)


def _deaf(kind: int) -> Callable[[Node], None]:
    """A node that does not hear a message."""

    def change(node: Node) -> None:
        node.frames.messages[kind] = MessageEntry(Message(kind, "", kinds.OF_UNKNOWN, "", ""), Traffic(Counters()))

    return change


def _never_give_way(node: Node) -> None:
    """A node that stays in the queue when a node that goes first queued the job too."""

    def queued(state: NodeState, _peer: Peer, frame: Frame) -> None:
        job = state.lifecycle.table.get(frame.job_id)
        if job is not None:
            state.lifecycle.postpone(job, state.now_ms)

    node.frames.messages[kinds.QUEUED] = MessageEntry(replace(MESSAGE, handler=queued), Traffic(Counters()))


def _no_cleanup(state: NodeState, job: Job) -> None:
    """Leaves the copies of a job that was refused where they are."""


def _no_introduction(state: NodeState, source: Peer, job: Job) -> None:
    """Keeps an import to itself."""
    del source
    job.delivered = tuple([node_id for node_id in job.delivered or () if node_id != state.view.node_id])


def _forget_importer(job: Job, now_ms: int, holders: bytes) -> bytes:
    """Sends a job away without listing who gets it."""
    if job.retry_s > 0 and job.delivered is not None:
        job.delivered = job.delivered[:-1]
        holders = len(job.delivered).to_bytes(4, "little") + b"".join(job.delivered)
    return pack_for_bus(job, now_ms, holders)


_send_parcel = parcel.Parcel.send


def _send_and_keep(self: parcel.Parcel, state: NodeState) -> None:
    """Sends at-most-once jobs away and keeps them."""
    self._moved.clear()
    _send_parcel(self, state)


_wait = copies._wait  # noqa: SLF001 - breaking in is the point


def _in_a_hurry(state: NodeState, wait: copies.Replication, chosen: list[Peer]) -> None:
    """Answers before the copies are made."""
    wait.wanted = 1
    _wait(state, wait, chosen)


_forget = Journal.forget
_keep_loaded = Lifecycle.keep_loaded


def _forget_at_least_once(self: Journal, job: Job) -> None:
    """Logs nothing of at-most-once jobs that were handed out."""
    if job.retry_s > 0 or not job.flags & DELIVERED:
        _forget(self, job)


def _queue_all(self: Lifecycle, job: Job, now_ms: int, *, stored: int, handed_on: bool) -> bool:
    """Loads a file as if the last run had said what was queued."""
    del stored, handed_on
    return _keep_loaded(self, job, now_ms, stored=QUEUED, handed_on=True)


def _count_again(self: Lifecycle, job: Job, now_ms: int, ask_at_ms: int) -> None:
    """Counts a delivery that never was."""
    del ask_at_ms
    if self.table.get(job.id) is job:
        self.enqueue(job, now_ms, COUNT_DELIVERY)


def _not_strict(self: Aof) -> bool:
    """Takes for safe what was only written."""
    del self
    return False


_sync_done = Aof._sync_done  # noqa: SLF001 - breaking in is the point


def _trusting(self: Aof, work: DiskWork) -> None:
    """Takes no notice of a failed sync."""
    work.error = ""
    _sync_done(self, work)


def _silent(self: object, what: object) -> None:
    """Does nothing."""


def _once_more(state: NodeState, mark: RestartMark, name: str, *, found: bool) -> str:
    """Leaves everything as it is for the next start."""
    del state, mark, name, found
    return ""


def _at_once(state: NodeState, peer: Peer, frame: bytes) -> None:
    """Confirms what is not logged yet."""
    outbox.send(state, peer, frame)


MUTATIONS: Final[dict[str, Mutation]] = {
    "skip-setack": Mutation("acknowledgements do not reach other holders", "calm", _deaf(kinds.SETACK)),
    "skip-gotack": Mutation("finished jobs are never forgotten", "calm", _deaf(kinds.GOTACK)),
    "skip-deljob": Mutation("other holders never forget finished jobs", "calm", _deaf(kinds.DELJOB)),
    "skip-queued": Mutation("a job that waits in a queue is queued elsewhere as well", "calm", _deaf(kinds.QUEUED)),
    "skip-willqueue": Mutation("who asks whether a job is queued gets no answer", "calm", _deaf(kinds.WILLQUEUE)),
    "skip-working": Mutation("workers can not ask for more time", "calm", _deaf(kinds.WORKING)),
    "ignore-id-rule": Mutation("two nodes that queue a job both keep it", "delays", _never_give_way),
    "skip-cleanup": Mutation(
        "refused jobs are delivered", "delays", patched=((copies, "_delete_copies", _no_cleanup),)
    ),
    "forget-importer": Mutation(
        "who gets a job from another node is not among its holders",
        "calm",
        patched=((yourjobs, "_introduce", _no_introduction), (parcel, "pack_for_bus", _forget_importer)),
    ),
    "keep-at-most-once": Mutation(
        "an at-most-once job stays where it was when it moves",
        "calm",
        patched=((parcel.Parcel, "send", _send_and_keep),),
    ),
    "answer-early": Mutation(
        "clients are told before there are copies", "far", patched=((copies, "_wait", _in_a_hurry),)
    ),
    "skip-log": Mutation("new jobs are not logged", "logged kills", patched=((Journal, "keep", _silent),)),
    "skip-log-of-ends": Mutation(
        "that jobs are done is not logged", "logged kills", patched=((Journal, "forget", _silent),)
    ),
    "skip-log-of-takes": Mutation(
        "an at-most-once job that was delivered is on disk",
        "logged kills",
        patched=((Journal, "forget", _forget_at_least_once),),
    ),
    "skip-log-of-pauses": Mutation("pauses are not logged", "logged kills", patched=((Journal, "paused", _silent),)),
    "reply-before-sync": Mutation(
        "with always, clients are told before the sync",
        "logged power",
        patched=((Aof, "_is_strict", _not_strict),),
        policy="always",
    ),
    "confirm-before-log": Mutation(
        "copies are confirmed before they are logged",
        "logged power",
        patched=((sys.modules[repljob.__module__], "confirm", _at_once), (outbox, "confirm", _at_once)),
        policy="always",
    ),
    "trust-after-failed-sync": Mutation(
        "what a sync failed to write is taken for safe",
        "logged disks",
        patched=((Aof, "_sync_done", _trusting),),
        policy="always",
    ),
    "forget-groups": Mutation(
        "what changes during a rewrite is not in the new file", "logged kills", patched=((Rewrite, "follow", _silent),)
    ),
    "queue-at-any-load": Mutation(
        "at-most-once jobs are queued again after a crash",
        "logged power",
        patched=((Lifecycle, "keep_loaded", _queue_all),),
    ),
    "count-at-restart": Mutation(
        "a controlled restart counts as a delivery", "restarts", patched=((Lifecycle, "requeue_loaded", _count_again),)
    ),
    "restart-twice": Mutation(
        "the file of a controlled restart is loaded again", "restarts", patched=((load, "conclude", _once_more),)
    ),
}
"""By name."""
