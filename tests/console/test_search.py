"""A search for jobs on another member, which answers a query only if that takes a short time."""

from __future__ import annotations

from typing import Any

from disqued.console.jobs import SCANNED_OF_MEMBER, SHOWN_AT_ONCE, Search
from disqued.queries.answering import TOO_LONG
from disqued.resp.replies import Failure, Reply


class Page:
    """The exchange of a search: time passes only between its steps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.refused = ""

    def now_s(self) -> float:
        return self.now

    def call_later(self, _delay_s: float, step: Any) -> None:
        self.now += 0.1
        step()

    def answer(self, _status: int, text: str) -> None:
        self.refused = text


def search(page: Page, answers: list[Reply]) -> tuple[list[list[bytes]], list[Any]]:
    """The commands of a scan whose JSCANs get these answers, and its result."""
    asked: list[list[bytes]] = []
    found: list[Any] = []

    def ask(requests: Any, then: Any) -> None:
        asked.extend(requests)
        then([answers.pop(0) if words[0] == b"jscan" else None for words in requests])

    exchange: Any = page
    made = Search(exchange, ask, lambda: 0, lambda *result: found.append(result), 100, SCANNED_OF_MEMBER)
    made.scan(None, b"dead", b"7")
    return asked, found


def test_scan_that_takes_too_long_is_repeated_with_half_the_count() -> None:
    slow = Failure(TOO_LONG.encode())
    asked, found = search(Page(), [slow, slow, [b"9", []], [b"0", []]])
    assert [(words[1], words[3]) for words in asked] == [(b"7", b"40"), (b"7", b"20"), (b"7", b"10"), (b"9", b"10")]
    assert found == [([], "0")]


def test_scan_that_always_takes_too_long_is_given_up() -> None:
    page = Page()
    _, found = search(page, [Failure(TOO_LONG.encode())] * 100)
    assert (found, page.refused) == ([], TOO_LONG)


def test_jobs_are_shown_in_bounded_queries() -> None:
    ids: list[Reply] = [b"D-%d" % number for number in range(SHOWN_AT_ONCE + 1)]
    asked, found = search(Page(), [[b"0", ids]])
    assert [words for words in asked if words[0] == b"show"] == [[b"show", job] for job in ids]
    assert found == [([], "0")]
