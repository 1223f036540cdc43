"""Puts measured text between two markers of a page."""

from __future__ import annotations

from pathlib import Path


def renew(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between the markers; exits if the page has lost them."""
    head, found_begin, rest = page.read_text().partition(begin)
    _, found_end, tail = rest.partition(end)
    if not found_begin or not found_end:
        raise SystemExit(f"bench: {page} has lost its markers {begin} and {end}")
    page.write_text(f"{head}{begin}{text}{end}{tail}")
