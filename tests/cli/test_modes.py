"""The modes that replace a command."""

from __future__ import annotations

import re
import signal
import socket

from cli.running import Disque
from disqued.cli.exits import Exit
from disqued.resp.writer import request


def test_pipe_sends_everything_and_counts_replies(disque: Disque) -> None:
    jobs = b"".join(request([b"ADDJOB", b"piped", b"body %d" % n, b"0"]) for n in range(5000))
    done = disque("--pipe", stdin=jobs + b"NOSUCH\r\n")
    assert done.returncode == Exit.REFUSED
    assert done.stdout.splitlines() == [
        b"All data transferred. Waiting for the last reply...",
        b"Last reply received from server.",
        b"errors: 1, replies: 5001",
    ]
    assert done.stderr == b"ERR unknown command 'NOSUCH'\n"
    assert disque.ok("qlen", "piped") == "5000\n"


def test_pipe_times_out_when_the_last_request_is_incomplete(disque: Disque) -> None:
    done = disque("--pipe", "--pipe-timeout", "0.2", stdin=b"*2\r\n$4\r\nPING\r\n$9000\r\n")
    assert done.returncode == Exit.REFUSED
    assert done.stderr == b"No replies for 0.2 seconds: exiting.\n"


def test_pipe_reports_a_closed_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, Disque(listener.getsockname()[1]).started("--pipe") as run:
        assert run.stderr is not None
        listener.accept()[0].close()
        assert run.wait() == Exit.CONNECTION
        assert run.stderr.read().startswith(b"Error: ")


def test_latency_in_a_pipe_prints_one_line(disque: Disque) -> None:
    line = disque.ok("--latency", "-i", "0.1")
    assert re.fullmatch(r"min: \d+\.\d\d, max: \d+\.\d\d, avg: \d+\.\d\d \([1-9]\d* samples\)\n", line)


def test_latency_history_prints_a_line_for_each_period(disque: Disque) -> None:
    with disque.started("--latency-history", "-i", "0.05") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait() == Exit.INTERRUPTED
    assert all(line.endswith(b" seconds range\n") for line in lines)


def test_latency_on_a_terminal_updates_its_line_until_ctrl_c(disque: Disque) -> None:
    with disque.in_terminal("--latency") as terminal:
        terminal.wait_for("(2 samples)")
        terminal.type("\x03")
        assert terminal.wait_for_end() == Exit.INTERRUPTED


def test_stat_shows_requests_and_their_growth(disque: Disque) -> None:
    lines = disque.ok("--stat", "-r", "22", "-i", "0.01").splitlines()
    assert [number for number, line in enumerate(lines) if line.startswith("jobs")] == [1, 23]
    assert "(+0)" in lines[2]
    assert "(+1)" in lines[3]


def test_intrinsic_latency_needs_no_server(disque: Disque) -> None:
    text = disque("--intrinsic-latency", "0.02", DISQUE_PORT="1").stdout.decode()
    assert text.startswith("Max latency so far: ")
    assert "total runs (avg latency: " in text
