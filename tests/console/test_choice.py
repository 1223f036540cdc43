"""Which queues are shown, found a few at a time among many."""

from __future__ import annotations

from typing import Any

import pytest

from disqued.config.glob import glob_match
from disqued.console import choice as choice_module
from disqued.console.choice import MEASURED, MOST_WORK, SCANNED, Choice
from disqued.console.figures import queue_figures
from disqued.httproutes import MAX_NAME_BYTES, MAX_PATTERN_BYTES
from disqued.testing.local import LocalNode

PATIENCE = 400


class Page:
    """A choice that is driven as a live page drives it, on a node that answers at once."""

    def __init__(self, local: LocalNode, sought: bytes = b"", sort: str = "length", most: int = 5) -> None:
        self.client = local.client()
        self.choice = Choice(sought, sort, most)
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        names = self.choice.to_measure()
        if names:
            assert len(names) <= MEASURED
            self.choice.measured([(name, self.length(name)) for name in names])
        elif not self.choice.sift():
            reply: Any = self.client.call("QSCAN", *self.choice.scan())
            assert len(reply[1]) <= SCANNED
            self.choice.scanned(reply)

    def length(self, name: bytes) -> int | None:
        reply: Any = self.client.call("QSTAT", name)
        figures = queue_figures(reply)
        return None if figures is None else int(figures["len"])

    def beat(self) -> None:
        names = self.choice.names
        self.choice.measured([(name, self.length(name)) for name in names])

    def round(self) -> list[bytes]:
        """Until all queues were looked at once more."""
        while True:
            self.step()
            assert self.steps < PATIENCE
            if self.choice.round_ended and self.choice.settled:
                return self.choice.names


def with_queues(count: int) -> LocalNode:
    """Queue number n of q0000, q0001, … has n % 7 jobs, 1 at least."""
    local = LocalNode()
    client = local.client()
    for number in range(count):
        for _ in range(max(number % 7, 1)):
            client.add(f"q{number:04}", "x")
    return local


def test_the_longest_queues_are_chosen() -> None:
    page = Page(with_queues(30))
    assert page.round() == [b"q0006", b"q0013", b"q0020", b"q0027", b"q0005"]
    assert page.choice.complete


def test_among_many_queues_a_round_takes_bounded_steps() -> None:
    page = Page(with_queues(3000), most=50)
    chosen = page.round()
    assert len(chosen) == 50
    assert chosen == [b"q%04d" % (7 * number + 6) for number in range(50)]
    assert page.steps < 80


def test_what_grows_comes_in_and_what_goes_leaves() -> None:
    local = with_queues(20)
    page = Page(local)
    page.round()
    client = local.client()
    for _ in range(9):
        client.add("q0000", "x")
    client.take("q0006", count=6)
    page.beat()
    assert page.round()[0] == b"q0000"
    assert b"q0006" not in page.choice.names


def test_a_queue_that_is_gone_makes_room() -> None:
    page = Page(with_queues(20))
    before = page.round()
    page.choice.measured([(before[0], None)])
    assert before[0] not in page.choice.names
    assert page.round() == before


def test_by_name_the_first_are_chosen() -> None:
    page = Page(with_queues(1200), sort="name", most=3)
    assert page.round() == [b"q0000", b"q0001", b"q0002"]


@pytest.mark.parametrize(
    ("sought", "found"),
    [
        (b"0019", [b"q0019"]),
        (b"q001[89]", [b"q0019", b"q0018"]),
        (b"*9", [b"q0009", b"q0019"]),
        (b"nothing", []),
        (b"[", []),
    ],
)
def test_queues_are_found_by_a_part_of_their_names_or_a_pattern(sought: bytes, found: list[bytes]) -> None:
    page = Page(with_queues(20), sought)
    assert sorted(page.round()) == sorted(found)
    assert page.choice.complete


def test_a_node_that_refuses_is_asked_again() -> None:
    choice = Choice(b"", "length", 5)
    choice.scanned(None)
    assert choice.names == []
    assert choice.scan()[0] == b"0"


@pytest.mark.parametrize(
    ("sought", "found"), [(b"mail", True), (b"mail*", False), (b"*mail", False), (b"new", True), (b"", True)]
)
def test_a_word_is_looked_for_anywhere(sought: bytes, found: bool) -> None:
    local = LocalNode()
    local.client().add("new-mail-2", "x")
    assert Page(local, sought).round() == ([b"new-mail-2"] if found else [])


# --- what it costs ----------------------------------------------------------------------------------------------------


class Tries:
    """Counts how often a pattern is tried."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(choice_module, "glob_match", self)

    def __call__(self, pattern: bytes, name: bytes) -> bool:
        self.count += 1
        return glob_match(pattern, name)


def found_names(names: list[bytes]) -> Any:
    return [b"0", names]


def test_a_pattern_that_takes_long_is_tried_on_one_name_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = Tries(monkeypatch)
    choice = Choice(b"*" + b"a" * (MAX_PATTERN_BYTES - 2) + b"b", "length", 5)
    choice.scanned(found_names([b"%03d" % number + b"a" * (MAX_NAME_BYTES - 3) for number in range(SCANNED)]))
    assert tries.count == 0
    for number in range(SCANNED):
        assert not choice.complete
        assert choice.sift()
        assert tries.count == number + 1
    assert choice.complete
    assert not choice.sift()


def test_a_pattern_that_takes_no_time_is_tried_on_many_names_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = Tries(monkeypatch)
    choice = Choice(b"q*", "length", 5)
    names = [b"q%d" % number for number in range(SCANNED)]
    choice.scanned(found_names(names))
    assert choice.sift()
    assert tries.count == SCANNED
    choice.scanned(found_names([name.rjust(MAX_NAME_BYTES) for name in names]))
    assert choice.sift()
    assert (tries.count - SCANNED) * 2 * MAX_NAME_BYTES <= MOST_WORK


def test_a_word_is_no_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = Tries(monkeypatch)
    choice = Choice(b"a" * MAX_PATTERN_BYTES, "length", 5)
    choice.scanned(found_names([b"a" * MAX_NAME_BYTES] * SCANNED))
    assert len(choice.to_measure()) == MEASURED
    assert tries.count == 0


def test_queues_with_names_that_are_too_long_are_left_out() -> None:
    choice = Choice(b"", "length", 5)
    choice.scanned(found_names([b"q" * MAX_NAME_BYTES, b"q" * (MAX_NAME_BYTES + 1)]))
    assert choice.to_measure() == [b"q" * MAX_NAME_BYTES]
    assert choice.settled


def test_the_chosen_ones_are_compared_once_for_all_that_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked: list[bytes] = []

    def rank(name: bytes, _length: int) -> tuple[int, bytes]:
        ranked.append(name)
        return 0, name

    monkeypatch.setitem(choice_module.SORTS, "name", rank)
    most = 100
    choice = Choice(b"", "name", most)
    choice.measured([(b"a%03d" % number, 1) for number in range(most)])
    ranked.clear()
    choice.scanned(found_names([b"b%03d" % number for number in range(SCANNED)]))
    assert len(ranked) <= most + SCANNED
    assert choice.complete
    ranked.clear()
    choice.measured([(b"c%03d" % number, 1) for number in range(MEASURED)])
    assert len(ranked) <= most + MEASURED
    assert choice.names == [b"a%03d" % number for number in range(most)]
