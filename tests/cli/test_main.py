"""Options, environment and exit statuses of `disque`."""

from __future__ import annotations

import argparse
import signal
import socket
from pathlib import Path

import pytest

from cli.running import Disque
from disqued.cli.endpoint import Endpoint, choose_endpoint, parse_url
from disqued.cli.exits import Exit
from disqued.cli.main import VIEWS
from disqued.cli.manual import BUILT_IN, command_table
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "command-line.md"
SLOW_IMPORTS = (
    "rich",
    "prompt_toolkit",
    "asyncio",
    "hiredis",
    "disqued.client",
    "disqued.node",
    "urllib.parse",
    "mypy_extensions",
)


def test_command_succeeds_with_status_zero(disque: Disque) -> None:
    assert disque.ok("ping") == "PONG\n"


def test_error_reply_sets_the_exit_status(disque: Disque) -> None:
    done = disque("show", "nothing")
    assert (done.returncode, done.stdout) == (Exit.REFUSED, b"BADID Invalid Job ID format.\n\n")


def test_one_refused_command_sets_the_exit_status(disque: Disque) -> None:
    disque.ok("addjob", "once", "body", "0")
    done = disque("-r", "2", "addjob", "once", "body", "0", "maxlen", "2")
    assert (done.returncode, done.stdout.splitlines()[1][:6]) == (Exit.REFUSED, b"MAXLEN")


def test_options_after_the_command_are_sent_to_the_server(disque: Disque) -> None:
    disque.ok("addjob", "--json", "--help", "0")
    disque.ok("addjob", "--json", "--", "0")
    assert disque.ok("qpeek", "--json", "-1").splitlines()[2:] == ["--"]


def test_last_argument_from_standard_input_can_be_any_bytes(disque: Disque) -> None:
    name = b"any\n\xff\x00"
    assert disque("-x", "debug", "error", stdin=name).stdout == b"any \xff\x00\n\n"


def test_ping_imports_no_slow_modules(disque: Disque) -> None:
    code = (
        "import sys; from disqued.cli.main import main; status = main(['ping']); "
        f"print([name for name in {SLOW_IMPORTS} if name in sys.modules]); sys.exit(status)"
    )
    with disque.in_terminal(python=("-c", code)) as terminal:
        terminal.wait_for("PONG\n[]")
        assert terminal.wait_for_end() == Exit.OK


def test_no_view_has_the_name_of_a_server_command() -> None:
    assert not VIEWS.keys() & command_table().keys()
    assert not BUILT_IN.keys() & command_table().keys()


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], *([view, "--help"] for view in VIEWS if view != "help")])
def test_help_lists_the_exit_statuses(disque: Disque, arguments: list[str]) -> None:
    text = disque.ok(*arguments)
    assert text.startswith("usage: disque")
    assert all(status.meaning in text for status in Exit)


def test_guide_lists_the_exit_statuses() -> None:
    text = GUIDE.read_text()
    assert all(f"| {status.value} | {status.meaning} |" in text for status in Exit)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-p"], "Unrecognized option or bad number of args for: '-p' (expected one argument)"),
        (["-p", "x"], "Unrecognized option or bad number of args for: '-p' ('x' is not a port number (0 to 65535))"),
        (["-u", "http://x"], "'http://x' is not a valid URL; use disque://[[user]:password@]host[:port], disques://"),
        (["queues", "--bogus"], "Unrecognized option or bad number of args for: '--bogus'"),
        (["queues", "--sort", "x"], "for: '--sort' (invalid choice: 'x'"),
        (["peek"], "the following arguments are required: queue"),
        (["bench", "-n", "0"], "for: '-n' ('0' is not a number >= 1)"),
        (["jobs", "--limit", "-1"], "for: '--limit' ('-1' is not a number >= 0)"),
        (["-i", "nan", "ping"], "for: '-i' ('nan' is not a number >= 0.0)"),
        (["-r", "x", "ping"], "for: '-r' ('x' is not a number >= -1)"),
        (["help", "nothing"], "No help on 'nothing'"),
    ],
)
def test_usage_error_is_explained_on_stderr(disque: Disque, arguments: list[str], complaint: str) -> None:
    done = disque(*arguments)
    assert (done.returncode, done.stdout) == (Exit.USAGE, b"")
    assert complaint in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_invalid_port_in_the_environment_is_a_usage_error(disque: Disque) -> None:
    done = disque("ping", DISQUE_PORT="x")
    assert (done.returncode, done.stderr) == (Exit.USAGE, b"DISQUE_PORT: 'x' is not a port number (0 to 65535)\n")


@pytest.mark.parametrize("arguments", [["ping"], ["queues"], ["--stat"], ["--latency"], ["--pipe"], []])
def test_refused_connection_has_its_own_status(arguments: list[str]) -> None:
    port = free_port()
    done = Disque(port)(*arguments)
    assert done.returncode == Exit.CONNECTION
    assert done.stderr == f"Could not connect to Disque at 127.0.0.1:{port}: Connection refused\n".encode()


def test_options_override_the_environment(disque: Disque) -> None:
    done = disque("-p", str(disque.port), "ping", DISQUE_PORT="1", DISQUE_HOST="127.0.0.1")
    assert done.stdout == b"PONG\n"


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("disque://example.org", Endpoint("example.org", 7711)),
        ("disque://:p%40ss@[::1]:99/", Endpoint("::1", 99, password="p@ss")),
        ("unix:///run/d.sock", Endpoint(path="/run/d.sock")),
        ("/run/d.sock", Endpoint(path="/run/d.sock")),
        ("./d.sock", Endpoint(path="./d.sock")),
    ],
)
def test_url_is_parsed(url: str, endpoint: Endpoint) -> None:
    assert parse_url(url) == endpoint


