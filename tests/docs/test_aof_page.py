"""The page about the append-only file: its example is what a node writes, its table is what a job is made of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from disqued.cli.checkaof import main as check_main
from disqued.cli.main import main
from disqued.core.cluster.holders import Holders
from disqued.core.jobs import codec as jobcodec
from disqued.core.jobs.job import BCAST_QUEUED, BCAST_WILLQUEUE, QUEUED, Job
from disqued.persistence.parse import SUM_RIGHT
from disqued.persistence.records import forget, keep
from persistence.samples import entries

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "protocol" / "aof.md").read_text(encoding="utf-8")
OPERATION = (DOCS / "operations" / "append-only-file.md").read_text(encoding="utf-8")
NODE_ID = b"5ca1ab1e" * 5


def example() -> bytes:
    """The bytes that stand at the left of the example."""
    block = PAGE.split("## An example")[1].split("```")[1]
    return b"".join(bytes.fromhex(line.split()[0]) for line in block.strip().splitlines())


def test_the_example_is_what_a_node_writes() -> None:
    ctime = 1_800_000_000_123 * 1_000_000
    job = Job(b"D-5ca1ab1e-MTIzNDU2Nzg5MDEyMzQ1Njc4-05a1", b"mail", b"hello", ctime, 1_800_086_400, 0, 300, 1)
    job.flags = BCAST_QUEUED | BCAST_WILLQUEUE
    assert keep(job, Holders(), NODE_ID, QUEUED, with_sum=True) == example()


def test_the_example_is_what_a_node_reads() -> None:
    (entry,) = entries(example())
    assert (entry.words[0], entry.checksum) == (b"LOADJOB", SUM_RIGHT)


def test_the_table_has_the_fields_where_they_are() -> None:
    rows = dict(re.findall(r"^\| (\d+) \| \d+ \| ([^:,|]+?)(?: in the| that|:|,| \|)", PAGE, re.MULTILINE))
    assert {name: int(at) for at, name in rows.items() if name in {"ID", "state", "time of expiry", "delay"}} == {
        "ID": jobcodec.ID_AT,
        "state": jobcodec.STATE_AT,
        "time of expiry": jobcodec.EXPIRE_AT,
        "delay": jobcodec.DELAY_AT,
    }


def test_the_page_on_operation_shows_what_the_commands_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "disque.aof"
    job_id = example()[27:67]
    path.write_bytes(example() + example().replace(b"hello", b"jello") + forget(job_id))
    for command in ("disque-check-aof disque.aof", "disque aof dump disque.aof"):
        program, *words = [word.replace(path.name, str(path)) for word in command.split()]
        status = (check_main if program == "disque-check-aof" else main)(words)
        assert status == 1
        assert f"```console\n$ {command}\n{capsys.readouterr().out}```\n" in OPERATION
