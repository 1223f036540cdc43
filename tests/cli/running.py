"""Runs `disque` as a process, in a pipe or on a terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

TIMEOUT_S = 40
MAIN = ("-m", "disqued.cli.main")
COLUMNS = 100
ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[a-zA-Z]|[=>78]|\][^\x07]*\x07)")


@dataclass(frozen=True)
class Disque:
    """Runs `disque` against a node. `terminal` selects the output format of a terminal in a pipe."""

    port: int
    terminal: bool = False

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of the tests, without variables that change the result."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DISQUE_", "FAKETTY"))}
        forms = {"FAKETTY": "1"} if self.terminal else {}
        return kept | {"DISQUE_PORT": str(self.port)} | forms | more

    def on_terminal(self) -> Disque:
        """Return a copy with the output format of a terminal."""
        return replace(self, terminal=True)

    def __call__(self, *arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
        """Run it until it ends."""
        return subprocess.run(
            [sys.executable, *MAIN, *arguments],
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            env=self.environment(**environment),
        )

    def ok(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run it, check that it succeeds, and return its output."""
        done = self(*arguments, stdin=stdin)
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout.decode()

    @contextlib.contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run it in the background with pipes; kill it at the end if it still runs."""
        pipe = subprocess.PIPE
        command = [sys.executable, *MAIN, *arguments]
        with subprocess.Popen(command, env=self.environment(), stdin=pipe, stdout=pipe, stderr=pipe) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextlib.contextmanager
    def in_terminal(self, *arguments: str, python: tuple[str, ...] = MAIN, **environment: str) -> Iterator[Terminal]:
        """Run it on its own terminal; kill it at the end if it still runs."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, COLUMNS, 0, 0))
        process = subprocess.Popen(
            [sys.executable, *python, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=self.environment(TERM="xterm-256color", **environment),
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509  needed for Ctrl-C; no thread holds a lock here
        )
        os.close(slave)
        try:
            yield Terminal(process, master)
        finally:
            process.kill()
            process.wait()
            os.close(master)


def _take_terminal() -> None:
    """Make standard input the controlling terminal of the new session by opening it."""
    os.close(os.open(os.ttyname(0), os.O_RDWR))


class Terminal:
    """A process and its screen."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self.raw = ""
        """All that was written, escape sequences included."""

    @property
    def text(self) -> str:
        """All that was written, without escape sequences."""
        return ESCAPE_SEQUENCE.sub("", self.raw).replace("\r", "")

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def wait_for(self, wanted: str) -> None:
        """Return when the text has been written after what was awaited before."""
        deadline = time.monotonic() + TIMEOUT_S
        while wanted not in self.text:
            assert self._read(deadline), f"{wanted!r} not found in {self.text!r}"
        self.raw = ESCAPE_SEQUENCE.sub("", self.raw).replace("\r", "").partition(wanted)[2]

    def wait_for_end(self) -> int:
        """The exit status, after everything written was read."""
        deadline = time.monotonic() + TIMEOUT_S
        while self._read(deadline):
            pass
        return self.process.wait(TIMEOUT_S)

    def _read(self, deadline: float) -> bool:
        readable, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other end is closed
            return False
        self._answer_cursor_position(data)
        self.raw += data.decode("utf-8", "replace")
        return bool(data)

    def _answer_cursor_position(self, data: bytes) -> None:
        if b"\x1b[6n" in data:
            os.write(self._master, b"\x1b[1;1R")