@pytest.mark.parametrize(
    "url", ["", "disque://host:x", "disque://host:99999", "redis://host", "disque://h/path", "disque://["]
)
def test_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not"):
        parse_url(url)


@pytest.mark.parametrize("password", ["pass", "pa/ss", "pa?ss", "pa#ss", "p@ss/"])
@pytest.mark.parametrize("scheme", ["disque", "redis"])
def test_error_about_a_url_does_not_show_its_password(scheme: str, password: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as error:
        parse_url(f"{scheme}://ann:{password}@host:x")
    assert str(error.value).startswith(f"'{scheme}://(redacted)@host:x' is not a valid URL; use disque://")


@pytest.mark.parametrize("url", ["ann:pass@host", "disque:ann:pass@host", "disque:/ann:pass@host", "ann:p@ss@host"])
def test_error_about_a_url_without_a_scheme_does_not_show_its_password(url: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"^'\(redacted\)@host' is not a valid URL"):
        parse_url(url)


def test_environment_supplies_missing_options() -> None:
    environment = {"DISQUE_HOST": "h", "DISQUE_PORT": "1", "DISQUE_PASSWORD": "p"}
    assert choose_endpoint(argparse.Namespace(), environment) == Endpoint("h", 1, password="p")
    assert choose_endpoint(argparse.Namespace(port=2, password="q"), environment) == Endpoint("h", 2, password="q")
    assert choose_endpoint(argparse.Namespace(), {}) == Endpoint("127.0.0.1", 7711)


@pytest.mark.parametrize("content", ["s3cret", "s3cret\n", "s3cret\r\n"])
def test_password_is_read_from_a_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "password"
    path.write_bytes(content.encode())
    environment = {"DISQUE_PASSWORD_FILE": str(path)}
    assert choose_endpoint(argparse.Namespace(), environment).password == "s3cret"
    assert choose_endpoint(argparse.Namespace(), environment | {"DISQUE_PASSWORD": "p"}).password == "p"
    assert choose_endpoint(argparse.Namespace(password="q"), environment).password == "q"
    assert choose_endpoint(argparse.Namespace(url=Endpoint("h")), environment) == Endpoint("h", password="s3cret")


def test_unreadable_password_file_is_named(disque: Disque) -> None:
    done = disque("ping", DISQUE_PASSWORD_FILE="/none")
    assert done.returncode == Exit.USAGE
    assert done.stderr == b"DISQUE_PASSWORD_FILE: cannot read '/none': No such file or directory\n"


def test_server_with_a_password_and_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "d.sock")
    with ServerProcess(tmp_path, "--requirepass", "s3cret", "--unixsocket", path) as node:
        disque = Disque(node.port)
        assert disque("ping").returncode == Exit.REFUSED
        assert disque("ping", "--help").stdout == b"NOAUTH Authentication required.\n\n"
        assert disque("-a", "wrong", "ping").stdout == b"NOAUTH Authentication required.\n\n"
        assert disque("queues").stderr.startswith(b"NOAUTH")
        assert disque("-a", "wrong", "queues").returncode == Exit.REFUSED
        assert disque.ok("-a", "s3cret", "ping") == "PONG\n"
        assert disque.ok("-s", path, "-a", "s3cret", "ping") == "PONG\n"
        assert disque.ok("-u", f"disque://:s3cret@127.0.0.1:{node.port}", "queues").startswith("queue\t")
        assert disque.ok("queues", "-s", path, "-a", "s3cret").startswith("queue\t")
        assert disque("ping", DISQUE_PASSWORD="s3cret").stdout == b"PONG\n"


def test_superfluous_password_is_ignored(disque: Disque) -> None:
    assert disque("ping", DISQUE_PASSWORD="x").returncode == Exit.OK
    assert disque("queues", DISQUE_PASSWORD="x").returncode == Exit.OK


def test_monitor_streams_until_ctrl_c(disque: Disque) -> None:
    with disque.started("monitor") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"OK\n"
        disque.ok("qlen", "watched")
        assert process.stdout.readline().endswith(b'] "qlen" "watched"\n')
        process.send_signal(signal.SIGINT)
        assert process.wait() == Exit.INTERRUPTED


def test_closed_pipe_is_not_an_error(disque: Disque) -> None:
    with disque.started("-r", "-1", "ping") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"PONG\n"
        process.stdout.close()
        assert process.wait() == Exit.OK
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("rich", "cli", ["queues"]),
        ("prompt_toolkit", "cli", []),
        ("sortedcontainers", "server", []),
        ("mypy_extensions", "server", ["help", "ping"]),
    ],
)
def test_missing_package_is_named(disque: Disque, package: str, extra: str, arguments: list[str]) -> None:
    hidden = f"import sys; sys.modules['{package}'] = None"
    code = f"{hidden}; from disqued.cli import main; sys.exit(main.main({arguments}))"
    with disque.in_terminal(python=("-c", code)) as terminal:
        terminal.wait_for(f"package '{package}' is not installed; run: pip install 'disqued[{extra}]'")
        assert terminal.wait_for_end() == Exit.USAGE


def test_other_protocol_on_the_port_is_reported() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        Disque(listener.getsockname()[1]).started("ping") as process,
    ):
        peer, _ = listener.accept()
        peer.sendall(b"220 mail ready\r\n")
        assert process.stderr is not None
        assert process.stderr.readline() == b"Not a reply of a Disque server: b'220 mail ready\\r\\n'\n"
        assert process.wait() == Exit.CONNECTION
        peer.close()
