"""Asks another member for one request of the page, and gives up when it does not answer in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.httproutes import UNAVAILABLE

if TYPE_CHECKING:
    from disqued.console.calling import Calls, Cancel, Requests, Then
    from disqued.httproutes import Exchange
    from disqued.resp.replies import Reply

ANSWER_S: Final = 2.0
"""How long a member may take to answer."""


class MemberQuestions:
    """The questions to one member, one after the other."""

    def __init__(self, exchange: Exchange, calls: Calls, member: bytes) -> None:
        self._exchange = exchange
        self._calls = calls
        self._member = member
        self._cancel: Cancel | None = None
        """Cancels the question that is not answered."""
        self._asked = 0
        exchange.at_end(self._forget)

    def ask(self, requests: Requests, then: Then) -> None:
        """Have the member run commands, and call `then` with their replies; without an answer, refuse the request."""
        self._asked += 1
        number = self._asked

        def answered(replies: list[Reply]) -> None:
            if number == self._asked and self._cancel is not None:
                self._cancel = None
                if len(replies) == len(requests):
                    then(replies)
                else:
                    self._exchange.answer(UNAVAILABLE, "the member sent an unexpected reply")

        self._cancel = self._calls.ask_member(self._member, requests, answered)
        if self._cancel is None:
            self._exchange.answer(UNAVAILABLE, "the member cannot be asked now")
        else:
            self._exchange.call_later(ANSWER_S, lambda: self._give_up(number))

    def _give_up(self, number: int) -> None:
        if number == self._asked and self._cancel is not None:
            self._exchange.answer(UNAVAILABLE, "the member does not answer")

    def _forget(self) -> None:
        """The request has ended."""
        if self._cancel is not None:
            self._cancel()
        self._cancel = None
