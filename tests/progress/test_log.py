"""The progress log of a job on one node: numbers, what is refused, and what readers see."""

from __future__ import annotations

import pytest

from disqued.testing.local import LocalClient, LocalNode
from support.logging_node import logging_node

CLAIM = 1_800_000_000_000 << 16 | 7
LATER = CLAIM + (1 << 16)


def add(client: LocalClient) -> bytes:
    job_id = client.add("mail", "body", "RETRY", 300, "REPLICATE", 1)
    client.take("mail")
    return job_id


def log(client: LocalClient, job_id: bytes, seq: int, entry: str, claim: int = CLAIM) -> str:
    return str(client.call("LOGJOB", job_id, "CLAIM", claim, "SEQ", seq, entry))


def shown(client: LocalClient, job_id: bytes, *options: str | int) -> list[tuple[int, int, bytes]]:
    reply = client.call("SHOWLOG", job_id, *options)
    assert isinstance(reply, list), reply
    return [(claim, seq, entry) for claim, seq, _, entry in reply]  # type: ignore[misc, str-unpack]


def test_readers_see_what_the_workers_wrote_by_claims_and_numbers(local: LocalNode, client: LocalClient) -> None:
    job_id = add(client)
    assert log(client, job_id, 0, "begun") == "1"
    assert log(client, job_id, 1, "half") == "1"
    local.run(seconds=1)
    assert log(client, job_id, 0, "again", LATER) == "1"
    assert shown(client, job_id) == [(CLAIM, 0, b"begun"), (CLAIM, 1, b"half"), (LATER, 0, b"again")]
    assert shown(client, job_id, "CLAIM", CLAIM, "FROM", 1) == [(CLAIM, 1, b"half")]
    assert shown(client, job_id, "COUNT", 1) == [(CLAIM, 0, b"begun")]
    reply = client.call("SHOWLOG", job_id)
    assert isinstance(reply, list)
    assert reply[-1][2] == local.now_ms  # type: ignore[index]


def test_the_same_entry_again_changes_nothing_and_another_one_is_refused(client: LocalClient) -> None:
    job_id = add(client)
    assert log(client, job_id, 0, "begun") == "1"
    assert log(client, job_id, 0, "begun") == "1"
    assert log(client, job_id, 0, "other").startswith("SEQ another entry has the number 0")
    assert shown(client, job_id) == [(CLAIM, 0, b"begun")]


def test_entries_behind_a_gap_are_not_visible_until_it_is_filled(client: LocalClient) -> None:
    job_id = add(client)
    log(client, job_id, 1, "half")
    assert shown(client, job_id) == []
    log(client, job_id, 0, "begun")
    assert [seq for _, seq, _ in shown(client, job_id)] == [0, 1]


def test_a_stale_worker_is_refused(client: LocalClient) -> None:
    job_id = add(client)
    log(client, job_id, 0, "begun", LATER)
    assert log(client, job_id, 0, "late").startswith("STALE")
    assert shown(client, job_id) == [(LATER, 0, b"begun")]


def test_without_a_claim_the_node_numbers_the_entries_of_the_last_one(client: LocalClient) -> None:
    job_id = add(client)
    assert client.call("LOGJOB", job_id, "zero") == 1
    assert client.call("LOGJOB", job_id, "one") == 1
    client.call("WORKING", job_id, "CLAIM", CLAIM)
    assert client.call("LOGJOB", job_id, "zero") == 1
    assert shown(client, job_id) == [(0, 0, b"zero"), (0, 1, b"one"), (CLAIM, 0, b"zero")]


def test_ackjob_is_refused_while_entries_are_missing(client: LocalClient) -> None:
    job_id = add(client)
    log(client, job_id, 0, "begun")
    log(client, job_id, 2, "done")
    refused = client.call("ACKJOB", job_id, "CLAIM", CLAIM, "SEQ", 3)
    assert str(refused).startswith("SEQ 1 of 3 entries are here")
    assert client.show(job_id)["state"] == b"active"
    log(client, job_id, 1, "half")
    assert client.call("ACKJOB", job_id, "SEQ", 3, "CLAIM", CLAIM) == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("SEQ", "1"), "ERR SEQ counts the entries of a claim, so it needs CLAIM"),
        (("SEQ", "-1", "CLAIM", str(CLAIM)), "ERR SEQ must be a number of entries"),
    ],
)
def test_ackjob_refuses_wrong_numbers(client: LocalClient, options: tuple[str, ...], error: str) -> None:
    assert str(client.call("ACKJOB", add(client), *options)).startswith(error)


