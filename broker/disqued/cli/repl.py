"""The interactive mode: reads lines and runs them over one connection.

On a terminal, lines come from a prompt (`disqued.cli.prompt`); from a pipe or a file they are read without one. When
the connection is lost, the command is sent once more on a new one, as in the original. An ADDJOB may then be executed
twice, so programs should use the client library instead.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from disqued.cli.connection import Connection, ConnectionFailedError, ConnectionLostError
from disqued.cli.endpoint import Endpoint
from disqued.cli.exits import Exit
from disqued.cli.manual import explain
from disqued.cli.oneshot import Style, exchange
from disqued.cli.render import text as text_of
from disqued.resp.replies import ReplyFormatError
from disqued.resp.words import split_words

SLOW_S = 0.5
QUEUES_COMPLETED = 1000
CLEAR_SCREEN = "\x1b[H\x1b[2J"


def run(endpoint: Endpoint, style: Style) -> Exit:
    """Run lines until the end of the input, `exit` or `quit`. Only a lost connection changes the exit status."""
    shell = Shell(endpoint, style)
    shell.connect()
    lines: Iterable[str]
    if sys.stdin.isatty() and sys.stdout.isatty():
        from disqued.cli.prompt import typed_lines  # noqa: PLC0415  imports the whole line editor

        lines = typed_lines(lambda: shell.prompt, shell.queue_names)
    else:
        lines = (os.fsdecode(line) for line in sys.stdin.buffer)
    for line in lines:
        if not shell.handle(line):
            break
    shell.disconnect()
    return shell.status


class Shell:
    """An interactive session. `status` is the exit status of the process."""

    def __init__(self, endpoint: Endpoint, style: Style) -> None:
        self.endpoint = endpoint
        self.style = style
        self.connection: Connection | None = None
        self.status = Exit.OK
        self._built_in: dict[str, Callable[[list[str]], None]] = {
            "help": self._help,
            "?": self._help,
            "connect": self._connect_to,
            "clear": _clear,
        }

    @property
    def prompt(self) -> str:
        """The prompt."""
        return "not connected> " if self.connection is None else f"{self.endpoint}> "

    def connect(self) -> bool:
        """Connect unless connected, print the error if that fails; returns whether there is a connection."""
        if self.connection is None:
            try:
                self.connection = Connection(self.endpoint)
            except (ConnectionFailedError, ConnectionLostError, ReplyFormatError) as error:
                self._complain(error)
        return self.connection is not None

    def disconnect(self) -> None:
        """Close the connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def queue_names(self) -> list[str]:
        """Return some names of queues of the server, sorted; none when it does not answer."""
        if self.connection is None:
            return []
        try:
            reply = self.connection.execute([b"QSCAN", b"0", b"COUNT", b"%d" % QUEUES_COMPLETED])
        except (ConnectionLostError, ReplyFormatError):
            self.disconnect()
            return []
        match reply:
            case [bytes(), [*names]]:
                return sorted(text_of(name) for name in names if isinstance(name, bytes))
        return []

    def handle(self, line: str) -> bool:
        """Run one line; returns False if it ends the session."""
        words = split_words(os.fsencode(line))
        if words is None:
            _write("Invalid argument(s)\n")
        if not words:
            return True
        name = words[0].decode("utf-8", "replace").lower()
        if name in {"quit", "exit"} and len(words) == 1:
            return False
        if name in self._built_in:
            self._built_in[name]([os.fsdecode(word) for word in words[1:]])
        elif name.isascii() and name.isdigit() and len(words) > 1:
            for _ in range(int(name)):
                self._run(words[1:])
        else:
            self._run(words)
        return True

    def _run(self, words: list[bytes]) -> None:
        began_s = time.monotonic()
        try:
            self._exchange(words)
        except KeyboardInterrupt:
            # The reply may still arrive; on the old connection it would be taken for the reply to the next command.
            self.disconnect()
            _write("\n")
            self.connect()
            return
        spent_s = time.monotonic() - began_s
        if spent_s >= SLOW_S:
            _write(f"({spent_s:.2f}s)\n")

    def _exchange(self, words: list[bytes]) -> None:
        lost: ConnectionLostError | ReplyFormatError | None = None
        for _ in range(2):
            if not self.connect():
                return
            assert self.connection is not None
            try:
                outcome = exchange(self.connection, words, self.style)
            except (ConnectionLostError, ReplyFormatError) as error:
                lost = error
                self.disconnect()
                continue
            self.status = Exit.OK
            if outcome is Exit.OK:
                self._follow(words)
            return
        if lost is not None:
            self._complain(lost)

    def _follow(self, words: list[bytes]) -> None:
        """Update the session after a successful command."""
        match [words[0].lower(), *words[1:]]:
            case [b"auth", *_, password]:
                self.endpoint = replace(self.endpoint, password=os.fsdecode(password))
            case [b"shutdown", *_]:
                self.disconnect()

    def _connect_to(self, words: list[str]) -> None:
        match words:
            case [host, port] if port.isascii() and port.isdigit():
                self.disconnect()
                self.endpoint = replace(self.endpoint, host=host, port=int(port), path=None)
                self.connect()
            case _:
                _write("usage: connect host port\n")

    def _help(self, words: list[str]) -> None:
        text = explain(" ".join(words))
        _write(f"No help on '{' '.join(words)}', try 'help'\n" if text is None else f"{text}\n")

    def _complain(self, error: Exception) -> None:
        self.status = Exit.CONNECTION
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()


def _clear(_: list[str]) -> None:
    if sys.stdout.isatty():
        _write(CLEAR_SCREEN)


def _write(text: str) -> None:
    sys.stdout.buffer.write(os.fsencode(text))  # the input may contain invalid text
    sys.stdout.buffer.flush()
