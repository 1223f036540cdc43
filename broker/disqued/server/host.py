"""The operating system as the node sees it."""

from __future__ import annotations

import os
import platform
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from disqued.core.env import ProcessFacts
from disqued.server import logs

RESERVED_DESCRIPTORS = 32
"""Open files that are no clients: listeners, logs, the event loop's own."""


class ProcessHost:
    """Implements `disqued.core.env.Host`; ends and restarts are carried out by the callbacks given."""

    def __init__(self, config_path: Path | None, nodes_path: Path, end: Callable[[int], None]) -> None:
        self._config_path = config_path
        self._nodes_path = nodes_path
        self._end = end
        """Ends the server with an exit status."""
        self._restart: Callable[[int, bool], bool] = lambda _delay_ms, _graceful: False
        self._chance = random.SystemRandom()
        self._seeded = random.Random(self._chance.getrandbits(128))  # noqa: S311 - spreads timers, guards nothing
        self.keep_alive_s = 0
        self.stopwatch_ns = time.monotonic_ns
        self.random = self._seeded.random
        self.random_bytes = os.urandom

    def on_restart(self, restart: Callable[[int, bool], bool]) -> None:
        """Say how the server is started anew."""
        self._restart = restart

    def wall_us(self) -> int:
        """The wall clock."""
        return time.time_ns() // 1000

    def facts(self) -> ProcessFacts:
        """What INFO shows."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ProcessFacts(
            process_id=os.getpid(),
            executable=sys.executable,
            config_file=str(self._config_path) if self._config_path else "",
            operating_system=f"{platform.system()} {platform.release()} {platform.machine()}",
            resident_bytes=_resident_bytes(),
            system_s=own.ru_stime,
            user_s=own.ru_utime,
            children_system_s=children.ru_stime,
            children_user_s=children.ru_utime,
        )

    def change_directory(self, path: str) -> None:
        """Make `path` the working directory."""
        os.chdir(path)

    def working_directory(self) -> str:
        """The absolute working directory."""
        return str(Path.cwd())

    def allow_clients(self, count: int) -> int:
        """Raise the limit on open files for `count` clients as far as the system lets us."""
        wanted = count + RESERVED_DESCRIPTORS
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return count
        for most in (wanted, hard):
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, max(most, hard)))
            except (ValueError, OSError):
                continue
            break
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return min(count, soft - RESERVED_DESCRIPTORS)

    def read_config(self) -> str | None:
        """The text of the configuration file."""
        return read_text(self._config_path) if self._config_path else None

    def write_config(self, text: str) -> None:
        """Replace the configuration file; a crash leaves the old one or the new one."""
        assert self._config_path is not None
        replace_file(self._config_path, text, sync=True)

    def save_nodes(self, text: str, sync: bool) -> None:
        """Replace the contents of the cluster configuration file, which stays the file that is locked."""
        with self._nodes_path.open("r+b") as file:
            file.write(text.encode())
            file.truncate()
            file.flush()
            if sync:
                os.fsync(file.fileno())

    def log(self, level: str, text: str) -> None:
        """Write a line to the log."""
        logs.write(level, text)

    def set_log_level(self, level: str) -> None:
        """Drop lines below this level."""
        logs.set_level(level)

    def keep_alive(self, interval_s: int) -> None:
        """Used for connections accepted from now on."""
        self.keep_alive_s = interval_s

    def sleep(self, seconds: float) -> None:
        """Stop the process."""
        time.sleep(seconds)

    def shutdown(self) -> None:
        """End with success."""
        self._end(0)

    def restart(self, delay_ms: int, graceful: bool) -> bool:
        """Start the server anew."""
        return self._restart(delay_ms, graceful)

    def crash(self, kind: str) -> None:
        """Die by a signal: a real crash, which nothing cleans up after."""
        logs.write("warning", f"Crashing on request: {kind}")
        os.kill(os.getpid(), signal.SIGABRT if kind == "assert" else signal.SIGSEGV)


def _resident_bytes() -> int:
    """Memory of the process that is in RAM."""
    with Path("/proc/self/statm").open("rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def read_text(path: Path) -> str:
    """A text file whose bytes need not be UTF-8; `replace_file` writes them back as they were."""
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def replace_file(path: Path, text: str, *, sync: bool) -> None:
    """Write a file beside the old one and put it in its place."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with beside.open("w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
        file.flush()
        if sync:
            os.fsync(file.fileno())
    beside.replace(path)
