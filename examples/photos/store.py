"""The files of the application: pictures, thumbnails, reports, and the account of what ran.

A file is written beside its place and then renamed, so that a worker that dies leaves no half of it, and a task that
runs twice writes the same file twice.
"""

import os
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(os.environ.get("PHOTOS", "photos-data"))
"""The folder of the application, shared by the web server and the workers."""


def original(photo: str) -> Path:
    """Where a picture is, as it was sent."""
    return ROOT / photo / "original"


def thumbnail(photo: str, width: int) -> Path:
    """Where a thumbnail of it is."""
    return ROOT / photo / f"{width}.jpg"


def album(photo: str) -> Path:
    """Where the list of its thumbnails is."""
    return ROOT / photo / "album.txt"


def reminder(photo: str) -> Path:
    """Where it says when the reminder about it was sent."""
    return ROOT / photo / "reminder.txt"


def report(day: str) -> Path:
    """Where the report of a day is."""
    return ROOT / f"report-{day}.txt"


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(data)
    beside.replace(path)


def note(event: str, task_id: str, name: str, worker: str) -> None:
    """Append a line to the account of the tasks: unix seconds, what happened, the task, its name, the worker."""
    ROOT.mkdir(parents=True, exist_ok=True)
    with (ROOT / "account").open("ab", buffering=0) as account:
        account.write(f"{time.time():.3f} {event} {task_id} {name} {worker}\n".encode())
