"""The environment of a measurement: a figure means nothing without it.

Only facts that change figures are kept: processor, cores, kernel, Python, source commit, versions of the peers, and
whether the broker's modules ran compiled or interpreted.
"""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from disqued import __version__
from disqued.build import FLAVOUR

ROOT = Path(__file__).resolve().parent.parent
SYNCS = 30


def broker_environment() -> dict[str, str]:
    """The environment for the broker, which runs in another directory: entries of PYTHONPATH are made absolute."""
    environment = dict(os.environ)
    paths = [str(Path(entry).resolve()) for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    return environment


def _line(*command: str) -> str:
    """The first line that a command prints; empty if it cannot run."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    except FileNotFoundError:
        return ""
    return answer.stdout.strip().partition("\n")[0]


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _disk() -> str:
    """File system of the brokers' files, and how long the device takes to sync 4 KiB."""
    spent_ms = []
    with tempfile.NamedTemporaryFile(prefix="disqued-bench-") as file:
        for _ in range(SYNCS):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            spent_ms.append((time.perf_counter() - began) * 1000)
        kind = subprocess.run(["df", "--output=fstype", file.name], capture_output=True, text=True, check=False).stdout
    return f"{kind.split()[-1] if kind else 'unknown'}, 4 KiB are written and synced in {median(spent_ms):.2f} ms"


def describe() -> dict[str, str]:
    """Facts about machine, source and builds, in the order of the report."""
    commit = _line("git", "rev-parse", "--short", "HEAD") or "unknown"
    changed = _line("git", "status", "--porcelain", "--", "broker", "bench")
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": f"{_cpu_model()}, {os.cpu_count()} cores, {memory_bytes / 2**30:.0f} GiB",
        "disk": _disk(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "disqued": f"{__version__}, {FLAVOUR}",
        "commit": commit + (" with changes" if changed else ""),
        "redis": _line("redis-server", "--version").partition(" sha=")[0],
        "beanstalkd": _line("beanstalkd", "-v"),
        "rabbitmq": _line("dpkg-query", "--show", "--showformat", "${Version}", "rabbitmq-server"),
    }
