"""QSCAN and JSCAN: every element that stays is found, whatever comes and goes meanwhile."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from support.asking import ask

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient

SCANS = ("QSCAN", "JSCAN")


def iterate(client: LocalClient, *words: bytes | str | int) -> list[list[Any]]:
    """The pages of a whole iteration."""
    command, *options = words
    pages: list[list[Any]] = []
    cursor = b"0"
    while True:
        cursor, page = ask(client, command, cursor, *options)
        pages.append(page)
        if cursor == b"0":
            return pages


@pytest.fixture
def jobs(client: LocalClient) -> dict[bytes, bytes]:
    """300 queues with a job each, two more in the first; queue by job."""
    names = [b"scan-%03d" % number for number in [*range(300), 0, 0]]
    return {ask(client, "ADDJOB", name, "body", 0): name for name in names}


@pytest.mark.parametrize("count", [1, 7, 50, 100, 1000])
def test_an_iteration_finds_everything_once(client: LocalClient, jobs: dict[bytes, bytes], count: int) -> None:
    queue_pages = iterate(client, "QSCAN", "COUNT", count)
    assert sorted(chain(*queue_pages)) == sorted(set(jobs.values()))
    assert max(map(len, queue_pages)) <= count
    job_pages = iterate(client, "JSCAN", "COUNT", count)
    assert sorted(chain(*job_pages)) == sorted(jobs)
    assert max(map(len, job_pages)) <= count + 10


@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize("options", [["BUSYLOOP"], ["COUNT", -1], ["BUSYLOOP", "COUNT", 0]])
def test_an_unbounded_call_goes_to_the_end(
    client: LocalClient, jobs: dict[bytes, bytes], scan: str, options: list[str | int]
) -> None:
    (page,) = iterate(client, scan, *options)
    assert len(page) == (300 if scan == "QSCAN" else len(jobs))


@pytest.mark.parametrize("scan", SCANS)
def test_a_scan_returns_all_that_stays_while_others_come_and_go(client: LocalClient, scan: str) -> None:
    staying = {ask(client, "ADDJOB", f"stays-{number}", "body", 0) for number in range(200)}
    leaving = [ask(client, "ADDJOB", f"goes-{number}", "body", 0) for number in range(200)]
    found: list[Any] = []
    cursor = b"0"
    while True:
        cursor, page = ask(client, scan, cursor, "COUNT", 20)
        found += page
        if cursor == b"0":
            break
        ask(client, "DELJOB", *leaving[:10])
        del leaving[:10]
        ask(client, "ADDJOB", f"comes-{len(found)}", "body", 0)
    stayed = {b"stays-%d" % number for number in range(200)} if scan == "QSCAN" else staying
    assert stayed <= set(found)
    assert len(set(found)) == len(found)


@pytest.mark.usefixtures("jobs")
def test_queues_are_filtered_by_their_length(client: LocalClient) -> None:
    ask(client, "GETJOB", "FROM", "scan-299")
    assert iterate(client, "QSCAN", "BUSYLOOP", "MINLEN", 2) == [[b"scan-000"]]
    assert iterate(client, "QSCAN", "MINLEN", 2, "MAXLEN", 5, "BUSYLOOP") == [[b"scan-000"]]
    assert iterate(client, "QSCAN", "MAXLEN", 0, "BUSYLOOP") == [[b"scan-299"]]
    assert iterate(client, "QSCAN", "BUSYLOOP", "MINLEN", -1, "MAXLEN", -1, "IMPORTRATE", -1)[0][:1] == [b"scan-000"]
    assert iterate(client, "QSCAN", "BUSYLOOP", "IMPORTRATE", 1) == [[]]


def test_jobs_are_filtered_by_queue_and_state(client: LocalClient, jobs: dict[bytes, bytes]) -> None:
    ((_, taken, _),) = ask(client, "GETJOB", "FROM", "scan-007")
    of_first = sorted(job for job, queue in jobs.items() if queue == b"scan-000")
    (found,) = iterate(client, "JSCAN", "QUEUE", "scan-000", "BUSYLOOP")
    assert sorted(found) == of_first
    assert iterate(client, "JSCAN", "STATE", "active", "BUSYLOOP") == [[taken]]
    assert iterate(client, "JSCAN", "STATE", "ACKED", "STATE", "wait-repl", "BUSYLOOP") == [[]]
    (both,) = iterate(client, "JSCAN", "STATE", "active", "STATE", "queued", "BUSYLOOP")
    assert sorted(both) == sorted(jobs)


def test_jobs_are_filtered_by_what_they_wait_for(client: LocalClient) -> None:
    delayed = client.add("mail", "body", "DELAY", 60)
    (leased,) = [client.add("mail"), *client.take("mail")][1:]
    client.add("mail")
    client.call("NACK", client.take("mail")[0], "DEAD")
    (dead,) = iterate(client, "JSCAN", "STATE", "dead", "BUSYLOOP")[0]
    assert client.show(dead)["queue"] == b"mail.dead"
    waiting = client.add("mail")
    assert iterate(client, "JSCAN", "STATE", "delayed", "BUSYLOOP") == [[delayed]]
    assert iterate(client, "JSCAN", "STATE", "LEASED", "BUSYLOOP") == [[leased]]
    assert set(iterate(client, "JSCAN", "STATE", "queued", "BUSYLOOP")[0]) == {waiting, dead}
    assert set(iterate(client, "JSCAN", "STATE", "leased", "STATE", "dead", "BUSYLOOP")[0]) == {leased, dead}
    assert iterate(client, "JSCAN", "QUEUE", "print", "STATE", "delayed", "BUSYLOOP") == [[]]


@pytest.mark.usefixtures("jobs")
def test_a_filter_that_matches_little_ends_the_call_after_ten_times_count(client: LocalClient) -> None:
    pages = iterate(client, "QSCAN", "COUNT", 5, "MINLEN", 2)
    assert [page for page in pages if page] == [[b"scan-000"]]
    assert len(pages) == 300 // 50
    assert len(iterate(client, "JSCAN", "COUNT", 5, "STATE", "acked")) in range(4, 8)


def test_jobs_are_described_on_request(client: LocalClient, jobs: dict[bytes, bytes]) -> None:
    (found,) = iterate(client, "JSCAN", "QUEUE", "scan-042", "REPLY", "all", "BUSYLOOP")
    job = next(job for job, queue in jobs.items() if queue == b"scan-042")
    assert found == [ask(client, "SHOW", job)]
    assert iterate(client, "JSCAN", "QUEUE", "scan-042", "REPLY", "ID", "BUSYLOOP") == [[job]]


@pytest.mark.parametrize("scan", SCANS)
def test_an_empty_node_is_scanned_in_one_call(client: LocalClient, scan: str) -> None:
    assert client.raw(scan) == b"*2\r\n$1\r\n0\r\n*0\r\n"


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize("cursor", ["-1", "18446744073709551615", "999999999"])
def test_a_cursor_beyond_the_end_ends_the_iteration(client: LocalClient, scan: str, cursor: str) -> None:
    assert client.raw(scan, cursor) == b"*2\r\n$1\r\n0\r\n*0\r\n"


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize("cursor", ["", "+0", "-18446744073709551615"])
def test_cursors_are_read_as_strtoul_reads_numbers(client: LocalClient, scan: str, cursor: str) -> None:
    _, page = ask(client, scan, cursor, "BUSYLOOP")
    assert len(page) >= 295


@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["x"], b"-ERR invalid cursor or option name\r\n"),
        ([" 1"], b"-ERR invalid cursor or option name\r\n"),
        (["-"], b"-ERR invalid cursor or option name\r\n"),
        (["18446744073709551616"], b"-ERR invalid cursor or option name\r\n"),
        (["99999999999999999999999"], b"-ERR invalid cursor or option name\r\n"),
        (["FOO", 1], b"-ERR invalid cursor or option name\r\n"),
        (["COUNT"], b"-ERR invalid cursor or option name\r\n"),
        ([0, 0], b"-ERR syntax error\r\n"),
        (["COUNT", "x"], b"-ERR value is not an integer or out of range\r\n"),
        (["COUNT", "x", "FOO"], b"-ERR value is not an integer or out of range\r\n"),
    ],
    ids=str,
)
def test_bad_words_are_refused(client: LocalClient, scan: str, words: list[str | int], error: bytes) -> None:
    assert client.raw(scan, *words) == error


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("QSCAN MINLEN x", b"-ERR value is not an integer or out of range\r\n"),
        ("QSCAN MAXLEN", b"-ERR invalid cursor or option name\r\n"),
        ("QSCAN QUEUE q", b"-ERR invalid cursor or option name\r\n"),
        ("JSCAN STATE nope", b"-ERR Invalid job state name\r\n"),
        ("JSCAN REPLY nope", b"-ERR Invalid REPLY type, try ID or ALL\r\n"),
        ("JSCAN QUEUE", b"-ERR invalid cursor or option name\r\n"),
        ("JSCAN MINLEN 1", b"-ERR invalid cursor or option name\r\n"),
    ],
)
def test_invalid_options_of_one_scan_are_refused(client: LocalClient, words: str, error: bytes) -> None:
    assert client.raw(*words.split()) == error
