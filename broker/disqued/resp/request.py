"""Incremental parser of client requests, multi bulk and inline, in chunks of any size.

`feed` takes bytes, `next` returns complete requests as lists of arguments. Every limit is checked when a header is
read, before the data that it announces is buffered. A long argument that arrives in pieces is collected and joined
once, so the cost is linear for any chunking. The parsed part of an incomplete request is kept and not parsed again.

When the node has no memory for a request, the request is passed over (`pass_over`): the rest of its big argument is
discarded as it arrives, and `next` returns the request marked as incomplete. The node replies with an error, and the
connection stays open.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.errors import ProtocolError
from disqued.resp.limits import (
    MAX_ARGUMENTS,
    MAX_ARGUMENTS_UNAUTHENTICATED,
    MAX_BULK_BYTES,
    MAX_BULK_BYTES_UNAUTHENTICATED,
    MAX_LINE_BYTES,
)
from disqued.resp.words import split_words

_STAR: Final = 42
_DOLLAR: Final = 36
_CR: Final = 13
_BIG_BYTES: Final = 64 << 10
"""Longer arguments are joined separately."""
_PIECE_BYTES: Final = 56
"""Overhead of a bytes object."""
_MORE: Final = -1
"""The header is not complete yet."""


class RequestParser:
    """The input of one connection."""

    def __init__(self) -> None:
        self._buffer = b""
        self._position: i64 = 0
        self._pieces: list[bytes] = []
        """Input that follows `_buffer`, joined when there is enough to continue."""
        self._pieces_bytes: i64 = 0
        self._wanted_bytes: i64 = 0
        """Input that must arrive before parsing can continue."""
        self._arguments: list[bytes] = []
        self._missing: i64 = 0
        """Missing arguments of the current multi bulk request; 0 between requests."""
        self._parsed_bytes: i64 = 0
        """Input that the parsed arguments of an incomplete request took."""
        self._bulk_bytes: i64 = _MORE
        """Length of the current argument, if its header was read."""
        self._passing_over: bool = False
        """Whether the rest of the current argument is discarded."""
        self.passed_over: bool = False
        """Whether the last returned request is incomplete; the reader resets it."""
        self.max_arguments: i64 = MAX_ARGUMENTS
        self.max_bulk_bytes: i64 = MAX_BULK_BYTES

    def restrict(self, unauthenticated: bool) -> None:
        """Lower the limits for a client that has to authenticate first, or restore them."""
        self.max_arguments = MAX_ARGUMENTS_UNAUTHENTICATED if unauthenticated else MAX_ARGUMENTS
        self.max_bulk_bytes = MAX_BULK_BYTES_UNAUTHENTICATED if unauthenticated else MAX_BULK_BYTES

    @property
    def buffered_bytes(self) -> int:
        """Input that was received and not yet returned as a request."""
        return len(self._buffer) - self._position + self._pieces_bytes + self._parsed_bytes

    @property
    def held_bytes(self) -> i64:
        """The memory of the input, of complete requests in the buffer and of an incomplete one."""
        size: i64 = len(self._buffer) + self._pieces_bytes + self._parsed_bytes
        return size + _PIECE_BYTES * (len(self._pieces) + len(self._arguments))

    @property
    def coming_bytes(self) -> i64:
        """The part of the current argument that has not arrived yet."""
        return self._wanted_bytes if self._wanted_bytes > 0 and not self._passing_over else 0

    @property
    def argument_bytes(self) -> i64:
        """The announced length of the current argument, if it is incomplete."""
        return self._bulk_bytes if self._wanted_bytes > 0 and not self._passing_over else 0

    def pass_over(self) -> None:
        """Discard the current argument, of which `coming_bytes` are missing, and mark its request."""
        self._buffer = b""
        self._position = 0
        self._pieces = []
        self._pieces_bytes = 0
        self._passing_over = True
        self.passed_over = True

    def _drop(self, data: bytes) -> None:
        """Discard input of an argument that is passed over, and keep what follows it."""
        missing: i64 = self._wanted_bytes
        self._wanted_bytes -= len(data)
        if self._wanted_bytes <= 0:
            self._passing_over = False
            self._arguments.append(b"")
            self._missing -= 1
            self._bulk_bytes = _MORE
            self._buffer = data[missing:]
            self._position = 0

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        if self._passing_over:
            self._drop(data)
            return
        if self._position == len(self._buffer) and self._pieces_bytes == 0:
            self._buffer = data
            self._position = 0
        else:
            self._pieces.append(data)
            self._pieces_bytes += len(data)
        self._wanted_bytes -= len(data)

    def discard(self) -> None:
        """Discard all buffered input: the connection is about to close."""
        self._buffer = b""
        self._position = 0
        self._pieces = []
        self._pieces_bytes = 0
        self._wanted_bytes = 0
        self._arguments = []
        self._missing = 0
        self._parsed_bytes = 0
        self._bulk_bytes = _MORE
        self._passing_over = False

    def next(self) -> list[bytes] | None:
        """Return the next complete request, or None if more bytes are needed.

        An inline line without words and an empty multi bulk request are skipped. Raises ProtocolError, after which the
        parser must not be used again.
        """
        if self._wanted_bytes > 0:
            return None
        if self._pieces_bytes > 0 and (self._bulk_bytes <= _BIG_BYTES or not self._join_argument()):
            self._join()
        while True:
            if self._missing == 0 and not self._arguments:
                if self._position >= len(self._buffer):
                    return None
                if self._buffer[self._position] != _STAR:
                    words = self._inline()
                    if words is None or words:
                        return words
                    continue
                count = self._header(self.max_arguments, "invalid multibulk length", "too big mbulk count string")
                if count == _MORE:
                    return None
                if count <= 0:
                    continue
                self._missing = count
                self._arguments = []
            started = self._position
            if not self._read_arguments():
                self._parsed_bytes += self._position - started
                return None
            self._parsed_bytes = 0
            arguments = self._arguments
            self._arguments = []
            if self._position >= len(self._buffer):
                self._buffer = b""  # frees the memory of a big request
                self._position = 0
            return arguments

    def put_back(self, arguments: list[bytes]) -> None:
        """Return a request that `next` just returned: `next` will return it again, with `passed_over` as it is."""
        self._arguments = arguments
        for argument in arguments:
            self._parsed_bytes += len(argument) + 2

    def _join_argument(self) -> bool:
        """Join the pieces of a complete big argument without an intermediate copy.

        Returns False if the chunking of its end makes that too expensive.
        """
        last = self._pieces[-1]
        own: i64 = len(last) + self._wanted_bytes - 2
        if own < 0:
            return False
        size: i64 = self._bulk_bytes
        self._pieces[-1] = last[:own]
        self._pieces.insert(0, self._buffer[self._position :])
        self._arguments.append(b"".join(self._pieces))
        self._pieces = []
        self._pieces_bytes = 0
        self._buffer = last[own + 2 :]
        self._position = 0
        self._parsed_bytes += size + 2
        self._bulk_bytes = _MORE
        self._missing -= 1
        return True

    def _join(self) -> None:
        """Append the collected pieces to the rest of the buffer."""
        self._pieces.insert(0, self._buffer[self._position :])
        self._buffer = b"".join(self._pieces)
        self._position = 0
        self._pieces = []
        self._pieces_bytes = 0

    def _read_arguments(self) -> bool:
        """Read arguments until the request is complete; False if more input is needed."""
        while self._missing > 0:
            if self._bulk_bytes == _MORE and self._read_short_arguments():
                return True
            if self._bulk_bytes == _MORE:
                if self._position >= len(self._buffer):
                    return False
                first = self._buffer[self._position]
                if first != _DOLLAR:
                    shown = " " if first in {10, 13} else chr(first)
                    raise ProtocolError(f"expected '$', got '{shown}'")
                length = self._header(self.max_bulk_bytes, "invalid bulk length", "too big bulk count string")
                if length == _MORE:
                    return False
                if length < 0:
                    raise ProtocolError("invalid bulk length")
                self._bulk_bytes = length
            start = self._position
            end: i64 = start + self._bulk_bytes
            missing_bytes: i64 = end + 2 - len(self._buffer)
            if missing_bytes > 0:
                self._wanted_bytes = missing_bytes
                return False
            self._arguments.append(self._buffer[start:end])
            self._position = end + 2
            self._bulk_bytes = _MORE
            self._missing -= 1
        return True

    def _read_short_arguments(self) -> bool:
        """Read arguments of up to 99 bytes, as most are, while they are in the buffer; whether the request is complete.

        It leaves everything else, such as errors, to `_read_arguments`.
        """
        buffer = self._buffer
        arguments = self._arguments
        size: i64 = len(buffer)
        position = self._position
        missing = self._missing
        while missing > 0:
            if position + 5 > size or buffer[position] != _DOLLAR:
                break
            length: i64 = i64(buffer[position + 1]) - 48
            if length < 0 or length > 9:
                break
            start: i64 = position + 4
            if buffer[position + 2] != _CR:
                digit: i64 = i64(buffer[position + 2]) - 48
                if length == 0 or digit < 0 or digit > 9 or buffer[position + 3] != _CR:
                    break
                length = length * 10 + digit
                start += 1
            end: i64 = start + length
            if end + 2 > size:
                break
            arguments.append(buffer[start:end])
            position = end + 2
            missing -= 1
        self._position = position
        self._missing = missing
        return missing == 0

    def _header(self, limit: i64, invalid: str, too_long: str) -> i64:
        """Return the number of a `*` or `$` line, `_MORE` if it is incomplete, -2 for any negative number."""
        buffer = self._buffer
        size: i64 = len(buffer)
        position: i64 = self._position + 1
        value: i64 = 0
        while position < size:
            byte: i64 = buffer[position]
            if byte < 48 or byte > 57 or value > limit:
                break
            value = value * 10 + byte - 48
            position += 1
        digits: i64 = position - self._position - 1
        if position + 1 < size and buffer[position] == _CR and digits > 0:
            if (digits > 1 and buffer[self._position + 1] == 48) or value > limit:
                raise ProtocolError(invalid)
            self._position = position + 2
            return value
        return self._unusual_header(invalid, too_long)

    def _unusual_header(self, invalid: str, too_long: str) -> i64:
        """Handle a header line that is incomplete, negative or invalid."""
        end = self._buffer.find(b"\r", self._position)
        if end < 0 or end - self._position > MAX_LINE_BYTES:
            if len(self._buffer) - self._position > MAX_LINE_BYTES:
                raise ProtocolError(too_long)
            return _MORE
        if end + 1 >= len(self._buffer):
            return _MORE
        line = self._buffer[self._position + 1 : end]
        if len(line) > 20 or line[:1] != b"-" or not line[1:].isdigit() or line[1:2] == b"0":
            raise ProtocolError(invalid)
        self._position = end + 2
        return -2

    def _inline(self) -> list[bytes] | None:
        """Return the words of a line without empty ones; None if its end has not arrived."""
        end = self._buffer.find(b"\n", self._position)
        if end < 0 or end - self._position > MAX_LINE_BYTES:
            if len(self._buffer) - self._position > MAX_LINE_BYTES:
                raise ProtocolError("too big inline request")
            return None
        line = self._buffer[self._position : end]
        self._position = end + 1
        words = split_words(line.removesuffix(b"\r"))
        if words is None:
            raise ProtocolError("unbalanced quotes in request")
        return [word for word in words if word]
