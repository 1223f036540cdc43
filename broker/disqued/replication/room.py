"""The replication room of one node: places the copies of new jobs on other nodes, and answers their clients.

A job that needs copies waits in the state wait-repl until enough nodes confirm theirs (GOTJOB). Every 50 ms without
success the node asks one more node, and sends the longer list of holders to all nodes that it asked before; those that
do not confirm are asked again. While no node is left that could be asked, the job waits for one that comes back. When
the client's timeout expires, or the client disconnects, the copies are deleted wherever they may be (Disque README,
"Replication"). With ASYNC the client is answered at once, unless the links to the chosen nodes cannot accept more
output: then the client waits until they can. With SYNC the client is answered when some of the copies are confirmed,
and the others are followed (`followup`).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.clients.pipeline import Pipelined
from disqued.core.clients.session import Blocked, Session
from disqued.core.cluster.holders import lists
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import NOBODY, Job, NodeIds
from disqued.core.runtime.counters import JOBS_ADDED
from disqued.core.runtime.outbox import delete_at_holders
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import release, suspend_pipelined
from disqued.errors import NoParent, NotReplicated
from disqued.placing.added import added
from disqued.placing.asking import Asking
from disqued.placing.rivals import Rivals
from disqued.placing.targets import choose, is_slow
from disqued.replication.counters import ASYNC_COPIES_MISSING, ASYNC_HELD_BACK, DURATION, FAILURES, TIMEOUTS
from disqued.replication.external import queue_elsewhere
from disqued.replication.followup import Followed

NAME: Final = "replication"
ASK_MORE_MS: Final = 50
REPEAT_MS: Final = 100
"""How often the nodes that do not confirm are asked again when no other node is left to ask."""
PARENTS_MS: Final = 5000
"""How long an ADDJOB without a timeout waits until the parents of its job are known."""
IDLE_MS: Final = 1000
"""How often a wait is checked while no node can be asked; a node that comes back ends the pause."""

_CODE: Final = NotReplicated().code
_TIMEOUT: Final = NotReplicated("Timeout reached before replicating to the requested number of nodes").encode()
_REMOVED: Final = NotReplicated("job removed (expired?) before the requested replication level was achieved").encode()


@mypyc_attr(acyclic=True)
class Replication(Pipelined):
    """An ADDJOB that waits until enough nodes confirm a copy of its job, with the timer that asks for more of them."""

    def __init__(
        self,
        session: Session,
        job: Job,
        deadline_ms: i64,
        wanted: i64,
        *,
        external: bool = False,
        held_back: bool = False,
        with_copies: bool = False,
    ) -> None:
        super().__init__(session, len(job.body))
        self.job = job
        self.deadline_ms: i64 = deadline_ms
        """When the wait times out, in unix milliseconds; 0 for never."""
        self.wanted: i64 = wanted
        """How many nodes must confirm, this node included if it keeps a copy."""
        self.external: bool = external
        """This node keeps no copy."""
        self.open = not held_back
        self.held_back: bool = held_back
        """The client asked for ASYNC and waits only until the links to the chosen nodes accept more output."""
        self.with_copies: bool = with_copies
        """The reply says how many nodes have confirmed (WITHCOPIES)."""
        self.copies: i64 = wanted
        """How many nodes are asked to confirm in all; more than `wanted` with SYNC."""
        self.parents_by_ms: i64 = 0
        """When the parents of the job must be known, in unix milliseconds; 0 if they are, or if it has none."""
        self.rivals: Rivals | None = None
        """Other nodes that add the same job, if its ID was given (ADDJOB ID)."""
        self.began_ms: i64 = 0
        """When the wait began."""
        self.sent_ms: i64 = 0
        """When the job was last sent to a node."""

    def ring(self, state: NodeState) -> None:
        """Check whether the wait is over; otherwise ask for more copies."""
        replication_of(state).check(self)

    def arm(self, state: NodeState, pause_ms: i64) -> None:
        """Set the timer to `pause_ms` from now, or to the client's timeout if that comes first."""
        at_ms: i64 = state.now_ms + pause_ms
        if 0 < self.deadline_ms < at_ms:
            at_ms = self.deadline_ms
        if 0 < self.parents_by_ms < at_ms:
            at_ms = self.parents_by_ms
        state.lifecycle.timers.arm(self, at_ms)


