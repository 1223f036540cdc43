"""What one member of the cluster tells the page: its figures once a second, and the queues that the page asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, TypeAlias

from disqued.console.calling import Cancel, Requests, Then
from disqued.console.figures import node_figures, queue_figures
from disqued.console.rates import Rates
from disqued.console.selection import QueueSelection
from disqued.resp.replies import Failure, Reply

UPDATE_S: Final = 1.0
"""Interval of figures."""
RESCAN_S: Final = 2.0
"""Pause after a complete scan for queues."""
ANSWER_S: Final = 1.0
"""A member that has not answered after this time is silent."""

WAITING: Final = "waiting"
ANSWERS: Final = "answers"
SILENT: Final = "silent"
REFUSES: Final = "refuses"

Send: TypeAlias = Callable[[Requests, Then], "Cancel | None"]
"""Has the member run commands. Returns a function that cancels that; None if the member cannot be asked now."""
_REQUESTS: Final = b"requests"
_COMMANDS: Final = "total_commands_processed"


class Feed:
    """The answers of one member."""

    def __init__(
        self,
        send: Send,
        selection: QueueSelection,
        begin_s: float,
        updated: Callable[[], None],
        answer_s: float = ANSWER_S,
    ) -> None:
        """The figures are asked for from `begin_s` on, and the first queues at once. Each time `updated` is called.

        The member is silent if it has not answered after `answer_s`.
        """
        self._send = send
        self._heard = updated
        self._answer_s = answer_s
        self.selection = selection
        self.state = WAITING
        self.why = ""
        """The error reply of a member that refuses."""
        self.figures: dict[str, Any] = {}
        self.queues: dict[bytes, dict[str, Any]] = {}
        """The figures of queues by name."""
        self._rates = Rates()
        self._request_rates = Rates()
        self._cancel: Cancel | None = None
        """Cancels what was asked last, until it is answered."""
        self._asked_s = begin_s
        self._update_s = begin_s
        self._scan_s = 0.0

    def step(self, now_s: float, wanted: Collection[bytes]) -> None:
        """Do what is due. `wanted` are queues to ask for in addition to those that are selected."""
        if self._cancel is not None:
            if now_s - self._asked_s > self._answer_s:
                self._cancel()
                self._cancel = None
                self._be_silent(now_s)
        elif now_s >= self._update_s:
            self._update_s = now_s + UPDATE_S
            names = list(dict.fromkeys([*wanted, *self.selection.names]))
            requests = [[b"info"], *_qstats(names)]
            self._ask(now_s, requests, lambda replies: self._updated(now_s, names, replies))
        elif names := self.selection.to_measure():
            self._ask(now_s, _qstats(names), lambda replies: self._measured(names, replies))
        elif not self.selection.match_names() and now_s >= self._scan_s:
            self._ask(now_s, [[b"qscan", *self.selection.scan()]], lambda replies: self._scanned(now_s, replies))

    @property
    def due_s(self) -> float:
        """When to call `step` again; in the past for as soon as possible."""
        idle = self._cancel is None and self.selection.settled
        return min(self._update_s, self._scan_s) if idle else 0.0

    def close(self) -> None:
        """Ask nothing any more, and wait for no answer."""
        if self._cancel is not None:
            self._cancel()
        self._cancel = None
        self._send = lambda _requests, _then: None
        self._heard = lambda: None

    def rate(self, name: bytes) -> tuple[float, ...] | None:
        """Jobs of a queue that came in and went out per second."""
        return self._rates.per_second(name)

    @property
    def request_rate(self) -> float | None:
        """Requests per second."""
        found = self._request_rates.per_second(_REQUESTS)
        return None if found is None else found[0]

    def _ask(self, now_s: float, requests: Requests, then: Then) -> None:
        def answered(replies: list[Reply]) -> None:
            self._cancel = None
            if len(replies) == len(requests):
                then(replies)

        self._asked_s = now_s
        self._cancel = self._send(requests, answered)
        if self._cancel is None:
            self._be_silent(now_s)

    def _be_silent(self, now_s: float) -> None:
        """Show nothing of the member, and ask it again later."""
        self.state, self.figures, self.queues = SILENT, {}, {}
        self.selection.forget()
        self._update_s = self._scan_s = now_s + UPDATE_S

    def _updated(self, now_s: float, names: Sequence[bytes], replies: list[Reply]) -> None:
        info, *queues = replies
        figures = [queue_figures(reply) for reply in queues]
        self.selection.measured(_lengths(names, figures))
        self.queues = {name: one for name, one in zip(names, figures, strict=True) if one is not None}
        self._rates.add(now_s, {name: (one["jobs_in"], one["jobs_out"]) for name, one in self.queues.items()})
        self.figures = node_figures(info)
        if _COMMANDS in self.figures:
            self._request_rates.add(now_s, {_REQUESTS: (self.figures[_COMMANDS],)})
        self.state, self.why = (REFUSES, info.message) if isinstance(info, Failure) else (ANSWERS, "")
        self._heard()

    def _measured(self, names: Sequence[bytes], replies: list[Reply]) -> None:
        self.selection.measured(_lengths(names, [queue_figures(reply) for reply in replies]))

    def _scanned(self, now_s: float, replies: list[Reply]) -> None:
        self.selection.scanned(replies[0])
        if self.selection.round_ended or not isinstance(replies[0], list):
            self._scan_s = now_s + RESCAN_S


def _qstats(names: Sequence[bytes]) -> list[list[bytes]]:
    return [[b"qstat", name] for name in names]


def _lengths(names: Sequence[bytes], figures: Sequence[dict[str, Any] | None]) -> list[tuple[bytes, int | None]]:
    return [(name, None if one is None else one["len"]) for name, one in zip(names, figures, strict=True)]
