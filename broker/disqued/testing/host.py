"""A host in memory: its clock moves only when told, and its random numbers come from a seed."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from disqued.core.host.disk import REMOVE, DiskWork
from disqued.core.host.host import MemoryLimit, ProcessFacts
from disqued.crontimes import next_time
from disqued.testing.disk import MemoryDisk


class FakeHost:
    """Implements `disqued.core.host.host.Host`; its attributes record what the node did."""

    def __init__(self, seed: int = 0, now_ms: int = 1_800_000_000_000) -> None:
        self.now_ms = now_ms
        self.wall_ahead_us = 0
        """How far the wall clock was moved; timers do not notice."""
        self.chance = random.Random(seed)  # noqa: S311 - repeatable chance is the point
        self.command_ns = 0
        """The apparent duration of every command."""
        self._stopwatch_ns = 0
        self.config_text: str | None = None
        self.secret_files: dict[str, bytes] = {}
        """The contents of files with secrets, by path."""
        self.files: dict[str, str] = {}
        """Files other than those of the node, by path."""
        self.nodes_text = ""
        self.nodes_synced = False
        self.directory = "/var/lib/disque"
        self.directories = {"/var/lib/disque", "/tmp"}  # noqa: S108 - names in a fake file system
        self.max_clients = 1_000_000
        self.log_lines: list[tuple[str, str]] = []
        self.log_level = "notice"
        self.keep_alive_s = 0
        self.slept_s = 0.0
        self._seed = seed
        self.resident = 50_000_000
        """The apparent resident size of the process, in bytes."""
        self.limit = MemoryLimit(16 << 30, "machine")
        self.released = 0
        """How often memory was released."""
        self.disk = self.new_disk()
        self.process_id = 1
        self.ended: str | None = None

    def new_disk(self) -> MemoryDisk:
        """An empty disk."""
        return MemoryDisk(lambda: self.now_ms, self._seed)

    def start_process(self) -> None:
        """Start the next process of this server, which removes incomplete files of the previous one."""
        self.process_id += 1
        self.ended = None
        for name in list(self.disk.files):
            if name.startswith("temp-rewriteaof-"):
                self.disk.perform(DiskWork(REMOVE, name))

    def wall_us(self) -> int:
        """Virtual time plus the shift of the wall clock."""
        return self.now_ms * 1000 + self.wall_ahead_us

    def wall_text(self) -> str:
        """Virtual time as text."""
        at_ms = self.wall_us() // 1000
        return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03}Z"

    def next_time(self, line: str, zone: str, after_ms: int) -> int:
        """From the time zones of the system, or those of `tzdata`."""
        return next_time(line, zone, after_ms)

    def stopwatch_ns(self) -> int:
        """Advances by `command_ns` per reading."""
        self._stopwatch_ns += self.command_ns
        return self._stopwatch_ns

    def random(self) -> float:
        """From the seed."""
        return self.chance.random()

    def random_bytes(self, count: int) -> bytes:
        """From the seed."""
        return self.chance.randbytes(count)

    def facts(self) -> ProcessFacts:
        """A process that has used no resources."""
        return ProcessFacts(
            process_id=self.process_id,
            executable="/usr/bin/disque-server",
            config_file="",
            operating_system="Simulated 1.0",
            resident_bytes=self.resident,
            system_s=0.0,
            user_s=0.0,
            children_system_s=0.0,
            children_user_s=0.0,
        )

    def resident_bytes(self) -> int:
        """The value that was set."""
        return self.resident

    def memory_limit(self) -> MemoryLimit:
        """The value that was set."""
        return self.limit

    def release_memory(self) -> None:
        """Count the call."""
        self.released += 1

    def change_directory(self, path: str) -> None:
        """Enter a known directory."""
        if path not in self.directories:
            raise FileNotFoundError(2, "No such file or directory")
        self.directory = path

    def working_directory(self) -> str:
        """The directory entered last."""
        return self.directory

    def allow_clients(self, count: int) -> int:
        """Up to `max_clients`."""
        return min(count, self.max_clients)

    def read_config(self) -> str | None:
        """The text that was set or written last."""
        return self.config_text

    def read_secret(self, path: str) -> bytes:
        """The content of a known file."""
        if path not in self.secret_files:
            raise FileNotFoundError(2, "No such file or directory")
        return self.secret_files[path]

    def write_config(self, text: str) -> None:
        """Keep the text."""
        self.config_text = text

    def read_file(self, path: str) -> str:
        """The text that was set or written last."""
        if path not in self.files:
            raise FileNotFoundError(2, "No such file or directory")
        return self.files[path]

    def write_file(self, path: str, text: str) -> None:
        """Keep the text."""
        self.files[path] = text

    def save_nodes(self, text: str, sync: bool) -> None:
        """Keep the text, and whether a sync was requested."""
        self.nodes_text = text
        self.nodes_synced = sync

    def log(self, level: str, text: str) -> None:
        """Keep the line."""
        self.log_lines.append((level, text))

    def change_tls(self, attribute: str, value: object) -> str:  # noqa: ARG002 - there are no certificates in memory
        """Accept everything."""
        return ""

    def set_log_level(self, level: str) -> None:
        """Keep the level."""
        self.log_level = level

    def keep_alive(self, interval_s: int) -> None:
        """Keep the interval."""
        self.keep_alive_s = interval_s

    def sleep(self, seconds: float) -> None:
        """Advance the stopwatch."""
        self.slept_s += seconds
        self._stopwatch_ns += int(seconds * 1e9)

    def shutdown(self) -> None:
        """Record it."""
        self.ended = "shutdown"

    def fail(self, why: str) -> None:
        """Record it."""
        self.ended = f"failed: {why}"

    def restart(self, delay_ms: int, graceful: bool) -> bool:
        """Record it."""
        self.ended = f"restart after {delay_ms} ms, {'graceful' if graceful else 'at once'}"
        return True

    def crash(self, kind: str) -> None:
        """Record it."""
        self.ended = kind
