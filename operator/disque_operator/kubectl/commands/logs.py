"""`kubectl disque logs NAME`: the logs of all nodes, merged by time, each line prefixed with its pod's name.

With `-f` it follows the logs across restarts of nodes, and includes pods that are created later.
"""

from __future__ import annotations

import argparse
import heapq
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl, RequestRefusedError, UnreachableError, output_of, retrying
from disque_operator.kubectl.exits import Exit

POLL_EVERY_S = 2.0
COLORS = ("36", "33", "32", "35", "34", "31")


@dataclass(frozen=True, order=True)
class Line:
    """A log line; `at` is the timestamp that Kubernetes prepends."""

    at: str
    pod: str
    text: str


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", help="name of the cluster")
    parser.add_argument("pods", nargs="*", metavar="pod", help="only these pods")
    parser.add_argument("-f", "--follow", action="store_true", help="stream new lines until Ctrl-C")
    parser.add_argument(
        "--tail", type=int, default=200, metavar="LINES", help="recent lines of each pod (default 200; -1: all)"
    )
    parser.add_argument("--since", metavar="DURATION", help="only lines newer than this, for example 10m")
    parser.add_argument("-p", "--previous", action="store_true", help="logs of the previous container, if there is one")
    parser.add_argument("--timestamps", action="store_true", help="include the timestamp of each line")


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Print the existing lines, then, with `-f`, new ones."""
    kubectl.cluster(chosen.name)
    pods = _pods(kubectl, chosen)
    logs, failures = [], []
    for pod in pods:
        try:
            logs.append(list(_existing(kubectl, pod, chosen)))
        except RequestRefusedError as error:
            failures.append(f"{pod}: {error}")
    shown: dict[str, str] = {}
    printer = Printer(chosen.timestamps)
    for line in heapq.merge(*logs):
        printer.show(line)
        shown[line.pod] = line.at
    if chosen.follow:
        Follower(kubectl, chosen, printer, shown).run()
    sys.stderr.writelines(f"{line}\n" for line in failures)
    return Exit.REFUSED if failures else Exit.OK


class Printer:
    """Prints log lines after their pods' names, in one color for each pod on a terminal. Safe to use from threads."""

    def __init__(self, timestamps: bool) -> None:
        self._timestamps = timestamps
        self._terminal = sys.stdout.isatty()
        self._lock = threading.Lock()

    def show(self, line: Line) -> None:
        """Print a line."""
        name = f"[{line.pod}]"
        if self._terminal:
            name = f"\x1b[{COLORS[names.ordinal(line.pod) % len(COLORS)]}m{name}\x1b[0m"
        words = (name, line.at, line.text) if self._timestamps else (name, line.text)
        with self._lock:
            sys.stdout.write(" ".join(words) + "\n")
            sys.stdout.flush()


class Follower:
    """Runs `kubectl logs -f` for each pod, and starts it again after it ended, when the pod is back."""

    def __init__(self, kubectl: Kubectl, chosen: argparse.Namespace, printer: Printer, shown: dict[str, str]) -> None:
        self._kubectl = kubectl
        self._chosen = chosen
        self._printer = printer
        self._shown = shown
        """Timestamp of the last printed line, by pod; the next run starts there."""
        self._running: dict[str, subprocess.Popen[str]] = {}

    def run(self) -> NoReturn:
        """Follow until Ctrl-C."""
        try:
            while True:
                self._start_missing()
                time.sleep(POLL_EVERY_S)
        finally:
            for process in self._running.values():
                process.terminate()

    def _start_missing(self) -> None:
        """Start a run for each pod that has none."""
        try:
            pods = _pods(self._kubectl, self._chosen)
        except UnreachableError as error:
            sys.stderr.write(f"{retrying(error)}\n")
            return
        for pod in pods:
            if pod in self._running and self._running[pod].poll() is None:
                continue
            last = self._shown.get(pod, "")
            since = (f"--since-time={last}",) if last else ()
            self._running[pod] = self._kubectl.start(*_command(pod), "--follow", *since)
            threading.Thread(target=self._follow, args=(pod, self._running[pod], last), daemon=True).start()

    def _follow(self, pod: str, process: subprocess.Popen[str], last: str) -> None:
        """Print the lines of one run until it ends, except those that were printed before."""
        for text in output_of(process):
            line = _line(pod, text)
            if line is not None and line.at > last:
                self._printer.show(line)
                self._shown[pod] = line.at


def _pods(kubectl: Kubectl, chosen: argparse.Namespace) -> list[str]:
    """Return the chosen pods that have logs: their container runs or ran."""
    pods = [pod["metadata"]["name"] for pod in kubectl.pods(chosen.name) if _has_started(pod)]
    unknown = [pod for pod in chosen.pods if pod not in pods and not chosen.follow]
    if unknown:
        raise RequestRefusedError(
            f"no logs found for {', '.join(unknown)}; pods with logs: {', '.join(pods) or 'none'}"
        )
    return [pod for pod in pods if not chosen.pods or pod in chosen.pods]


def _has_started(pod: Json) -> bool:
    containers = pod.get("status", {}).get("containerStatuses") or ()
    return any("waiting" not in (each.get("state") or {}) or each.get("restartCount", 0) for each in containers)


def _command(pod: str) -> tuple[str, ...]:
    return ("logs", pod, "--container", names.CONTAINER, "--timestamps")


def _existing(kubectl: Kubectl, pod: str, chosen: argparse.Namespace) -> Iterator[Line]:
    since = (f"--since={chosen.since}",) if chosen.since else ()
    previous = ("--previous",) * chosen.previous
    for text in kubectl.text(*_command(pod), f"--tail={chosen.tail}", *since, *previous).splitlines():
        line = _line(pod, text)
        if line is not None:
            yield line


def _line(pod: str, text: str) -> Line | None:
    """Parse a line that starts with a timestamp; None for a message of `kubectl` itself."""
    at, _, rest = text.rstrip("\n").partition(" ")
    return Line(at, pod, rest) if at[:4].isdigit() and "T" in at else None
