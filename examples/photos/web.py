"""The web server: takes pictures, and tells what has become of them.

    POST /photos            the picture as the body: 202, and JSON with "photo" and "task"
    GET /tasks/ID           JSON with the state of the task
    GET /photos/ID/WIDTH    the thumbnail

Any WSGI server runs `application`; `python -m photos.web` runs the one that comes with Python.
"""

import json
import os
import uuid
from collections.abc import Callable, Iterable
from wsgiref.simple_server import make_server

from photos import store
from photos.app import app
from photos.tasks import WIDTHS, submit

REMIND_IN_S = float(os.environ.get("PHOTOS_REMIND_IN_S", str(6 * 3600)))
MOST_BYTES = 20_000_000


def application(environ: dict[str, object], start: Callable[[str, list[tuple[str, str]]], object]) -> Iterable[bytes]:
    """Answer one request."""
    status, kind, body = _answer(environ)
    start(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]


def _answer(environ: dict[str, object]) -> tuple[str, str, bytes]:
    parts = str(environ["PATH_INFO"]).strip("/").split("/")
    match environ["REQUEST_METHOD"], parts:
        case "POST", ["photos"]:
            size = int(str(environ.get("CONTENT_LENGTH") or 0))
            if not 0 < size <= MOST_BYTES:
                return _json("400 Bad Request", {"error": f"send a picture of at most {MOST_BYTES} bytes"})
            photo = uuid.uuid4().hex
            store.write(store.original(photo), environ["wsgi.input"].read(size))  # type: ignore[attr-defined]
            return _json("202 Accepted", {"photo": photo, "task": submit(photo, REMIND_IN_S)})
        case "GET", ["tasks", task]:
            return _json("200 OK", {"state": app.AsyncResult(task).state})
        case "GET", ["photos", photo, width] if width in map(str, WIDTHS) and photo.isalnum():
            path = store.thumbnail(photo, int(width))
            if path.exists():
                return "200 OK", "image/jpeg", path.read_bytes()
    return _json("404 Not Found", {"error": "no such page"})


def _json(status: str, value: object) -> tuple[str, str, bytes]:
    return status, "application/json", json.dumps(value).encode() + b"\n"


if __name__ == "__main__":
    with make_server("", int(os.environ.get("PORT", "8000")), application) as server:
        server.serve_forever()
