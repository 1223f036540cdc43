"""What a result was measured on and with: without it a number means nothing.

Only facts that change figures are kept: processor, cores, kernel, Python, source commit, versions of the peers, and
whether the broker's modules ran compiled or interpreted.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
SYNCS = 30

_PROBE = """
import json, sys
import disqued, disqued.server.main
files = [m.__file__ or "" for n, m in sys.modules.items() if n.split(".")[0] == "disqued"]
print(json.dumps([disqued.__version__, sum(not f.endswith(".py") for f in files), len(files)]))
"""


def broker_environment() -> dict[str, str]:
    """The environment for the broker: relative entries of PYTHONPATH made absolute, as it runs in another directory."""
    environment = dict(os.environ)
    paths = [str(Path(entry).resolve()) for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    return environment


@cache
def build() -> tuple[str, str]:
    """Version and flavour ("interpreted", "compiled (43 of 100 modules)") of the broker this interpreter starts."""
    probe = subprocess.run(
        [sys.executable, "-c", _PROBE], env=broker_environment(), capture_output=True, text=True, check=False
    )
    if probe.returncode != 0:
        raise SystemExit(f"bench: the broker cannot be imported by {sys.executable}:\n{probe.stderr}")
    version, compiled, total = json.loads(probe.stdout)
    flavour = f"compiled ({compiled} of {total} modules)" if compiled else "interpreted"
    return version, flavour


def check_flavour(pid: int) -> None:
    """Exit when a running broker is not of the flavour that `build` found: somebody rebuilds it meanwhile."""
    runs_compiled = "__mypyc" in Path(f"/proc/{pid}/maps").read_text()
    if runs_compiled != build()[1].startswith("compiled"):
        raise SystemExit("bench: the broker's build changed while it was measured; run again when nobody rebuilds it")


def _line(*command: str) -> str:
    """The first line a command prints, or an empty string when it cannot run."""
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
    """File system of the brokers' files, and how long the device takes to have 4 KiB safe."""
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
    """Facts about machine, source and builds, in the order the report shows them."""
    version, flavour = build()
    commit = _line("git", "rev-parse", "--short", "HEAD") or "unknown"
    changed = _line("git", "status", "--porcelain", "--", "broker", "bench")
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": f"{_cpu_model()}, {os.cpu_count()} cores, {memory_bytes / 2**30:.0f} GiB",
        "disk": _disk(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "disqued": f"{version}, {flavour}",
        "commit": commit + (" with changes" if changed else ""),
        "redis": _line("redis-server", "--version").partition(" sha=")[0],
        "beanstalkd": _line("beanstalkd", "-v"),
        "rabbitmq": _line("dpkg-query", "--show", "--showformat", "${Version}", "rabbitmq-server"),
    }