def test_a_log_is_bounded_by_entries_and_by_bytes(local: LocalNode, client: LocalClient) -> None:
    job_id = add(client)
    local.config.job_log_entries = 3
    for seq in range(3):
        log(client, job_id, seq, "x")
    assert log(client, job_id, 3, "x").startswith("LOGFULL the log of a job has at most 3 entries")
    local.config.job_log_entries = 10
    local.config.job_log_bytes = 10
    assert log(client, job_id, 3, "x" * 8).startswith("LOGFULL")
    assert log(client, job_id, 3, "x" * 7) == "1"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("CLAIM", "0", "SEQ", "0", "entry"), "ERR CLAIM must be a number"),
        (("CLAIM", str(CLAIM), "SEQ", "-1", "entry"), "ERR SEQ must be a number between 0 and 2147483647"),
        (("CLAIM", str(CLAIM), "AT", "0", "entry"), "ERR syntax error"),
        (("entry", "COPIES", "0"), "ERR COPIES must be a number greater than zero"),
        (("entry", "TIMEOUT", "-1"), "ERR timeout is negative"),
        (("entry", "COPIES"), "ERR syntax error"),
        (("entry", "OTHER", "1"), "ERR syntax error"),
    ],
)
def test_wrong_options_are_refused(client: LocalClient, options: tuple[str, ...], error: str) -> None:
    job_id = add(client)
    assert str(client.call("LOGJOB", job_id, *options)).startswith(error)
    assert shown(client, job_id) == []


@pytest.mark.parametrize("options", [("COUNT", "0"), ("FROM", "x"), ("CLAIM", "-5"), ("LAST", "1"), ("COUNT",)])
def test_wrong_selections_are_refused(client: LocalClient, options: tuple[str, ...]) -> None:
    assert str(client.call("SHOWLOG", add(client), *options)).startswith("ERR")


def test_a_job_that_is_not_here_has_no_log(client: LocalClient) -> None:
    job_id = b"D-5ca1ab1e-s2cR6zkGp8hgPXHUCeelTYe9-05a1"
    assert str(client.call("LOGJOB", job_id, "entry")).startswith("NOJOB")
    assert str(client.call("SHOWLOG", job_id)).startswith("NOJOB")
    assert str(client.call("LOGJOB", "x", "entry")).startswith("BADID")


def test_memory_is_counted_and_freed_when_the_job_is_gone(local: LocalNode, client: LocalClient) -> None:
    memory = local.node.state.lifecycle.memory
    job_id = add(client)
    without = memory.used_bytes
    client.call("LOGJOB", job_id, "x" * 5000)
    assert memory.used_bytes >= without + 5000
    client.call("DELJOB", job_id)
    local.run(seconds=1)
    assert memory.used_bytes < without
    assert not local.node.state.lifecycle.logs


def test_all_logs_are_dropped_at_once(local: LocalNode, client: LocalClient) -> None:
    memory = local.node.state.lifecycle.memory
    client.call("DEBUG", "FLUSHALL")
    empty = memory.used_bytes
    client.call("LOGJOB", add(client), "x" * 5000)
    client.call("DEBUG", "FLUSHALL")
    assert memory.used_bytes == empty
    assert not local.node.state.lifecycle.logs


# --- on disk ----------------------------------------------------------------------------------------------------------


def loaded(local: LocalNode) -> LocalClient:
    local.run(seconds=2)
    local.restart()
    while local.node.state.loading:
        local.run(milliseconds=1)
    return local.client()


def test_the_log_survives_a_restart_and_a_rewrite() -> None:
    local = logging_node()
    client = local.client()
    job_id, gone = add(client), add(client)
    for job in (job_id, gone):
        log(client, job, 0, "begun\r\nand \x00more")
        log(client, job, 1, "")
    client.call("ACKJOB", gone)
    for _ in range(2):
        client = loaded(local)
        assert shown(client, job_id) == [(CLAIM, 0, b"begun\r\nand \x00more"), (CLAIM, 1, b"")]
        local.run(seconds=1)
        assert list(local.node.state.lifecycle.logs) == [job_id]
        client.call("BGREWRITEAOF")
        local.run(seconds=5)


def test_the_log_of_a_job_that_is_delivered_at_most_once_is_not_in_the_file() -> None:
    local = logging_node()
    client = local.client()
    job_id = client.add("mail", "body", "RETRY", 0, "REPLICATE", 1)
    client.take("mail")
    assert client.call("LOGJOB", job_id, "begun") == 1
    client = loaded(local)
    local.run(seconds=1)
    assert not local.node.state.lifecycle.logs
