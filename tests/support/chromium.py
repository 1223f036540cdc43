"""The installed browser, for tests and screenshots of the console."""

from __future__ import annotations

import shutil


def find_chromium() -> str | None:
    """The path of the browser, if one is installed."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
