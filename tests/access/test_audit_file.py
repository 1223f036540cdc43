"""The file of the audit log, of a server process."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess
from server.refusing import run_server


def commands(path: Path) -> list[str]:
    """The commands of all complete records."""
    return [
        " ".join(json.loads(line)["command"]) for line in path.read_text().splitlines(keepends=True) if "\n" in line
    ]


def test_a_server_writes_its_audit_log_opens_it_again_on_sighup_and_completes_it_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with ServerProcess(tmp_path, "--audit-log-file", "audit.log") as server:
        server.ask("CONFIG SET timeout 1")
        server.wait_until(lambda: commands(path) == ["CONFIG SET timeout 1"], "the record is written")
        assert path.stat().st_mode & 0o777 == 0o600
        renamed = path.rename(tmp_path / "audit.log.1")
        server.process.send_signal(signal.SIGHUP)
        server.wait_until(path.exists, "the file is opened again")
        server.ask("CONFIG SET timeout 2")
        server.ask("CONFIG SET timeout 3")
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(10)
    assert commands(renamed) == ["CONFIG SET timeout 1"]
    assert commands(path) == ["CONFIG SET timeout 2", "CONFIG SET timeout 3"]


def test_a_server_does_not_start_without_its_audit_log(tmp_path: Path) -> None:
    outcome = run_server(tmp_path, "--port", str(free_port()), "--audit-log-file", "missing/audit.log")
    assert outcome.status == 1
    assert "cannot open audit-log-file 'missing/audit.log': No such file or directory" in outcome.out + outcome.err
