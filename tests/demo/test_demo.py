"""The demonstration as a user starts it, on a small part of the standard library."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from disqued.build import FLAVOUR
from disqued.config.options import DEFAULT_HTTP_PORT
from disqued.demo.cluster import NODES, choose_http_ports, choose_ports
from disqued.demo.source import source_files, standard_library
from disqued.testing.ports import free_port

SOURCE = standard_library() / "asyncio"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "disqued.demo", *arguments]


def run(*arguments: str, timeout_s: float = 100) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as error:
        pytest.fail(f"it did not end within {timeout_s:g} s:\n{(error.stdout or b'').decode()}")


def is_listening(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.mark.slow
@pytest.mark.timeout(400)  # half a minute, but scenes have patience on slow machines, and say what did not happen
def test_counts_agree_although_a_node_and_a_worker_are_killed() -> None:
    port = free_port(behind=NODES - 1)
    done = run("--source", str(SOURCE), "--retry", "1", "--workers", "2", "--port", str(port), timeout_s=350)
    assert done.stderr == ""
    assert done.returncode == 0, done.stdout
    files = len(source_files(SOURCE))
    assert f"Cluster: 127.0.0.1:{port}, " in done.stdout
    assert f"{FLAVOUR} build" in done.stdout
    assert f"Counting without the broker: {files} of {files} files" in done.stdout
    assert f"Counting through the cluster: {files} of {files} files" in done.stdout
    killed = re.search(r"worker \d was killed holding (\d+) jobs", done.stdout)
    redelivered = re.search(r"deliveries repeated\W+(\d+)", done.stdout)
    assert killed is not None
    assert redelivered is not None
    assert int(redelivered[1]) >= int(killed[1]) >= 1
    node = [done.stdout.index(f"node 2 {what}") for what in ("was killed holding", "was restarted", "has rejoined")]
    assert node == sorted(node)
    account = [re.search(rf"jobs {what}\W+(\d+)", done.stdout) for what in ("added", "done", "lost")]
    assert [int(match[1]) for match in account if match] == [files, files, 0]
    copies = re.findall(r"node \d\W+(?:producers|workers|nobody)\W+(\d+)", done.stdout)
    assert sum(map(int, copies)) >= files, "each job has two copies; some jobs may be done before the producer asks"
    assert re.search(r"OK: [\d,]+ definitions, the same as counted without the broker", done.stdout)
    assert done.stdout.index("the same as counted") < done.stdout.index("Dead letters in demo:mails.dead")
    letters = re.findall(r"(\S+) +│ demo:mails +│ +(\d+) │ ValueError: the address has no @", done.stdout)
    assert letters == [("berta.example", "3"), ("carl(at)example", "3"), ("dora", "3")]
    assert "the dead letters redriven (REDRIVE demo:mails.dead); 40 of 40 mails were sent" in done.stdout
    figures = [
        re.search(rf"│ {what}\W+([\d,]+) │", done.stdout) for what in ("tasks added", "tasks done", "tasks lost")
    ]
    assert [match[1] for match in figures if match] == ["1,000", "1,000", "0"]
    early = re.search(r"delivered before their parents were done\W+(\d+)", done.stdout)
    assert early is not None
    assert early[1] == "0"
    late = re.search(r"writes under an old claim\W+(\d+)\W+accepted of these\W+(\d+)", done.stdout)
    assert late is not None
    assert int(late[1]) > 0, "some workers stopped for longer than their lease"
    assert late[2] == "0"
    steps = [
        done.stdout.index(f"node {node} is {what}") for node in (2, 3) for what in ("killed, with", "back, and all")
    ]
    assert steps == sorted(steps), "a node is killed when the copies of the one before are back"
    assert re.findall(r"│ node (\d) │ +[\d,]+ │ +[\d,]+ │ +[\d.]+ s │", done.stdout) == ["2", "3"]
    assert "No task was lost or early, and no write under an old claim was accepted." in done.stdout
    ordered = done.stdout.index("Workers of the ordered queue")
    found = [
        re.search(rf"│ {what}\W+(\d+) │", done.stdout[ordered:])
        for what in ("jobs added", "jobs done", "gaps", "inversions")
    ]
    assert [match[1] for match in found if match] == ["300", "300", "0", "0"]
    assert len(re.findall(r"│ worker \d │ +\d+ │ +\d+ │ +\d+ │", done.stdout[ordered:])) > 1, "another worker took over"
    assert "300 jobs were delivered in the order in which they were added, without a gap or an inversion" in done.stdout
    assert "\x1b" not in done.stdout, "plain text without a terminal"
    assert not is_listening(port), "the nodes stop with the demonstration"


@pytest.mark.slow
@pytest.mark.long
def test_cluster_on_a_terminal_runs_until_interrupted() -> None:
    port = free_port(behind=NODES - 1)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("--source", str(SOURCE), "--retry", "1", "--port", str(port)),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    screen = b""
    while b"Press Ctrl-C to stop it." not in screen:
        try:
            screen += os.read(ours, 65536)
        except OSError:  # it ended
            pytest.fail(f"status {process.wait()}:\n{screen.decode()}")
    assert is_listening(port)
    assert b"disque -p %d" % port in screen
    page = re.search(rb"See why in the console: (http://127.0.0.1:\d+/)#queue=demo:mails.dead", screen)
    assert page is not None
    with urlopen(page[1].decode(), timeout=20) as reply:
        assert b"<title>" in reply.read()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    os.close(ours)
    assert not is_listening(port)
    assert b"Traceback" not in screen


@pytest.mark.slow
def test_interrupt_stops_everything() -> None:
    port = free_port(behind=NODES - 1)
    process = subprocess.Popen(command("--port", str(port)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    seen = b""
    while b"Counting without" not in seen:
        seen += process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert rest.endswith(b"Interrupted.\n")
    assert b"Traceback" not in rest
    assert not is_listening(port)


def test_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        port = taken.getsockname()[1]
        done = run("--source", str(SOURCE), "--port", str(port))
    assert done.returncode == 1
    assert f"TCP port {port} of 127.0.0.1: Address already in use" in done.stdout
    assert "timed out" not in done.stdout, "the node that ended is noticed although another program has its port"
    assert "Traceback" not in done.stdout + done.stderr


def test_folder_without_python_is_reported(tmp_path: Path) -> None:
    done = run("--source", str(tmp_path))
    assert done.returncode == 1
    assert "no Python source file" in done.stdout


@pytest.mark.parametrize("arguments", [["--source", "/nowhere"], ["--workers", "0"], ["--retry", "soon"]])
def test_invalid_arguments_are_a_usage_error(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert arguments[1] in done.stderr


def test_ports_are_the_default_ones_or_free_ones() -> None:
    with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", 7711)):
        assert 7711 not in choose_ports()
    ports = choose_ports()
    assert len(set(ports)) == NODES
    assert all(0 < port <= 55535 for port in ports)


def next_bus_port_in_use() -> tuple[int, socket.socket]:
    """Return a free port, and a server on the bus port of the port after it, whichever other programs leave free."""
    while True:
        first = free_port()
        with contextlib.suppress(OSError):
            return first, socket.create_server(("127.0.0.1", first + 1 + 10000))


def test_port_whose_bus_port_is_in_use_is_skipped() -> None:
    first, bus_port = next_bus_port_in_use()
    with bus_port:
        ports = choose_ports(first)
    assert ports[0] == first
    assert first + 1 not in ports


def test_default_port_of_the_console_is_left_to_clusters_on_the_default_port() -> None:
    """Two demonstrations that start at once on other ports do not both find it free."""
    assert DEFAULT_HTTP_PORT not in choose_http_ports((free_port(), free_port(), free_port()))
