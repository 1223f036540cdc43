"""Take the pictures of the command line: `python -m docs.generate.terminal_pictures [kubernetes]`.

It starts three brokers with a small load, runs `disque` in tmux, and converts the screen to SVG with `rich`. It kills
one of the brokers before the last picture. With the argument `kubernetes` it takes the picture of `kubectl disque`
instead, of the cluster `jobs` in the current namespace. The SVG files load no fonts from the network: a viewer uses its
own monospace font.
"""
# ruff: noqa: S603  (a script that starts other programs)

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from disqued.client import Client, ConnectionLost
from disqued.testing.processes import ServerProcess, form_cluster

IMAGES = Path(__file__).parents[1] / "images"
PORTS = (7797, 7798, 7799)
LINES = 24
COLUMNS = 104
PROMPT_S = 0.3
"""The shell shows its prompt within this time. A command that is typed earlier appears above the prompt."""
FONT_FACE = re.compile(r"@font-face\s*\{[^}]*\}")
FONTS = "DejaVu Sans Mono, Menlo, Consolas, monospace"
PRODUCED = {"mail": 30, "mail-retry": 4, "thumbnails": 60, "billing:invoices": 10, "search-index": 25, "webhooks": 15}
"""Queue -> jobs added in a second."""
CONSUMED = {"mail": 0.1, "thumbnails": 0.05, "search-index": 0.25, "webhooks": 0.2, "reports": 1.0}
"""Queue -> pause of its worker in seconds."""


@dataclass(frozen=True)
class Picture:
    """A command to type, keys to press in it, and the time to wait for the screen."""

    name: str
    command: str
    keys: str = ""
    wait_s: float = 3.0
    lines: int = LINES
    columns: int = COLUMNS


PICTURES = (
    Picture("cli-top", "disque top", wait_s=25.0, lines=18),
    Picture("cli-queues", "disque queues; disque peek mail-retry -n 3", lines=19),
    Picture("cli-repl", "disque", "getjob nohang from ma", wait_s=2.0, lines=6),
)
WITHOUT_ONE = Picture("cli-nodes", "disque nodes", lines=8)
"""The picture after a node was killed."""
ON_KUBERNETES = Picture("kubectl-status", "kubectl disque status jobs", lines=30, columns=120)


def main() -> None:
    """Write the pictures."""
    IMAGES.mkdir(exist_ok=True)
    if sys.argv[1:] == ["kubernetes"]:
        save(capture(ON_KUBERNETES, Path.home()), ON_KUBERNETES)
        return
    with tempfile.TemporaryDirectory() as directory, cluster(Path(directory)) as nodes:
        for work in (*(lambda q=queue: consume(q) for queue in CONSUMED), produce):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(5.0)
        for picture in PICTURES:
            save(capture(picture, Path(directory)), picture)
        nodes[-1].kill()
        time.sleep(5.0)
        save(capture(WITHOUT_ONE, Path(directory)), WITHOUT_ONE)


@contextlib.contextmanager
def cluster(directory: Path) -> Iterator[list[ServerProcess]]:
    """Run a cluster of three brokers."""
    with contextlib.ExitStack() as started:
        nodes = []
        for port in PORTS:
            home = directory / str(port)
            home.mkdir()
            words = ("--loglevel", "warning", "--cluster-node-timeout", "1500")
            nodes.append(started.enter_context(ServerProcess(home, *words, port=port)))
        form_cluster(nodes)
        yield nodes


def client() -> Client:
    """Return a client of the first broker."""
    return Client([f"127.0.0.1:{PORTS[0]}"], discover=False)


def produce() -> None:
    """Add jobs until the broker stops."""
    chance = random.Random(1)  # noqa: S311  load, no secret
    numbers = iter(range(10**9))
    with client() as producer, contextlib.suppress(ConnectionLost):
        producer.pause("mail-retry", "out")
        while True:
            for queue, rate in PRODUCED.items():
                for _ in range(max(0, round(chance.gauss(rate, rate / 3) / 5))):
                    body = {"to": f"user{next(numbers)}@example.org", "template": "welcome"}
                    producer.add(queue, json.dumps(body), replicate=2)
            time.sleep(0.2)


def consume(queue: str) -> None:
    """Fetch and acknowledge jobs until the broker stops."""
    with client() as worker, contextlib.suppress(ConnectionLost):
        while True:
            for job in worker.get(queue, count=5, timeout_ms=2000):
                worker.ack(job.id)
            time.sleep(CONSUMED[queue])


def capture(picture: Picture, home: Path) -> str:
    """Return the screen, with colours as escape sequences."""
    session = ["-L", "screenshots"]
    size = ["-x", str(picture.columns), "-y", str(max(LINES, picture.lines))]
    path = f"PATH={Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    shell = ["env", path, f"DISQUE_PORT={PORTS[0]}", f"HOME={home}", "PS1=$ ", "sh"]
    tmux(*session, "new-session", "-d", *size, *shell)
    time.sleep(PROMPT_S)
    tmux(*session, "send-keys", picture.command, "Enter")
    time.sleep(picture.wait_s)
    if picture.keys:
        tmux(*session, "send-keys", "-l", picture.keys)
        time.sleep(picture.wait_s)
    shown = tmux(*session, "capture-pane", "-e", "-p")
    tmux(*session, "kill-server")
    return shown


def tmux(*arguments: str) -> str:
    """Run tmux and return what it prints."""
    done = subprocess.run(["tmux", *arguments], check=True, capture_output=True, text=True)  # noqa: S607  (the one that is installed)
    return done.stdout


def save(screen: str, picture: Picture) -> None:
    """Write the screen as an SVG."""
    console = Console(record=True, width=picture.columns, file=io.StringIO(), force_terminal=True)
    lines = screen.splitlines()[: picture.lines]
    console.print(Text.from_ansi("\n".join(lines)))
    svg = console.export_svg(title=picture.command, theme=MONOKAI)
    (IMAGES / f"{picture.name}.svg").write_text(FONT_FACE.sub("", svg).replace("Fira Code, monospace", FONTS))


if __name__ == "__main__":
    main()
