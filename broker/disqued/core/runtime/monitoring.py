"""What requests show to whoever looks on: clients in MONITOR, SLOWLOG and LATENCY."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from disqued.resp.words import quote_word

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.commands.entry import CommandEntry
    from disqued.core.runtime.state import NodeState


def show_monitors(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Stream a request to the monitoring clients before it runs."""
    now_us = state.host.wall_us()
    words = b" ".join([quote_word(word) for word in args])
    peer = b"unix:" + session.address.rpartition(b":")[0] if session.unix_socket else session.address
    line = b"+%d.%06d [%b] %b\r\n" % (now_us // 1_000_000, now_us % 1_000_000, peer, words)
    for monitor in state.monitors:
        monitor.out.append(line)
        state.ready.flush(monitor)


def note_slow(state: NodeState, entry: CommandEntry, args: list[bytes], spent_ns: i64) -> None:
    """Keep a slow command for SLOWLOG and LATENCY."""
    config = state.config
    at_s = state.host.wall_us() // 1_000_000
    spent_us = spent_ns // 1000
    if 0 <= config.slowlog_log_slower_than <= spent_us:
        state.slowlog.add(args, at_s, spent_us, config.slowlog_max_len)
    spent_ms = spent_us // 1000
    if 0 < config.latency_monitor_threshold <= spent_ms:
        state.latency.add(b"fast-command" if entry.fast else b"command", at_s, spent_ms)
