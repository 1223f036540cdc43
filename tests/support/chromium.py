"""The browser of the system, for tests and pictures of the console."""

from __future__ import annotations

import shutil


def find_chromium() -> str | None:
    """Where it is, if there is one."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
