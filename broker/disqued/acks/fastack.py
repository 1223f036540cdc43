"""FASTACK: the jobs are done, and no care is taken that all nodes hear of it. Without other nodes it is DELJOB."""

from __future__ import annotations

from typing import Final

from disqued.acks.deljob import delete_all
from disqued.core.command import Command

COMMAND: Final[Command] = Command(
    "fastack",
    -1,
    ("write", "fast"),
    delete_all,
    "jobs",
    "Deletes jobs from all nodes that may have them, at best effort.",
    "job-id [job-id ...]",
    "O(jobs)",
)
