"""The independent AOF reader of the simulator's checkers."""

from __future__ import annotations

import random

from disqued.testing.logged import LOG_NAME, Contents, contents
from persistence.samples import kept, make_job, make_records, paused
from support.logging_node import logging_node, written


def read(data: bytes) -> Contents:
    return contents({LOG_NAME: bytearray(data)})


def test_reader_finds_jobs_and_pauses() -> None:
    found = read(
        b"".join([*make_records(1, 5), paused(b"mail", b"in"), paused(b"mail", b"none"), paused(b"x", b"out")])
    )
    assert (found.sound, found.records, len(found.jobs), found.pauses) == (True, 8, 5, {b"x": b"out"})


def test_flipped_bit_is_damage_or_truncates_the_file() -> None:
    """Seed 1598: a record that ended with \\x8d instead of \\r is damaged, as the broker reported."""
    data = b"".join(kept(make_job(random.Random(seed))) for seed in range(3))
    for at in range(len(data)):
        for bit in range(8):
            turned = bytearray(data)
            turned[at] ^= 1 << bit
            found = contents({LOG_NAME: turned})
            assert not found.sound or found.records < 3, (at, bit)


def test_reader_checks_the_seals_of_records() -> None:
    local = logging_node(claim_log=True)
    client = local.client()
    job_id = client.add("mail", "body", "RETRY", 300)
    reply = client.call("GETJOB", "WITHCLAIM", "FROM", "mail")
    assert isinstance(reply, list)
    claim = reply[0][4]  # type: ignore[index]
    assert isinstance(claim, int)
    client.call("LOGJOB", job_id, "CLAIM", claim, "SEQ", 0, "begun")
    client.call("NACK", job_id, "DELAY", 10)
    data = written(local)
    found = read(data)
    assert (found.sound, len(found.jobs)) == (True, 1)
    for name in (b"CLAIM", b"LOGENTRY", b"POSTPONE"):
        at = data.index(name) + len(name) + 12
        assert not read(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]).sound, name
