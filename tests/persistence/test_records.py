"""Records byte by byte, and what they contain about at-most-once jobs."""

from __future__ import annotations

import json
import random
from pathlib import Path
from zlib import crc32

import pytest

from disqued.config import Config
from disqued.core.cluster.holders import Holders
from disqued.core.jobs.codec import pack_for_disk, unpack
from disqued.core.jobs.job import ACTIVE, BCAST_QUEUED, DELIVERED, QUEUED
from disqued.persistence.records import forget, keep, stored_state
from disqued.testing.local import LocalNode
from persistence.samples import NODE_IDS, VECTORS, make_job


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.aof")), ids=lambda path: path.stem)
def test_records_of_the_original_are_written_identically(path: Path) -> None:
    data = path.read_bytes()
    entries = json.loads(path.with_suffix(".aof.json").read_text())["entries"]
    for entry in [entry for entry in entries if "length" in entry]:
        record = data[entry["offset"] : entry["offset"] + entry["length"]]
        if entry["command"] == "DELJOB":
            assert forget(entry["args"][0].encode()) == record
        elif entry.get("job"):
            packed = bytes.fromhex(entry["serialized_hex"])
            found = unpack(packed, 0, len(packed))
            holders = Holders()
            found.job.delivered = holders.unpack(found.holders)
            assert keep(found.job, holders, NODE_IDS[0], found.state, with_sum=False) == record


def test_the_checksum_follows_the_job_inside_its_argument() -> None:
    job = make_job(random.Random(1))
    packed = pack_for_disk(job, QUEUED, Holders().pack(NODE_IDS[: job.repl]))
    record = keep(job, Holders(), NODE_IDS[0], QUEUED, with_sum=True)
    sum_bytes = b"CRC#" + crc32(packed).to_bytes(4, "little")
    assert record == b"*2\r\n$7\r\nLOADJOB\r\n$%d\r\n%b%b\r\n" % (len(packed) + 8, packed, sum_bytes)
    assert unpack(packed + sum_bytes, 0, len(packed) + 8).end == len(packed), "the original reads no further"


def test_a_job_without_other_holders_names_the_writing_node() -> None:
    job = make_job(random.Random(1))
    job.delivered = None
    assert keep(job, Holders(), NODE_IDS[2], ACTIVE, with_sum=False).endswith(b"\x01\0\0\0" + NODE_IDS[2] + b"\r\n")


def test_record_of_a_job_that_is_gone_has_its_id() -> None:
    assert forget(b"D-" + b"x" * 38) == b"*2\r\n$6\r\nDELJOB\r\n$40\r\nD-" + b"x" * 38 + b"\r\n"


def test_record_of_a_pause_has_the_queue_and_the_pause() -> None:
    config = Config()
    config.appendonly = True
    local = LocalNode(config)
    local.client().call("PAUSE", "mail\r\n", "all")
    record = b"*3\r\n$5\r\nPAUSE\r\n$6\r\nmail\r\n\r\n$3\r\nall\r\n"
    assert bytes(local.host.disk.files[config.appendfilename]) == record


@pytest.mark.parametrize(
    ("retry_s", "state", "flags", "waits", "running", "controlled"),
    [
        (300, QUEUED, BCAST_QUEUED, False, QUEUED, QUEUED),
        (300, ACTIVE, 0, True, ACTIVE, ACTIVE),
        (0, QUEUED, BCAST_QUEUED, False, ACTIVE, QUEUED),
        (0, ACTIVE, BCAST_QUEUED | DELIVERED, False, ACTIVE, ACTIVE),
        (0, ACTIVE, BCAST_QUEUED, False, ACTIVE, ACTIVE),
        (0, ACTIVE, 0, True, ACTIVE, QUEUED),
    ],
    ids=["queued", "delayed", "once, queued", "once, delivered", "once, taken out", "once, delayed"],
)
def test_stored_state_of_a_job(
    retry_s: int, state: int, flags: int, waits: bool, running: int, controlled: int
) -> None:
    job = make_job(random.Random(1))
    job.retry_s, job.state, job.flags = retry_s, state, flags
    job.delay_s, job.requeue_at_ms = (60, 1_800_000_000_000) if waits else (0, 0)
    assert stored_state(job, controlled=False) == running
    assert stored_state(job, controlled=True) == controlled
