"""The comparison detects differences."""

from __future__ import annotations

import pytest

from compat.differences import Difference
from compat.normalise import Comparison, Names
from compat.wire import Failure, Nil, NotRespError, Reply, Status, decode, decode_all, encode

JOB_A, JOB_B = b"D-11111111-" + b"A" * 24 + b"-05a1", b"D-11111111-" + b"B" * 24 + b"-05a1"
OURS_A, OURS_B = b"D-22222222-" + b"C" * 24 + b"-05a1", b"D-22222222-" + b"D" * 24 + b"-05a1"


@pytest.fixture
def comparison() -> Comparison:
    """A comparison with a node that listens on port 5000."""
    return Comparison(Names(), 5000, "/somewhere")


@pytest.mark.parametrize(
    ("asked", "recorded", "ours"),
    [
        ("PING", Status(b"PONG"), b"PONG"),
        ("PING", Status(b"PONG"), Status(b"pong")),
        ("SHOW x", Failure(b"BADID Invalid Job ID format."), Failure(b"BADID Invalid Job ID format")),
        ("GETJOB NOHANG FROM q", Nil.ARRAY, Nil.BULK),
        ("QLEN q", 1, 2),
        ("QLEN q", 1, b"1"),
        ("QPEEK q 1", [], [b"q"]),
        ("GETJOB FROM q", [b"a", b"b"], [b"b", b"a"]),
        ("INFO jobs", b"# Jobs\r\nregistered_jobs:0\r\n", b"# Jobs\r\nregistered_jobs:1\r\n"),
        ("INFO server", b"process_id:17\r\n", b"process_id:seventeen\r\n"),
        ("SHOW x", [b"id", b"x", b"ttl", 100], [b"id", b"x", b"ttl", 90]),
        ("ADDJOB q b 0", Status(JOB_A), Status(OURS_A[:-4] + b"05a0")),
        ("ADDJOB q b 0", Status(JOB_A), Status(OURS_A[:-1])),
        ("QSCAN 0", [b"0", [b"a", b"a"]], [b"0", [b"a", b"b"]]),
    ],
)
def test_difference_is_reported(comparison: Comparison, asked: str, recorded: Reply, ours: Reply) -> None:
    assert comparison.differences(asked, recorded, ours)


@pytest.mark.parametrize(
    ("asked", "recorded", "ours"),
    [
        ("ADDJOB q b 0", Status(JOB_A), Status(OURS_A)),
        ("TIME", [b"1795231461", b"198642"], [b"1695231461", b"7"]),
        ("CONFIG GET port", [b"port", b"17711"], [b"port", b"5000"]),
        ("CONFIG GET dir", [b"dir", b"<base-dir->/n1"], [b"dir", b"/somewhere"]),
        ("INFO server", b"process_id:17\r\nhz:10\r\n", b"process_id:4711\r\nhz:10\r\n"),
        ("SHOW x", [b"id", b"x", b"ttl", 100], [b"id", b"x", b"ttl", 99]),
        ("QSCAN 0", [b"0", [b"a", b"b"]], [b"0", [b"b", b"a"]]),
    ],
)
def test_run_dependent_values_are_no_difference(
    comparison: Comparison, asked: str, recorded: Reply, ours: Reply
) -> None:
    assert comparison.differences(asked, recorded, ours) == []


def test_an_id_stays_what_it_was_bound_to(comparison: Comparison) -> None:
    assert comparison.differences("ADDJOB q a 0", Status(JOB_A), Status(OURS_A)) == []
    assert comparison.differences("ADDJOB q b 0", Status(JOB_B), Status(OURS_B)) == []

    assert comparison.differences("GETJOB FROM q", [JOB_A], [OURS_A]) == []
    assert comparison.differences("GETJOB FROM q", [JOB_A], [OURS_B])
    assert comparison.names.to_ours(JOB_B) == OURS_B


def test_an_id_of_another_node_is_a_difference(comparison: Comparison) -> None:
    assert comparison.differences("ADDJOB q a 0", Status(JOB_A), Status(OURS_A)) == []
    assert comparison.differences("ADDJOB q b 0", Status(JOB_B), Status(b"D-33333333" + OURS_B[10:]))


REPLIES = [
    b"+OK\r\n",
    b"-ERR no\r\n",
    b":-7\r\n",
    b"$0\r\n\r\n",
    b"$-1\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"*2\r\n*1\r\n$2\r\n\r\n\r\n:0\r\n",
]


@pytest.mark.parametrize("data", REPLIES)
def test_a_reply_is_complete_only_at_its_last_byte_and_encodes_to_itself(data: bytes) -> None:
    assert all(decode(data[:cut]) is None for cut in range(len(data)))
    assert b"".join(map(encode, decode_all(data))) == data


@pytest.mark.parametrize("data", [b":+1\r\n", b":01\r\n", b"$x\r\n", b"$1\r\nab\r\n", b"%0\r\n", b"\r\n", b"+cut"])
def test_bytes_that_are_not_a_reply_are_refused(data: bytes) -> None:
    with pytest.raises(NotRespError):
        decode_all(data)


def test_a_row_may_quote_a_whole_reply_a_part_of_an_array_or_of_a_text() -> None:
    def row(original: bytes, ours: bytes) -> Difference:
        return Difference(("01:1",), (b"PING",), original, ours, "a reason")

    assert row(b"+OK\r\n", b"+YES\r\n").patch(b"+OK\r\n") == b"+YES\r\n"
    assert row(b":1\r\n", b":22\r\n").patch(b"*2\r\n:0\r\n:1\r\n") == b"*2\r\n:0\r\n:22\r\n"
    assert row("o…!".encode(), b"gone").patch(b"$5\r\nos:x!\r\n") == b"$4\r\ngone\r\n"
    assert row(b"os:", b"system:").patch(b"$5\r\nos:x!\r\n") == b"$9\r\nsystem:x!\r\n"
    with pytest.raises(ValueError, match="not found once"):
        row(b"os:", b"system:").patch(b"+OK\r\n")
