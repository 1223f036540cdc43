"""The server's log: one line per event, in the original's form, to standard output or a file, and to syslog.

`<pid>:<role> <day month time> <mark> <text>`, where the mark is the level: `.` debug, `-` verbose, `*` notice,
`#` warning. It uses the standard library's logging, so log lines of libraries have the same form. The server has no
child processes, so the role is always `P`. Text that is not valid UTF-8, such as a file name, is written as its
original bytes. Control characters are escaped here, for all callers: text that comes from a client or another node
cannot forge a line. Syslog gets only the text and adds its own time and name.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Final

VERBOSE: Final = 15
NOTICE: Final = 25
_LEVELS: Final = {"debug": logging.DEBUG, "verbose": VERBOSE, "notice": NOTICE, "warning": logging.WARNING}
_MARKS: Final = ((logging.WARNING, "#"), (NOTICE, "*"), (VERBOSE, "-"), (0, "."))
SYSLOG_ADDRESS: Final = "/dev/log"
_LOGGER: Final = logging.getLogger("disqued")

_CONTROLS: Final = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
_ESCAPES: Final = {code: chr(code).encode("unicode_escape").decode() for code in _CONTROLS}
"""Everything that ends a line or steers a terminal."""

logging.addLevelName(VERBOSE, "VERBOSE")
logging.addLevelName(NOTICE, "NOTICE")


class LineFormatter(logging.Formatter):
    """Formats one log line; levels of other loggers get the mark of the level at or below them."""

    def format(self, record: logging.LogRecord) -> str:
        """The line without its newline."""
        at = datetime.fromtimestamp(record.created).astimezone()
        mark = next(mark for level, mark in _MARKS if record.levelno >= level)
        text = super().format(record)
        return f"{record.process}:P {at:%d %b %H:%M:%S}.{at.microsecond // 1000:03} {mark} {text}"


class LogFile(logging.handlers.WatchedFileHandler):
    """A log file that is reopened after it was renamed or removed: log rotation needs no signal."""

    def __init__(self, path: str) -> None:
        super().__init__(path, encoding="utf-8", errors="surrogateescape")

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or drop it."""
        try:
            super().emit(record)
        except OSError:  # it cannot be reopened
            self.handleError(record)


class SyslogHandler(logging.handlers.SysLogHandler):
    """Sends lines to the machine's syslog."""

    priority_map: ClassVar = {"DEBUG": "debug", "VERBOSE": "info", "INFO": "info", "NOTICE": "notice"}
    """All other levels are warnings."""

    def __init__(self, ident: str, facility: str) -> None:
        super().__init__(SYSLOG_ADDRESS, self.facility_names[facility])
        self.ident = f"{ident}[{os.getpid()}]: "


def configure(level: str, path: str, syslog: tuple[str, str] | None = None) -> None:
    """Send lines to the file at `path`, to standard output when it is empty, and to syslog (ident, facility).

    Without a syslog the server starts nevertheless and logs a warning. Lines that cannot be written later, for example
    to a full disk, are dropped without a traceback, as in the original.

    Raises:
        OSError: the file cannot be opened.
    """
    logging.raiseExceptions = False
    lines = _open_lines(path)
    lines.setFormatter(LineFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(lines)
    set_level(level)
    if syslog is not None:
        root.addHandler(SyslogHandler(*syslog))
        if not Path(SYSLOG_ADDRESS).is_socket():
            write("warning", f"There is no syslog at {SYSLOG_ADDRESS}: lines go only to the log")


def set_level(level: str) -> None:
    """Drop lines below `level`."""
    _LOGGER.setLevel(_LEVELS[level])


def write(level: str, text: str) -> None:
    """Write a line. Control characters in the text, line ends included, are escaped."""
    _LOGGER.log(_LEVELS[level], "%s", text.translate(_ESCAPES))


def _open_lines(path: str) -> logging.Handler:
    if path:
        return LogFile(path)
    return logging.StreamHandler(os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False))
