"""A client's connection: a session of the core on top of a transport."""

from __future__ import annotations

import os
import socket
from asyncio import Transport
from typing import Any, Final

from mypy_extensions import i64

from disqued.core.memory.accounting import BIG_BYTES
from disqued.core.runtime.counters import CLOSED_FOR_OUTPUT
from disqued.server.keepalive import keep_alive
from disqued.server.peername import common_name
from disqued.server.shell import Shell, SocketSession

FREE_OUTPUT_BYTES: Final = 16 << 10
"""Output of a client that the limits do not count, as in the original."""
PART_BYTES: Final = 4 << 10
"""Longer parts of a reply are not joined: copying would cost more than it saves."""
MUCH_BYTES: Final = 64 << 10
"""After this much from one client, the node serves the others before it reads more."""
SOFT_LIMIT_MARGIN_S: Final = 0.1


class Connection(SocketSession):
    """An asyncio protocol. It has no base class of asyncio: the event loop only looks for the methods."""

    def __init__(self, shell: Shell, keep_alive_s: int, *, external: bool = False) -> None:
        super().__init__(b"", shell.clock.now_ms())
        self.external = external
        self._shell = shell
        self._keep_alive_s = keep_alive_s
        self._transport: Transport | None = None

    def connection_made(self, transport: Transport) -> None:
        """The client was accepted."""
        self._transport = transport
        encrypted = transport.get_extra_info("ssl_object")
        self.tls = encrypted is not None
        if encrypted is not None and self._shell.node.state.config.tls_auth_clients_user != "off":
            self.certificate_name = common_name(encrypted.getpeercert())
        sock: socket.socket | None = transport.get_extra_info("socket")
        if sock is not None:
            self.descriptor = sock.fileno()
            if sock.family == socket.AF_UNIX:
                self.unix_socket = True
                self.address = os.fsencode(transport.get_extra_info("sockname")) + b":0"
            else:
                peer: tuple[Any, ...] = transport.get_extra_info("peername") or ("?", 0)
                host = f"[{peer[0]}]" if ":" in peer[0] else peer[0]
                self.address = f"{host}:{peer[1]}".encode()
                if self._keep_alive_s > 0:
                    keep_alive(sock, self._keep_alive_s)
        self._shell.node.connected(self)
        self._shell.settle()

    def data_received(self, data: bytes) -> None:
        """The client sent bytes."""
        shell = self._shell
        arrived_ns = shell.clock.read_ns()
        shell.node.client_bytes(self, data, shell.clock.at_ms(arrived_ns), arrived_ns)
        shell.settle()
        if (len(data) >= MUCH_BYTES or self.interrupted) and self._transport is not None:
            self._transport.pause_reading()
            shell.call_soon(self._read_on)

    def _read_on(self) -> None:
        """Continue to read in the next turn of the loop, which would otherwise read up to 32 times in one turn."""
        if self.interrupted and not self.closed:
            self._shell.call_soon(self._read_on)  # what has arrived runs first
        elif self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        """The client will send no more. The connection closes when the replies are written, which may be later.

        A transport with TLS closes when this returns, so what can be written is written now.
        """
        if self.end_input():
            self._shell.node.ready.flush(self)
            self._shell.settle()
        if self.tls:
            self._shell.carry()
        return not self.tls

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection was closed or lost."""
        self._transport = None
        self._shell.node.disconnected(self, self._shell.clock.now_ms())
        self._shell.settle()

    def pause_writing(self) -> None:
        """The client reads too slowly: its unread output is counted, and limited when memory runs short."""
        if not self.closed:
            self.unread_bytes = 0
            self._shell.node.state.ready.slow[self.number] = self

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._shell.node.state.ready.slow.pop(self.number, None)

    def unsent_bytes(self) -> int:
        """Bytes of output that wait for the disk, or that the client has not read yet."""
        waiting = super().unsent_bytes()
        if self._transport is not None:
            waiting += self._transport.get_write_buffer_size()
        return waiting

    def flush(self) -> None:
        """Write the replies, then close if the session is over."""
        self.flushing = False
        transport = self._transport
        if transport is None or self.closed:
            self.forget_output()
            return
        out = self.out
        if out:
            size: i64 = 0
            for part in out:
                size += len(part)
            state = self._shell.node.state
            state.throughput.output_bytes.value += size
            if state.ready.output_limited and self._hang_up_if_slow(self.output_bytes()):
                return
            if size > BIG_BYTES and size > PART_BYTES * len(out):  # not joined: each body is in memory only once
                transport.writelines(out)
            else:
                transport.write(out[0] if len(out) == 1 else b"".join(out))
            out.clear()
        if self.closing and self.held is None:
            transport.close()

    def watch_output(self) -> None:
        """Apply the output limits to output that the barrier holds back."""
        if self._transport is not None and not self.closed:
            self._hang_up_if_slow(self.output_bytes())

    def _hang_up_if_slow(self, waiting_bytes: int) -> bool:
        """Close the connection if too much output waits, or much for too long; whether it was closed."""
        state = self._shell.node.state
        hard, soft, soft_s = state.config.client_output_buffer_limit
        now_ms = self._shell.clock.now_ms()
        waiting_bytes -= FREE_OUTPUT_BYTES
        if soft == 0 or waiting_bytes < soft:
            self.soft_limit_since_ms = 0
        elif self.soft_limit_since_ms == 0:
            self.soft_limit_since_ms = now_ms
            self._shell.call_later(soft_s + SOFT_LIMIT_MARGIN_S, self._check_again)
        too_long = self.soft_limit_since_ms > 0 and now_ms - self.soft_limit_since_ms > soft_s * 1000
        if not too_long and not 0 < hard <= waiting_bytes:
            return False
        state.host.log(
            "warning",
            f"Client {self.address.decode('utf-8', 'replace')} scheduled to be closed ASAP for overcoming of output "
            "buffer limits.",
        )
        state.counters.add(CLOSED_FOR_OUTPUT)
        state.ready.hang_up(self)
        return True

    def _check_again(self) -> None:
        """Check the soft limit again: nothing may have been written since the client reached it."""
        self.watch_output()
        self._shell.settle()

    def abort(self) -> None:
        """Close without waiting for the output."""
        if self._transport is not None:
            self._transport.abort()
