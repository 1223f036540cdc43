"""The command line tools of Redis, as Debian packages them, against the node as it is.

Their absence is a failure and not a skip: a machine without them proves nothing about them.
"""

from __future__ import annotations

import csv
import io
import os
import pty
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from disqued.testing.processes import ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_S = 30
ID = re.compile(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")


def tool(name: str) -> str:
    """The path of a program of the package redis-tools."""
    path = shutil.which(name)
    if path is None:
        pytest.fail(f"{name} is not installed; on Debian: apt-get install redis-tools")
    return path


def run(name: str, server: ServerProcess, *arguments: str, stdin: str = "") -> str:
    """What the tool prints, after it ended well."""
    command = [tool(name), "-h", "127.0.0.1", "-p", str(server.port), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done
    return done.stdout


@pytest.fixture(params=["-2", "-3"], ids=["resp2", "resp3"])
def version(request: pytest.FixtureRequest) -> str:
    """The option that selects the protocol."""
    option: str = request.param
    return option


def test_redis_cli_adds_and_takes_a_job(server: ServerProcess, version: str) -> None:
    job_id = run("redis-cli", server, version, "ADDJOB", "mail", "hello", "0").strip()

    assert ID.fullmatch(job_id)
    assert run("redis-cli", server, version, "GETJOB", "FROM", "mail").split() == ["mail", job_id, "hello"]
    assert run("redis-cli", server, version, "ACKJOB", job_id) == "1\n"
    assert run("redis-cli", server, version, "--no-raw", "GETJOB", "NOHANG", "FROM", "mail") == "(nil)\n"


def test_redis_cli_shows_errors_and_the_state_of_the_server(server: ServerProcess, version: str) -> None:
    assert run("redis-cli", server, version, "SHOW", "nonsense").startswith("BADID Invalid Job ID format.")
    assert run("redis-cli", server, version, "PING") == "PONG\n"
    assert "registered_queues:0" in run("redis-cli", server, version, "INFO")
    assert "maxclients" in run("redis-cli", server, version, "CONFIG", "GET", "max*")


def test_redis_cli_runs_lines_from_a_file(server: ServerProcess, version: str) -> None:
    lines = "".join(f"ADDJOB mail 'job {number}' 0\n" for number in range(50)) + "QLEN mail\n"

    printed = run("redis-cli", server, version, stdin=lines).split()

    assert len(printed) == 51
    assert printed[-1] == "50"


def test_redis_cli_gives_the_body_on_standard_input(server: ServerProcess, version: str) -> None:
    run("redis-cli", server, version, "-X", "body", "ADDJOB", "mail", "body", "0", stdin="from a pipe")

    row = next(csv.reader(io.StringIO(run("redis-cli", server, version, "--csv", "QPEEK", "mail", "1"))))
    assert row[-1] == "from a pipe"


def test_redis_cli_authenticates(tmp_path: Path, version: str) -> None:
    with ServerProcess(tmp_path, "--requirepass", "s3cret") as server:
        assert run("redis-cli", server, version, "--no-auth-warning", "-a", "s3cret", "PING") == "PONG\n"
        assert run("redis-cli", server, version, "--no-auth-warning", "--user", "default", "--pass", "s3cret", "PING")
        assert run("redis-cli", server, "PING").startswith("NOAUTH Authentication required.")


def test_redis_cli_on_a_terminal_knows_the_commands(server: ServerProcess) -> None:
    """It asks for COMMAND DOCS when it starts and shows help from the answer."""
    main, terminal = pty.openpty()
    command = [tool("redis-cli"), "-p", str(server.port)]
    environment = {**os.environ, "TERM": "dumb", "HOME": str(server.directory)}
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        os.write(main, b"help addjob\nQLEN mail\nquit\n")
        shown = drain(main)
        assert process.wait(TIMEOUT_S) == 0

    assert "ADDJOB queue body ms-timeout" in shown
    assert "summary: " in shown
    assert "(integer) 0" in shown


def drain(terminal: int) -> str:
    """Everything printed on a terminal until its program is gone."""
    shown = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # how Linux says that the other end is closed
            break
        if not data:
            break
        shown += data
    os.close(terminal)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode())


@pytest.mark.parametrize("pipeline", ["1", "16"])
def test_redis_benchmark_adds_and_takes_jobs(server: ServerProcess, pipeline: str) -> None:
    load = ("-q", "-c", "20", "-P", pipeline, "-n", "2000")

    assert "requests per second" in run("redis-benchmark", server, *load, "ADDJOB", "mail", "hello", "0")
    assert run("redis-cli", server, "QLEN", "mail") == "2000\n"
    assert "requests per second" in run("redis-benchmark", server, *load, "GETJOB", "NOHANG", "FROM", "mail")
    assert run("redis-cli", server, "QLEN", "mail") == "0\n"


def test_redis_benchmark_pings_inline_and_multi_bulk(server: ServerProcess) -> None:
    report = run("redis-benchmark", server, "-t", "ping", "-n", "2000", "-c", "20", "--csv")

    assert {row[0] for row in csv.reader(io.StringIO(report))} >= {"PING_INLINE", "PING_MBULK"}
