"""The table of transitions: what each verb of the lifecycle does to a job, its flags included.

A row says from which states a verb leads where, which flags it needs, sets and clears, what it counts, which record it
notes in the journal, which event it emits and which verbs it calls. The code does not read the table. The tests and the
simulator do (`testing.transitioncheck`): every call of a verb must do exactly what one of its rows says. A verb without
a row for the state of a job must leave the job unchanged. docs/architecture/job-states.md is drawn from the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from disqued.core.jobs.job import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    BY_TIMER,
    DELAYED,
    DELIVERED,
    INCOMPLETE,
    LEASED,
    POSTPONED,
    QUEUED,
    WAIT_REPL,
)

OUTSIDE: Final = -1
"""Stands for the state of a job that is not in the table of jobs: not yet, or no longer."""

KEEP: Final = "keep"
FORGET: Final = "forget"
"""Records, by the method of the journal that notes them."""

REQUEUED: Final = "requeued"
ABOUT_TO_REQUEUE: Final = "about_to_requeue"
ATTEMPT_FAILED: Final = "attempt_failed"
ACKNOWLEDGED: Final = "acknowledged"
DROPPED_UNPLACED: Final = "dropped_unplaced"
"""Events, by the method of `Events` that emits them."""
EXPIRING: Final = "expiring"
NAMED_JOB_ENDED: Final = "named_job_ended"
ENDED: Final = "ended"
QUESTIONS: Final = frozenset((ATTEMPT_FAILED, EXPIRING))
"""Events that only count if a room answers with True."""
TO_HOLDERS: Final = frozenset((REQUEUED, ABOUT_TO_REQUEUE, ACKNOWLEDGED))
"""Events that are emitted only for jobs that other nodes may hold."""

NACKS: Final = "nacks"
ADDITIONAL_DELIVERIES: Final = "additional_deliveries"
"""Counters, by the field of the job."""


WAITING: Final = LEASED | BY_TIMER | DELAYED | POSTPONED
"""Flags that say for what a job outside its queue waits; a job that is queued has none of them."""


@dataclass(frozen=True)
class Transition:
    """One row: what a verb does under one condition."""

    verb: str
    before: tuple[int, ...]
    """The states it applies to."""
    after: int | None = None
    """The state it leads to; None if the state stays."""
    when: str = ""
    """The condition in words, if the columns do not say it."""
    retried: bool | None = None
    """Applies only to jobs with a retry time (True), or only to at-most-once jobs (False)."""
    needs: int = 0
    """Flags that the job must have before."""
    lacks: int = 0
    """Flags that the job must not have before."""
    sets: int = 0
    clears: int = 0
    announces: bool = False
    """Sets BCAST_WILLQUEUE as well if the job has a retry time."""
    counts: str = ""
    record: str = ""
    event: str = ""
    then: tuple[str, ...] = ()
    """The verbs it calls, each of which obeys its own rows."""


_UNFINISHED: Final = (WAIT_REPL, ACTIVE, QUEUED)
_LOCAL_FLAGS: Final = DELIVERED | LEASED | BY_TIMER | DELAYED | INCOMPLETE | POSTPONED
"""Flags that say what this node did with a job; a copy from another node begins without them."""

TRANSITIONS: Final = (
    # A job becomes known.
    Transition("await_copies", (OUTSIDE,), WAIT_REPL),
    Transition("admit", (OUTSIDE,), WAIT_REPL, then=("place",)),
    Transition("keep_copy", (OUTSIDE,), ACTIVE, sets=BCAST_QUEUED, announces=True, clears=_LOCAL_FLAGS, record=KEEP),
    Transition(
        "keep_copy",
        (OUTSIDE,),
        ACTIVE,
        "its parents are not done",
        sets=BCAST_QUEUED,
        clears=_LOCAL_FLAGS,
        record=KEEP,
    ),
    Transition("keep_import", (OUTSIDE,), ACTIVE, clears=_LOCAL_FLAGS | BCAST_QUEUED, record=KEEP),
    Transition(
        "keep_loaded",
        (OUTSIDE,),
        ACTIVE,
        "its delay is not over",
        lacks=BCAST_QUEUED | DELIVERED,
        sets=DELAYED,
        clears=LEASED | POSTPONED,
    ),
    Transition(
        "keep_loaded",
        (OUTSIDE,),
        ACTIVE,
        "its delay is not over, after a crash",
        retried=True,
        lacks=BCAST_QUEUED | DELIVERED,
        sets=DELAYED | INCOMPLETE,
        clears=LEASED | POSTPONED,
    ),
    Transition("keep_loaded", (OUTSIDE,), ACTIVE, "otherwise", announces=True, clears=LEASED | DELAYED | POSTPONED),
    Transition(
        "keep_loaded",
        (OUTSIDE,),
        ACTIVE,
        "otherwise, after a crash",
        retried=True,
        sets=INCOMPLETE,
        announces=True,
        clears=LEASED | DELAYED | POSTPONED,
    ),
    Transition("keep_loaded", (OUTSIDE,), ACTIVE, "its parents are not done", clears=LEASED | DELAYED | POSTPONED),
    Transition(
        "keep_loaded",
        (OUTSIDE,),
        ACTIVE,
        "its parents are not done, after a crash",
        retried=True,
        sets=INCOMPLETE,
        clears=LEASED | DELAYED | POSTPONED,
    ),
    Transition("keep_dummy", (OUTSIDE,), ACKED),
    # It has its copies.
    Transition("place", (WAIT_REPL,), ACTIVE, "it has a delay", sets=DELAYED, record=KEEP),
    Transition("place", (WAIT_REPL,), ACTIVE, "its parents are not done", record=KEEP),
    Transition("place", (WAIT_REPL,), ACTIVE, "it has no delay", record=KEEP, then=("enqueue",)),
    Transition("place_elsewhere", (WAIT_REPL,), ACTIVE, sets=BCAST_QUEUED, record=KEEP),
    # Its parents are done.
    Transition("free", (ACTIVE,), None, "this node queues it first, at once"),
    Transition("free", (ACTIVE,), None, "this node queues it first, after its delay", lacks=BCAST_QUEUED, sets=DELAYED),
    Transition("free", (ACTIVE,), None, "another node queues it first", needs=BCAST_QUEUED, announces=True),
    Transition("free_elsewhere", (ACTIVE, WAIT_REPL), None, sets=BCAST_QUEUED, then=("set_attributes",)),
    # It is queued.
    Transition(
        "enqueue",
        (ACTIVE,),
        QUEUED,
        "for another node, or after a controlled restart",
        sets=BCAST_QUEUED,
        announces=True,
        clears=WAITING,
    ),
    Transition(
        "enqueue",
        (ACTIVE,),
        QUEUED,
        "for the first time",
        lacks=BCAST_QUEUED,
        sets=BCAST_QUEUED,
        announces=True,
        clears=WAITING,
    ),
    Transition(
        "enqueue",
        (ACTIVE,),
        QUEUED,
        "for the first time, so late that other holders are about to queue it, added by several nodes, or with parents",
        sets=BCAST_QUEUED,
        announces=True,
        clears=WAITING,
        event=REQUEUED,
    ),
    Transition(
        "enqueue",
        (ACTIVE,),
        QUEUED,
        "again",
        needs=BCAST_QUEUED,
        announces=True,
        clears=WAITING,
        counts=ADDITIONAL_DELIVERIES,
        event=REQUEUED,
    ),
    Transition(
        "enqueue",
        (ACTIVE,),
        QUEUED,
        "NACK",
        announces=True,
        clears=WAITING,
        counts=NACKS,
        event=REQUEUED,
    ),
    Transition(
        "enqueue",
        (ACTIVE,),
        QUEUED,
        "again, without a failed attempt",
        needs=BCAST_QUEUED,
        announces=True,
        clears=WAITING,
        event=REQUEUED,
    ),
    Transition("enqueue", (ACTIVE,), None, "it must not be queued again", retried=False),
    Transition("enqueue", (ACTIVE,), None, "its last attempt failed", needs=BCAST_QUEUED, event=ATTEMPT_FAILED),
    Transition("enqueue", (ACTIVE,), None, "it was purged"),
    # It leaves its queue.
    Transition("take", (QUEUED,), ACTIVE, retried=False, sets=DELIVERED | LEASED, record=FORGET),
    Transition("take", (QUEUED,), ACTIVE, retried=True, sets=DELIVERED | LEASED),
    Transition(
        "take",
        (QUEUED,),
        ACTIVE,
        "an eighth of its retry time is over",
        retried=True,
        sets=DELIVERED | LEASED,
        then=("postpone",),
    ),
    Transition("take", (QUEUED,), None, "its queue is paused for output"),
    Transition("dequeue", (QUEUED,), ACTIVE),
    # Its next queueing changes.
    Transition("postpone", _UNFINISHED, None, "it has a time to be queued again", retried=True, sets=BCAST_WILLQUEUE),
    Transition("postpone", _UNFINISHED, None, "it is never queued again"),
    *[
        Transition(
            "postpone_until",
            (ACTIVE, QUEUED),
            ACTIVE,
            f"a worker gave it back to {where} node{how}",
            retried=True,
            sets=BCAST_QUEUED | BCAST_WILLQUEUE | POSTPONED | (DELAYED if where == "this" else 0),
            clears=LEASED | BY_TIMER | (0 if where == "this" else DELAYED),
            counts=NACKS if not how else "",
        )
        for where in ("this", "another")
        for how in ("", ", uncounted")
    ],
    Transition("postpone_until", (ACTIVE, QUEUED), None, "it is never queued again"),
    Transition(
        "park", (ACTIVE, QUEUED), ACTIVE, sets=LEASED, clears=BY_TIMER | DELAYED | POSTPONED, then=("postpone",)
    ),
    Transition("park", (ACTIVE,), None, "its parents are not done"),
    Transition("end_lease", _UNFINISHED, None, clears=LEASED | DELAYED | POSTPONED),
    Transition("delay_until", (ACTIVE,), None, sets=DELAYED, clears=BCAST_QUEUED),
    Transition("delay_until", (ACTIVE,), None, "its parents are not done", clears=BCAST_QUEUED),
    Transition("requeue_loaded", (ACTIVE,), None, "no other node may have it", then=("enqueue",)),
    Transition(
        "requeue_loaded",
        (ACTIVE,),
        None,
        "other holders are asked first",
        sets=BCAST_WILLQUEUE,
        clears=BCAST_QUEUED,
    ),
    # Its wake time comes.
    Transition("wake", _UNFINISHED, None, "nothing is due"),
    Transition("wake", (*_UNFINISHED, ACKED), None, "its time to live is over", then=("end",)),
    Transition("wake", (ACTIVE, QUEUED), None, "its time to live is over, and it is moved", event=EXPIRING),
    Transition("wake", (ACTIVE, QUEUED), None, "half a second before it is queued", then=("announce",)),
    Transition("wake", (ACTIVE, QUEUED), None, "its retry time or its delay is over", then=("requeue",)),
    Transition("wake", (ACTIVE, QUEUED), None, "both at once", then=("announce", "requeue")),
    Transition("wake", (ACKED,), None, "it is time to ask its holders again", event=ACKNOWLEDGED),
    Transition("announce", (ACTIVE,), None, clears=BCAST_WILLQUEUE, event=ABOUT_TO_REQUEUE),
    Transition("announce", (QUEUED,), None, clears=BCAST_WILLQUEUE),
    Transition("requeue", (ACTIVE,), None, sets=BY_TIMER, then=("enqueue",)),
    Transition("requeue", (ACTIVE,), None, "it must not be queued again", retried=False, then=("enqueue",)),
    Transition(
        "requeue", (ACTIVE,), None, "its last attempt failed, or it was purged", retried=True, then=("enqueue",)
    ),
    Transition("requeue", (ACTIVE,), None, "its queue is paused for input", retried=True, then=("postpone",)),
    Transition("requeue", (QUEUED,), None, then=("postpone",)),
    # Its attributes change.
    Transition("set_attributes", (ACTIVE, QUEUED), None, record=KEEP),
    Transition("set_attributes", (WAIT_REPL, ACKED), None),
    # Its life ends.
    Transition("acknowledge", (WAIT_REPL,), ACKED),
    Transition("acknowledge", (WAIT_REPL,), ACKED, "somebody wants to know its end", event=ENDED),
    Transition("acknowledge", (ACTIVE, QUEUED), ACKED, clears=DELAYED, record=FORGET),
    Transition(
        "acknowledge",
        (ACTIVE, QUEUED),
        ACKED,
        "it was moved, or somebody wants to know its end",
        clears=DELAYED,
        record=FORGET,
        event=ENDED,
    ),
    Transition("end", (*_UNFINISHED, ACKED), None, then=("drop",)),
    Transition(
        "end", _UNFINISHED, None, "it was moved, or somebody wants to know its end", event=ENDED, then=("drop",)
    ),
    Transition("drop", (WAIT_REPL,), OUTSIDE, event=DROPPED_UNPLACED),
    Transition("drop", (ACTIVE, QUEUED), OUTSIDE, clears=DELAYED, record=FORGET),
    Transition("drop", (ACKED,), OUTSIDE),
    Transition("drop", (ACKED,), OUTSIDE, "it may be added again", event=NAMED_JOB_ENDED),
)

VERBS: Final = tuple(dict.fromkeys(row.verb for row in TRANSITIONS))
"""The verbs, in the order of their first rows."""
