"""The sockets of clients and their kernel options."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from compat.replay import Client
from compat.wire import Failure, Status
from disqued.errors import TooManyUnauthenticated
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess
from server.refusing import run_server

needs_ss = pytest.mark.skipif(shutil.which("ss") is None, reason="ss (package iproute2) shows what the kernel does")


def list_addresses(client: Client) -> list[bytes]:
    """The addresses of all connections, as CLIENT LIST shows them."""
    text = client.call(b"CLIENT", b"LIST")
    assert isinstance(text, bytes)
    return re.findall(rb"addr=(.*?) fd=\d+ ", text)


def shown_address(server: ServerProcess, at: str) -> bytes:
    """How the server shows a client that connects to `at`."""
    server.at = at
    client = Client(server)
    shown = list_addresses(client)[-1]
    assert client.finish() == b""
    return shown


def kernel_view(server: ServerProcess, *options: str) -> str:
    """The output of `ss` about the TCP sockets of the server's port."""
    command = ["ss", "-Htn", *options, "sport", "=", f":{server.port}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# --- addresses --------------------------------------------------------------------------------------------------------


def test_without_bind_clients_of_both_families_come_in(tmp_path: Path) -> None:
    port = free_port()
    with ServerProcess(tmp_path, "--port", str(port), port=port, bare=True) as server:
        assert re.fullmatch(rb"127\.0\.0\.1:\d+", shown_address(server, "127.0.0.1"))
        assert re.fullmatch(rb"\[::1\]:\d+", shown_address(server, "::1"))


def test_bind_takes_addresses_of_both_families(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--bind", "127.0.0.1", "127.0.0.2", "::1") as server:
        for at, shown in (("127.0.0.1", rb"127\.0\.0\.1"), ("127.0.0.2", rb"127\.0\.0\.1"), ("::1", rb"\[::1\]")):
            assert re.fullmatch(shown + rb":\d+", shown_address(server, at))


def test_bind_takes_a_name(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--bind", "localhost") as server:
        assert re.fullmatch(rb"127\.0\.0\.1:\d+", shown_address(server, "127.0.0.1"))


def test_only_bound_addresses_are_reached(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--bind", "::1", at="::1") as server:
        assert shown_address(server, "::1").startswith(b"[::1]:")
        server.at = "127.0.0.1"
        with pytest.raises(ConnectionRefusedError):
            server.connect()


@pytest.mark.parametrize(
    ("family", "address", "arguments", "place"),
    [
        (socket.AF_INET, "127.0.0.1", ["--bind", "127.0.0.1"], "127.0.0.1"),
        (socket.AF_INET, "127.0.0.1", ["--bind", "127.0.0.2", "127.0.0.1"], "127.0.0.1"),
        (socket.AF_INET6, "::1", ["--bind", "127.0.0.1", "::1"], "::1"),
        (socket.AF_INET6, "::1", [], "all addresses"),
        (socket.AF_INET, "127.0.0.1", [], "all addresses"),
    ],
)
def test_a_port_in_use_is_named_with_its_address(
    tmp_path: Path, family: socket.AddressFamily, address: str, arguments: list[str], place: str
) -> None:
    port = free_port()
    with socket.create_server((address, port), family=family):
        outcome = run_server(tmp_path, "--port", str(port), *arguments)
    assert outcome.status == 1
    assert outcome.out.endswith(
        f" # Can't listen on TCP port {port} of {place}: Address already in use "
        "(is another server running? Stop it, or choose another port).\n"
    )
    assert outcome.err == ""


def test_start_error_is_also_written_to_the_terminal(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        outcome = run_server(tmp_path, "--port", str(port), "--bind", "127.0.0.1", "--logfile", "log")
    assert outcome.status == 1
    assert outcome.err.startswith(f"Can't listen on TCP port {port} of 127.0.0.1: Address already in use")
    assert (tmp_path / "log").read_text().endswith(f" # {outcome.err}")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["--port", "55536"],
            "Port 55536 is too high: the cluster bus uses the port 10000 above it. Choose one up to 55535, or set",
        ),
        (["--port", "0"], "Configured to not listen anywhere, exiting. Set port, tls-port or unixsocket."),
        (
            ["--bind", "192.0.2.77"],
            "Can't listen on TCP port 7711 of 192.0.2.77: Cannot assign requested address (bind",
        ),
        (["--bind", "a" * 70], f"Can't listen on TCP port 7711 of {'a' * 70}: "),
        (["--port", "0", "--unixsocket", "."], "Can't listen on the Unix socket .: Is a directory"),
        (
            ["--port", "0", "--unixsocket", "gone/s"],
            "Can't listen on the Unix socket gone/s: No such file or directory",
        ),
        (["--port", "0", "--unixsocket", "s" * 120], f"Can't listen on the Unix socket {'s' * 120}: "),
    ],
)
def test_a_socket_that_cannot_be_opened_is_named(tmp_path: Path, arguments: list[str], text: str) -> None:
    outcome = run_server(tmp_path, *arguments)
    assert outcome.status == 1
    assert f" # {text}" in outcome.out


# --- Unix socket ------------------------------------------------------------------------------------------------------


def test_a_node_can_be_reached_by_a_unix_socket_alone(tmp_path: Path) -> None:
    path = tmp_path / "disque.sock"
    with ServerProcess(tmp_path, "--port", "0", "--unixsocket", str(path), at=str(path), bare=True) as server:
        client = Client(server)
        assert client.call(b"PING") == Status(b"PONG")
        assert list_addresses(client) == [os.fsencode(path) + b":0"]
        assert client.finish() == b""
        assert f"ready to accept connections at {path}\n" in server.log.read_text()
    assert not path.exists()


def test_unix_socket_with_any_name_works_beside_tcp(tmp_path: Path) -> None:
    path = tmp_path / "gr\udcfcn"
    with ServerProcess(tmp_path, "--unixsocket", str(path)) as server:
        server.wait_loaded()  # the Unix socket is opened after the TCP port
        assert shown_address(server, "127.0.0.1").startswith(b"127.0.0.1:")
        assert shown_address(server, str(path)) == os.fsencode(path) + b":0"


@pytest.mark.parametrize("permissions", ["700", "777"])
def test_the_permissions_of_the_unix_socket_are_set(tmp_path: Path, permissions: str) -> None:
    path = tmp_path / "s"
    with ServerProcess(tmp_path, "--unixsocket", "s", "--unixsocketperm", permissions) as server:
        server.wait_loaded()  # the Unix socket is opened after the TCP port
        assert f"{path.stat().st_mode & 0o777:o}" == permissions


def test_the_socket_of_a_server_that_died_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(path))
    with ServerProcess(tmp_path, "--unixsocket", "s", at=str(path)) as server:
        client = Client(server)
        assert client.call(b"PING") == Status(b"PONG")
        assert client.finish() == b""


def test_the_unix_socket_is_removed_though_the_directory_changed(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with ServerProcess(tmp_path, "--unixsocket", "s") as server:
        client = Client(server)
        assert client.call(b"CONFIG", b"SET", b"dir", b"other") == Status(b"OK")
        assert client.finish() == b""
    assert not (tmp_path / "s").exists()


# --- behaviour of the kernel ------------------------------------------------------------------------------------------


@needs_ss
def test_the_backlog_is_as_configured(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--tcp-backlog", "77") as server:
        client = Client(server)
        assert client.call(b"PING") == Status(b"PONG")
        assert client.finish() == b""
        assert kernel_view(server, "-l").split()[2] == "77"


def probe_interval(server: ServerProcess) -> str:
    """When the kernel probes the server's end of a new connection, according to `ss`; empty for never."""
    client = Client(server)
    assert client.call(b"PING") == Status(b"PONG")
    view = kernel_view(server, "-o", "dport", "=", f":{client.socket.getsockname()[1]}", "and")
    assert client.finish() == b""
    timer = re.search(r"timer:\(keepalive,([^,]*),", view)
    return timer[1] if timer else ""


@needs_ss
def test_idle_connections_are_probed_as_configured(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--tcp-keepalive", "300") as server:
        admin = Client(server)
        assert probe_interval(server) in {"5min", "4min59sec"}
        for seconds, shown in ((b"0", {""}), (b"60", {"60sec", "59sec", "1min"}), (b"1000000", {"546min"})):
            assert admin.call(b"CONFIG", b"SET", b"tcp-keepalive", seconds) == Status(b"OK")
            assert probe_interval(server) in shown
        assert admin.finish() == b""


# --- how many clients -------------------------------------------------------------------------------------------------


def test_a_low_limit_on_open_files_lowers_maxclients(tmp_path: Path) -> None:
    with ServerProcess(
        tmp_path, launcher=("setpriv", "--bounding-set", "-sys_resource", "prlimit", "--nofile=50:50")
    ) as server:
        client = Client(server)
        assert client.call(b"CONFIG", b"GET", b"maxclients") == [b"maxclients", b"18"]
        refused = client.call(b"CONFIG", b"SET", b"maxclients", b"19")
        assert refused == Failure(
            b"ERR The operating system is not able to handle the specified number of clients, try with 18"
        )
        assert client.call(b"CONFIG", b"SET", b"maxclients", b"3") == Status(b"OK")
        assert client.finish() == b""
        assert " # Only 18 clients instead of 10000 (maxclients) can be served" in server.log.read_text()


def test_the_soft_limit_on_open_files_is_raised(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, launcher=("prlimit", "--nofile=50:500")) as server:
        client = Client(server)
        assert client.call(b"CONFIG", b"SET", b"maxclients", b"300") == Status(b"OK")
        assert client.finish() == b""


def test_too_few_open_files_for_any_client_stop_the_start(tmp_path: Path) -> None:
    outcome = run_server(tmp_path, launcher=("setpriv", "--bounding-set", "-sys_resource", "prlimit", "--nofile=32:32"))
    assert outcome.status == 1
    assert outcome.out.endswith("# The limit on open files is too low to serve any client: raise it (ulimit -n).\n")


def test_a_client_whose_place_others_get_is_told_why_before_its_connection_closes(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--requirepass", "secret", "--maxclients", "4") as server:
        first = server.connect()
        with first, first.makefile("rb") as replies, server.connect():
            assert replies.read() == TooManyUnauthenticated("clients").encode()
