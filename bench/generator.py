"""Runs the load generator of `bench/loadgen/` against a broker and reads its results.

The generator is C because one Python process cannot load a compiled broker to its limit. It is compiled when its
sources are newer than the program. It checks every reply; one wrong reply ends the benchmark, because its figures would
be worthless.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any, Protocol

from brokers import Broker, cores, pinned
from machine import ROOT

SOURCES = ROOT / "bench" / "loadgen"
PROGRAM = ROOT / "build" / "loadgen"
QUEUE = "q"  # the queue of a load with one queue

Measurement = dict[str, Any]  # the line of the generator: rates, CPU times, `latency_us` by kind of request


@dataclass(frozen=True, slots=True)
class Load:
    """A load; the fields are the options of the generator (see `bench/loadgen/main.c`)."""

    mode: str
    jobs: int
    connections: int = 50
    workers: int = 40
    pipeline: int = 1
    fetch: int = 1
    first: int = 0
    queues: int = 1
    body_bytes: int = 64
    rate: float = 0.0
    window_ms: int = 0  # latency of adds by windows of this length as well
    time_limit: int = 120
    add_options: str = ""  # more arguments of ADDJOB
    ack_command: str = "ACKJOB"  # what ends the work on fetched jobs
    worker_port: int = 0  # where workers connect; 0: where producers do

    def arguments(self) -> list[str]:
        """The options on the command line."""
        pairs = ((name.replace("_", "-"), getattr(self, name)) for name in self.__slots__)
        return [word for name, value in pairs for word in (f"--{name}", str(value))]


def compile_generator() -> None:
    """Build the generator if it is older than its sources; exits with the compiler's output if that fails."""
    sources = sorted(SOURCES.glob("*.c"))
    newest = max(path.stat().st_mtime for path in SOURCES.iterdir())
    if PROGRAM.exists() and PROGRAM.stat().st_mtime >= newest:
        return
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit(
            "bench: no C compiler for the load generator. Install it with `apt-get install gcc libc6-dev libssl-dev`"
        )
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    fresh = PROGRAM.with_suffix(".new")
    command = [compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-o", str(fresh), *map(str, sources)]
    command += ["-lm", "-lssl", "-lcrypto"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        raise SystemExit(f"bench: the load generator, which needs libssl-dev, does not compile:\n{built.stderr}")
    fresh.replace(PROGRAM)


class Server(Protocol):
    """A broker, or a cluster that clients reach through one node."""

    @property
    def broker(self) -> Broker:
        """Which protocol it speaks."""

    @property
    def port(self) -> int:
        """Where producers connect."""

    @property
    def pid(self) -> int:
        """The process whose CPU time is read."""

    @property
    def output(self) -> str:
        """What it printed."""


def offer(server: Server, load: Load) -> Measurement:
    """Offer the load and return what was measured; exits if any reply was wrong."""
    command = [str(PROGRAM), "--protocol", server.broker.protocol, "--port", str(server.port)]
    command += ["--server-pid", str(server.pid), *load.arguments(), *(["--tls"] if server.broker.tls else [])]
    answer = subprocess.run(pinned(cores()[1], *command), capture_output=True, text=True, check=False)
    if not answer.stdout:
        raise SystemExit(f"bench: {server.broker.name}, {load}: {answer.stderr}\n{server.output}")
    line: Measurement = json.loads(answer.stdout)
    if line["errors"]:
        raise SystemExit(f"bench: {server.broker.name}, {load}: {line['error']}\n{server.output}")
    line["latency_us"] = {kind: values for kind, values in line["latency_us"].items() if values["count"]}
    return line
