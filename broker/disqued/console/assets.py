"""The static files in `page/`. They contain no data of the node, so they need no password."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from disqued.console.guard import HEADERS
from disqued.httproutes import OK, Answer, Exchange, Route

if TYPE_CHECKING:
    from disqued.node import Node

_DIRECTORY: Final = Path(__file__).parent / "page"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_INDEX: Final = "index.html"


class Asset:
    """A static file."""

    def __init__(self, path: Path) -> None:
        self._answer = Answer(OK, path.read_bytes(), HEADERS, _TYPES[path.suffix])

    def show(self, _node: Node, exchange: Exchange) -> None:
        """Send the file."""
        exchange.send(self._answer)


def routes() -> tuple[Route, ...]:
    """Return a route for each file: the index at `/`, the others below `/console/`."""
    files = sorted(path for path in _DIRECTORY.iterdir() if path.suffix in _TYPES)
    return tuple(
        Route("/", Asset(path).show)
        if path.name == _INDEX
        else Route(f"/console/{path.name}", Asset(path).show, listed=False)
        for path in files
    )
