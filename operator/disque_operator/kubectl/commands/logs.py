"""`kubectl disque logs NAME`: what all nodes log, as one text in the order of time, each line after its pod's name.

With `-f` it goes on: through restarts of nodes, and with pods that come later.
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
from disque_operator.kubectl.api import Kubectl, RefusedError, UnreachableError, output_of
from disque_operator.kubectl.exits import Exit

LOOK_EVERY_S = 2.0
COLOURS = ("36", "33", "32", "35", "34", "31")


@dataclass(frozen=True, order=True)
class Line:
    """A line of a log; `at` is the time that Kubernetes put before it."""

    at: str
    pod: str
    text: str


def options(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("name", help="the cluster")
    parser.add_argument("pods", nargs="*", metavar="pod", help="only these pods")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until Ctrl-C")
    parser.add_argument("--tail", type=int, default=200, metavar="LINES", help="of each pod (default 200; -1: all)")
    parser.add_argument("--since", metavar="TIME", help="only newer lines, for example 10m")
    parser.add_argument("-p", "--previous", action="store_true", help="of the container that ran before, if it crashed")
    parser.add_argument("--timestamps", action="store_true", help="with the time at which Kubernetes got each line")


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Print what there is, then what comes."""
    kubectl.cluster(chosen.name)
    pods = _pods(kubectl, chosen)
    logs, missed = [], []
    for pod in pods:
        try:
            logs.append(list(_existing(kubectl, pod, chosen)))
        except RefusedError as error:
            missed.append(f"{pod}: {error}")
    shown: dict[str, str] = {}
    printer = Printer(chosen.timestamps)
    for line in heapq.merge(*logs):
        printer.show(line)
        shown[line.pod] = line.at
    if chosen.follow:
        Following(kubectl, chosen, printer, shown).run()
    sys.stderr.writelines(f"{line}\n" for line in missed)
    return Exit.REFUSED if missed else Exit.OK


class Printer:
    """Writes whole lines, each after its pod's name; on a terminal each pod has a colour. Threads share it."""

    def __init__(self, timestamps: bool) -> None:
        self._timestamps = timestamps
        self._terminal = sys.stdout.isatty()
        self._lock = threading.Lock()

    def show(self, line: Line) -> None:
        """Write it."""
        name = f"[{line.pod}]"
        if self._terminal:
            name = f"\x1b[{COLOURS[names.ordinal(line.pod) % len(COLOURS)]}m{name}\x1b[0m"
        words = (name, line.at, line.text) if self._timestamps else (name, line.text)
        with self._lock:
            sys.stdout.write(" ".join(words) + "\n")
            sys.stdout.flush()


class Following:
    """A run of `kubectl logs -f` for each pod, and another one when it has ended and its pod is there again."""

    def __init__(self, kubectl: Kubectl, chosen: argparse.Namespace, printer: Printer, shown: dict[str, str]) -> None:
        self._kubectl = kubectl
        self._chosen = chosen
        self._printer = printer
        self._shown = shown
        """The time of the last line that was printed, by pod: the next run begins there."""
        self._running: dict[str, subprocess.Popen[str]] = {}

    def run(self) -> NoReturn:
        """Follow until Ctrl-C."""
        try:
            while True:
                self._look()
                time.sleep(LOOK_EVERY_S)
        finally:
            for process in self._running.values():
                process.terminate()

    def _look(self) -> None:
        """See that each pod is followed."""
        try:
            pods = _pods(self._kubectl, self._chosen)
        except UnreachableError as error:
            sys.stderr.write(f"No answer from Kubernetes, trying again: {error}\n")
            return
        for pod in pods:
            if pod in self._running and self._running[pod].poll() is None:
                continue
            last = self._shown.get(pod, "")
            since = (f"--since-time={last}",) if last else ()
            self._running[pod] = self._kubectl.start(*_command(pod), "--follow", *since)
            threading.Thread(target=self._follow, args=(pod, self._running[pod], last), daemon=True).start()

    def _follow(self, pod: str, process: subprocess.Popen[str], last: str) -> None:
        """Print the lines of one run to its end, those not that were printed before."""
        for text in output_of(process):
            line = _line(pod, text)
            if line is not None and line.at > last:
                self._printer.show(line)
                self._shown[pod] = line.at


def _pods(kubectl: Kubectl, chosen: argparse.Namespace) -> list[str]:
    """The pods that have or had a container."""
    pods = [pod["metadata"]["name"] for pod in kubectl.pods(chosen.name) if _has_begun(pod)]
    unknown = [pod for pod in chosen.pods if pod not in pods and not chosen.follow]
    if unknown:
        raise RefusedError(f"No logs of {', '.join(unknown)}; there are: {', '.join(pods) or 'none'}")
    return [pod for pod in pods if not chosen.pods or pod in chosen.pods]


def _has_begun(pod: Json) -> bool:
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
    """The line behind its time; None for what `kubectl` itself says."""
    at, _, rest = text.rstrip("\n").partition(" ")
    return Line(at, pod, rest) if at[:4].isdigit() and "T" in at else None
