"""The page about clusters tells the truth: its commands are run in order, and show what stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess

PAGE: Final = Path(__file__).parents[2] / "docs" / "howto" / "cluster.md"
TEXT: Final = PAGE.read_text(encoding="utf-8")
JOB_ID: Final = re.compile(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")
NODE_LINE: Final = re.compile(r"([0-9a-f]{40}) 127\.0\.0\.1:(\d+)")
TIME: Final = re.compile(r"\d{13}")
ANY: Final = "…"
"""Lines that are left out on the page."""
ONCE: Final = {"addjob", "getjob", "ackjob", "shutdown"}
"""What is not said again when the answer is not the one wanted; all else waits for it."""
TIMEOUT_S: Final = 30.0
LOOK_S: Final = 0.1


def steps() -> list[tuple[str, list[str]]]:
    """The commands of the page with what they show."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def _exchange(text: str, words: dict[str, str]) -> str:
    """The text with each of the words, where it stands alone, replaced by what belongs to it."""
    alone = re.compile(r"(?<![\w+/])(?:" + "|".join(map(re.escape, words)) + r")(?![\w+/])")
    return alone.sub(lambda found: words[found.group()], text) if words else text


class Story:
    """The nodes of the page on free ports, and which of its words stand for which of theirs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._real: dict[str, str] = {}
        self._ids = {port: node_id for node_id, port in NODE_LINE.findall(TEXT)}
        self.servers: list[ServerProcess] = []

    def translate(self, command: str) -> str:
        """A command as it has to be run here."""
        return _exchange(command, self._real)

    def _shown(self, output: str) -> list[str]:
        return _exchange(output, {real: shown for shown, real in self._real.items()}).splitlines()

    def start(self, command: str) -> None:
        """`disque-server --port <port> --dir <name> ...`; who it is stands on the page under its port."""
        words = shlex.split(command.removesuffix("&"))
        port, name = words[2], words[4]
        directory = self._directory / name
        directory.mkdir()
        arguments = self.translate(" ".join(words[5:])).split()
        self._real[port] = str(free_port())
        server = ServerProcess(directory, *arguments, port=int(self._real[port]))
        self.servers.append(server)
        server.wait_ready()
        self._real[self._ids[port]] = self._run(f"disque -p {port} cluster myid").strip()

    def _run(self, command: str) -> str:
        words = [sys.executable, "-m", "disqued.cli.main", *shlex.split(self.translate(command))[1:]]
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout

    def follow(self, command: str, wanted: list[str]) -> None:
        """Run a command until it shows what is wanted."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while not self._matches(lines := self._shown(self._run(command)), wanted, in_order=" nodes" not in command):
            if ONCE & set(command.split()) or time.monotonic() > deadline_s:
                pytest.fail("\n".join(["$ " + command, *lines, "--- the page says", *wanted]))
            time.sleep(LOOK_S)

    def _matches(self, lines: list[str], wanted: list[str], *, in_order: bool) -> bool:
        if not in_order:
            lines, wanted = sorted(lines), sorted(wanted)
        pattern = "".join(".*" if line == ANY else self._pattern(line) + "\n" for line in wanted)
        match = re.fullmatch(pattern, "".join(line + "\n" for line in lines), re.DOTALL)
        if match is None:
            return False
        for name, job_id in match.groupdict().items():
            self._real[bytes.fromhex(name[1:]).decode()] = job_id
        return True

    def _pattern(self, line: str) -> str:
        found = JOB_ID.fullmatch(line)
        if found and line not in self._real:
            return f"(?P<j{line.encode().hex()}>{JOB_ID.pattern})"
        return TIME.sub(r"\\d{13}", re.escape(line))


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    """A story whose nodes are gone at its end."""
    told = Story(tmp_path)
    yield told
    for server in told.servers:
        server.stop()


def test_the_page_runs(story: Story) -> None:
    assert len(steps()) > 20
    for command, wanted in steps():
        if command.startswith("disque-server"):
            story.start(command)
        elif command.startswith("kill -9 %"):
            story.servers[int(command.removeprefix("kill -9 %")) - 1].process.kill()
        else:
            story.follow(command, wanted)


def test_the_figures_and_log_lines_it_sends_readers_to_exist() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (PAGE.parents[2] / "broker").rglob("*.py"))
    names = re.findall(r"`([a-z]+(?:[_-][a-z]+)+)`", TEXT.partition("## Troubleshooting")[2])
    assert len(names) > 6
    assert [name for name in names if name not in sources] == []
    assert "is refused: " in sources
    assert "The clock of node " in sources
