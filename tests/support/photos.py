"""The example application `examples/photos` as users run it: a web server and workers, each a process of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from PIL import Image

from disqued.testing.ports import LOOPBACK, free_port
from disqued.testing.processes import LocalProcess

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
WIDTHS: Final = (64, 256, 1024)
QUEUES: Final = "photos,thumbnails"


def picture(seed: int) -> bytes:
    """A small PNG, another one for each seed."""
    data = io.BytesIO()
    Image.frombytes("RGB", (40, 30), random.Random(seed).randbytes(3600)).resize((1200, 900)).save(data, "PNG")
    return data.getvalue()


@dataclass
class Sent:
    """A picture that the web server has accepted."""

    photo: str
    task: str
    at_s: float
    """Unix seconds before it was sent: its reminder is due after this."""


@dataclass
class Account:
    """What ran, by task ID: on which workers it started, how often it ended, and its name."""

    started: dict[str, list[str]] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)
    names: dict[str, str] = field(default_factory=dict)

    @property
    def workers(self) -> set[str]:
        """The workers that have started a task."""
        return {worker for workers in self.started.values() for worker in workers}

    @property
    def repeated(self) -> list[str]:
        """The tasks that started more than once."""
        return [task for task, workers in self.started.items() if len(workers) > 1]


class Photos:
    """The application in a folder; all its processes end with the context."""

    def __init__(self, folder: Path, broker: str, results: str, *, remind_in_s: float) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.remind_in_s = remind_in_s
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(EXAMPLES), os.environ.get("PYTHONPATH", "")))),
            "CELERY_BROKER_URL": broker,
            "CELERY_RESULT_BACKEND": results,
            "PHOTOS": str(self.data),
            "PHOTOS_REMIND_IN_S": str(remind_in_s),
            "PORT": str(self.port),
        }
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self.data.mkdir(parents=True, exist_ok=True)
        command = (sys.executable, "-m", "photos.web")
        self._exits.callback(self._kill_workers)
        self._exits.enter_context(LocalProcess(command, self.folder, self.port, environment=self.environment))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._exits.close()

    # Workers.

    def start_worker(self, name: str, *arguments: str) -> None:
        """Start a worker with two processes, in a session of its own."""
        command = [sys.executable, "-m", "celery", "-A", "photos.app", "worker", "-Q", QUEUES, "-c", "2"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.workers[name] = subprocess.Popen(
                [*command, "-n", f"{name}@example", "-l", "INFO", *arguments],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill_worker(self, name: str) -> None:
        """SIGKILL to the worker and its children, as when the machine is lost."""
        worker = self.workers.pop(name)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def stop_worker(self, name: str, timeout_s: float = 60) -> int:
        """SIGTERM: a warm shutdown. Returns the exit status."""
        worker = self.workers.pop(name)
        worker.terminate()
        return worker.wait(timeout_s)

    def _kill_workers(self) -> None:
        for name in list(self.workers):
            with contextlib.suppress(ProcessLookupError):
                self.kill_worker(name)

    # Requests.

    def send(self, seed: int) -> Sent:
        """POST a picture."""
        body = picture(seed)
        at_s = time.time()
        with urllib.request.urlopen(self._url("/photos"), body, timeout=60) as answer:
            found = json.load(answer)
        return Sent(found["photo"], found["task"], at_s)

    def state(self, task: str) -> str:
        """The state of a task, as the web server tells it."""
        with urllib.request.urlopen(self._url(f"/tasks/{task}"), timeout=60) as answer:
            return str(json.load(answer)["state"])

    def _url(self, path: str) -> str:
        return f"http://{LOOPBACK}:{self.port}{path}"

    # What has been done.

    def is_published(self, sent: Sent) -> bool:
        """Whether the album of a picture lists all its thumbnails, and they exist."""
        album = self.data / sent.photo / "album.txt"
        if not album.exists():
            return False
        names = [f"{width}.jpg" for width in WIDTHS]
        return album.read_text().split() == names and all((album.parent / name).exists() for name in names)

    def reminded_s(self, sent: Sent) -> float:
        """When the reminder about a picture was sent, in unix seconds; 0 if it was not."""
        path = self.data / sent.photo / "reminder.txt"
        return float(path.read_text()) if path.exists() else 0.0

    def account(self) -> Account:
        """What the workers noted."""
        found = Account()
        for line in (self.data / "account").read_text().splitlines():
            _, event, task, name, worker = line.split()
            found.names[task] = name.rpartition(".")[2]
            if event == "start":
                found.started.setdefault(task, []).append(worker.partition("@")[0])
            else:
                found.ended[task] += 1
        return found

    def logs(self) -> str:
        """The ends of the logs of all processes."""
        return "\n".join(
            f"== {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in self.folder.glob("*.log")
        )

    def wait(self, condition: Callable[[], bool], what: str, timeout_s: float = 300) -> None:
        """Wait until a condition holds; fails with the logs if it does not."""
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline_s:
                raise AssertionError(f"not within {timeout_s:g} s: {what}\n{self.logs()}")
            time.sleep(0.1)
