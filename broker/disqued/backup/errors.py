"""What can go wrong with a backup."""

from __future__ import annotations


class BackupError(Exception):
    """A backup cannot be made, read or restored; the text says why and what to do."""
