"""The tasks: thumbnails of a picture, its album when all are there, a reminder hours later, the nightly report."""

import io
import time

from celery import Task, chord
from PIL import Image

from photos import store
from photos.app import app

WIDTHS = (64, 256, 1024)


class Accounted(Task):
    """A task that notes when it starts and ends."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Run it, between two lines of the account."""
        store.note("start", self.request.id, self.name, self.request.hostname)
        result = super().__call__(*args, **kwargs)
        store.note("end", self.request.id, self.name, self.request.hostname)
        return result


@app.task(base=Accounted, autoretry_for=(OSError,), retry_backoff=True, max_retries=10)
def thumbnail(photo: str, width: int) -> str:
    """Make one thumbnail; returns its file name."""
    image = Image.open(io.BytesIO(store.original(photo).read_bytes()))
    image.thumbnail((width, width))
    data = io.BytesIO()
    image.convert("RGB").save(data, "JPEG")
    store.write(store.thumbnail(photo, width), data.getvalue())
    return store.thumbnail(photo, width).name


@app.task(base=Accounted)
def publish(names: list[str], photo: str) -> str:
    """List the thumbnails of a picture, when all are there."""
    store.write(store.album(photo), "\n".join(names).encode())
    return photo


@app.task(base=Accounted)
def remind(photo: str) -> None:
    """Remind the owner of a picture."""
    store.write(store.reminder(photo), f"{time.time():.3f}".encode())


@app.task(base=Accounted)
def report(day: str = "") -> int:
    """Count the pictures that have all thumbnails, and write it to the report of the day."""
    day = day or time.strftime("%Y-%m-%d", time.gmtime())
    count = sum(1 for _ in store.ROOT.glob("*/album.txt"))
    store.write(store.report(day), f"{count} pictures\n".encode())
    return count


def submit(photo: str, remind_in_s: float) -> str:
    """Start everything that a new picture needs; returns the ID of the task that publishes it."""
    thumbnails = [thumbnail.s(photo, width) for width in WIDTHS]
    remind.apply_async((photo,), countdown=remind_in_s)
    return str(chord(thumbnails)(publish.s(photo)).id)
