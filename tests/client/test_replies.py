"""Replies are decoded into values, or raise a clear error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from disqued.client import replies
from disqued.client.errors import ResponseError, UnexpectedReply
from disqued.client.values import Added, Hello, Job, JobId, NodeInfo, RedriveStatus, RepairStatus
from disqued.client.wire import Reply

ID = b"D-01234567-abcdefghijklmnopqrstuvwx-05a1"


def test_job_is_decoded_with_and_without_counters() -> None:
    rows: Reply = [[b"q", ID, b"\xff"], [b"q", ID, b"x", b"nacks", 2, b"additional-deliveries", 3]]
    assert replies.jobs(rows) == [
        Job("q", JobId(ID.decode()), b"\xff"),
        Job("q", JobId(ID.decode()), b"x", nacks=2, additional_deliveries=3),
    ]
    assert replies.jobs(None) == []


def test_copies_of_an_added_job_are_unknown_if_it_was_added_before() -> None:
    assert replies.added([ID, 2]) == Added(JobId(ID.decode()), 2)
    assert replies.added([ID, None]) == Added(JobId(ID.decode()), None)


def test_hello_lists_nodes() -> None:
    assert replies.hello(
        [1, b"a" * 40, [b"a" * 40, b"", b"7711", b"1"], [b"b" * 40, b"10.0.0.2", b"7712", b"100"]]
    ) == (Hello("a" * 40, (NodeInfo("a" * 40, "", 7711, 1), NodeInfo("b" * 40, "10.0.0.2", 7712, 100))))


def test_info_is_a_dictionary_without_section_titles() -> None:
    assert replies.info(b"# Server\r\ntcp_port:7711\r\nexecutable:/a:b\r\n\r\n# Jobs\r\nregistered_jobs:0\r\n") == {
        "tcp_port": "7711",
        "executable": "/a:b",
        "registered_jobs": "0",
    }


def test_job_id_has_parts() -> None:
    assert JobId(ID.decode()).creator_prefix == "01234567"
    assert not JobId(ID.decode()).at_most_once
    assert JobId(ID.decode()[:-1] + "0").at_most_once


MISSHAPEN: dict[str, tuple[Callable[[Reply], Any], Reply]] = {
    "a string instead of a count": (replies.integer, b"7"),
    "a count instead of a string": (replies.text, 7),
    "an ID without its number of copies": (replies.added, [ID]),
    "null instead of a job ID": (replies.job_id, None),
    "a short job": (replies.jobs, [[b"q", ID]]),
    "the HELLO of another server": (replies.hello, [b"server", b"redis"]),
    "a scan without items": (replies.page(replies.text), [b"0"]),
    "a field without a value": (replies.job_details, [b"id"]),
    "a missing field": (replies.queue_stats, [b"name", b"q"]),
}


@pytest.mark.parametrize(("decode", "reply"), MISSHAPEN.values(), ids=MISSHAPEN)
def test_unexpected_reply_is_an_error(decode: Callable[[Reply], Any], reply: Reply) -> None:
    with pytest.raises(UnexpectedReply):
        decode(reply)


def test_error_inside_a_reply_is_raised() -> None:
    with pytest.raises(ResponseError, match="inner"):
        replies.jobs([[b"q", ResponseError("ERR inner"), b""]])


def test_redrive_status_is_decoded_by_name() -> None:
    reply: list[Reply] = [b"state", b"running", b"moved", 3, b"left", 2, b"failed", 1, b"started", 1_700_000_000_000]
    assert replies.redrive_status(reply) == RedriveStatus("running", 3, 2, 1, 1_700_000_000_000)
    assert replies.redrive_status([*reply, b"rate", 500, b"more", b"x"]).rate == 500


def test_repair_status_is_decoded_by_name() -> None:
    reply: list[Reply] = [b"enabled", b"yes", b"done", b"no", b"waits-for", b"jobs with lost copies: 3"]
    reply += [b"seconds-without-progress", 2, b"jobs-under-replicated", 5, b"jobs-in-flight", 1]
    reply += [b"jobs-without-node", 2, b"copies-rebuilt", 7, b"more", b"x"]
    wanted = RepairStatus(
        enabled=True,
        done=False,
        waits_for="jobs with lost copies: 3",
        seconds_without_progress=2,
        jobs_under_replicated=5,
        jobs_in_flight=1,
        jobs_without_node=2,
        copies_rebuilt=7,
    )
    assert replies.repair_status(reply) == wanted
