"""Runs a page of the documentation as a reader would: it writes the files of the page and types its commands.

A block of code whose first line is a comment with a file name is that file. In a block `console`, a line that begins
with `$ ` is a command, and the lines below it are what it prints, in that order; `…` stands for any lines. A command
that ends with `&` runs in the background until the page has been read to its end. Any other command is repeated until
it prints what is shown, unless its page says that it is typed once. Ports of the page are replaced by free ones.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE: Final = re.compile(r"# ([\w./-]+\.\w+)\n")
ANY: Final = "…"
TIMEOUT_S: Final = 90.0
LOOK_S: Final = 0.2
ONCE: Final = ("python ", "curl ")
"""What is typed once: it sends something."""
NOT_HERE: Final = ("pip install", "make ", "kubectl ", "helm ")
"""What changes the machine of the reader: the tests have it done already, or other tests do it."""


class Guide:
    """A page, in an empty folder. All it started ends with the context."""

    def __init__(self, page: Path, folder: Path, ports: Mapping[str, int]) -> None:
        self._text = page.read_text(encoding="utf-8")
        self._folder = folder
        self._ports = {shown: str(port) for shown, port in ports.items()}
        self._started: list[subprocess.Popen[bytes]] = []
        programs = str(Path(sys.executable).parent)
        self._environment = {
            **os.environ,
            "PATH": os.pathsep.join((programs, os.environ["PATH"])),
            "PYTHONUNBUFFERED": "1",
        }

    def run(self) -> int:
        """Write and type everything on the page; returns the number of commands. Ends at the first that fails."""
        commands = 0
        for language, code in BLOCK.findall(self._text):
            if named := FILE.match(code):
                path = self._folder / named[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self._translate(code), encoding="utf-8")
            elif language == "console":
                for command, shown in _commands(code):
                    commands += 1
                    self._type(command, shown)
        return commands

    def _translate(self, text: str) -> str:
        for shown, port in self._ports.items():
            text = re.sub(rf"(?<!\d){shown}(?!\d)", port, text)
        return text

    def _type(self, command: str, shown: list[str]) -> None:
        if command.startswith(NOT_HERE):
            return
        command = self._translate(command)
        if command.endswith("&"):
            self._start(command.removesuffix("&"))
            return
        deadline_s = time.monotonic() + TIMEOUT_S
        wanted = [self._translate(line) for line in shown]
        while not self._works(command, wanted):
            if command.startswith(ONCE) or time.monotonic() > deadline_s:
                raise AssertionError(
                    f"$ {command}\n{self._printed}\n--- the page says\n" + "\n".join(shown) + self._logs()
                )
            time.sleep(LOOK_S)

    def _works(self, command: str, wanted: list[str]) -> bool:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        self._printed = done.stdout + done.stderr
        pattern = "".join(r"(?:.*\n)*?" if line == ANY else re.escape(line) + r"[ ]*\n" for line in wanted)
        return done.returncode == 0 and (not wanted or re.fullmatch(pattern, done.stdout) is not None)

    def _start(self, command: str) -> None:
        with (self._folder / f"background-{len(self._started)}.log").open("wb") as log:
            self._started.append(
                subprocess.Popen(
                    ["bash", "-c", f"exec env {command}"],
                    cwd=self._folder,
                    env=self._environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def _logs(self) -> str:
        logs = sorted(self._folder.glob("background-*.log"))
        return "".join(f"\n== {log.name}\n{log.read_text(errors='replace')[-2000:]}" for log in logs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _commands(code: str) -> list[tuple[str, list[str]]]:
    """The commands of a block with what they show."""
    found: list[tuple[str, list[str]]] = []
    for line in code.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        elif found and found[-1][0].endswith("\\"):
            command, shown = found.pop()
            found.append((command.removesuffix("\\") + line.strip(), shown))
        elif found:
            found[-1][1].append(line)
    return found