class ReplicationRoom(Room):
    """The new jobs of one node that wait for their copies."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.waits: dict[bytes, Replication] = {}
        """Clients in ADDJOB, by the ID of their job."""
        self._asking = Asking(state)
        self.followed = Followed(self._asking)
        self._last_holders: NodeIds = NOBODY
        self._alone: NodeIds = NOBODY
        self._durations = state.counters.histogram(DURATION)

    # --- events -------------------------------------------------------------------------------------------------------

    def copies_wanted(
        self, session: Session, job: Job, timeout_ms: i64, *, confirmed: i64, external: bool, with_copies: bool
    ) -> None:
        """Send a new job to other nodes; the client waits until `confirmed` nodes have it, 0 for ASYNC.

        If this node cannot keep the job itself (`external`), the client is only answered when one node has confirmed,
        with ASYNC too: otherwise no node might have the job. What SYNC leaves out is then sent, and not followed: this
        node does not have the job.
        """
        state = self.state
        needed: i64 = i64(job.repl) if external else i64(job.repl) - 1
        chosen = choose(state, job, NOBODY if external else self._this_node(), needed)
        deadline_ms: i64 = state.now_ms + timeout_ms if timeout_ms > 0 else 0
        if external:
            if not chosen:
                raise NotReplicated
            wanted: i64 = max(confirmed, 1)
            self._wait(Replication(session, job, deadline_ms, wanted, external=True, with_copies=with_copies), chosen)
        elif job.is_held:
            wait = Replication(session, job, deadline_ms, max(confirmed, 1), with_copies=with_copies)
            wait.copies = i64(job.repl)
            self._wait(wait, chosen)
        elif confirmed > needed:
            self._wait(Replication(session, job, deadline_ms, needed + 1, with_copies=with_copies), chosen)
        elif confirmed > 0:
            self._wait_for_some(session, job, chosen, deadline_ms, confirmed, with_copies=with_copies)
        elif chosen and is_slow(chosen[-1]):
            state.counters.add(ASYNC_HELD_BACK)
            wait = Replication(session, job, deadline_ms, needed + 1, held_back=True, with_copies=with_copies)
            self._wait(wait, chosen)
        else:
            self._send_unconfirmed(session, job, chosen, with_copies=with_copies)
            state.counters.add(ASYNC_COPIES_MISSING, needed - len(chosen))

    def complete(self, job: Job) -> bool:
        """Answer the client that waits for the copies of a job as if all nodes had confirmed.

        Returns False when the job is no longer on this node. The job was acknowledged, so a job that this node cannot
        keep is not queued on another node either: its copies are deleted.
        """
        wait = self.waits.get(job.id)
        if wait is None:
            return True
        if not wait.external:
            return self._succeed(wait)
        confirmed = confirmed_by(job)
        self._delete_copies(job)
        self._forget(job)
        self._accept(wait, confirmed)
        return False

    def dropped_unplaced(self, job: Job) -> None:
        """Delete the copies of a job that is dropped before it has all of them, and reply to its client."""
        wait = self.waits.pop(job.id, None)
        if wait is not None:
            self._take_back(job)
            self._refuse(wait, _REMOVED)

    def all_dropped(self) -> None:
        """Delete the copies of all jobs that wait for more, and reply to their clients."""
        self.followed.clear()
        waits = list(self.waits.values())
        self.waits.clear()
        for wait in waits:
            self._delete_copies(wait.job)
            self._refuse(wait, _REMOVED)

    def client_gone(self, blocked: Blocked) -> None:
        """Delete the job of a client that disconnected while it waited for copies, wherever the job may be."""
        if isinstance(blocked, Replication):
            self._take_back(blocked.job)
            self._forget(blocked.job)

    def copies_missing(self, job: Job, confirmed: NodeIds) -> None:
        """Ask for the copies of a job that was moved, as after SYNC."""
        self.followed.follow(job, confirmed, 0)

    def peer_restarted(self, peer: Peer) -> None:
        """The node must confirm again what it confirmed before."""
        state = self.state
        lost: NodeIds = (peer.id,)
        for wait in self.waits.values():
            wait.job.confirmed = state.holders.without(confirmed_by(wait.job), lost)
            wait.job.era = state.lifecycle.table.era
        self.followed.forget_confirmations(lost)

    def peer_up(self, _peer: Peer) -> None:
        """A node can be asked again: check now what waits for one."""
        timers = self.state.lifecycle.timers
        for wait in self.waits.values():
            timers.arm(wait, self.state.now_ms)
        self.followed.hurry()

    def cron(self) -> None:
        """Send longer lists of holders for which links had no room."""
        self._asking.tell_skipped()

    # --- the wait for copies ------------------------------------------------------------------------------------------

    def _send_unconfirmed(self, session: Session, job: Job, chosen: list[Peer], *, with_copies: bool) -> None:
        """ASYNC: place the job here at once. Its copies may or may not arrive."""
        state = self.state
        if chosen:
            self._list_holders(job, chosen, kept_here=True)
            self._asking.send(job, chosen, kinds.NOREPLY)
        state.lifecycle.admit(job, state.now_ms)
        state.counters.add(JOBS_ADDED)
        session.out.append(added(job.id, 1, with_copies=with_copies))

    def _wait_for_some(
        self, session: Session, job: Job, chosen: list[Peer], deadline_ms: i64, confirmed: i64, *, with_copies: bool
    ) -> None:
        """SYNC: wait for some of the copies, and follow the others.

        A node with a congested link is only asked now if the client cannot do without it: the client must not fill the
        link faster than it drains.
        """
        while i64(len(chosen)) >= confirmed and is_slow(chosen[-1]):
            chosen.pop()
        if confirmed > 1:
            wait = Replication(session, job, deadline_ms, confirmed, with_copies=with_copies)
            wait.copies = i64(job.repl)
            self._wait(wait, chosen)
            return
        state = self.state
        if chosen:
            self._list_holders(job, chosen, kept_here=True)
            self._asking.send(job, chosen, 0)
        state.lifecycle.admit(job, state.now_ms)
        state.counters.add(JOBS_ADDED)
        session.out.append(added(job.id, 1, with_copies=with_copies))
        self.followed.follow(job, self._this_node(), deadline_ms)

    def _wait(self, wait: Replication, chosen: list[Peer]) -> None:
        """Register the job, send it to the chosen nodes and suspend its client."""
        state = self.state
        job = wait.job
        self._list_holders(job, chosen, kept_here=not wait.external)
        job.confirmed = NOBODY if wait.external else self._this_node()
        if job.is_named:
            wait.rivals = Rivals(job.id)
            if not wait.external:
                wait.rivals.note(state.view.node_id, 0)
        self._asking.send(job, chosen, 0)
        if job.is_held:
            wait.parents_by_ms = wait.deadline_ms or state.now_ms + PARENTS_MS
        state.lifecycle.await_copies(job, state.now_ms)
        self.waits[job.id] = wait
        suspend_pipelined(state, wait)
        wait.began_ms = state.now_ms
        wait.sent_ms = state.now_ms
        wait.arm(state, ASK_MORE_MS)

    def check(self, wait: Replication) -> None:
        """Give up if the client's timeout has expired; otherwise ask one more node, or ask the silent ones again."""
        state = self.state
        job = wait.job
        if 0 < wait.parents_by_ms <= state.now_ms:
            self._refuse_child(wait)
            return
        if 0 < wait.deadline_ms <= state.now_ms:
            state.counters.add(TIMEOUTS)
            self._take_back(job)
            self._forget(job)
            self._refuse(wait, _TIMEOUT)
            return
        if wait.held_back and not self._is_held_back(job):
            self._count_missing(job)
            self._succeed(wait)
            return
        if wait.parents_by_ms == 0 and len(confirmed_by(job)) >= wait.wanted and self._succeed(wait):
            return
        wait.arm(state, ASK_MORE_MS if self._ask_more(wait) else IDLE_MS)

    def note_copy_confirmed(self, wait: Replication, peer: Peer) -> None:
        """Note that a node has the copy that it was asked to keep; with enough copies the wait is over."""
        job = wait.job
        confirmed = confirmed_by(job)
        delivered = job.delivered
        if delivered is None or not lists(delivered, peer.id) or lists(confirmed, peer.id):
            return
        is_last = not wait.external and len(confirmed) + 1 >= wait.wanted and wait.copies == wait.wanted
        if is_last and not wait.with_copies and wait.parents_by_ms == 0:
            self._succeed(wait)
            return
        confirmed = self.state.holders.plus(confirmed, peer.id)
        job.confirmed = confirmed
        if len(confirmed) >= wait.wanted and wait.parents_by_ms == 0:
            self._succeed(wait)

    def parents_known(self, job_id: bytes) -> None:
        """All parents of a new job are known: it can be placed when it has its copies."""
        wait = self.waits.get(job_id)
        if wait is not None:
            wait.parents_by_ms = 0
            if len(confirmed_by(wait.job)) >= wait.wanted:
                self._succeed(wait)

    def _refuse_child(self, wait: Replication) -> None:
        """Delete a job whose parents are not known, and say which one is not."""
        job = wait.job
        held = self.state.lifecycle.held.jobs.get(job.id)
        error = NoParent("the parents are not known" if held is None else held.why)
        self._take_back(job)
        self._forget(job)
        self._refuse(wait, error.encode(), error.code)

    def _this_node(self) -> NodeIds:
        """The list with this node alone."""
        node_id = self.state.view.node_id
        if not self._alone or self._alone[0] is not node_id:
            self._alone = self.state.holders.keep((node_id,))
        return self._alone

    def _list_holders(self, job: Job, chosen: list[Peer], *, kept_here: bool) -> None:
        if not self._has_last_holders(chosen, kept_here=kept_here):
            own = (self.state.view.node_id,) if kept_here else NOBODY
            self._last_holders = self.state.holders.keep((*own, *[peer.id for peer in chosen]))
        job.delivered = self._last_holders

    def _has_last_holders(self, chosen: list[Peer], *, kept_here: bool) -> bool:
        """Whether a job has the holders of the job before, as most jobs have."""
        last = self._last_holders
        at: i64 = 0
        if kept_here:
            if not last or last[0] is not self.state.view.node_id:
                return False
            at = 1
        if len(last) != at + len(chosen):
            return False
        for peer in chosen:
            if last[at] is not peer.id:
                return False
            at += 1
        return True

    def _ask_more(self, wait: Replication) -> bool:
        """Send the job to one more node, and the longer list of holders to all nodes that were asked before.

        Without another node, repeat the question to those that did not confirm. Returns False if no node can be asked
        now.
        """
        state = self.state
        job = wait.job
        delivered = job.delivered
        assert delivered is not None
        added = self._asking.one_more(job, delivered)
        if added is None and state.now_ms - wait.sent_ms < REPEAT_MS:
            return True
        wait.sent_ms = state.now_ms
        return self._asking.repeat(job, confirmed_by(job), added)

    def _is_held_back(self, job: Job) -> bool:
        """Whether the link to a node that did not confirm yet is still congested."""
        for node_id in job.delivered or NOBODY:
            peer = self.state.view.peers.get(node_id)
            if peer is not None and is_slow(peer) and node_id not in confirmed_by(job):
                return True
        return False

    def _count_missing(self, job: Job) -> None:
        """Count the copies of a job that was held back which were not even sent."""
        missing: i64 = i64(job.repl) - 1
        for node_id in job.delivered or NOBODY:
            peer = self.state.view.peers.get(node_id)
            if peer is not None and (peer.link is not None or node_id in confirmed_by(job)):
                missing -= 1
        if missing > 0:
            self.state.counters.add(ASYNC_COPIES_MISSING, missing)

    # --- the end of the wait ------------------------------------------------------------------------------------------

    def _succeed(self, wait: Replication) -> bool:
        """Place the job, which has its copies, and send its ID to the client.

        Returns False for an external job if no node that confirmed can be told to queue it now.
        """
        job = wait.job
        confirmed = confirmed_by(job)
        is_rivals = wait.rivals is not None and wait.rivals.won
        if not wait.external:
            del self.waits[job.id]
            if is_rivals:
                self.state.lifecycle.place_elsewhere(job)
            else:
                self.state.lifecycle.place(job, self.state.now_ms)
            if wait.copies > len(confirmed) and wait.copies > wait.wanted:
                self.followed.follow(job, confirmed, wait.deadline_ms)
        elif (is_rivals and job.retry_s > 0) or queue_elsewhere(self.state, job):
            self._forget(job)
        else:
            return False
        self._accept(wait, confirmed)
        return True

    def _accept(self, wait: Replication, confirmed: NodeIds) -> None:
        """Send the ID of the job, which these nodes have, to the client; the window of the job's key begins."""
        state = self.state
        state.lifecycle.keys.begin(wait.job.id, state.now_ms, state.now_ms)
        state.counters.add(JOBS_ADDED)
        self._durations.observe(state.now_ms - wait.began_ms)
        release(state, wait, added(wait.job.id, len(confirmed), with_copies=wait.with_copies))

    def _refuse(self, wait: Replication, error: bytes, code: str = _CODE) -> None:
        """Reply to the client that its job does not have its copies, or that it cannot be added."""
        state = self.state
        state.errors.add(code)
        state.counters.add(FAILURES)
        self._durations.observe(state.now_ms - wait.began_ms)
        release(state, wait, error)

    def _forget(self, job: Job) -> None:
        """Drop a job that waits for copies without replying to its client; the caller replies."""
        del self.waits[job.id]
        self.state.lifecycle.drop(job)

    def _delete_copies(self, job: Job) -> None:
        """Delete the copies of a job, unless another node may have added the same job (ADDJOB ID)."""
        if job.is_named:
            return
        delete_at_holders(self.state, job, kinds.NOT_DONE)

    def _take_back(self, job: Job) -> None:
        """Delete the copies of a job that is not added after all; the next job with its key is a new one."""
        self._delete_copies(job)
        self.state.lifecycle.keys.forget(job.id)


def confirmed_by(job: Job) -> NodeIds:
    """The nodes that confirmed that they have a copy of a job that waits for copies."""
    confirmed = job.confirmed
    return NOBODY if confirmed is None else confirmed


def replication_of(state: NodeState) -> ReplicationRoom:
    """The replication room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, ReplicationRoom)
    return room
