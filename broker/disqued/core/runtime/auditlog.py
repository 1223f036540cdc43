"""The audit log: who changed what on this node, as lines of JSON in the file of `audit-log-file`.

Lines are written by the host's disk, so the node never waits for them. While a write is running, lines gather, up to
GATHERED_BYTES; more are lost, and so are lines whose write fails. Losses are counted, and logged once until a write
succeeds again. The node continues without its audit log.
"""

from __future__ import annotations

import json
from typing import Final

from mypy_extensions import i64

from disqued.config.option import REDACTED
from disqued.core.cluster.view import ClusterView
from disqued.core.host import disk
from disqued.core.host.disk import DiskOwner, DiskWork
from disqued.core.host.host import Host
from disqued.core.runtime.counters import AUDIT_RECORDS_LOST
from disqued.core.telemetry.counter import Counters
from disqued.resp.words import shorten

MAX_WORDS: Final = 64
"""A line has this many words of a request,"""
MAX_BYTES: Final = 256
"""and this many bytes of each."""
MAX_OUTCOME: Final = 512
"""The longest text of an error, in characters."""
GATHERED_BYTES: Final = 1 << 20
"""How many bytes wait for the disk at most."""


class AuditFile(DiskOwner):
    """One open audit log file."""

    def __init__(self, host: Host, counters: Counters, name: str) -> None:
        self._host = host
        self._counters = counters
        self.name = name
        self._lines: list[bytes] = []
        """Lines that wait for the work that is running."""
        self._bytes: i64 = 0
        self._busy: bool = False
        """Whether work is running."""
        self._open: bool = False
        self._closing: bool = False
        self.closed: bool = False
        """All lines are written, and the file is closed."""
        self._losing: bool = False
        """Whether the last work failed, or lines were dropped since it began."""

    def open(self) -> str:
        """Open the file and wait for that; returns why it cannot be opened, or an empty text."""
        work = self._work(disk.OPEN)
        self._host.disk.perform(work)
        self._open = not work.error
        return work.error

    def add(self, line: bytes) -> None:
        """Write a line soon."""
        if self._bytes + len(line) > GATHERED_BYTES:
            self._lose(1, "the disk is too slow")
            return
        self._lines.append(line)
        self._bytes += len(line)
        if not self._busy:
            self._continue()

    def flush(self) -> None:
        """Write everything, and wait for that: the process ends."""
        if not self._open and not self.closed:
            self._perform(self._work(disk.OPEN))
        if self._open:
            self._perform(self._append())

    def reopen(self) -> None:
        """Open the file again under its name, because it may have been renamed; it is not closed as announced."""
        self._closing = False
        self._host.disk.start(DiskWork(disk.CLOSE, self.name, self))
        self._open = False
        if not self._busy:
            self._continue()

    def close(self) -> None:
        """Close the file when all lines are written."""
        self._closing = True
        if not self._busy:
            self._continue()

    def _work(self, verb: i64) -> DiskWork:
        work = DiskWork(verb, self.name, self)
        work.direct = False
        return work

    def _perform(self, work: DiskWork) -> None:
        self._host.disk.perform(work)
        self._conclude(work)

    def _append(self) -> DiskWork:
        work = self._work(disk.APPEND)
        work.data, self._lines = self._lines, []
        self._bytes = 0
        return work

    def _continue(self) -> None:
        """Start the next work, if there is some."""
        if not self._open and not (self._closing and not self._lines):
            work = self._work(disk.OPEN)
        elif self._lines:
            work = self._append()
        else:
            if self._closing and not self.closed:
                self.closed = True
                self._open = False
                self._host.disk.start(DiskWork(disk.CLOSE, self.name, self))
            return
        self._busy = True
        self._host.disk.start(work)
        if work.finished:
            self.disk_done(work)

    def disk_done(self, work: DiskWork) -> None:
        """Work is done, or failed."""
        if work.verb == disk.CLOSE:
            return
        self._busy = False
        self._conclude(work)
        if self._lines or self._closing or (work.verb == disk.APPEND and not self._open):
            self._continue()

    def _conclude(self, work: DiskWork) -> None:
        if work.verb == disk.OPEN:
            self._open = not work.error
            if work.error:
                count = len(self._lines)
                self._lines = []
                self._bytes = 0
                self._lose(count, work.error)
        elif work.error:
            self._lose(len(work.data), work.error)
        elif work.data and self._losing:
            self._losing = False
            self._host.log("notice", f"The audit log is written again: file={self.name}")

    def _lose(self, count: i64, why: str) -> None:
        self._counters.add(AUDIT_RECORDS_LOST, count)
        if not self._losing:
            self._losing = True
            self._host.log("warning", f"Records of the audit log are lost: file={self.name} error={why}")


class AuditLog:
    """The audit log of one node."""

    def __init__(self, host: Host, counters: Counters, view: ClusterView) -> None:
        self._host = host
        self._counters = counters
        self._view = view
        self.file: AuditFile | None = None
        """None while `audit-log-file` is empty."""
        self._former: dict[str, AuditFile] = {}
        """Files that were in use before, by name, some of which have lines that wait for the disk."""

    def switch(self, name: str) -> str:
        """Write to another file from now on, to none if `name` is empty; returns why not, or an empty text.

        The caller closes the file before, after the last record. A file whose lines are not all written is only opened
        again, so that its lines stay in order and nobody closes it.
        """
        before = self.file
        self._former = {former: file for former, file in self._former.items() if not file.closed}
        file = before if before is not None and before.name == name else self._former.pop(name, None)
        if file is not None:
            file.reopen()
        elif name:
            file = AuditFile(self._host, self._counters, name)
            error = file.open()
            if error:
                return error
        if before is not None and before is not file:
            self._former[before.name] = before
        self.file = file
        return ""

    def flush(self) -> None:
        """Write the records that wait, and wait for that: the process ends."""
        for file in (*self._former.values(), self.file):
            if file is not None:
                file.flush()

    def line(
        self, user: bytes, address: bytes, *, tls: bool, words: list[bytes], outcome: str, failures: int = 0
    ) -> bytes:
        """One record. `words` are without secrets; `failures` is for logins, which share a record."""
        record: dict[str, object] = {
            "time": self._host.wall_text(),
            "node": _text(self._view.node_id),
            "user": _text(user),
            "client": _text(address),
            "tls": tls,
            "command": [_text(word) for word in shorten(words, MAX_WORDS, MAX_BYTES)],
            "outcome": _text(outcome.encode("utf-8", "surrogateescape"))[:MAX_OUTCOME],
        }
        if failures:
            record["failures"] = failures
        return json.dumps(record).encode() + b"\n"

    def note_login(self, user: bytes, address: bytes, *, tls: bool, outcome: str, failures: int) -> None:
        """Record failed logins; `failures` is their number since the record before."""
        file = self.file
        if file is not None:
            words = [b"AUTH", user, REDACTED.encode()]
            file.add(self.line(user, address, tls=tls, words=words, outcome=outcome, failures=failures))


def _text(word: bytes) -> str:
    return word.decode("utf-8", "backslashreplace")
