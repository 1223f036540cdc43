"""`disque-check-aof --for-original`: what the file for the original has, and what it lacks."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.running import TIMEOUT_S
from disqued.cli.checkaof import main
from disqued.core.fates.fate import EXPIRED
from disqued.core.jobs.attributes import AFTER, DEAD, META, PRIORITY, REASON, i32_value, i64_value
from disqued.core.jobs.attributes import of as attributes_of
from disqued.core.jobs.job import Job
from disqued.core.jobs.littleendian import read_u32
from disqued.core.jobs.parents import ELSE_DEAD, ELSE_RUN, pack_parents, with_all_met, with_met
from disqued.core.lifecycle.records import sealed
from disqued.node import ROOMS
from disqued.persistence.fororiginal import Conversion
from disqued.persistence.parse import SUM_RIGHT, Entry, checksum_of, job_of
from disqued.persistence.records import EXTENDED, forget
from disqued.resp.writer import request
from persistence.samples import BORN_MS, VECTORS, claimed, kept, make_job, paused, postponed, read, recorded

CHANCE = random.Random(5)
PLAIN = make_job(CHANCE)
UNSUMMED = make_job(CHANCE)
URGENT = make_job(CHANCE, with_attributes=True)
FAILED = make_job(CHANCE)
FAILED.extra = attributes_of({REASON: b"no such user", DEAD: i64_value(BORN_MS), PRIORITY: i32_value(-1), META: b"m"})
ENDED, GONE = make_job(CHANCE), make_job(CHANCE)
JOBS = (PLAIN, UNSUMMED, URGENT, FAILED, ENDED)
RECORDS = (
    kept(PLAIN),
    kept(UNSUMMED, with_sum=False),
    EXTENDED,
    kept(URGENT),
    postponed(URGENT, BORN_MS + 60_000),
    paused(b"mail", b"out"),
    kept(FAILED),
    forget(PLAIN.id),
    claimed(FAILED, BORN_MS << 16),
    kept(ENDED),
    recorded(ENDED),
    recorded(GONE, EXPIRED),
    request((b"ENDRECORD", sealed(b"ENDRECORD", GONE.id))),
)

EARLY = "the original would deliver it too early"


def convert(tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes) -> tuple[int, list[str], Path]:
    """Convert a file with this data. Return the status, the output without names of directories, and the new file."""
    source, target = tmp_path / "disque.aof", tmp_path / "original.aof"
    source.write_bytes(data)
    status = main(("--for-original", str(source), str(target)))
    assert source.read_bytes() == data
    return status, capsys.readouterr().out.replace(f"{tmp_path}/", "").splitlines(), target


def plain(job: Job) -> Job:
    """Return the job without its attributes."""
    bare = Job(job.id, job.queue, job.body, job.ctime, job.expire_at_s, job.delay_s, job.retry_s, job.repl)
    bare.state, bare.flags, bare.delivered = job.state, job.flags, job.delivered
    bare.nacks, bare.additional_deliveries = job.nacks, job.additional_deliveries
    return bare


def test_the_new_file_has_the_same_jobs_and_nothing_that_the_original_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines, target = convert(tmp_path, capsys, b"".join(RECORDS))
    assert (status, lines) == (
        0,
        [
            "LOADJOB: 3 copied, 2 converted to plain jobs",
            "FORMAT: 1 left out",
            "POSTPONE: 1 left out",
            "PAUSE: 1 copied",
            "DELJOB: 1 copied",
            "CLAIM: 1 left out",
            "RECORD: 1 replaced by DELJOB, 1 left out",
            "ENDRECORD: 1 left out",
            "Attributes left out: priority 2, meta 2, reason 1, dead-since 1",
            "Written to original.aof. disque.aof was not changed.",
        ],
    )
    assert target.read_bytes() == b"".join(
        (
            RECORDS[0],
            RECORDS[1],
            kept(plain(URGENT)),
            RECORDS[5],
            kept(plain(FAILED)),
            RECORDS[7],
            kept(ENDED),
            forget(ENDED.id),
        )
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disque.aof", "original.aof"]


def test_every_job_is_found_where_the_original_looks_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, target = convert(tmp_path, capsys, b"".join(RECORDS))
    found = [item for item in read(target.read_bytes()) if isinstance(item, Entry)]
    assert {entry.words[0] for entry in found} == {b"LOADJOB", b"DELJOB", b"PAUSE"}, "the original exits on others"
    loaded = [entry for entry in found if entry.words[0] == b"LOADJOB"]
    for entry, job in zip(loaded, JOBS, strict=True):
        packed = entry.words[1]
        behind = packed[4 + read_u32(packed, 0) :]
        assert len(behind) in {0, 8}, "the original reads up to the end of the job; a checksum may follow"
        assert not behind or checksum_of(packed) == SUM_RIGHT
        unpacked = job_of(entry).job
        assert (unpacked.id, unpacked.queue, unpacked.body, unpacked.extra) == (job.id, job.queue, job.body, None)


def child(*parents: Job, met: tuple[Job, ...] = ()) -> Job:
    """Return a job that waits for these parents, of which some are met."""
    job = make_job(CHANCE)
    value = pack_parents([parent.id for parent in parents], ELSE_RUN if met else ELSE_DEAD)
    for parent in met:
        value = with_met(value, parent.id)
    job.queue = b"load"
    job.extra = attributes_of({AFTER: value, META: b"m"})
    return job


def test_job_that_waits_for_others_is_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held, half = child(PLAIN, URGENT, FAILED), child(PLAIN, URGENT, met=(PLAIN,))
    data = kept(PLAIN) + kept(held) + kept(half)
    status, lines, target = convert(tmp_path, capsys, data)
    assert (status, lines) == (
        0,
        [
            "LOADJOB: 1 copied, 2 left out",
            f"Job left out: {held.id.decode()} of queue b'load' waits for {PLAIN.id.decode()} and 2 more; {EARLY}",
            f"Job left out: {half.id.decode()} of queue b'load' waits for {URGENT.id.decode()}; {EARLY}",
            "Written to original.aof. disque.aof was not changed.",
        ],
    )
    assert target.read_bytes() == kept(PLAIN)


def test_job_whose_parents_are_done_becomes_a_plain_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = child(PLAIN, URGENT)
    before = kept(job)
    assert job.extra is not None
    job.extra = attributes_of({AFTER: with_all_met(job.extra.values()[AFTER]), META: b"m"})
    status, lines, target = convert(tmp_path, capsys, before + kept(job))
    assert (status, lines[:2]) == (
        0,
        ["LOADJOB: 1 converted to plain jobs, 1 left out", "Attributes left out: meta 1"],
    )
    assert not [line for line in lines if "Job left out" in line]
    assert target.read_bytes() == kept(plain(job))


@pytest.mark.parametrize("ending", [forget, None], ids=["deleted", "ended with a record"])
def test_held_job_that_ended_later_is_not_missing(
    ending: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = child(PLAIN)
    end = recorded(job) if ending is None else ending(job.id)
    _, lines, _ = convert(tmp_path, capsys, kept(job) + end)
    assert not [line for line in lines if "Job left out" in line]


def test_every_kind_of_record_that_the_original_does_not_know_is_left_out() -> None:
    newer = [known for known in ROOMS.record_table.formats if known.is_sealed]
    assert b"POSTPONE" in [known.name for known in newer]
    conversion = Conversion()
    for known in newer:
        entry = Entry(0, 1, [known.name, sealed(known.name, b"content")], 0)
        entry.format = known
        assert conversion.record(entry) == b""
    assert conversion.report() == [f"{known.name.decode()}: 1 left out" for known in newer]


@pytest.mark.parametrize("path", sorted(VECTORS.glob("0[1-5]*.aof")), ids=lambda path: path.stem)
def test_a_file_of_the_original_stays_as_it_is(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, target = convert(tmp_path, capsys, path.read_bytes())
    assert (status, target.read_bytes()) == (0, path.read_bytes())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (kept(PLAIN) + kept(URGENT)[:-5], "the end of the file cuts the record off. Repair it first"),
        (kept(PLAIN)[:-9] + b"xxxxxxx\r\n" + kept(URGENT), "Repair it first, with disque-check-aof --fix."),
        (kept(PLAIN) + request((b"WISHES", sealed(b"WISHES", b"1"))), "it has a record WISHES"),
        (b"*2\r\n$6\r\nFORMAT\r\n$1\r\n9\r\n" + kept(PLAIN), "it has format 9"),
    ],
)
def test_a_file_that_is_damaged_or_of_a_later_release_is_refused(
    data: bytes, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines, target = convert(tmp_path, capsys, data)
    assert (status, len(lines)) == (1, 1)
    assert text in lines[0]
    assert [path.name for path in tmp_path.iterdir()] == ["disque.aof"]
    assert not target.exists()


@pytest.mark.parametrize("kind", ["file", "link", "the same file"])
def test_no_file_is_replaced(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "original.aof"
    if kind == "file":
        target.write_bytes(b"precious")
    elif kind == "link":
        target.symlink_to("nowhere")
    else:
        target = tmp_path / "disque.aof"
    (tmp_path / "disque.aof").write_bytes(kept(PLAIN))
    before = [(path.name, path.is_symlink() or path.read_bytes()) for path in sorted(tmp_path.iterdir())]
    assert main(("--for-original", str(tmp_path / "disque.aof"), str(target))) == 1
    assert capsys.readouterr().out == f"{target} exists: name a new file\n"
    assert [(path.name, path.is_symlink() or path.read_bytes()) for path in sorted(tmp_path.iterdir())] == before


def test_what_cannot_be_read_or_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "missing.aof")
    assert main(("--for-original", missing, str(tmp_path / "out"))) == 1
    assert f"No such file or directory ({missing})" in capsys.readouterr().out
    (tmp_path / "disque.aof").write_bytes(kept(PLAIN))
    assert main(("--for-original", str(tmp_path / "disque.aof"), str(tmp_path / "no" / "out"))) == 1
    assert "No such file or directory" in capsys.readouterr().out


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    source = tmp_path / "disque.aof"
    source.write_bytes(kept(make_job(random.Random(1), bytes(1 << 20), with_attributes=True)) * 120)
    code = (
        "import resource; from disqued.cli.checkaof import main; "
        f"resource.setrlimit(resource.RLIMIT_AS, (180 << 20, 180 << 20)); main(('--for-original', {str(source)!r}, "
        f"{str(tmp_path / 'out')!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=TIMEOUT_S, check=False)
    assert b"LOADJOB: 120 converted" in done.stdout, done.stderr
