"""A move: a successor in another queue takes the place of a job, which is then acknowledged.

1. *Park.* The job leaves its queue. Until the move is over, this node answers for it as if a worker had it: WORKING
   whenever another holder asks, before its retry time can be over, and every half retry time. Nodes of the original
   need nothing new.
2. *Copy.* The successor goes to its homes (`placing.homes`), which every node chooses in the same way. Homes that do
   not confirm are asked again, and further nodes are asked in the order of their scores.
3. *Place.* As many homes must confirm as the old job has holders that can be reached, REPLICATE at most: a move never
   lowers the number of copies. Then this node queues the successor if it is a home; otherwise it tells one.
4. *Acknowledge.* The old job is acknowledged in the same turn, and collected at its holders like any other.

If this node dies before, the job is requeued by another holder, which repeats the move. It derives the same ID, so the
homes recognise the successor, also if it was finished meanwhile. An at-most-once job has no copies and must never have
one that could be delivered, so its successor replaces it on this node alone, in one turn.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.fates.fate import DEAD, MOVED
from disqued.core.jobs.job import ACKED, BCAST_WILLQUEUE, LEASED, NOBODY, QUEUED, WAIT_REPL, Job, NodeIds
from disqued.core.lifecycle.lifecycle import COUNT_DELIVERY, SILENT
from disqued.core.runtime.outbox import send, tell_holders
from disqued.core.runtime.state import NodeState
from disqued.core.telemetry.counter import Counter
from disqued.core.timers.alarm import Alarm
from disqued.placing.asking import Asking
from disqued.placing.homes import best, is_home, needs_of
from disqued.placing.rivals import RACE_MS, Rivals, is_being_added
from disqued.placing.targets import choose

FIRST_ASK_MS: Final = 50
MOST_ASK_MS: Final = 10_000
"""How often homes are asked again: at first, and at most. The time doubles with each attempt."""
_FIRST_OUTSIDE_MS: Final = 1000
"""A room that adds successors to queues of another type looks for answers itself."""
_MAX_DOUBLINGS: Final = 8
_SOON_MS: Final = 1500
"""Holders whose retry time may be over so soon are told at once that the job is leased."""


@mypyc_attr(acyclic=True)
class Move(Alarm):
    """One move under way on this node, and when it acts next."""

    def __init__(self, moving: Moving, old: Job, successor: Job, counter: Counter) -> None:
        super().__init__()
        self._moving = moving
        self.old = old
        self.successor = successor
        self.counter = counter
        """Counts the move when it is done."""
        self.kept_here: bool = False
        """This node is a home of the successor."""
        self.rivals = Rivals(successor.id)
        """Other nodes that make the same move."""
        self.confirmed: NodeIds = NOBODY
        """The homes that have the successor."""
        self.waits_until_ms: i64 = 0
        """Another node makes the same move, and this one waits once for it to end: only one of them must end the old
        job, and that one has the successor queued."""
        self.sent: bool = False
        """The successor was sent to its homes."""
        self.asked: i64 = 0
        """How often homes were asked."""
        self.ask_at_ms: i64 = 0
        self.outside: bool = False
        """The target is a queue of another type, whose room adds the successor."""
        self.renew_at_ms: i64 = 0
        """When the holders of the old job are told again that it is leased."""

    def ring(self, state: NodeState) -> None:
        """Continue."""
        del state
        self._moving.check(self)


class Moving:
    """The moves of one node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._asking = Asking(state)
        self.moves: dict[bytes, Move] = {}
        """By the ID of the old job."""
        self._by_successor: dict[bytes, Move] = {}

    def __contains__(self, job_id: bytes) -> bool:
        """Whether the job is being moved."""
        return job_id in self.moves

    def begin(self, old: Job, successor: Job, counter: Counter) -> None:
        """Move an unfinished job that this node has."""
        state = self._state
        if state.events.keeps_queue(successor.queue):
            self._begin_outside(old, successor, counter)
            return
        if old.retry_s == 0:
            self._replace(old, successor, counter)
            return
        lifecycle = state.lifecycle
        known = lifecycle.table.get(successor.id)
        if known is not None and not known.is_dummy:
            successor = known
        move = Move(self, old, successor, counter)
        self.moves[old.id] = move
        self._by_successor[successor.id] = move
        self._park(move)
        if known is None and state.events.is_done(successor.id):
            self._finish(move)
        elif known is not None and known.is_dummy:
            lifecycle.drop(known)
            self._finish(move)
        else:
            if known is not None and is_being_added(known, state.now_ms):
                move.waits_until_ms = state.now_ms + RACE_MS
            else:
                self._copy(move, known)
            self.check(move)

    def _begin_outside(self, old: Job, successor: Job, counter: Counter) -> None:
        """Move a job to a queue of another type. An at-most-once job ends before, so that it is not delivered twice."""
        state = self._state
        if old.retry_s == 0:
            state.counters.add(counter)
            state.lifecycle.end(old, DEAD if successor.is_dead_letter else MOVED, successor.id)
            state.events.successor_wanted(successor)
            return
        move = Move(self, old, successor, counter)
        move.outside = True
        self.moves[old.id] = move
        self._by_successor[successor.id] = move
        self._park(move)
        self._check_outside(move)

    def _check_outside(self, move: Move) -> None:
        """Have the successor added again if there was no answer. Repetitions are recognised by its ID."""
        state = self._state
        now_ms = state.now_ms
        if move.old.state == QUEUED or move.renew_at_ms <= now_ms:
            self._hold(move)
        if move.ask_at_ms <= now_ms:
            pause_ms: i64 = _FIRST_OUTSIDE_MS << min(move.asked, _MAX_DOUBLINGS)
            move.asked += 1
            move.ask_at_ms = now_ms + min(pause_ms, MOST_ASK_MS)
            state.events.successor_wanted(move.successor)
        if move.old.id in self.moves:
            state.lifecycle.timers.arm(move, min(move.ask_at_ms, move.renew_at_ms))

    def added_outside(self, successor_id: bytes, new_id: bytes) -> None:
        """A successor is in its queue of another type, under an ID of that queue: acknowledge the old job."""
        move = self._by_successor.get(successor_id)
        if move is None or not move.outside:
            return
        state = self._state
        self._forget(move)
        state.counters.add(move.counter)
        outcome = DEAD if move.successor.is_dead_letter else MOVED
        if state.lifecycle.acknowledge(move.old, state.now_ms, outcome, new_id):
            state.events.acknowledged(move.old)

    def _copy(self, move: Move, known: Job | None) -> None:
        """Send the successor to its homes; `known` is what this node has of it already."""
        state = self._state
        successor = move.successor
        move.sent = True
        move.kept_here = known is not None or is_home(state, successor.id, i64(successor.repl), needs_of(successor))
        if move.kept_here:
            move.confirmed = state.holders.plus(NOBODY, state.view.node_id)
            move.rivals.note(state.view.node_id, 0)
        listed = move.confirmed if known is None or known.delivered is None else known.delivered
        missing: i64 = i64(successor.repl) - i64(len(listed))
        chosen = choose(state, successor, listed, missing)
        for peer in chosen:
            listed = state.holders.plus(listed, peer.id)
        successor.delivered = listed or state.holders.plus(NOBODY, state.view.node_id)
        if known is None:
            self._register(successor)
        self._asking.send(successor, chosen, kinds.TRANSFER)
        move.ask_at_ms = state.now_ms + FIRST_ASK_MS

    def _register(self, successor: Job) -> None:
        lifecycle = self._state.lifecycle
        queue = lifecycle.queues.get(successor.queue)
        if queue is not None:
            successor.queue = queue.name
        lifecycle.await_copies(successor, self._state.now_ms)

    def _replace(self, old: Job, successor: Job, counter: Counter) -> None:
        """Move an at-most-once job: its successor is queued here in the turn in which it ends."""
        state = self._state
        state.counters.add(counter)
        state.lifecycle.end(old, DEAD if successor.is_dead_letter else MOVED, successor.id)
        if state.lifecycle.table.get(successor.id) is None:
            state.lifecycle.admit(successor, state.now_ms)

    def _park(self, move: Move) -> None:
        """Take the old job out of its queue. Holders are told only if they do not know that this node has it."""
        state = self._state
        old = move.old
        left_ms: i64 = old.requeue_at_ms - state.now_ms
        if (old.state == QUEUED or old.flags & LEASED) and left_ms > _SOON_MS:
            state.lifecycle.park(old, state.now_ms)
            move.renew_at_ms = state.now_ms + min(old.retry_s * 500, left_ms - _SOON_MS)
        else:
            self._hold(move)

    def _hold(self, move: Move) -> None:
        """Have no node deliver the old job for another retry time."""
        state = self._state
        old = move.old
        state.lifecycle.park(old, state.now_ms)
        tell_holders(state, old, state.bus.about_job(kinds.WORKING, old.id))
        move.renew_at_ms = state.now_ms + old.retry_s * 500

    def confirm(self, job: Job, peer: Peer, had: i64) -> None:
        """A node has a job; if it is a successor, count the node."""
        move = self._by_successor.get(job.id)
        if move is None or move.successor is not job:
            return
        delivered = job.delivered
        if delivered is None or peer.id not in delivered:
            return
        move.rivals.note(peer.id, had)
        move.confirmed = self._state.holders.plus(move.confirmed, peer.id)
        if len(move.confirmed) >= self._wanted(move):
            self.check(move)

    def _wanted(self, move: Move) -> i64:
        """How many homes must have the successor: as many as holders of the old job can be reached, this node included.

        If fewer nodes can keep it, all of them.
        """
        state = self._state
        old = move.old
        reachable: i64 = 1
        for node_id in old.delivered or NOBODY:
            peer = state.view.peers.get(node_id)
            if peer is not None and peer.reachable:
                reachable += 1
        needs = needs_of(move.successor)
        able: i64 = 1 if move.kept_here else 0
        for peer in state.view.reachable:
            if peer.features & needs == needs:
                able += 1
        return max(min(i64(old.repl), reachable, able), 1)

    def check(self, move: Move) -> None:
        """Do what is due for a move."""
        state = self._state
        lifecycle = state.lifecycle
        old = move.old
        if lifecycle.table.get(old.id) is not old or old.state == ACKED:
            self._give_up(move)
            return
        if move.outside:
            self._check_outside(move)
            return
        successor = move.successor
        if lifecycle.table.get(successor.id) is not successor or successor.state == ACKED:
            self._finish(move)
            return
        now_ms = state.now_ms
        if move.waits_until_ms <= now_ms:
            if not move.sent:
                self._copy(move, successor)
            if len(move.confirmed) >= self._wanted(move):
                if move.waits_until_ms == 0 and move.rivals.won and not move.rivals.had:
                    move.waits_until_ms = now_ms + RACE_MS
                elif self._place(move):
                    self._finish(move)
                    return
        if old.state == QUEUED or move.renew_at_ms <= now_ms:
            self._hold(move)
        if move.waits_until_ms > now_ms:
            lifecycle.timers.arm(move, min(move.waits_until_ms, move.renew_at_ms))
            return
        if move.ask_at_ms <= now_ms:
            self._ask(move)
        lifecycle.timers.arm(move, min(move.ask_at_ms, move.renew_at_ms))

    def _ask(self, move: Move) -> None:
        """Ask one more node, and those again that did not confirm."""
        successor = move.successor
        added = self._asking.one_more(successor, successor.delivered or NOBODY, kinds.TRANSFER)
        self._asking.repeat(successor, move.confirmed, added, kinds.TRANSFER)
        pause_ms: i64 = FIRST_ASK_MS << min(move.asked, _MAX_DOUBLINGS)
        move.asked += 1
        move.ask_at_ms = self._state.now_ms + min(pause_ms, MOST_ASK_MS)

    def _place(self, move: Move) -> bool:
        """Have the successor queued; False if no home can be told to."""
        state = self._state
        successor = move.successor
        if move.kept_here:
            if move.rivals.won or successor.flags & BCAST_WILLQUEUE:  # a home queues it, now or later
                state.lifecycle.place_elsewhere(successor)
            else:
                is_alone = move.rivals.none and len(move.confirmed) == len(successor.delivered or NOBODY)
                state.lifecycle.place(successor, state.now_ms, SILENT if is_alone else COUNT_DELIVERY)
            if i64(len(move.confirmed)) < i64(successor.repl):
                state.events.copies_missing(successor, move.confirmed)
            return True
        linked: list[Peer] = []
        for node_id in move.confirmed:
            peer = state.view.peers.get(node_id)
            if peer is not None and peer.link is not None and not peer.link.closed:
                linked.append(peer)
        if not linked:
            return False
        if not move.rivals.won:
            home = best(successor.id, linked, 1)[0]
            send(state, home, state.bus.about_job(kinds.ENQUEUE, successor.id, 0, kinds.TRANSFER))
        state.lifecycle.drop(successor)
        return True

    def _finish(self, move: Move) -> None:
        """Acknowledge the old job: its successor has taken its place."""
        state = self._state
        old = move.old
        self._forget(move)
        state.counters.add(move.counter)
        outcome = DEAD if move.successor.is_dead_letter else MOVED
        if state.lifecycle.acknowledge(old, state.now_ms, outcome, move.successor.id):
            state.events.acknowledged(old)

    def _give_up(self, move: Move) -> None:
        """The old job has ended meanwhile, so this move is not needed.

        Another node may have made the same successor, and ended the old job for it. So copies of the successor stay: a
        job that a worker finished just before its last attempt was over may leave a dead letter, but none is lost.
        """
        lifecycle = self._state.lifecycle
        successor = move.successor
        self._forget(move)
        if move.outside:
            return
        if lifecycle.table.get(successor.id) is not successor:
            return
        if move.kept_here:
            lifecycle.place_elsewhere(successor)
        elif successor.state == WAIT_REPL:
            lifecycle.drop(successor)

    def _forget(self, move: Move) -> None:
        self._state.lifecycle.timers.disarm(move)
        del self.moves[move.old.id]
        del self._by_successor[move.successor.id]

    def dropped(self, job: Job) -> None:
        """A job was dropped that waited for its copies: if it is a successor, its move is over."""
        move = self._by_successor.get(job.id)
        if move is not None and move.successor is job:
            self._state.lifecycle.timers.arm(move, self._state.now_ms)

    def tell_skipped(self) -> None:
        """Send longer lists of the holders of successors for which links had no room."""
        self._asking.tell_skipped()

    def hurry(self) -> None:
        """A node can be asked again: check all moves now."""
        state = self._state
        for move in self.moves.values():
            move.ask_at_ms = min(move.ask_at_ms, state.now_ms)
            state.lifecycle.timers.arm(move, state.now_ms)

    def clear(self) -> None:
        """All jobs were dropped."""
        for move in list(self.moves.values()):
            self._forget(move)
