"""The operating system as the node sees it."""

from __future__ import annotations

import contextlib
import os
import platform
import random
import resource
import signal
import stat
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from disqued.core.host.host import MemoryLimit, ProcessFacts
from disqued.crontimes import next_time
from disqued.server import allocator, logs, memorylimit
from disqued.server.certificates import Certificates
from disqued.server.disk import FileDisk
from disqued.server.nodesfile import NodesFile

RESERVED_DESCRIPTORS = 32
"""Descriptors that clients cannot use: listeners, logs, the event loop, and the links of a small cluster, but not the
HTTP port."""
BUS_DESCRIPTORS = 1000
"""How many more descriptors are requested for connections to the bus port, so that they take none from clients."""
LEAST_BUS_DESCRIPTORS = 8
"""How many of the reserved descriptors incoming links may use if the system grants no more."""

_LONGEST_SECRET_FILE = 64 << 10

_CRASH_SIGNALS = {"segfault": signal.SIGSEGV, "oom": signal.SIGABRT, "assert": signal.SIGABRT}


class ProcessHost:
    """Implements `disqued.core.host.host.Host`; the callbacks end and restart the server."""

    def __init__(
        self,
        config_path: Path | None,
        nodes: NodesFile,
        certificates: Certificates,
        end: Callable[[], None],
        fail: Callable[[str], None],
        restart: Callable[[int, bool], bool],
    ) -> None:
        self._config_path = config_path
        self._nodes = nodes
        self._certificates = certificates
        self._end = end
        self._fail = fail
        self._restart = restart
        self.disk = FileDisk()
        self._chance = random.SystemRandom()
        self._seeded = random.Random(self._chance.getrandbits(128))  # noqa: S311 - spreads timers, guards nothing
        self.keep_alive_s = 0
        self.reserved_descriptors = RESERVED_DESCRIPTORS
        """Descriptors that clients cannot use."""
        self.bus_descriptors = LEAST_BUS_DESCRIPTORS
        """How many nodes may connect to this one at a time."""
        self.stopwatch_ns = time.monotonic_ns
        self.random = self._seeded.random
        self.random_bytes = os.urandom

    def next_time(self, line: str, zone: str, after_ms: int) -> int:
        """From the time zones of the system, or those of `tzdata`."""
        return next_time(line, zone, after_ms)

    def wall_us(self) -> int:
        """The wall clock in unix microseconds."""
        return time.time_ns() // 1000

    def wall_text(self) -> str:
        """The wall clock as in RFC 3339."""
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def facts(self) -> ProcessFacts:
        """The facts about the process that INFO shows."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ProcessFacts(
            process_id=os.getpid(),
            executable=sys.executable,
            config_file=str(self._config_path) if self._config_path else "",
            operating_system=f"{platform.system()} {platform.release()} {platform.machine()}",
            resident_bytes=self.resident_bytes(),
            system_s=own.ru_stime,
            user_s=own.ru_utime,
            children_system_s=children.ru_stime,
            children_user_s=children.ru_utime,
            certificate_expires_s=self._certificates.expires_s,
        )

    def resident_bytes(self) -> int:
        """Memory of the process that is in RAM."""
        return allocator.resident_bytes()

    def memory_limit(self) -> MemoryLimit:
        """The memory limit of the container, or the memory of the machine."""
        return memorylimit.find()

    def release_memory(self) -> None:
        """Return free memory of the C library to the system."""
        allocator.release()

    def change_directory(self, path: str) -> None:
        """Make `path` the working directory."""
        os.chdir(path)

    def working_directory(self) -> str:
        """The absolute working directory."""
        return str(Path.cwd())

    def allow_clients(self, count: int) -> int:
        """Raise the limit on open files for `count` clients and for other nodes; returns how many clients it allows."""
        wanted = count + self.reserved_descriptors + BUS_DESCRIPTORS
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if not _allows(soft, wanted):
            for limits in ((wanted, hard if _allows(hard, wanted) else wanted), (hard, hard)):
                with contextlib.suppress(ValueError, OSError):  # only a privileged process raises the hard limit
                    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
                    break
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        possible = count if _allows(soft, count + self.reserved_descriptors) else soft - self.reserved_descriptors
        spare = BUS_DESCRIPTORS if _allows(soft, wanted) else max(soft - possible - self.reserved_descriptors, 0)
        self.bus_descriptors = max(spare, LEAST_BUS_DESCRIPTORS)
        return possible

    def read_config(self) -> str | None:
        """The text of the configuration file."""
        return read_text(self._config_path) if self._config_path else None

    def read_secret(self, path: str) -> bytes:
        """The start of a file with secrets."""
        with Path(path).open("rb") as file:
            if os.fstat(file.fileno()).st_mode & stat.S_IROTH:
                self.log("warning", f"All users of this machine can read {path}, which has a secret: chmod 600 {path}")
            return file.read(_LONGEST_SECRET_FILE)

    def write_config(self, text: str) -> None:
        """Replace the configuration file; a crash leaves the old one or the new one."""
        assert self._config_path is not None
        replace_file(self._config_path, text)

    def read_file(self, path: str) -> str:
        """The text of a file."""
        return read_text(Path(path))

    def write_file(self, path: str, text: str) -> None:
        """Replace a file; a crash leaves the old one or the new one."""
        replace_file(Path(path), text)

    def save_nodes(self, text: str, sync: bool) -> None:
        """Replace the contents of the cluster configuration file."""
        self._nodes.save(text, sync=sync)

    def log(self, level: str, text: str) -> None:
        """Write a line to the log."""
        logs.write(level, text)

    def change_tls(self, attribute: str, value: object) -> str:
        """Use TLS with another value of a directive for new connections; returns why not, empty if it does."""
        return self._certificates.change(attribute, value)

    def set_log_level(self, level: str) -> None:
        """Drop lines below this level."""
        logs.set_level(level)

    def keep_alive(self, interval_s: int) -> None:
        """Set the keep-alive interval of new connections."""
        self.keep_alive_s = interval_s

    def sleep(self, seconds: float) -> None:
        """Block the process."""
        time.sleep(seconds)

    def shutdown(self) -> None:
        """End the server with exit status 0."""
        self._end()

    def fail(self, why: str) -> None:
        """End the server with exit status 1."""
        self._fail(why)

    def restart(self, delay_ms: int, graceful: bool) -> bool:
        """Restart the server; False if that is not possible."""
        return self._restart(delay_ms, graceful)

    def crash(self, kind: str) -> None:
        """Kill the process by a signal: a real crash without cleanup."""
        logs.write("warning", f"Crashing on request: {kind}")
        os.kill(os.getpid(), _CRASH_SIGNALS[kind])


def _allows(limit: int, count: int) -> bool:
    """Whether a limit allows that many descriptors."""
    return limit == resource.RLIM_INFINITY or limit >= count


def read_text(path: Path) -> str:
    """Read a text file that need not be valid UTF-8; `replace_file` writes the same bytes back."""
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def replace_file(path: Path, text: str) -> None:
    """Replace a file atomically, with the same owner and permissions. A link stays a link.

    Raises:
        OSError: the file cannot be written.
    """
    path = path.resolve()
    before = path.stat()
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    private = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # it may contain passwords
    with os.fdopen(private, "w", encoding="utf-8", errors="surrogateescape") as file:
        try:
            with contextlib.suppress(PermissionError):  # only a privileged process may change the owner
                os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            beside.replace(path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
