"""`disque-check-aof` and `disque aof`: texts, exit statuses, and repaired files."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from cli.running import TIMEOUT_S, Disque
from disqued.cli.checkaof import USAGE, USAGE_CONVERT, main
from disqued.cli.exits import Exit
from persistence.samples import VECTORS, make_records

ROOT = Path(__file__).parents[2]
RECORDS = make_records(11, 40)
SOUND = b"".join(RECORDS)
DAMAGED_AT = len(b"".join(RECORDS[:7])) + 80
DAMAGED = SOUND[:DAMAGED_AT] + b"#" + SOUND[DAMAGED_AT + 1 :]
REPAIRED = b"".join(RECORDS[:7] + RECORDS[8:])
TORN = SOUND[:-5]
UNSUMMED = b"".join(make_records(11, 40, with_sum=False))

disque = Disque(1)
"""An address without a server."""


@pytest.fixture
def aof(tmp_path: Path) -> Path:
    return tmp_path / "disque.aof"


@pytest.fixture
def confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    status = main(words)
    return status, capsys.readouterr().out.splitlines()


def kept(path: Path) -> list[bytes]:
    return [other.read_bytes() for other in path.parent.glob(f"{path.name}.damaged-*")]


def test_command_is_installed() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["disque-check-aof"].partition(":")
    assert getattr(import_module(module), function) is main


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), f"{USAGE}\n{USAGE_CONVERT}"),
        (("--mend", "file"), "Invalid argument: --mend"),
        (("a", "b", "c"), "Invalid arguments"),
        (("no-such-file",), "Cannot open file: no-such-file"),
        ((os.devnull,), f"Empty file: {os.devnull}"),
    ],
)
def test_invalid_arguments_are_refused(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], text: str) -> None:
    assert run(capsys, *words) == (1, text.splitlines())


def test_valid_file_passes(capsys: pytest.CaptureFixture[str], aof: Path) -> None:
    aof.write_bytes(SOUND)
    status, lines = run(capsys, str(aof))
    assert (status, lines[1:]) == (
        0,
        [f"AOF analyzed: size={len(SOUND)}, ok_up_to={len(SOUND)}, diff=0", "AOF is valid"],
    )


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("05-after-bgrewriteaof", ["AOF analyzed: size=511, ok_up_to=511, diff=0", "AOF is valid"]),
        (
            "06-truncated",
            [
                "0x             153: Expected to read 172 bytes, got 165 bytes",
                "AOF analyzed: size=504, ok_up_to=316, diff=188",
                "AOF is not valid",
            ],
        ),
        (
            "08-garbage",
            [
                "0x             1ff: Expected prefix '*', got: 'g'",
                "AOF analyzed: size=520, ok_up_to=511, diff=9",
                "AOF is not valid",
            ],
        ),
    ],
)
def test_files_of_the_original_are_checked(capsys: pytest.CaptureFixture[str], name: str, lines: list[str]) -> None:
    status, output = run(capsys, str(VECTORS / f"{name}.aof"))
    assert [line for line in output if not line.startswith("Records: ")] == lines
    assert status == (lines[-1] != "AOF is valid")


@pytest.mark.parametrize("fix", [(), ("--fix",)])
def test_file_of_a_later_release_is_neither_checked_nor_repaired(
    capsys: pytest.CaptureFixture[str], aof: Path, fix: tuple[str, ...]
) -> None:
    later = b"*2\r\n$6\r\nFORMAT\r\n$1\r\n9\r\n" + SOUND + b"*2\r\n$6\r\nWISHES\r\n$1\r\n1\r\n"
    aof.write_bytes(later)
    status, lines = run(capsys, *fix, str(aof))
    assert status == 1
    assert lines[0].startswith("Cannot check the file: it has format 9, and this release")
    assert aof.read_bytes() == later


def test_all_damaged_parts_are_listed(capsys: pytest.CaptureFixture[str], aof: Path) -> None:
    aof.write_bytes(DAMAGED[:-5])
    status, lines = run(capsys, str(aof))
    begin, end = len(b"".join(RECORDS[:7])), len(b"".join(RECORDS[:8]))
    last = len(b"".join(RECORDS[:-1]))
    assert lines[:2] == [
        f"Damage from byte {begin} to {end}, {end - begin} bytes: the checksum of the job is wrong",
        f"Damage from byte {last} to {len(TORN)}, {len(TORN) - last} bytes: the end of the file cuts the record off",
    ]
    assert (status, lines[-1]) == (1, "AOF is not valid")


def test_list_of_damaged_parts_is_limited(capsys: pytest.CaptureFixture[str], aof: Path) -> None:
    aof.write_bytes(b"".join(b"??" + record for record in RECORDS * 5))
    _, lines = run(capsys, str(aof))
    assert len(lines) < 110
    assert "... and 100 more" in lines


def test_file_is_not_changed_without_confirmation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, aof: Path
) -> None:
    aof.write_bytes(TORN)
    for answer in ("", "n\n", "\n"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        status, lines = run(capsys, "--fix", str(aof))
        assert (status, lines[-1]) == (1, "Continue? [y/N]: Aborting...")
        assert aof.read_bytes() == TORN


@pytest.mark.usefixtures("confirmation")
def test_incomplete_end_is_truncated(capsys: pytest.CaptureFixture[str], aof: Path) -> None:
    aof.write_bytes(TORN)
    status, lines = run(capsys, "--fix", str(aof))
    whole = b"".join(RECORDS[:-1])
    assert lines[-2:] == [
        f"This will shrink the AOF from {len(TORN)} bytes, with {len(TORN) - len(whole)} bytes, to {len(whole)} bytes",
        "Continue? [y/N]: Successfully truncated AOF",
    ]
    assert (status, aof.read_bytes(), kept(aof)) == (0, whole, [])


@pytest.mark.usefixtures("confirmation")
def test_file_is_rewritten_without_damage_and_the_damaged_file_is_kept(
    capsys: pytest.CaptureFixture[str], aof: Path
) -> None:
    aof.write_bytes(DAMAGED)
    aof.chmod(0o640)
    status, lines = run(capsys, "--fix", str(aof))
    assert lines[-1] == "Continue? [y/N]: Successfully repaired AOF"
    assert "The current file will be kept as disque.aof.damaged-" in lines[-2]
    assert (status, aof.read_bytes(), kept(aof)) == (0, REPAIRED, [DAMAGED])
    assert aof.stat().st_mode & 0o777 == 0o640
    assert len(list(aof.parent.iterdir())) == 2, "no other files remain"
    assert run(capsys, str(aof))[0] == 0


@pytest.mark.usefixtures("confirmation")
@pytest.mark.parametrize("behind", [b"", UNSUMMED])
def test_file_without_checksums_is_truncated_at_the_first_damage(
    capsys: pytest.CaptureFixture[str], aof: Path, behind: bytes
) -> None:
    aof.write_bytes(UNSUMMED + b"garbage" + behind)
    status, lines = run(capsys, "--fix", str(aof))
    assert lines[-1] == "Continue? [y/N]: Successfully truncated AOF"
    assert (status, aof.read_bytes(), kept(aof)) == (0, UNSUMMED, [UNSUMMED + b"garbage" + behind])


@pytest.mark.usefixtures("confirmation")
def test_link_to_a_damaged_file_stays_a_link(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    real = tmp_path / "real" / "jobs.aof"
    real.parent.mkdir()
    real.write_bytes(DAMAGED)
    link = tmp_path / "disque.aof"
    link.symlink_to(real)
    assert run(capsys, "--fix", str(link))[0] == 0
    assert link.is_symlink()
    assert (real.read_bytes(), kept(real)) == (REPAIRED, [DAMAGED])


def test_file_that_changes_during_the_repair_is_not_repaired(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, aof: Path
) -> None:
    class Slow:
        def readline(self) -> str:
            with aof.open("ab") as file:
                file.write(RECORDS[0])
            return "yes\n"

    aof.write_bytes(DAMAGED)
    monkeypatch.setattr(sys, "stdin", Slow())
    status, lines = run(capsys, "--fix", str(aof))
    assert status == 1
    assert "The file has changed" in lines[-1]
    assert aof.read_bytes() == DAMAGED + RECORDS[0]


def test_command_runs_as_a_process(aof: Path) -> None:
    aof.write_bytes(TORN)
    command = [sys.executable, "-m", "disqued.cli.checkaof", "--fix", str(aof)]
    done = subprocess.run(command, input=b"Y\n", capture_output=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert aof.read_bytes() == b"".join(RECORDS[:-1])


def test_progress_is_shown_on_a_terminal() -> None:
    code = (
        "import sys; from disqued.cli.aoffile import Progress; p = Progress(100 << 20, show_after_s=0); "
        "p.update(50 << 20); input(); p.clear(); print('done')"
    )
    with disque.in_terminal(python=("-c", code)) as terminal:
        terminal.wait_for("50 % of 100 MB")
        terminal.type("\n")
        terminal.wait_for("done")


# --- disque aof -------------------------------------------------------------------------------------------------------


def test_dump_prints_a_line_of_json_for_each_record(aof: Path) -> None:
    aof.write_bytes(SOUND)
    lines = [json.loads(line) for line in disque.ok("aof", "dump", str(aof)).splitlines()]
    assert [line["length"] for line in lines] == [len(record) for record in RECORDS]
    jobs = [json.loads(line) for line in disque.ok("aof", "dump", str(aof), "--jobs").splitlines()]
    assert jobs == [line for line in lines if line["command"] == "LOADJOB"]
    some = disque.ok("aof", "dump", "--queue", "mail", "--state", "queued", str(aof)).splitlines()
    assert [json.loads(line) for line in some] == [
        line for line in jobs if (line["job"]["queue"], line["job"]["state"]) == ("mail", "queued")
    ]
    assert some


def test_dump_shows_damage_and_continues(aof: Path) -> None:
    aof.write_bytes(DAMAGED)
    done = disque("aof", "dump", str(aof), "--queue", "none")
    (line,) = (json.loads(line) for line in done.stdout.splitlines())
    assert (line["offset"], line["damage"]) == (len(b"".join(RECORDS[:7])), "the checksum of the job is wrong")
    assert done.returncode == Exit.REFUSED


def test_dump_reads_standard_input() -> None:
    done = disque("aof", "dump", "-", stdin=SOUND)
    assert len(done.stdout.splitlines()) == len(RECORDS)


def test_dump_ends_when_its_reader_closes_the_pipe(aof: Path) -> None:
    aof.write_bytes(SOUND * 200)
    command = f"{sys.executable} -m disqued.cli.main aof dump {aof} | head -n 1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, timeout=TIMEOUT_S, check=False)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, b"")


def test_aof_check_is_disque_check_aof(aof: Path) -> None:
    aof.write_bytes(TORN)
    done = disque("aof", "check", str(aof))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, b"AOF is not valid")
    assert disque("aof", "check", "--fix", str(aof), stdin=b"y\n").returncode == 0
    assert "AOF is valid" in disque.ok("aof", "check", str(aof))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "missing action"),
        (("mend", "x"), "missing action"),
        (("dump",), "required"),
        (("dump", "no-such-file"), "Cannot open file: no-such-file"),
        (("dump", "x", "--state", "acked"), "--state"),
        (("check",), "required"),
    ],
)
def test_invalid_arguments_are_explained(words: tuple[str, ...], complaint: str) -> None:
    done = disque("aof", *words)
    assert done.returncode == Exit.USAGE
    assert complaint in done.stderr.decode()


def test_each_action_has_help() -> None:
    for words in ((), ("dump",), ("check",)):
        assert "exit status:" in disque.ok("aof", *words, "--help")
