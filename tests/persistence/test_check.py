"""The output of `disque-check-aof` and `disque aof dump`, computed from records in memory."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from disqued.core.jobs.attributes import NAMED, PRIORITY, REASON, i32_value
from disqued.core.jobs.attributes import of as attributes_of
from disqued.core.jobs.job import STATE_NAMES
from disqued.persistence.check import Check, framing_fault
from disqued.persistence.dump import Wanted
from disqued.persistence.parse import Entry
from disqued.persistence.records import EXTENDED
from persistence.samples import VECTORS, items, kept, make_job, make_records, paused, postponed, read

SOUND = b"".join(make_records(1, 30))
JOB = kept(make_job(random.Random(2), b"a body that has some bytes"))
UNSUMMED = kept(make_job(random.Random(2), b"body"), with_sum=False)


def checked(data: bytes) -> Check:
    check = Check()
    for item in read(data):
        check.take(item)
    return check


def fault(data: bytes, offset: int = 0) -> str:
    return framing_fault(lambda at, count: data[at : at + count], offset, len(data))


FRAMING = {
    "a sound record": (JOB, ""),
    "another prefix": (b"garbage", "0x               0: Expected prefix '*', got: 'g'"),
    "a prefix that cannot be printed": (b"\0", "0x               0: Expected prefix '*', got: '\\x00'"),
    "an argument without prefix": (b"*1\r\nPING\r\n", "0x               4: Expected prefix '$', got: 'P'"),
    "a line end instead of an argument": (b"*1\r\n\n", "0x               4: Expected prefix '$', got: '\\x0a'"),
    "no end of the first line": (b"*1x\r\n", "0x               0: Expected \\r\\n, got: 780d"),
    "no end of the file's last line": (b"*1", "0x               0: Expected \\r\\n, got: 0000"),
    "no end of an argument": (b"*1\r\n$4\r\nPINGxx", "0x               8: Expected \\r\\n, got: 7878"),
    "an argument cut off": (b"*1\r\n$4\r\nPI", "0x               8: Expected to read 6 bytes, got 2 bytes"),
    "nothing behind a header": (b"*2\r\n$4\r\nPING\r\n", ""),
}


@pytest.mark.parametrize(("data", "text"), FRAMING.values(), ids=FRAMING)
def test_framing_errors_have_the_texts_of_the_original(data: bytes, text: str) -> None:
    assert fault(data) == text


def test_a_file_truncated_by_the_original_has_its_error() -> None:
    data = (VECTORS / "06-truncated.aof").read_bytes()
    assert fault(data, 316) == "0x             153: Expected to read 172 bytes, got 165 bytes"


def test_a_sound_file_is_counted() -> None:
    check = checked(SOUND)
    assert check.faults == []
    assert (check.records, check.ok_up_to, check.end) == (30, len(SOUND), len(SOUND))
    assert 0 < check.sums == check.jobs < 30


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (JOB.replace(b"bytes", b"BYTES"), "the checksum of the job is wrong"),
        (UNSUMMED.replace(b"\x04\x00\x00\x00body", b"\xff\x00\x00\x00body"), "the body is longer than the job"),
        (UNSUMMED.replace(b"-05a1\x02", b"-05a1\x03").replace(b"-05a1\x01", b"-05a1\x03"), "no job is kept in state 3"),
        (b"*1\r\n$4\r\nPING\r\n", "PING is not a record of an append-only file"),
        (paused(b"mail", b"now"), "PAUSE with b'now' instead of none, in, out or all"),
    ],
)
def test_a_record_with_invalid_content_is_reported(record: bytes, why: str) -> None:
    check = checked(SOUND + record + JOB)
    assert [(item.offset, item.end, item.why) for item in check.faults] == [
        (len(SOUND), len(SOUND) + len(record), why),
    ]
    assert not check.is_torn_only


def test_a_file_with_checksums_is_repaired_by_dropping_damaged_records() -> None:
    data = SOUND + b"garbage" + JOB + b"more" + JOB + b"\0"
    parts = checked(data).sound_parts()
    assert b"".join(data[begin:end] for begin, end in parts) == SOUND + JOB + JOB
    assert checked(b"garbage").sound_parts() == [(0, 0)]
    assert checked(b"garbage" + JOB).sound_parts() == [(7, 7 + len(JOB))]


def test_a_file_without_checksums_is_repaired_by_truncation() -> None:
    data = b"".join(make_records(1, 30, with_sum=False))
    assert checked(data).sound_parts() == [(0, len(data))]
    check = checked(data + b"garbage" + data)
    assert check.sound_parts() == [(0, len(data))]
    assert check.ok_up_to == len(data)


def test_a_file_is_only_torn_if_nothing_else_is_damaged() -> None:
    assert checked(SOUND + JOB[:-1]).is_torn_only
    assert checked(SOUND + bytes(100)).is_torn_only
    assert not checked(SOUND + b"garbage").is_torn_only
    assert not checked(b"garbage" + SOUND + JOB[:-1]).is_torn_only
    assert not checked(SOUND).is_torn_only


# --- as objects -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.aof")), ids=lambda path: path.stem)
def test_a_dump_shows_every_record_of_a_file_of_the_original(path: Path) -> None:
    expected = json.loads(path.with_suffix(".aof.json").read_text())["entries"]
    found = [Wanted().describe(item) for item in read(path.read_bytes())]
    for fields, entry in zip(found, expected, strict=True):
        assert fields is not None
        assert fields["offset"] == entry["offset"]
        if "error" in entry:
            assert fields["length"] == entry["bytes_left"]
            assert fields["damage"]
            continue
        assert (fields["length"], fields["command"]) == (entry["length"], entry["command"])
        if "job" not in entry:
            assert [fields["id"]] == entry["args"]
            continue
        job = fields["job"]
        assert isinstance(job, dict)
        same = {
            "id",
            "queue",
            "repl",
            "etime",
            "ctime",
            "delay",
            "retry",
            "num_nacks",
            "num_deliv",
            "nodes",
            "body_len",
        }
        assert {name: job[name] for name in same} == {name: entry["job"][name] for name in same}
        assert job["state"] == STATE_NAMES[entry["job"]["state"]].decode()
        assert job["body"].encode("utf-8", "surrogateescape") == entry["job"]["body"].encode("latin-1")
        bits = {"bcast-queued": 1, "bcast-willqueue": 2, "delivered": 4}
        assert sum(bits[name] for name in job["flags"]) == entry["job"]["flags"]


def test_a_dump_shows_every_byte_of_a_damaged_file() -> None:
    data = SOUND + b"garbage" + JOB.replace(b"bytes", b"BYTES") + JOB + b"*1\r\n$4\r\nPING\r\n" + JOB[:-5]
    found = [Wanted().describe(item) for item in read(data)]
    assert [(fields["offset"], fields["length"]) for fields in found if fields] == [
        (begin, end - begin) for begin, end, _ in items(data)
    ]
    damaged = [fields for fields in found if fields and "damage" in fields]
    assert [fields["kind"] for fields in damaged] == ["skipped", "skipped", "torn"]
    assert [fields.get("command") for fields in damaged] == [None, "PING", None]
    assert json.loads(json.dumps(found)) == found


def test_the_checksum_of_each_job_is_shown() -> None:
    found = [Wanted().describe(item) for item in read(JOB + UNSUMMED + JOB.replace(b"bytes", b"BYTES"))]
    assert [fields["checksum"] for fields in found if fields] == ["right", "none", "wrong"]
    assert [("job" in fields, "damage" in fields) for fields in found if fields] == [
        (True, False),
        (True, False),
        (False, True),
    ]
    assert found[2] is not None
    assert str(found[2]["id"]).encode() in JOB, "which job was lost, most likely"


def test_attributes_and_delays_are_shown_readably() -> None:
    job = make_job(random.Random(2), b"body")
    job.extra = attributes_of({PRIORITY: i32_value(-4), REASON: b"no such user", NAMED: b""})
    shown, delay, version = (
        Wanted().describe(item) for item in read(kept(job) + postponed(job, 1_800_000_000_000) + EXTENDED)
    )
    assert shown is not None
    assert isinstance(shown["job"], dict)
    assert shown["job"]["attributes"] == {"priority": -4, "reason": "no such user", "named": 1}
    assert delay is not None
    assert (delay["command"], delay["args"]) == ("POSTPONE", [f"{job.id.decode()} 1800000000000 1 1"])
    assert version is not None
    assert (version["command"], version["args"]) == ("FORMAT", ["2"])


def test_a_flag_without_a_name_is_shown_as_its_number() -> None:
    job = make_job(random.Random(2))
    at = kept(job, with_sum=False).index(b"-05a1") + 6
    record = kept(job, with_sum=False)
    fields = Wanted().describe(read(record[:at] + b"\x44" + record[at + 1 :])[0])
    assert fields is not None
    assert isinstance(fields["job"], dict)
    assert fields["job"]["flags"] == ["delivered", "64"]


def test_a_dump_shows_only_the_selected_records() -> None:
    data = SOUND + b"garbage" + JOB
    everything = [item for item in read(data) if isinstance(item, Entry)]
    jobs = [item for item in everything if item.words[0] == b"LOADJOB"]

    def shown(wanted: Wanted) -> list[dict[str, object]]:
        return [fields for item in read(data) if (fields := wanted.describe(item)) is not None]

    assert len(shown(Wanted())) == len(everything) + 1
    assert [fields["offset"] for fields in shown(Wanted(jobs=True)) if "job" in fields] == [job.offset for job in jobs]
    of_queues = [shown(Wanted(queue)) for queue in (b"mail", b"images", b"\x00\xff\r\n")]
    assert sum(len(found) - 1 for found in of_queues) == len(jobs), "damage is always shown"
    of_states = [shown(Wanted(states=frozenset({state}))) for state in ("active", "queued")]
    assert sum(len(found) - 1 for found in of_states) == len(jobs)
    assert all(len(found) > 1 for found in of_queues + of_states)
