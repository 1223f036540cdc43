"""What a node shows of the commands that it runs: to clients in MONITOR, in SLOWLOG and in LATENCY."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.config import Config
from disqued.core.clients.session import Session
from disqued.core.commands.entry import CommandEntry
from disqued.core.host.host import Host
from disqued.core.output.ready import Ready
from disqued.core.telemetry.latency import LatencyMonitor
from disqued.core.telemetry.slowlog import SlowLog
from disqued.resp.words import quote_word, shorten

_NEVER_NS: Final = 1 << 62
MAX_SHOWN_WORDS: Final = 64
"""MONITOR shows this many words of a request,"""
MAX_SHOWN_BYTES: Final = 1024
"""and this many bytes of each: quoting takes up to 0.3 microseconds per byte, and a request can have gigabytes."""


class Monitoring:
    """The monitoring clients, the slow log and the latency monitor of one node."""

    def __init__(self, config: Config, host: Host, ready: Ready) -> None:
        self._config = config
        self._host = host
        self._ready = ready
        self.sessions: list[Session] = []
        """Clients in MONITOR."""
        self.slowlog = SlowLog()
        self.latency = LatencyMonitor()
        self.slow_ns: i64 = _NEVER_NS
        """Commands that take at least this long are passed to `note_slow`."""
        self.configure()

    def configure(self) -> None:
        """Apply `slowlog-log-slower-than` and `latency-monitor-threshold`."""
        config = self._config
        limits_ns = []
        if config.slowlog_log_slower_than >= 0:
            limits_ns.append(config.slowlog_log_slower_than * 1000)
        if config.latency_monitor_threshold > 0:
            limits_ns.append(config.latency_monitor_threshold * 1_000_000)
        self.slow_ns = min([*limits_ns, _NEVER_NS])

    def show(self, session: Session, entry: CommandEntry, args: list[bytes]) -> None:
        """Stream a request to the monitoring clients before it runs."""
        now_us = self._host.wall_us()
        shown = shorten(entry.command.redacted(self._config, args), MAX_SHOWN_WORDS, MAX_SHOWN_BYTES)
        words = b" ".join([quote_word(word) for word in shown])
        peer = b"unix:" + session.address.rpartition(b":")[0] if session.unix_socket else session.address
        line = b"+%d.%06d [%b] %b\r\n" % (now_us // 1_000_000, now_us % 1_000_000, peer, words)
        for monitor in self.sessions:
            monitor.out.append(line)
            self._ready.flush(monitor)

    def note_slow(self, entry: CommandEntry, args: list[bytes], spent_ns: i64) -> None:
        """Record a slow command for SLOWLOG and LATENCY."""
        config = self._config
        at_s = self._host.wall_us() // 1_000_000
        spent_us = spent_ns // 1000
        if 0 <= config.slowlog_log_slower_than <= spent_us:
            shown = entry.command.redacted(config, args)
            self.slowlog.add(shown, at_s, spent_us, config.slowlog_max_len)
        spent_ms = spent_us // 1000
        if 0 < config.latency_monitor_threshold <= spent_ms:
            self.latency.add(b"fast-command" if entry.fast else b"command", at_s, spent_ms)
