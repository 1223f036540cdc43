"""A world in memory: its clock moves when told, its chance comes from a seed."""

from __future__ import annotations

import random

from disqued.core.host.disk import REMOVE, DiskWork
from disqued.core.host.host import MemoryLimit, ProcessFacts
from disqued.testing.disk import MemoryDisk


class FakeHost:
    """Implements `disqued.core.host.host.Host`; what a node did to it can be read from its attributes."""

    def __init__(self, seed: int = 0, now_ms: int = 1_800_000_000_000) -> None:
        self.now_ms = now_ms
        self.wall_ahead_us = 0
        """How far somebody moved the wall clock, which timers do not see."""
        self.chance = random.Random(seed)  # noqa: S311 - repeatable chance is the point
        self.command_ns = 0
        """What every command seems to take."""
        self._stopwatch_ns = 0
        self.config_text: str | None = None
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
        """Bytes that the process seems to take, whatever the node holds."""
        self.limit = MemoryLimit(16 << 30, "machine")
        self.released = 0
        """How often memory was given back."""
        self.disk = self.new_disk()
        self.process_id = 1
        self.ended: str | None = None

    def new_disk(self) -> MemoryDisk:
        """An empty disk."""
        return MemoryDisk(lambda: self.now_ms, self._seed)

    def start_process(self) -> None:
        """The next process of this server, which removes what the one before may have left half written."""
        self.process_id += 1
        self.ended = None
        for name in list(self.disk.files):
            if name.startswith("temp-rewriteaof-"):
                self.disk.perform(DiskWork(REMOVE, name))

    def wall_us(self) -> int:
        """Virtual time, and how far the wall clock was moved."""
        return self.now_ms * 1000 + self.wall_ahead_us

    def stopwatch_ns(self) -> int:
        """Moves on by `command_ns` per reading."""
        self._stopwatch_ns += self.command_ns
        return self._stopwatch_ns

    def random(self) -> float:
        """Seeded."""
        return self.chance.random()

    def random_bytes(self, count: int) -> bytes:
        """Seeded."""
        return self.chance.randbytes(count)

    def facts(self) -> ProcessFacts:
        """A process that used nothing."""
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
        """What was set."""
        return self.resident

    def memory_limit(self) -> MemoryLimit:
        """What was set."""
        return self.limit

    def release_memory(self) -> None:
        """Count it."""
        self.released += 1

    def change_directory(self, path: str) -> None:
        """Only known directories can be entered."""
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
        """The text given or written last."""
        return self.config_text

    def write_config(self, text: str) -> None:
        """Keep the text."""
        self.config_text = text

    def save_nodes(self, text: str, sync: bool) -> None:
        """Keep the text, and whether it was to be safe on disk."""
        self.nodes_text = text
        self.nodes_synced = sync

    def log(self, level: str, text: str) -> None:
        """Keep the line."""
        self.log_lines.append((level, text))

    def set_log_level(self, level: str) -> None:
        """Keep the level."""
        self.log_level = level

    def keep_alive(self, interval_s: int) -> None:
        """Keep the interval."""
        self.keep_alive_s = interval_s

    def sleep(self, seconds: float) -> None:
        """Let the stopwatch run on."""
        self.slept_s += seconds
        self._stopwatch_ns += int(seconds * 1e9)

    def shutdown(self) -> None:
        """Note it."""
        self.ended = "shutdown"

    def fail(self, why: str) -> None:
        """Note it."""
        self.ended = f"failed: {why}"

    def restart(self, delay_ms: int, graceful: bool) -> bool:
        """Note it."""
        self.ended = f"restart after {delay_ms} ms, {'graceful' if graceful else 'at once'}"
        return True

    def crash(self, kind: str) -> None:
        """Note it."""
        self.ended = kind
