"""`disque-server` with the room of the tests: `python notes_server.py [--directive value ...]`."""

from __future__ import annotations

from disqued.node import ROOMS
from disqued.server.main import main
from rooms.notes import NOTES

if __name__ == "__main__":
    main(ROOMS.and_also(NOTES))
