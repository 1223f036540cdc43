"""The selection of queues, their labels, and that many queues do not block the event loop."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.config import Config
from disqued.httproutes import MAX_NAME_BYTES, MAX_PATTERN_BYTES
from disqued.metrics.exposition import Encoder, page_of_queue
from disqued.metrics.queues import AT_A_TIME, QueueScan, Selection, label_of, parse
from disqued.testing.local import LocalNode
from metrics.pages import OPENMETRICS, Page, parts, scrape

HOSTILE = [
    b'"} 1\ndisque_jobs{state="queued',
    b"new\r\nline",
    b"zero\0byte",
    b"\xff\xfe",
    b"\\xff\\xfe",
    b"caf\xc3\xa9",
    b"\xe2\x80\xa8\xe2\x80\xae",
    b"\\",
    b"\\n",
    b"#{}= ,",
    b"",
    b"x" * MAX_NAME_BYTES,
]


def with_queues(lengths: dict[bytes, int], most: int = 100) -> LocalNode:
    """A node with jobs in some queues."""
    config = Config()
    config.assign("metrics_queues", most)
    local = LocalNode(config)
    client = local.client()
    for name, length in lengths.items():
        for _ in range(length):
            client.send("ADDJOB", name, "x", 0)
    return local


def test_queue_with_priorities_has_series_for_them() -> None:
    local = with_queues({b"plain": 2})
    client = local.client()
    for priority in (-1, 5, 5, 100):
        client.add("mixed", "x", "PRIORITY", priority)
    client.add("mixed", "x")
    page = scrape(local)
    assert page.by("priority", "disque_queue_priority_jobs", queue="mixed") == {
        "below-0": 1,
        "0": 1,
        "1-to-9": 2,
        "from-10": 1,
    }
    assert page.by("priority", "disque_queue_priority_jobs", queue="plain") == {}


def test_age_of_the_oldest_job_counts_jobs_that_wait_behind_others() -> None:
    local = with_queues({})
    client = local.client()
    client.add("mail", "starved", "PRIORITY", -1)
    local.run(seconds=9)
    client.add("mail", "urgent", "PRIORITY", 1)
    page = scrape(local)
    assert page.by("queue", "disque_queue_oldest_job_age_seconds") == {"mail": 9}
    assert page.value("disque_oldest_waiting_job_age_seconds") == 9


def test_each_queue_has_its_own_series() -> None:
    local = with_queues({b"one": 3, b"two": 1})
    client = local.client()
    local.run(seconds=2)
    client.take("two")
    client.send("GETJOB", "FROM", "two")
    local.client().call("PAUSE", "one", "in")
    page = scrape(local)
    assert page.by("queue", "disque_queue_jobs") == {"one": 3, "two": 0}
    assert page.by("queue", "disque_queue_oldest_job_age_seconds") == {"one": 2, "two": 0}
    assert page.by("queue", "disque_queue_blocked_clients") == {"one": 0, "two": 1}
    assert page.by("direction", "disque_queue_paused", queue="one") == {"in": 1, "out": 0}
    assert page.by("queue", "disque_queue_jobs_in_total") == {"one": 3, "two": 1}
    assert page.by("queue", "disque_queue_jobs_out_total") == {"one": 0, "two": 1}
    assert page.by("queue", "disque_queue_imported_jobs_per_second") == {"one": 0, "two": 0}
    assert page.value("disque_queues") == 2
    assert page.value("disque_queues_left_out") == 0


def test_queue_shows_what_workers_have_and_what_is_delayed() -> None:
    local = with_queues({b"mail": 3})
    client = local.client()
    client.take("mail", count=2)
    client.add("mail", "x", "DELAY", 60)
    page = scrape(local)
    assert page.by("queue", "disque_queue_leased_jobs") == {"mail": 2}
    assert page.by("queue", "disque_queue_delayed_jobs") == {"mail": 1}
    local.run(seconds=61)
    assert scrape(local).by("queue", "disque_queue_delayed_jobs") == {"mail": 0}


def test_oldest_job_includes_queues_without_series() -> None:
    local = with_queues({b"old": 1}, most=1)
    assert scrape(local).value("disque_oldest_waiting_job_age_seconds") == 0
    local.run(seconds=5)
    client = local.client()
    for _ in range(3):
        client.add("long")
    page = scrape(local)
    assert set(page.by("queue", "disque_queue_jobs")) == {"long"}
    assert page.value("disque_oldest_waiting_job_age_seconds") == 5
    assert page.value("disque_queues_left_out") == 1
    client.take("old")
    assert scrape(local).value("disque_oldest_waiting_job_age_seconds") == 0
    client.take("long", count=3)
    local.run(seconds=2)
    assert scrape(local).value("disque_oldest_waiting_job_age_seconds") == 0


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", {"q4", "q3"}),
        ("queues=1", {"q4"}),
        ("queues=0", set()),
        ("queues=none", set()),
        ("queues=all", {"q0", "q1", "q2", "q3", "q4"}),
        ("queues=ALL", {"q0", "q1", "q2", "q3", "q4"}),
        ("queue=q[12]", {"q1", "q2"}),
        ("queue=q%5b12%5D&queues=1", {"q2"}),
        ("queue=", set()),
        ("queue=nothing", set()),
    ],
)
def test_longest_or_requested_queues_have_series(query: str, names: set[str]) -> None:
    local = with_queues({b"q%d" % number: number for number in range(5)} | {b"q0": 1}, most=2)
    local.client().take("q0")
    page = scrape(local, query)
    assert set(page.by("queue", "disque_queue_jobs")) == names
    assert page.value("disque_queues_left_out") == 5 - len(names)


@pytest.mark.parametrize(
    ("query", "shown", "left_out"),
    [
        ("name=q0", {"q4": 4, "q3": 3, "q0": 0}, 2),
        ("name=q4&name=q4", {"q4": 4, "q3": 3}, 3),
        ("queues=none&name=q1&name=q2", {"q1": 1, "q2": 2}, 3),
        ("queues=none&name=absent", {"absent": 0}, 5),
        ("queues=none&name=caf%C3%A9&name=q%2531", {"café": 0, "q%31": 0}, 5),
    ],
)
def test_named_queues_always_have_series(query: str, shown: dict[str, int], left_out: int) -> None:
    """A scaler needs a number, also for a short queue among a hundred thousand, and for one that was removed."""
    local = with_queues({b"q%d" % number: number for number in range(5)} | {b"q0": 1}, most=2)
    local.client().take("q0")
    page = scrape(local, query)
    assert page.by("queue", "disque_queue_jobs") == shown
    assert page.by("queue", "disque_queue_oldest_job_age_seconds").keys() == shown.keys()
    assert page.value("disque_queues_left_out") == left_out
    assert page.value("disque_queues") == 5, "a page makes no queues"


def test_page_of_a_queue_has_only_its_series() -> None:
    local = with_queues({b"mail": 3, b"print": 1})
    page = Page(page_of_queue(local.node, b"mail", Encoder("")).decode())
    assert page.by("queue", "disque_queue_jobs") == {"mail": 3}
    assert {name for name in page.names if not name.startswith("disque_queue_")} == set()
    absent = Page(page_of_queue(local.node, b"absent", Encoder(OPENMETRICS)).decode(), openmetrics=True)
    assert absent.by("queue", "disque_queue_jobs") == {"absent": 0}
    assert absent.by("queue", "disque_queue_oldest_job_age_seconds") == {"absent": 0}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("queues=many", "invalid value 'many'; use queues=all, queues=none or queues=NUMBER, queue=PATTERN, and"),
        ("queues=-1", "invalid value '-1'"),
        ("queues=99999999999999999999", "invalid value '99999999999999999999'"),
        ("limit=3", "unknown parameter; use queues=all, queues=none or queues=NUMBER"),
        ("queue=" + "*" * (MAX_PATTERN_BYTES + 1), "pattern is longer than 128 bytes"),
        ("name=" + "x" * (MAX_NAME_BYTES + 1), "name is longer than 256 bytes: such queues have no series"),
        ("queues=" + "9" * 5000, "invalid value '" + "9" * MAX_PATTERN_BYTES + "'"),
    ],
)
def test_invalid_query_is_explained(query: str, text: str) -> None:
    answer = parse(query, 100)
    assert isinstance(answer, str)
    assert text in answer


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
@pytest.mark.parametrize("name", HOSTILE)
def test_label_of_any_name_round_trips(name: bytes, accept: str) -> None:
    local = with_queues({name: 2})
    page = scrape(local, accept=accept)
    assert page.by("queue", "disque_queue_jobs") == {label_of(name): 2}
    assert page.value("disque_jobs", state="queued") == 2
    assert "\0" not in page.text


def test_labels_are_readable() -> None:
    assert label_of(b"mail.welcome") == "mail.welcome"
    assert label_of("café ☕".encode()) == "café ☕"
    assert label_of(b"\xff\0") == "\\xff\\x00"
    assert label_of(b"a\\b") == "a\\\\b"
    assert label_of("\N{NO-BREAK SPACE}".encode()) == "\\xc2\\xa0"


@given(st.binary(max_size=12))
def test_label_determines_the_name(name: bytes) -> None:
    def byte(found: re.Match[str]) -> str:
        code = found[0]
        return "\\" if code == "\\\\" else chr(0xDC00 + bytes.fromhex(code[2:])[0])

    text = re.sub(r"\\\\|\\x[0-9a-f]{2}", byte, label_of(name))
    raw = b"".join(
        bytes([ord(character) - 0xDC00]) if 0xDC00 <= ord(character) < 0xDD00 else character.encode()
        for character in text
    )
    assert raw == name


def test_queue_with_a_long_name_has_no_series() -> None:
    local = with_queues({b"x" * (MAX_NAME_BYTES + 1): 5, b"y": 1})
    page = scrape(local)
    assert page.by("queue", "disque_queue_jobs") == {"y": 1}
    assert page.value("disque_queues_left_out") == 1


def test_many_queues_are_scanned_in_steps_while_queues_change() -> None:
    count = 20 * AT_A_TIME
    local = with_queues({b"q%d" % number: 1 for number in range(count)})
    client = local.client()
    scan = QueueScan(local.node.state, Selection(count))
    steps = 0
    for _ in scan.steps():
        steps += 1
        client.call("ADDJOB", f"new{steps}", "x", 0)
        client.take(f"q{count - steps}")
    assert steps >= 20
    names = {queue.name for _, _, queue in scan.chosen}
    assert len(names) == len(scan.chosen) == count


def test_slow_pattern_matches_one_name_per_step() -> None:
    local = with_queues({b"a" * 50 + b"%d" % number: 1 for number in range(20)})
    scan = QueueScan(local.node.state, Selection(100, b"*a*a*a*a*b"))
    assert sum(1 for _ in scan.steps()) > 20
    assert scan.chosen == []


def test_page_of_many_queues_has_small_parts() -> None:
    local = with_queues({b"q%d" % number: 1 for number in range(2000)})
    made = list(parts(local, "queues=all"))
    assert max(map(len, made)) < 12_000
    assert max(part.count(b"\n") for part in made) <= 200
    assert len(scrape(local, "queues=all").by("queue", "disque_queue_jobs")) == 2000
    assert len(scrape(local).by("queue", "disque_queue_jobs")) == 100


def test_metrics_queues_can_be_changed_at_runtime() -> None:
    local = with_queues({b"q%d" % number: 1 for number in range(5)})
    client = local.client()
    assert client.call("CONFIG", "SET", "metrics-queues", "3") == b"OK"
    assert len(scrape(local).by("queue", "disque_queue_jobs")) == 3
    assert client.call("CONFIG", "SET", "metrics-queues", "all") == b"OK"
    assert client.call("CONFIG", "GET", "metrics-queues") == [b"metrics-queues", b"all"]
    assert len(scrape(local).by("queue", "disque_queue_jobs")) == 5
    assert "Invalid argument" in str(client.call("CONFIG", "SET", "metrics-queues", "few"))
