"""`--pipe`: sends raw protocol from standard input as fast as the server accepts it, and counts the replies.

A final PING with a random text marks the end: its reply follows the replies to everything before it. (The original
sends ECHO instead, which its server does not know, so it never succeeds.)
"""

from __future__ import annotations

import os
import secrets
import select
import ssl
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from disqued.cli.connection import Connection, ConnectionLostError
from disqued.cli.exits import Exit
from disqued.client.errors import ResponseError
from disqued.client.wire import Decoder, MalformedReplyError, Reply
from disqued.resp.replies import ReplyFormatError
from disqued.resp.writer import request

if TYPE_CHECKING:
    import argparse
    from socket import socket

    from disqued.cli.endpoint import Endpoint

CHUNK_BYTES = 65536
_NOT_YET = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def run(endpoint: Endpoint, options: argparse.Namespace) -> Exit:
    """Send everything and print the counts; REFUSED if there was an error reply or the last reply timed out."""
    with Connection(endpoint) as connection:
        transfer = Transfer(connection, sys.stdin.fileno(), options.pipe_timeout_s)
        transfer.run()
    sys.stdout.write(f"errors: {transfer.errors}, replies: {transfer.replies}\n")
    return Exit.REFUSED if transfer.errors else Exit.OK


class Transfer:
    """Sends the input and reads the replies, in one thread."""

    def __init__(self, connection: Connection, input_fd: int, timeout_s: float) -> None:
        self.errors = self.replies = 0
        self._socket = connection.socket
        self._socket.setblocking(False)  # with TLS, something may arrive that is no reply
        self._input_fd = input_fd
        self._timeout_s = timeout_s or None
        self._token = secrets.token_hex(20).encode()
        self._pending = b""
        """Read from the input, but not yet written to the socket."""
        self._input_ended = self._finished = False
        self._decoder = Decoder()

    def run(self) -> None:
        """Run until the last reply, or until the timeout."""
        while not self._finished:
            reads: list[socket | int] = [self._socket]
            if not self._pending and not self._input_ended:
                reads.append(self._input_fd)
            writes = [self._socket] if self._pending else []
            waiting = self._input_ended and not self._pending
            readable, writable, _ = select.select(reads, writes, [], self._timeout_s if waiting else None)
            if not readable and not writable:
                sys.stderr.write(f"No replies for {self._timeout_s:g} seconds: exiting.\n")
                self.errors += 1
                return
            if self._socket in readable:
                self._take_replies()
            if self._input_fd in readable:
                self._take_input()
            if writable:
                with suppress(*_NOT_YET):
                    self._pending = self._pending[self._socket.send(self._pending) :]

    def _take_input(self) -> None:
        self._pending = os.read(self._input_fd, CHUNK_BYTES)
        if not self._pending:
            self._input_ended = True
            self._pending = request([b"PING", self._token])
            sys.stdout.write("All data transferred. Waiting for the last reply...\n")
            sys.stdout.flush()

    def _take_replies(self) -> None:
        try:
            data = self._socket.recv(CHUNK_BYTES)
        except _NOT_YET:
            return
        if not data:
            raise ConnectionLostError("Error: Server closed the connection")
        try:
            for reply in self._decoder.feed(data):
                self._count(reply)
        except MalformedReplyError as error:
            raise ReplyFormatError(f"Not a reply of a Disque server: {error}") from error

    def _count(self, reply: Reply) -> None:
        if reply == self._token:
            self._finished = True
            sys.stdout.write("Last reply received from server.\n")
            return
        self.replies += 1
        if isinstance(reply, ResponseError):
            self.errors += 1
            sys.stderr.write(f"{reply}\n")
