"""The interactive mode: in a pipe, and on a terminal with its line editor."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from cli.running import Disque
from disqued.cli.exits import Exit
from disqued.cli.prompt import CommandCompleter, PasswordFreeHistory, hint
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess


def test_lines_from_a_pipe_run_without_a_prompt(disque: Disque) -> None:
    script = b'addjob lines "two words" 0\n\n  qlen lines  \n2 ping\nnosuch\nquit\nping\n'
    lines = disque.ok(stdin=script).splitlines()
    assert lines[1:] == ["1", "PONG", "PONG", "ERR unknown command 'nosuch'", ""]


def test_help_needs_no_server(disque: Disque) -> None:
    text = disque.ok(stdin=b"help ackjob\n? @queues\nhelp nothing\nhelp\n")
    assert "ACKJOB job-id [job-id ...]" in text
    assert "QPEEK queue count" in text
    assert "No help on 'nothing', try 'help'" in text
    assert "@connection" in text
    assert disque(stdin=b"help \xff\n").stdout == b"No help on '\xff', try 'help'\n"


def test_connect_switches_to_another_server(disque: Disque, tmp_path: Path) -> None:
    disque.ok("addjob", "moved", "body", "0")
    with ServerProcess(tmp_path) as other:
        text = disque.ok(stdin=f"qlen moved\nconnect 127.0.0.1 {other.port}\nqlen moved\nconnect nowhere\n".encode())
    assert text == "1\n0\nusage: connect host port\n"


def test_unreachable_server_sets_the_exit_status(disque: Disque) -> None:
    port = free_port()
    done = disque(stdin=f"ping\nconnect 127.0.0.1 {port}\nping\n".encode())
    assert (done.returncode, done.stdout) == (Exit.CONNECTION, b"PONG\n")
    assert done.stderr.decode().count(f"Could not connect to Disque at 127.0.0.1:{port}") == 2


def test_command_is_repeated_once_after_a_lost_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, Disque(listener.getsockname()[1]).started() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        listener.accept()[0].close()
        process.stdin.write(b"ping\n")
        process.stdin.close()
        peer, _ = listener.accept()
        with peer:
            assert peer.recv(100) == b"*1\r\n$4\r\nping\r\n"
            peer.sendall(b"+PONG\r\n")
            assert process.stdout.read() == b"PONG\n"
        assert process.wait() == Exit.OK


def test_second_lost_connection_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, Disque(listener.getsockname()[1]).started() as process:
        assert process.stdin is not None
        assert process.stderr is not None
        listener.accept()[0].close()
        process.stdin.write(b"ping\n")
        process.stdin.close()
        listener.accept()[0].close()
        assert process.wait() == Exit.CONNECTION
        assert process.stderr.read().startswith(b"Error: ")


def test_password_of_auth_is_used_for_new_connections(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--requirepass", "s3cret") as node:
        script = f"auth s3cret\nping\nconnect 127.0.0.1 {node.port}\nping\n"
        assert Disque(node.port).ok(stdin=script.encode()) == "OK\nPONG\nPONG\n"


def test_slow_command_prints_its_time(disque: Disque) -> None:
    lines = disque.ok(stdin=b"getjob timeout 600 from silent\nping\n").splitlines()
    assert lines[1].startswith("(0.")
    assert lines[1].endswith("s)")
    assert lines[2] == "PONG"


def test_shutdown_is_not_an_error(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as node:
        done = Disque(node.port)(stdin=b"shutdown\n")
        assert (done.returncode, done.stdout, done.stderr) == (Exit.OK, b"", b"")


def test_session_on_a_terminal(disque: Disque, tmp_path: Path) -> None:
    disque.ok("addjob", "invoices", "body", "0")
    prompt = f"127.0.0.1:{disque.port}> "
    with disque.in_terminal(HOME=str(tmp_path)) as terminal:
        terminal.wait_for(prompt)
        terminal.type("qst")
        terminal.wait_for("Shows the statistics of a queue.")  # the menu of completions
        terminal.type("\t inv")
        terminal.wait_for("invoices")
        terminal.type("\t\r")
        terminal.wait_for(' 2) "invoices"')
        terminal.wait_for(prompt)
        terminal.type("auth secret\r")
        terminal.wait_for("(error) ERR Client sent AUTH")
        terminal.wait_for(prompt)
        terminal.type("getjob from never\r")
        while '"blocked", 1,' not in disque.ok("--json", "qstat", "never"):
            pass  # until it is blocked
        terminal.type("\x03")  # interrupts the command, not the session
        terminal.wait_for(prompt)
        terminal.type("ping\r")
        terminal.wait_for("PONG")
        terminal.wait_for(prompt)
        terminal.type("\x04")
        assert terminal.wait_for_end() == Exit.OK
    history = tmp_path / ".disque_history"
    assert [line for line in history.read_text().splitlines() if line.startswith("+")] == [
        "+qstat invoices",
        "+getjob from never",
        "+ping",
    ]
    assert history.stat().st_mode & 0o077 == 0


def completions(line: str, queues: tuple[str, ...] = ()) -> list[str]:
    completer = CommandCompleter(lambda: list(queues))
    return [completion.text for completion in completer.get_completions(Document(line), CompleteEvent())]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("addj", ["addjob"]),
        ("ADDJ", ["addjob"]),
        ("conn", ["connect"]),
        ("3 fast", ["fastack"]),
        ("help @q", ["@queues"]),
        ("help qst", ["qstat"]),
        ("addjob q body 0 re", ["replicate", "retry", "retain"]),
        ("addjob q body 0 RE", ["REPLICATE", "RETRY", "RETAIN"]),
        ("addjob q body 0 retry 5 re", ["replicate", "retain"]),
        ("addjob q body 0 delay ", []),
        ("getjob nohang f", ["from", "frompattern"]),
        ("config r", ["resetstat", "rewrite"]),
        ("jscan 0 reply ", ["all", "id"]),
        ("nothing ", []),
        ('addjob "open quo', []),
    ],
)
def test_words_are_completed(line: str, words: list[str]) -> None:
    assert completions(line) == words


def test_names_of_queues_are_completed_as_arguments() -> None:
    assert completions("qlen ma", ("mail", "other", "mail-2")) == ["mail", "mail-2"]
    assert completions("getjob from a b ma", ("mail",)) == ["mail"]
    assert completions("addjob mail ma", ("mail",)) == []


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("", ""),
        ("q", ""),
        ("qpeek", " queue count"),
        ("qpeek ", "queue count"),
        ("qpeek mail ", "count"),
        ("2 qpeek mail 3", ""),
        ("slowlog", " GET [count] | LEN | RESET"),
    ],
)
def test_hint_shows_missing_arguments(line: str, rest: str) -> None:
    assert hint(line) == rest


def test_passwords_are_not_written_to_the_history(tmp_path: Path) -> None:
    history = PasswordFreeHistory(tmp_path / "history")
    for line in ("ping", "AUTH secret", "config set requirepass secret", "hello 3 auth default secret"):
        history.append_string(line)
    assert "secret" not in (tmp_path / "history").read_text()
    assert "+ping" in (tmp_path / "history").read_text()
