"""Keeps the messages of a process: two threads renew their leases, and send what became of them.

All consumers of a broker share them. So a message stays with its worker thread for as long as the actor runs, also
when its consumer was replaced, and what became of several messages is sent together. The rules are those of the
client's consumer (`disqued.client.consuming`), whose plans have the decisions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

from disqued.client import ConnectionFailed, ConnectionLost, DisqueError, Loading, NodeLeaving, calls
from disqued.client.calls import Call
from disqued.client.consuming import FLUSH_JOBS, FLUSH_WITHIN_S, Ending, Plan
from disqued.client.session import Session
from disqued.client.transport import run_now

_AGAIN_S: Final = 1.0
"""When to send again what no node has taken."""
_NOT_SENT: Final = (ConnectionFailed, NodeLeaving, Loading)
_IDLE_S: Final = 0.25
"""The longest time between two checks for due renewals: no message is due earlier after its fetch."""


class Keeper:
    """The plans of the consumers of a process, and the threads that carry them out."""

    def __init__(self) -> None:
        self._plans: list[Plan] = []
        self._retired: list[Plan] = []
        """Plans of closed consumers whose messages are not finished yet. They are in `_plans`, too."""
        self._changing = threading.Lock()
        """Guards both lists, and the start of the threads."""
        self._sending = threading.Lock()
        self._renewing = threading.Lock()
        self._unreached: list[tuple[Plan, Session, list[Ending]]] = []
        """What no node has taken yet. It is sent until one does: otherwise the messages would be processed again."""
        self._unsent = threading.Event()
        self._batch_done = threading.Event()
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []

    def keep(self, plan: Plan) -> None:
        """Renew and finish the messages of a plan from now on."""
        with self._changing:
            self._plans.append(plan)
            if not self._threads and not self._closed.is_set():
                names = {"disque-renewals": self._keep_renewing, "disque-results": self._keep_finishing}
                self._threads = [threading.Thread(target=run, name=name, daemon=True) for name, run in names.items()]
                for thread in self._threads:
                    thread.start()

    def retire(self, plan: Plan) -> None:
        """Forget a plan when its last message is finished; what is known of the others is sent before this returns."""
        with self._changing:
            self._retired.append(plan)
        self.flush()

    def settled(self, plan: Plan) -> None:
        """Send what became of messages of a plan, soon."""
        self._unsent.set()
        if plan.unsent >= FLUSH_JOBS:
            self._batch_done.set()

    def flush(self) -> None:
        """Send what became of messages now, and return when all of it was sent, or no node can be reached."""
        with self._sending:
            with self._renewing:  # a renewal in flight may concern a message that was finished meanwhile
                found = [(plan, source, endings) for plan in self._kept() for source, endings in plan.endings()]
            unreached = [
                (plan, source, _send(plan, source, endings)) for plan, source, endings in self._unreached + found
            ]
            self._unreached = [one for one in unreached if one[2]]
        self._forget_finished()

    def close(self) -> None:
        """Give back all messages, those of actors that still run as a failed attempt, and end the threads."""
        for plan in self._kept():
            plan.give_all_back()
        self._closed.set()
        self._batch_done.set()
        self._unsent.set()
        for thread in self._threads:
            thread.join()
        for plan in self._kept():
            plan.drop_idle()

    def _kept(self) -> list[Plan]:
        with self._changing:
            return list(self._plans)

    def _forget_finished(self) -> None:
        needed = [plan for plan, _, _ in self._unreached]
        with self._changing:
            done = [plan for plan in self._retired if not len(plan.schedule) and not plan.unsent and plan not in needed]
            self._retired = [plan for plan in self._retired if plan not in done]
            self._plans = [plan for plan in self._plans if plan not in done]
        for plan in done:
            plan.drop_idle()

    def _keep_finishing(self) -> None:
        while True:
            self._unsent.wait(_AGAIN_S if self._unreached else None)
            self._batch_done.wait(FLUSH_WITHIN_S)
            self._unsent.clear()
            self._batch_done.clear()
            ended = self._closed.is_set()  # read after the clearing, so that a close is seen here or wakes this again
            self.flush()
            if ended:
                return

    def _keep_renewing(self) -> None:
        while not self._closed.wait(self._wait_s()):
            with self._renewing:
                for plan in self._kept():
                    _renew(plan)

    def _wait_s(self) -> float:
        now_s = time.monotonic()
        return min([plan.schedule.wait_s(now_s, _IDLE_S) for plan in self._kept()], default=_IDLE_S)


def _send(plan: Plan, source: Session, endings: Sequence[Ending]) -> list[Ending]:
    """Send these calls. Returns those that no node has taken."""
    unreached: list[Ending] = []
    while endings:
        results = _results(source, [ending.call for ending in endings])
        answered: list[tuple[Ending, int | DisqueError]] = []
        for ending, result in zip(endings, results, strict=True):
            if isinstance(result, _NOT_SENT) or (ending.call.repeat and isinstance(result, ConnectionLost)):
                unreached.append(ending)
            else:
                answered.append((ending, result))
        endings = plan.ended(source, [ending for ending, _ in answered], [result for _, result in answered])
    plan.release(source)
    return unreached


def _results(source: Session, many: Sequence[Call[int]]) -> Sequence[int | DisqueError]:
    try:
        return run_now(source.perform_many(many))
    except DisqueError as error:
        return [error] * len(many)


def _renew(plan: Plan) -> None:
    for source, ids in plan.due(time.monotonic()):
        plan.renewed(ids, _results(source, list(calls.working_many(ids))), time.monotonic())
