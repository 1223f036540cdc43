"""Mutations: the room of ordered queues broken on purpose, to test that its simulator notices.

All replace functions, which works with the interpreted build only. The Raft core, the log and the machine have tables
of their own (`raftmutations`, and beside their tests); here is what only whole nodes can show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from disqued.ordered.agents import Agent
from disqued.ordered.damaged import DamagedReplicas
from disqued.ordered.queuemachine import QueueMachine
from disqued.ordered.replica import Replica
from disqued.ordered.requests import GroupClient, Request
from disqued.ordered.storage import Storage
from disqued.orderedqueue import joining, working
from disqued.orderedqueue.commands import Ack
from disqued.orderedqueue.effects import Effects
from disqued.orderedqueue.machine import Machine
from disqued.orderedqueue.state import State
from disqued.raft.batch import Batch
from disqued.raft.entry import Entry
from disqued.raftlog.log import RaftLog


@dataclass(frozen=True)
class Mutation:
    """One way to break the nodes."""

    why: str
    """What goes wrong."""
    mix: str
    """The mix of faults that reveals it."""
    patched: tuple[tuple[ModuleType | type, str, Callable[..., Any]], ...]
    """Functions of modules and classes, and their replacements."""

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


_apply: Final = QueueMachine.apply
_carry_out: Final = Replica._carry_out  # noqa: SLF001 - mutations patch internals
_lose: Final = GroupClient._lose  # noqa: SLF001 - mutations patch internals
_new_leader: Final = Machine.new_leader
_ack: Final = working.ack
_flush: Final = Storage.flush
_assigned: Final = Agent.assigned
_snapshot: Final = QueueMachine.snapshot


def _nobody_has_one(self: QueueMachine, node_id: bytes) -> bool:
    """Have the leader send jobs also to consumers whose nodes have replicas."""
    del self, node_id
    return False


def _anybody(self: Agent, job: Any, number: int) -> None:
    """Take every job of a DELIVER, whether it was seen before or not."""
    del number
    self.last_claim = 0
    _assigned(self, job)


def _keep_credit(state: State) -> None:
    """Keep the credit of consumers when a leader begins."""
    del state


def _release_assigned(self: QueueMachine, entry: Entry, *, leads: bool, wanted: bool) -> bytes:
    """Release the bodies of jobs when they are assigned."""
    result = _apply(self, entry, leads=leads, wanted=wanted)
    for consumer in self.machine.consumers():
        for index in sorted(consumer.jobs):
            self._storage.log.release(self.group, index)
    return result


def _without_leases(self: QueueMachine) -> bytes:
    """Write a snapshot in which no consumer has a job."""
    whole = _snapshot(self)
    copy = QueueMachine(self._exchange, self._storage, self._agents, self.queue)
    copy.restore(whole)
    for consumer in copy.machine.consumers():
        copy.machine._state.remove_consumer(consumer, Effects())  # noqa: SLF001 - as above
    return _snapshot(copy)


def _commit_all(self: Replica, batch: Batch) -> None:
    """Apply, and answer, what the leader has proposed, before it is committed."""
    _carry_out(self, batch)
    if self.raft.is_leader:
        self._committed = self.raft.last


def _flush_and_confirm(self: Storage) -> None:
    """Confirm writes before they are synced."""
    _flush(self)
    if self._flushes:
        self._safe = self._flushes[-1].ticket
        self._confirm()


def _own_time(self: QueueMachine, entry: Entry, *, leads: bool, wanted: bool) -> bytes:
    """Take the time from the clock of the node instead of the entry."""
    now_ms = self._exchange.state.now_ms
    return _apply(self, Entry(entry.term, entry.index, now_ms, entry.kind, entry.data), leads=leads, wanted=wanted)


def _ack_without_claims(state: State, command: Ack, effects: Effects) -> None:
    """Accept acknowledgements under any claim."""
    command.claims = None
    _ack(state, command, effects)


def _without_keys(self: Machine, index: int, time_ms: int) -> Effects:
    """Forget the keys of producers when a leader begins."""
    self._state.keys.by_key.clear()
    self._state.keys._of_jobs.clear()  # noqa: SLF001 - as above
    return _new_leader(self, index, time_ms)


def _repeat_all(self: GroupClient, request: Request) -> None:
    """Repeat every request whose answer is lost."""
    request.repeated = True
    _lose(self, request)


def _any_process(self: Agent, job: Any) -> None:
    """Take also the jobs that were assigned to the former process of the node."""
    self._joined_before = True
    _assigned(self, job)


def _begin_at_once(self: DamagedReplicas, group: int, log: RaftLog) -> bool:
    """Let a damaged replica begin from nothing although it is a voter."""
    if self.has(group):
        self._remove(group, log)
    return True


MUTATIONS: Final[dict[str, Mutation]] = {
    "two-deliver": Mutation(
        "the leader sends jobs also to consumers whose nodes have replicas",
        "calm",
        ((QueueMachine, "_has_replica", _nobody_has_one), (Agent, "delivered", _anybody)),
    ),
    "credit-kept": Mutation(
        "consumers keep their credit when a leader begins", "changes", ((joining, "forget_credit", _keep_credit),)
    ),
    "released-while-leased": Mutation(
        "the bodies of jobs are released when they are assigned", "power", ((QueueMachine, "apply", _release_assigned),)
    ),
    "snapshot-without-leases": Mutation(
        "a snapshot does not contain leases", "changes", ((QueueMachine, "snapshot", _without_leases),)
    ),
    "apply-before-commit": Mutation(
        "a leader applies and answers what is not committed", "network", ((Replica, "_carry_out", _commit_all),)
    ),
    "confirm-before-sync": Mutation(
        "writes are confirmed before they are synced", "power", ((Storage, "flush", _flush_and_confirm),)
    ),
    "local-time": Mutation("machines take the time of their nodes", "calm", ((QueueMachine, "apply", _own_time),)),
    "stale-accepted": Mutation(
        "acknowledgements are accepted under any claim", "calm", ((working, "ack", _ack_without_claims),)
    ),
    "keys-forgotten": Mutation(
        "a new leader forgets the keys of producers", "crashes", ((Machine, "new_leader", _without_keys),)
    ),
    "add-repeated": Mutation(
        "an add without a key is repeated when its answer is lost", "network", ((GroupClient, "_lose", _repeat_all),)
    ),
    "former-process": Mutation(
        "a node hands out again what it handed out before its restart", "crashes", ((Agent, "assigned", _any_process),)
    ),
    "damaged-votes": Mutation(
        "a damaged replica begins from nothing while it is a voter",
        "rot",
        ((DamagedReplicas, "begins", _begin_at_once),),
    ),
}
"""By name."""
