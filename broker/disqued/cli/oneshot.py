"""Runs one command from the command line: sends it, prints the reply, returns the exit status."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from disqued.cli.connection import Connection, ConnectionLostError
from disqued.cli.exits import Exit
from disqued.cli.render import Form, render_for
from disqued.resp.replies import Failure, Reply

if TYPE_CHECKING:
    from disqued.cli.endpoint import Endpoint


@dataclass(frozen=True)
class Style:
    """The output format of replies."""

    form: Form
    delimiter: bytes = b"\n"

    def show(self, words: list[bytes], reply: Reply) -> None:
        """Write the reply to the command `words` to standard output."""
        sys.stdout.buffer.write(render_for(words, reply, self.form, self.delimiter))
        sys.stdout.buffer.flush()


def run_command(endpoint: Endpoint, words: list[bytes], style: Style, repeat: int, interval_s: float) -> Exit:
    """Run the command `repeat` times, endlessly if negative; returns REFUSED if any run was refused."""
    status = Exit.OK
    with Connection(endpoint) as connection:
        for turn in count():
            if turn == repeat:
                return status
            if turn and interval_s:
                time.sleep(interval_s)
            if exchange(connection, words, style) is Exit.REFUSED:
                status = Exit.REFUSED
    return status


def exchange(connection: Connection, words: list[bytes], style: Style) -> Exit:
    """Send one request and print the reply. MONITOR prints replies until the connection ends or Ctrl-C."""
    name = words[0].lower()
    try:
        reply = connection.execute(words)
    except ConnectionLostError:
        if name == b"shutdown":
            return Exit.OK  # a server that shuts down sends no reply
        raise
    style.show(words, reply)
    if isinstance(reply, Failure):
        return Exit.REFUSED
    while name == b"monitor":
        style.show(words, connection.receive())
    return Exit.OK
