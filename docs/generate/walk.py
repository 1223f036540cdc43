"""The way of a request through the files of the broker, measured by running it.

    python -m docs.generate.walk                  print the walk of an ADDJOB with three copies and of a SETACK
    PYTHONPATH=TREE/broker python docs/generate/walk.py      the same for another checkout

A walk is the sequence of files that the interpreted build enters on the node that handles the request, from the bytes
of the input to the bytes of the output. A return is an entry to a file that the walk was in before.
"""
# ruff: noqa: T201  (a script that prints what it measured)

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import disqued
from disqued.testing.cluster import Cluster, Member

BROKER = Path(disqued.__file__).parent


class Walk:
    """The files that one node enters while it is watched."""

    def __init__(self) -> None:
        self.files: list[str] = []

    def watch(self, action: Callable[[], Any]) -> None:
        """Run something and note each file of the broker that it enters or comes back to."""
        sys.setprofile(self._on_event)
        try:
            action()
        finally:
            sys.setprofile(None)

    def _on_event(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            self._enter(frame)
        elif event == "return" and frame.f_back is not None:
            self._enter(frame.f_back)

    def _enter(self, frame: FrameType) -> None:
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(BROKER):
            return
        name = str(path.relative_to(BROKER))
        if not name.startswith(("testing/", "client/")) and (not self.files or self.files[-1] != name):
            self.files.append(name)

    @property
    def distinct(self) -> list[str]:
        """The files in the order of the first visit."""
        return list(dict.fromkeys(self.files))

    def report(self, title: str) -> None:
        """Print the walk."""
        returns = len(self.files) - len(self.distinct)
        lines = sum(len((BROKER / name).read_text(encoding="utf-8").splitlines()) for name in self.distinct)
        print(f"{title}: {len(self.distinct)} files of {lines} lines, {returns} returns")
        print(f"  {' → '.join(self.distinct)}")


def _drive(walk: Walk, cluster: Cluster, member: Member, action: Callable[[], None]) -> None:
    """Run an action, and then what arrives at the member."""
    plain = member.on_input
    member.on_input = lambda take: plain(lambda: walk.watch(take))  # type: ignore[method-assign]
    action()
    cluster.run(milliseconds=20)
    member.on_input = plain  # type: ignore[method-assign]


def main() -> None:
    """Walk."""
    cluster = Cluster(3)
    cluster.run(seconds=10)
    first, second, _ = cluster.members
    client = first.client()
    added = Walk()
    _drive(added, cluster, first, lambda: client.send("ADDJOB", "mail", "hello", 0, "REPLICATE", 3))
    job_id = client.next_reply()
    added.report("ADDJOB with three copies, on the node of the client")
    acknowledged = Walk()
    _drive(acknowledged, cluster, second, lambda: client.send("ACKJOB", job_id))  # type: ignore[arg-type]
    acknowledged.report("SETACK and DELJOB, on another holder")


if __name__ == "__main__":
    main()
