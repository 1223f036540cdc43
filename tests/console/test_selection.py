"""The selection of queues, found in small steps among many."""

from __future__ import annotations

from typing import Any

import pytest

from disqued.config.glob import glob_match
from disqued.console import selection as choice_module
from disqued.console.figures import queue_figures
from disqued.console.selection import MAX_STEPS, MEASURED, SCANNED, QueueSelection
from disqued.httproutes import MAX_NAME_BYTES, MAX_PATTERN_BYTES
from disqued.testing.local import LocalNode

STEP_LIMIT = 400


class Page:
    """A selection, driven as by a live page, on a node that replies at once."""

    def __init__(self, local: LocalNode, search: bytes = b"", sort: str = "length", most: int = 5) -> None:
        self.client = local.client()
        self.selection = QueueSelection(search, sort, most)
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        names = self.selection.to_measure()
        if names:
            assert len(names) <= MEASURED
            self.selection.measured([(name, self.length(name)) for name in names])
        elif not self.selection.match_names():
            reply: Any = self.client.call("QSCAN", *self.selection.scan())
            assert len(reply[1]) <= SCANNED
            self.selection.scanned(reply)

    def length(self, name: bytes) -> int | None:
        reply: Any = self.client.call("QSTAT", name)
        figures = queue_figures(reply)
        return None if figures is None else int(figures["len"])

    def beat(self) -> None:
        names = self.selection.names
        self.selection.measured([(name, self.length(name)) for name in names])

    def round(self) -> list[bytes]:
        """Run until all queues were scanned once more."""
        while True:
            self.step()
            assert self.steps < STEP_LIMIT
            if self.selection.round_ended and self.selection.settled:
                return self.selection.names


def with_queues(count: int) -> LocalNode:
    """Queue n of q0000, q0001, … has n % 7 jobs, at least 1."""
    local = LocalNode()
    client = local.client()
    for number in range(count):
        for _ in range(max(number % 7, 1)):
            client.add(f"q{number:04}", "x")
    return local


def test_longest_queues_are_selected() -> None:
    page = Page(with_queues(30))
    assert page.round() == [b"q0006", b"q0013", b"q0020", b"q0027", b"q0005"]
    assert page.selection.complete


def test_scan_of_many_queues_takes_bounded_steps() -> None:
    page = Page(with_queues(3000), most=50)
    chosen = page.round()
    assert len(chosen) == 50
    assert chosen == [b"q%04d" % (7 * number + 6) for number in range(50)]
    assert page.steps < 80


def test_selection_follows_growing_and_deleted_queues() -> None:
    local = with_queues(20)
    page = Page(local)
    page.round()
    client = local.client()
    for _ in range(9):
        client.add("q0000", "x")
    client.take("q0006", count=6)
    page.beat()
    assert page.round()[0] == b"q0000"
    assert b"q0006" not in page.selection.names


def test_deleted_queue_makes_room_for_another() -> None:
    page = Page(with_queues(20))
    before = page.round()
    page.selection.measured([(before[0], None)])
    assert before[0] not in page.selection.names
    assert page.round() == before


def test_first_queues_by_name_are_selected() -> None:
    page = Page(with_queues(1200), sort="name", most=3)
    assert page.round() == [b"q0000", b"q0001", b"q0002"]


@pytest.mark.parametrize(
    ("search", "found"),
    [
        (b"0019", [b"q0019"]),
        (b"q001[89]", [b"q0019", b"q0018"]),
        (b"*9", [b"q0009", b"q0019"]),
        (b"nothing", []),
        (b"[", []),
    ],
)
def test_queues_match_a_word_or_a_pattern(search: bytes, found: list[bytes]) -> None:
    page = Page(with_queues(20), search)
    assert sorted(page.round()) == sorted(found)
    assert page.selection.complete


def test_refused_scan_is_repeated() -> None:
    selection = QueueSelection(b"", "length", 5)
    selection.scanned(None)
    assert selection.names == []
    assert selection.scan()[0] == b"0"


@pytest.mark.parametrize(
    ("search", "found"), [(b"mail", True), (b"mail*", False), (b"*mail", False), (b"new", True), (b"", True)]
)
def test_word_matches_anywhere_in_a_name(search: bytes, found: bool) -> None:
    local = LocalNode()
    local.client().add("new-mail-2", "x")
    assert Page(local, search).round() == ([b"new-mail-2"] if found else [])


# --- cost -------------------------------------------------------------------------------------------------------------


class Tries:
    """Counts how often a pattern is matched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(choice_module, "glob_match", self)

    def __call__(self, pattern: bytes, name: bytes) -> bool:
        self.count += 1
        return glob_match(pattern, name)


def found_names(names: list[bytes]) -> Any:
    return [b"0", names]


def test_slow_pattern_matches_one_name_per_step(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = Tries(monkeypatch)
    selection = QueueSelection(b"*" + b"a" * (MAX_PATTERN_BYTES - 2) + b"b", "length", 5)
    selection.scanned(found_names([b"%03d" % number + b"a" * (MAX_NAME_BYTES - 3) for number in range(SCANNED)]))
    assert tries.count == 0
    for number in range(SCANNED):
        assert not selection.complete
        assert selection.match_names()
        assert tries.count == number + 1
    assert selection.complete
    assert not selection.match_names()


def test_fast_pattern_matches_many_names_per_step(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = Tries(monkeypatch)
    selection = QueueSelection(b"q*", "length", 5)
    names = [b"q%d" % number for number in range(SCANNED)]
    selection.scanned(found_names(names))
    assert selection.match_names()
    assert tries.count == SCANNED
    selection.scanned(found_names([name.rjust(MAX_NAME_BYTES) for name in names]))
    assert selection.match_names()
    assert (tries.count - SCANNED) * 2 * MAX_NAME_BYTES <= MAX_STEPS


def test_word_is_not_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = Tries(monkeypatch)
    selection = QueueSelection(b"a" * MAX_PATTERN_BYTES, "length", 5)
    selection.scanned(found_names([b"a" * MAX_NAME_BYTES] * SCANNED))
    assert len(selection.to_measure()) == MEASURED
    assert tries.count == 0


def test_queues_with_long_names_are_omitted() -> None:
    selection = QueueSelection(b"", "length", 5)
    selection.scanned(found_names([b"q" * MAX_NAME_BYTES, b"q" * (MAX_NAME_BYTES + 1)]))
    assert selection.to_measure() == [b"q" * MAX_NAME_BYTES]
    assert selection.settled


def test_selected_queues_are_ranked_once_per_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked: list[bytes] = []

    def rank(name: bytes, _length: int) -> tuple[int, bytes]:
        ranked.append(name)
        return 0, name

    monkeypatch.setitem(choice_module.SORTS, "name", rank)
    most = 100
    selection = QueueSelection(b"", "name", most)
    selection.measured([(b"a%03d" % number, 1) for number in range(most)])
    ranked.clear()
    selection.scanned(found_names([b"b%03d" % number for number in range(SCANNED)]))
    assert len(ranked) <= most + SCANNED
    assert selection.complete
    ranked.clear()
    selection.measured([(b"c%03d" % number, 1) for number in range(MEASURED)])
    assert len(ranked) <= most + MEASURED
    assert selection.names == [b"a%03d" % number for number in range(most)]
